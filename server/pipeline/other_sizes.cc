#include "server/pipeline/other_sizes.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "graph/onnx/import/default_sizes.h"
#include "graph/onnx/origin.h"
#include "rules/match/rule_clean_up.h"
#include "server/jobs/job.h"

namespace ag {
namespace {

constexpr int64_t kPrimes[] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29, 31, 37,
                               41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89};
// Sizes below it are taken for counts (a batch, heads), others for lengths (a sequence, a side).
constexpr int64_t kLengthMin = 16;

// A dimension of an input that the model leaves open.
struct OpenDimension {
  std::string input;
  int axis = 0;
  std::string name;
  int64_t bound = 0;

  // What has one value: the name, or the place where it has none.
  std::string key() const { return IsSymbol(name) ? name : fmt::format("{}:{}", input, axis); }
  bool is_sum() const { return name.find('+') != std::string::npos; }
};

std::vector<OpenDimension> OpenDimensionsOf(const ImportedModel& model) {
  std::vector<OpenDimension> open;
  for (const auto& [place, name] : model.origin.dim_names) {
    const size_t colon = place.rfind(':');
    OpenDimension dim{.input = place.substr(0, colon), .name = name};
    if (!absl::SimpleAtoi(place.substr(colon + 1), &dim.axis)) continue;
    for (size_t i = 0; i < model.graph.inputs().size(); ++i) {
      const Shape& shape = model.graph.type({model.graph.inputs()[i], 0}).shape;
      if (model.graph.input_name(i) != dim.input) continue;
      if (dim.axis < 0 || dim.axis >= static_cast<int>(shape.size())) continue;
      dim.bound = shape[dim.axis];
      open.push_back(dim);
    }
  }
  return open;
}

int64_t FreeSize(int64_t bound, int set, int which) {
  if (bound < kLengthMin) {
    std::vector<int64_t> sizes(std::begin(kPrimes), std::end(kPrimes));
    std::erase(sizes, bound);
    const bool is_proof = set == kLearnt;
    return sizes[static_cast<size_t>(is_proof ? which : which + 1 + set) % sizes.size()];
  }
  constexpr int64_t kLess[] = {3, 5, 11};
  if (set < kLearnt) return std::max<int64_t>(bound - kLess[set] - 2 * which, 2 + set + which);
  return bound / 2 + 1 + 2 * which;
}

int64_t MultipleSize(int64_t bound, int set, int which) {
  int64_t unit = 32;
  while (bound % unit != 0 || bound < kLengthMin) {
    if (unit == 1) return FreeSize(bound, set, which);
    unit /= 2;
  }
  std::vector<int64_t> sizes;
  for (int64_t step = 1; sizes.size() < static_cast<size_t>(2 * kOtherSets); ++step) {
    if (bound > step * unit) sizes.push_back(bound - step * unit);
    sizes.push_back(bound + step * unit);
  }
  return sizes[static_cast<size_t>(set + which) % sizes.size()];
}

std::string DynamicText(const OnnxOrigin& origin) {
  OnnxOrigin only;
  only.dynamic = origin.dynamic;
  return EncodeOrigin(only);
}

StatusOr<AtOtherSizes> ImportAt(const OutputSetting& setting, const RuleSet& rules,
                                const ShapesByInput& shapes, BlobDir& blobs) {
  ImportOptions options = setting.import;
  for (const auto& [name, shape] : shapes) options.shapes[name] = shape;
  AG_LET(const ImportedModel model,
         ImportInSandbox(blobs.PathOf(setting.model_digest), options, blobs, setting.sandbox));
  if (DynamicText(model.origin) != DynamicText(setting.model->origin)) {
    return Err(StatusCode::kFailedPrecondition,
               "the nodes behind the plan hold values that follow from sizes");
  }
  AtOtherSizes at{shapes, model.origin, model.graph, {}};
  AG_LET(at.input, CleanUp(at.runnable, rules));
  return at;
}

}  // namespace

ShapesByInput OtherShapes(const ImportedModel& model, SizeChoice choice, int set) {
  const std::vector<OpenDimension> open = OpenDimensionsOf(model);
  DimSizes sizes;
  std::vector<std::string> seen;  // What has a value of its own, in order.
  for (const OpenDimension& dim : open) {
    if (dim.is_sum() || sizes.contains(dim.key())) continue;
    const std::string own = choice.tied ? fmt::format("{}", dim.bound) : dim.key();
    auto at = std::ranges::find(seen, own);
    if (at == seen.end()) at = seen.insert(at, own);
    const int which = static_cast<int>(at - seen.begin());
    sizes[dim.key()] =
        choice.multiples ? MultipleSize(dim.bound, set, which) : FreeSize(dim.bound, set, which);
  }
  ShapesByInput shapes;
  for (const OpenDimension& dim : open) {
    Shape& shape = shapes[dim.input];
    for (size_t i = 0; shape.empty() && i < model.graph.inputs().size(); ++i) {
      if (model.graph.input_name(i) != dim.input) continue;
      shape = model.graph.type({model.graph.inputs()[i], 0}).shape;
    }
    const std::optional<int64_t> sum = SizeOfSum(dim.name, sizes);
    shape[dim.axis] = sum ? *sum : dim.is_sum() ? dim.bound : sizes[dim.key()];
  }
  return shapes;
}

StatusOr<std::vector<AtOtherSizes>> ImportAtOtherSizes(const OutputSetting& setting,
                                                       const RuleSet& rules, BlobDir& blobs) {
  Status first;
  for (const SizeChoice& choice : kSizeChoices) {
    std::vector<AtOtherSizes> all;
    for (int set = 0; set < kOtherSets; ++set) {
      const ShapesByInput shapes = OtherShapes(*setting.model, choice, set);
      StatusOr<AtOtherSizes> at = ImportAt(setting, rules, shapes, blobs);
      if (!at.ok() && !IsRefusal(at.status())) return at.status();
      if (!at.ok()) {
        if (first.ok()) first = Within(at.status(), "at " + ShapesText(shapes));
        break;
      }
      all.push_back(*std::move(at));
    }
    if (all.size() == static_cast<size_t>(kOtherSets)) return all;
  }
  return Err(StatusCode::kFailedPrecondition, "{}", Message(first));
}

ShapesByInput OpenShapes(const ImportedModel& model) {
  ShapesByInput shapes;
  for (size_t i = 0; i < model.graph.inputs().size(); ++i) {
    const std::string& name = model.graph.input_name(i);
    const bool is_open = std::ranges::any_of(model.origin.dim_names, [&](const auto& open) {
      return open.first.substr(0, open.first.rfind(':')) == name;
    });
    if (is_open) shapes[name] = model.graph.type({model.graph.inputs()[i], 0}).shape;
  }
  return shapes;
}

StatusOr<std::vector<AtOtherSizes>> ImportShapeSets(const v1::OptimizeRequest& asked,
                                                    const ImportedModel& model,
                                                    const ImportOptions& options,
                                                    const SandboxOptions& sandbox,
                                                    const RuleSet& rules, BlobDir& blobs) {
  std::vector<AtOtherSizes> sets;
  std::map<ShapesByInput, std::string> seen = {{OpenShapes(model), "the bound sizes"}};
  for (const v1::ShapeSet& asked_set : asked.shape_sets()) {
    ImportOptions at = options;
    at.shapes.clear();
    for (const v1::BoundShape& shape : asked_set.shapes()) {
      at.shapes[shape.input()] = Shape(shape.dims().begin(), shape.dims().end());
    }
    const std::string noun =
        fmt::format("shape set {} ({})", sets.size() + 1, ShapesText(at.shapes));
    const auto there = ImportInSandbox(blobs.PathOf(ModelOf(asked)), at, blobs, sandbox);
    AG_TRY(there, "{}", noun);
    AtOtherSizes set{OpenShapes(*there), there->origin, there->graph, {}};
    const auto [other, added] = seen.emplace(set.shapes, noun);
    if (!added) {
      return Err(StatusCode::kInvalidArgument, "{} and {} are the same: {}", noun, other->second,
                 set.shapes.empty() ? "the model leaves no size open" : ShapesText(set.shapes));
    }
    AG_LET(set.input, CleanUp(set.runnable, rules));
    sets.push_back(std::move(set));
  }
  return sets;
}

std::string ShapesText(const ShapesByInput& shapes) {
  std::vector<std::string> texts;
  for (const auto& [name, shape] : shapes) {
    texts.push_back(fmt::format("{}={}", name, fmt::join(shape, "x")));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace ag
