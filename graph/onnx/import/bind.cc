// Checks before the first node: versions, inputs and their sizes, the order of nodes.
#include <set>

#include "absl/strings/str_join.h"
#include "graph/onnx/import/default_sizes.h"
#include "graph/onnx/import/importer.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/plan_metadata.h"

namespace ag {
namespace {

constexpr int64_t kOpsetMin = 1, kOpsetMax = 28, kIrVersionMin = 3, kIrVersionMax = 14;

Status CheckVersions(const OnnxOrigin& origin) {
  if (origin.ir_version < kIrVersionMin || origin.ir_version > kIrVersionMax) {
    return Err(StatusCode::kUnimplemented, "ir_version {} is outside {} to {}: export for opset {}",
               origin.ir_version, kIrVersionMin, kIrVersionMax, kOpsetMax);
  }
  std::set<std::string> domains;
  for (const auto& [domain, version] : origin.opsets) {
    if (!domains.insert(domain).second) {
      return Err(StatusCode::kInvalidArgument, "the model imports domain {} twice", Quoted(domain));
    }
    if (domain.empty() && (version < kOpsetMin || version > kOpsetMax)) {
      return Err(StatusCode::kUnimplemented,
                 "opset {} is outside {} to {}: export the model again for opset {}", version,
                 kOpsetMin, kOpsetMax, kOpsetMax);
    }
  }
  if (domains.contains("")) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "the model imports no opset of the standard operators");
}

// Names of inputs and outputs are used in protobuf strings and on command lines.
Status CheckName(std::string_view what, const std::string& name) {
  constexpr size_t kNameBytesMax = 1024;
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
  if (!name.empty() && name.size() <= kNameBytesMax && printable) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{} name {} is empty, too long or not printable ASCII",
             what, Quoted(name));
}

// Returns "?x3x224x224", the text that the user completes.
std::string Template(const OnnxValueInfo& input) {
  if (input.dims.empty()) return "...";
  return absl::StrJoin(input.dims, "x", [](std::string* out, const OnnxDim& dim) {
    *out += dim.size >= 0 ? fmt::format("{}", dim.size) : "?";
  });
}

Status LearnSizes(const OnnxValueInfo& input, const Shape& bound, DimSizes& sizes) {
  for (size_t i = 0; i < bound.size(); ++i) {
    const std::string& name = input.dims[i].name;
    if (!IsSymbol(name)) continue;
    const auto [known, added] = sizes.emplace(name, bound[i]);
    if (added || known->second == bound[i]) continue;
    return Err(StatusCode::kInvalidArgument, "input {}: dimension {} ({}) is {} here, {} before",
               Quoted(input.name), i, Quoted(name), bound[i], known->second);
  }
  return OkStatus();
}

StatusOr<Shape> CompleteShape(const OnnxValueInfo& input, const DimSizes& sizes) {
  const std::string bind = fmt::format("bind it with --shape {}={}", input.name, Template(input));
  if (!input.has_shape) {
    return Err(StatusCode::kInvalidArgument, "input {} has no shape: {}", Quoted(input.name), bind);
  }
  Shape shape;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    const OnnxDim& dim = input.dims[i];
    const auto known = sizes.find(dim.name);
    if (dim.size >= 0 || (IsSymbol(dim.name) && known != sizes.end())) {
      shape.push_back(dim.size >= 0 ? dim.size : known->second);
      continue;
    }
    const std::string symbol = dim.name.empty() ? "" : fmt::format(" ({})", Quoted(dim.name));
    return Err(StatusCode::kInvalidArgument, "input {} has no size for dimension {}{}: {}",
               Quoted(input.name), i, symbol, bind);
  }
  return shape;
}

Status CheckBound(const OnnxModel& model, const ImportOptions& options, DimSizes& sizes) {
  for (const auto& [name, shape] : options.shapes) {
    const auto input = std::ranges::find(model.inputs, name, &OnnxValueInfo::name);
    if (input == model.inputs.end()) {
      const std::string names = absl::StrJoin(
          model.inputs, ", ",
          [](std::string* out, const OnnxValueInfo& info) { *out += Quoted(info.name); });
      return Err(StatusCode::kInvalidArgument, "--shape names {}, the inputs are {}", Quoted(name),
                 names);
    }
    if (!input->has_shape) continue;
    if (input->dims.size() != shape.size()) {
      return Err(StatusCode::kInvalidArgument, "input {} has rank {}, --shape gives {}",
                 Quoted(name), input->dims.size(), ShapeToString(shape));
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t stated = input->dims[i].size;
      if (stated < 0 || stated == shape[i]) continue;
      return Err(StatusCode::kInvalidArgument,
                 "input {}: dimension {} is {} in the model, --shape gives {}", Quoted(name), i,
                 stated, shape[i]);
    }
    AG_TRY(LearnSizes(*input, shape, sizes));
  }
  return OkStatus();
}

// Returns the complete types that the model states for its tensors.
std::map<std::string, TensorType> StatedTypes(const OnnxModel& model, const DimSizes& sizes) {
  std::map<std::string, TensorType> stated;
  for (const auto* infos : {&model.value_infos, &model.outputs}) {
    for (const OnnxValueInfo& info : *infos) {
      const StatusOr<DType> dtype = DTypeFromOnnx(info.data_type);
      const StatusOr<Shape> shape = CompleteShape(info, sizes);
      if (info.kind != OnnxKind::kTensor || !dtype.ok() || !shape.ok()) continue;
      const TensorType type{*dtype, *shape};
      if (CheckType(type).ok()) stated.emplace(info.name, type);
    }
  }
  return stated;
}

// Notes an input that the graph cannot hold: `type` is that of strings.
Status AddOutsideInput(const OnnxValueInfo& input, int64_t position, const TensorType& type,
                       Importer& importer) {
  const int64_t bytes = type.NumElements() * static_cast<int64_t>(sizeof(int64_t));
  if (type.dtype == DType::kString && bytes > importer.limits().tensor_bytes_max) {
    return Err(StatusCode::kResourceExhausted, "input {}: {} has {} elements", Quoted(input.name),
               type.ToString(), type.NumElements());
  }
  importer.outside_inputs.push_back({position, input.name, type, input.proto});
  return OkStatus();
}

Status AddInput(const OnnxValueInfo& input, int64_t position, const ImportOptions& options,
                const DimSizes& sizes, Importer& importer) {
  AG_TRY(CheckName("input", input.name));
  const std::string noun = fmt::format("input {}", Quoted(input.name));
  if (input.kind == OnnxKind::kOther) {
    return Err(StatusCode::kUnimplemented, "{} is {}", noun, KindName(input.kind));
  }
  if (input.kind != OnnxKind::kTensor) return AddOutsideInput(input, position, {}, importer);
  const StatusOr<DType> dtype = DTypeFromOnnx(input.data_type);
  AG_TRY(dtype, "{}", noun);
  TensorType type{*dtype, {}};
  const auto bound = options.shapes.find(input.name);
  if (bound != options.shapes.end()) {
    type.shape = bound->second;
  } else {
    AG_LET(type.shape, CompleteShape(input, sizes));
  }
  AG_TRY(CheckType(type), "{}", noun);
  if (*dtype == DType::kString) return AddOutsideInput(input, position, type, importer);
  const StatusOr<ValueId> value = importer.AddInput(input.name, type);
  AG_TRY(value, "{}", noun);
  return importer.Define(input.name, *value);
}

// Returns the shapes that the file says it was planned for.
std::map<std::string, Shape> PlannedShapes(const OnnxModel& model) {
  for (const auto& [key, value] : model.origin.metadata) {
    if (key == kSizesKey) return SizesFromText(value);
  }
  return {};
}

// Returns the input with a size for every open dimension: one of `planned`, else by role in set
// `set`. Sets *chosen when one was chosen here.
OnnxValueInfo WithDefaults(const OnnxValueInfo& input, const Shape* planned, int set,
                           DimSizes& sizes, bool* chosen) {
  OnnxValueInfo bound = input;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    const OnnxDim& dim = input.dims[i];
    if (dim.size >= 0) continue;
    const auto known = sizes.find(dim.name);
    if (IsSymbol(dim.name) && known != sizes.end()) {
      bound.dims[i].size = known->second;
      continue;
    }
    const std::optional<int64_t> sum = SizeOfSum(dim.name, sizes);
    *chosen = *chosen || !sum.has_value();
    const bool is_planned = planned != nullptr && planned->size() == input.dims.size();
    bound.dims[i].size = sum.value_or(is_planned ? (*planned)[i] : DefaultSize(input, i, set));
    if (IsSymbol(dim.name)) sizes.emplace(dim.name, bound.dims[i].size);
  }
  return bound;
}

// Returns the inputs with a size for every open dimension, and says which were chosen. A dimension
// that is a sum of others comes after these.
std::vector<OnnxValueInfo> BoundInputs(const OnnxModel& model, const ImportOptions& options,
                                       const std::set<std::string_view>& weights, int set,
                                       DimSizes& sizes, Importer& importer) {
  std::vector<OnnxValueInfo> inputs = model.inputs;
  std::vector<std::string> texts;
  const auto planned = set == 0 ? PlannedShapes(model) : std::map<std::string, Shape>();
  for (const bool sums : {false, true}) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool has_sum = std::ranges::any_of(
          inputs[i].dims, [](const OnnxDim& dim) { return dim.name.find('+') != dim.name.npos; });
      if (has_sum != sums || weights.contains(inputs[i].name) ||
          options.shapes.contains(inputs[i].name)) {
        continue;
      }
      bool chosen = false;
      const auto shape = planned.find(inputs[i].name);
      inputs[i] = WithDefaults(inputs[i], shape == planned.end() ? nullptr : &shape->second, set,
                               sizes, &chosen);
      if (chosen) texts.push_back(fmt::format("{}={}", inputs[i].name, Template(inputs[i])));
    }
  }
  if (texts.empty()) return inputs;
  importer.chosen_sizes = fmt::format("the model leaves sizes open, these were chosen: --shape {}",
                                      fmt::join(texts, " --shape "));
  importer.warnings.push_back(importer.chosen_sizes);
  return inputs;
}

}  // namespace

Status CheckModel(const OnnxModel& model, const ImportLimits&) {
  AG_TRY(CheckVersions(model.origin));
  if (model.outputs.empty()) return Err(StatusCode::kInvalidArgument, "the model has no output");
  std::set<std::string> names;
  for (const OnnxValueInfo& output : model.outputs) {
    AG_TRY(CheckName("output", output.name));
    if (!names.insert(output.name).second) {
      return Err(StatusCode::kInvalidArgument, "output {} is there twice", Quoted(output.name));
    }
  }
  return OkStatus();
}

Status BindInputs(const OnnxModel& model, const ImportOptions& options, int set, Importer& importer,
                  Obstacles& obstacles) {
  std::set<std::string_view> weights;
  for (const OnnxTensor& tensor : model.initializers) weights.insert(tensor.name);
  DimSizes sizes;
  AG_TRY(CheckBound(model, options, sizes));
  const std::vector<OnnxValueInfo> inputs =
      BoundInputs(model, options, weights, set, sizes, importer);
  int64_t position = 0;
  for (const OnnxValueInfo& input : inputs) {
    if (!weights.contains(input.name)) {
      const Status status = AddInput(input, position++, options, sizes, importer);
      const std::string noun = fmt::format("input {}", Quoted(input.name));
      if (!status.ok()) obstacles.Add(noun, status, {&input.name, 1});
    } else if (model.origin.ir_version >= 4) {
      importer.warnings.push_back(
          fmt::format("input {} has a default value and is taken as constant", Quoted(input.name)));
    }
  }
  importer.SetStated(StatedTypes(model, sizes));
  return OkStatus();
}

StatusOr<std::vector<int>> OrderNodes(std::span<const OnnxNode> nodes) {
  const int count = static_cast<int>(nodes.size());
  absl::flat_hash_map<std::string_view, int> producer;
  for (int i = 0; i < count; ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (output.empty()) continue;
      const auto [other, added] = producer.emplace(output, i);
      if (added) continue;
      return Err(StatusCode::kInvalidArgument, "tensor {} is an output of {} and of {}",
                 Quoted(output), NodeNoun(nodes[other->second], other->second),
                 NodeNoun(nodes[i], i));
    }
  }
  std::vector<int> waits(count), order;
  std::vector<std::vector<int>> readers(count);
  for (int i = 0; i < count; ++i) {
    for (const auto* names : {&nodes[i].inputs, &nodes[i].captures}) {
      for (const std::string& input : *names) {
        const auto found = producer.find(input);
        if (input.empty() || found == producer.end()) continue;
        readers[found->second].push_back(i);
        ++waits[i];
      }
    }
  }
  std::set<int> ready;  // The smallest first: a correct order of the model stays.
  for (int i = 0; i < count; ++i) {
    if (waits[i] == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const int next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const int reader : readers[next]) {
      if (--waits[reader] == 0) ready.insert(reader);
    }
  }
  for (int i = 0; i < count; ++i) {
    if (waits[i] == 0) continue;
    return Err(StatusCode::kInvalidArgument, "{} waits for its own output: the model has a cycle",
               NodeNoun(nodes[i], i));
  }
  return order;
}

}  // namespace ag
