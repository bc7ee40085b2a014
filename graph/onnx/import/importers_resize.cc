// Importers of Resize in its forms since opset 10, and of its predecessor Upsample.
#include <algorithm>

#include "graph/onnx/import/node_import.h"
#include "graph/resize.h"

namespace ag {
namespace {

// Returns the attributes of a resize of all axes to given sizes.
Attributes BySizes(Ints sizes) { return {{"sizes", std::move(sizes)}}; }

StatusOr<Attributes> ByScales(const Shape& in, const std::vector<float>& scales) {
  Ints sizes, fractions;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    if (!(scales[axis] > 0)) {
      return Err(StatusCode::kInvalidArgument, "scale {} of axis {} is not above 0", scales[axis],
                 axis);
    }
    AG_LET(const ResizeScale scale, ScaleOf(scales[axis]));
    fractions.insert(fractions.end(), {scale.over, scale.under});
    sizes.push_back(ScaledSize(in[axis], scales[axis]));
  }
  return Attributes{{"sizes", std::move(sizes)}, {"scales", std::move(fractions)}};
}

StatusOr<ValueId> Resized(NodeImport& node, ValueId x, Attributes attributes) {
  const Shape& in = node.ShapeOf(x);
  const Ints& sizes = attributes.IntList("sizes");
  if (std::equal(sizes.begin(), sizes.end(), in.begin(), in.end())) return x;  // With any scales.
  return node.Emit(OpKind::kResize, {x}, std::move(attributes));
}

// Resizes by scales as before opset 11: the nearest element is the one after the place with `up`,
// else the one before it.
StatusOr<ValueId> OldResize(NodeImport& node, ValueId x, const std::vector<float>& scales,
                            bool up) {
  const Shape in = node.ShapeOf(x);
  AG_LET(Attributes attributes, ByScales(in, scales));
  attributes.Set("mode", node.String("mode", "nearest"));
  attributes.Set("coordinate_transformation_mode", std::string("asymmetric"));
  attributes.Set("nearest_mode", std::string(up ? "ceil" : "floor"));
  return Resized(node, x, std::move(attributes));
}

// Before opset 11 the nearest element is the one before the place on a growing axis, and the one
// after it on a shrinking axis. Two steps do both.
Status ImportOldForm(NodeImport& node, const std::vector<float>& scales) {
  const size_t rank = node.ShapeOf(node.In(0)).size();
  if (scales.size() != rank) {
    return Err(StatusCode::kInvalidArgument, "expected {} scales, got {}", rank, scales.size());
  }
  if (node.String("mode", "nearest") != "nearest") {
    return node.Out(OldResize(node, node.In(0), scales, false));
  }
  std::vector<float> shrinking = scales, growing = scales;
  for (size_t axis = 0; axis < rank; ++axis) (scales[axis] < 1 ? growing : shrinking)[axis] = 1;
  AG_LET(const ValueId smaller, OldResize(node, node.In(0), shrinking, true));
  return node.Out(OldResize(node, smaller, growing, false));
}

// Returns one value per axis, from one value for each of `axes`; the other axes have `unchanged`.
template <class T, class List>
StatusOr<std::vector<T>> Spread(std::string_view name, const std::vector<T>& given,
                                const std::optional<Ints>& axes, const List& unchanged) {
  const size_t expected = axes.has_value() ? axes->size() : unchanged.size();
  if (given.size() != expected) {
    return Err(StatusCode::kInvalidArgument, "{}: expected {} values, got {}", name, expected,
               given.size());
  }
  if (!axes.has_value()) return given;
  std::vector<T> all(unchanged.begin(), unchanged.end());
  AG_LET(const Ints resolved, ResolveAxes(*axes, static_cast<int64_t>(all.size())));
  for (size_t i = 0; i < resolved.size(); ++i) all[resolved[i]] = given[i];
  return all;
}

// Refuses features of opset 18 that the IR lacks.
Status CheckPlainSampling(NodeImport& node) {
  if (node.opset() < 18) return OkStatus();
  if (node.Int("antialias", 0) != 0) {
    return Err(StatusCode::kUnimplemented, "antialias is not supported");
  }
  const std::string policy = node.String("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return OkStatus();
  return Err(StatusCode::kUnimplemented, "keep_aspect_ratio_policy {} is not supported",
             Quoted(policy));
}

StatusOr<Attributes> GivenSizes(NodeImport& node) {
  const Shape& in = node.ShapeOf(node.In(0));
  const std::optional<Ints> axes = node.opset() < 18 ? std::nullopt : node.IntList("axes");
  std::vector<float> scales;
  Ints sizes;
  if (node.Has(2)) {
    AG_LET(scales, node.KnownFloats(2));
  }
  if (node.Has(3)) {
    AG_LET(sizes, node.KnownInts(3));
  }
  if (scales.empty() == sizes.empty()) {
    return Err(StatusCode::kInvalidArgument, "expected scales or sizes, got {}",
               scales.empty() ? "neither" : "both");
  }
  if (scales.empty()) {
    AG_LET(Ints all, Spread("sizes", sizes, axes, in));
    return BySizes(std::move(all));
  }
  AG_LET(const std::vector<float> all,
         Spread("scales", scales, axes, std::vector<float>(in.size(), 1)));
  return ByScales(in, all);
}

Status ImportResize(NodeImport& node) {
  if (node.opset() < 11) {
    AG_TRY(node.CheckInputs(2, 2));
    AG_LET(const std::vector<float> scales, node.KnownFloats(1));
    return ImportOldForm(node, scales);
  }
  AG_TRY(node.CheckInputs(1, 4));
  AG_TRY(CheckPlainSampling(node));
  const std::string places = node.String("coordinate_transformation_mode", "half_pixel");
  if (places == "tf_crop_and_resize") {
    return Err(StatusCode::kUnimplemented, "{} is not supported", places);
  }
  node.Ignore("extrapolation_value");  // Only a crop uses it.
  AG_LET(Attributes attributes, GivenSizes(node));
  attributes.Set("coordinate_transformation_mode", places);
  attributes.Set("mode", node.String("mode", "nearest"));
  attributes.Set("nearest_mode", node.String("nearest_mode", "round_prefer_floor"));
  attributes.Set("cubic_coeff_a", node.Float("cubic_coeff_a", -0.75));
  attributes.Set("exclude_outside", node.Int("exclude_outside", 0));
  return node.Out(Resized(node, node.In(0), std::move(attributes)));
}

Status ImportUpsample(NodeImport& node) {
  if (node.opset() < 7 || node.opset() > 9) {
    return Err(StatusCode::kUnimplemented, "Upsample of opset {} is not supported", node.opset());
  }
  if (node.opset() == 9) {
    AG_TRY(node.CheckInputs(2, 2));
    AG_LET(const std::vector<float> scales, node.KnownFloats(1));
    return ImportOldForm(node, scales);
  }
  AG_TRY(node.CheckInputs(1, 1));
  const OnnxAttribute* scales = node.Find("scales");
  if (scales == nullptr || scales->type != OnnxAttributeType::kFloats) {
    return Err(StatusCode::kInvalidArgument, "attribute \"scales\" is missing");
  }
  return ImportOldForm(node, scales->floats);
}

}  // namespace

std::span<const NodeImporterRow> ResizeImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"Resize", ImportResize},
      {"Upsample", ImportUpsample},
  };
  return kRows;
}

}  // namespace ag
