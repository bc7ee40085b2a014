#include "server/pipeline/check_inputs.h"

#include <algorithm>

namespace ag {
namespace {

constexpr int kAlways = 3;  // Kinds of data: usual, full and short.

// More than this is not stored for timings only.
constexpr int64_t kStoredBytesMax = int64_t{256} << 20;

StatusOr<InputSet> ReadGiven(const v1::InputSet& asked, const BlobDir& blobs) {
  AG_LET(const Digest digest, ParseDigest(asked.digest()));
  AG_LET(const std::shared_ptr<const MappedFile> file, blobs.Get(digest));
  return DecodeInputSet(file->bytes(), file);
}

std::string Noun(const v1::InputSet& asked) { return fmt::format("inputs {}", asked.name()); }

// A session gives inputs of strings and the like to the part of the model behind the graph.
void DropOutside(const ImportedModel& model, InputSet* set) {
  for (const DynamicPart::Input& input : model.origin.dynamic.inputs) set->erase(input.name);
}

bool HasTypes(const InputSet& set, const std::vector<InputSpec>& inputs) {
  return std::ranges::all_of(inputs, [&](const InputSpec& input) {
    const auto given = set.find(input.name);
    return given != set.end() && given->second.type() == input.type;
  });
}

// Whether the set is one of these inputs but for sizes that the model leaves open.
bool HasOtherOpenSizes(const InputSet& set, const std::vector<InputSpec>& inputs,
                       const ImportedModel& model) {
  return std::ranges::all_of(inputs, [&](const InputSpec& input) {
    const auto given = set.find(input.name);
    if (given == set.end()) return false;
    const TensorType& type = given->second.type();
    if (type.dtype != input.type.dtype || type.shape.size() != input.type.shape.size())
      return false;
    for (size_t i = 0; i < type.shape.size(); ++i) {
      const bool is_open =
          std::ranges::any_of(model.origin.dim_names, [&](const auto& place_and_symbol) {
            return place_and_symbol.first == fmt::format("{}:{}", input.name, i);
          });
      if (type.shape[i] != input.type.shape[i] && !is_open) return false;
    }
    return true;
  });
}

StatusOr<std::string> Store(const Graph& graph, InputKind kind, uint64_t seed, BlobDir& blobs) {
  const std::vector<InputSpec> inputs = DescribeInputs(graph);
  const std::string bytes = EncodeInputSet(ToInputSet(inputs, MakeInputs(inputs, kind, seed)));
  AG_LET(const Digest digest, blobs.Put(bytes, BlobDir::Durable::kAfterSync));
  return digest.Hex();
}

int64_t BytesOf(const Graph& graph) {
  int64_t bytes = 0;
  for (const NodeId input : graph.inputs()) bytes += graph.type({input, 0}).Bytes();
  return bytes;
}

}  // namespace

std::vector<InputSpec> InputsOf(const Graph& graph) {
  std::vector<InputSpec> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    inputs.push_back({.name = graph.input_name(i), .type = graph.type({graph.inputs()[i], 0})});
  }
  return inputs;
}

StatusOr<std::map<std::string, Shape>> ShapesOfInputs(const v1::OptimizeRequest& asked,
                                                      const BlobDir& blobs) {
  std::map<std::string, Shape> shapes;
  if (asked.inputs().empty()) return shapes;
  const auto set = ReadGiven(asked.inputs(0), blobs);
  AG_TRY(set, "{}", Noun(asked.inputs(0)));
  for (const auto& [name, tensor] : *set) shapes[name] = tensor.type().shape;
  return shapes;
}

StatusOr<std::vector<GivenInputs>> PlaceInputs(const v1::OptimizeRequest& asked,
                                               const SizedInputs& bound,
                                               const std::vector<SizedInputs>& shape_sets,
                                               const ImportedModel& model, const BlobDir& blobs) {
  std::vector<GivenInputs> placed;
  for (const v1::InputSet& one : asked.inputs()) {
    auto set = ReadGiven(one, blobs);
    AG_TRY(set, "{}", Noun(one));
    DropOutside(model, &*set);
    AG_LET(const Digest digest, ParseDigest(one.digest()));
    GivenInputs given{one.name(), digest};
    const SizedInputs* there = &bound;
    for (size_t i = 0; i < shape_sets.size(); ++i) {
      if (!HasTypes(*set, shape_sets[i].inputs)) continue;
      given.shape_set = i;
      there = &shape_sets[i];
    }
    const Status fits = CheckInputSet(*set, there->inputs);
    if (!fits.ok()) {
      const bool is_other_type = !HasTypes(*set, there->inputs);
      const bool is_size = is_other_type && HasOtherOpenSizes(*set, there->inputs, model);
      return Err(StatusCode::kInvalidArgument, "{}: {}{}", Noun(one), Message(fits),
                 is_size ? "; the job runs at " + bound.shapes +
                               ", further sizes are given with --shape-set"
                         : "");
    }
    placed.push_back(std::move(given));
  }
  return placed;
}

void AddInputs(const Graph& graph, const std::vector<GivenInputs>& given,
               std::optional<size_t> shape_set, uint64_t seed, v1::Check* check) {
  for (const GivenInputs& set : given) {
    if (set.shape_set != shape_set) continue;
    v1::CheckInputs* added = check->add_inputs();
    added->set_digest(set.digest.Hex());
    added->set_name(set.name);
    added->set_reference_kernels(true);
  }
  int place = 0;
  for (const InputKind kind : KindsFor(DescribeInputs(graph))) {
    v1::CheckInputs* added = check->add_inputs();
    added->set_kind(std::string(InputKindName(kind)));
    added->set_seed(seed + static_cast<uint64_t>(place));
    added->set_reference_kernels(true);
    added->set_optional(place++ >= kAlways);
  }
  // For a worker that knows no kinds.
  for (int i = 0; i < kAlways; ++i) check->add_seeds(seed + static_cast<uint64_t>(i));
  check->set_reference_kernels(true);
}

StatusOr<std::string> InputsToTime(const Graph& graph, const std::vector<GivenInputs>& given,
                                   std::optional<size_t> shape_set, uint64_t seed, BlobDir& blobs) {
  const auto own = std::ranges::find(given, shape_set, &GivenInputs::shape_set);
  if (own != given.end()) return own->digest.Hex();
  if (BytesOf(graph) > kStoredBytesMax) return std::string();
  return Store(graph, InputKind::kUsual, seed, blobs);
}

StatusOr<ComparedElsewhere> InputsElsewhere(const Graph& graph,
                                            const std::vector<GivenInputs>& given, uint64_t seed,
                                            BlobDir& blobs) {
  ComparedElsewhere compared;
  for (const GivenInputs& set : given) {
    compared.names.push_back(set.name);
    compared.digests.push_back(set.digest.Hex());
  }
  const std::vector<InputKind> kinds = KindsFor(DescribeInputs(graph));
  for (size_t i = 0; i < kAlways; ++i) {
    AG_LET(std::string digest, Store(graph, kinds[i], seed + i, blobs));
    compared.names.emplace_back(InputKindName(kinds[i]));
    compared.digests.push_back(std::move(digest));
  }
  return compared;
}

}  // namespace ag
