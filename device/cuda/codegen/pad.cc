// Padding: each element is read from the place that its axes' positions give, or is the value.
#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/lanes.h"

namespace ag::cuda {
namespace {

// The parameters of a pad, by axis of the output, sorted as in memory.
struct PadProblem {
  TensorArgument from, to;
  Space space;
  Sizes begins, from_sizes;  // Pads before the first element; sizes of the input.
  std::string mode;
  // Axes of one element are resolved here.
  int64_t offset = 0;     // Their place in the input.
  bool is_value = false;  // They are in the padding.

  bool IsPadded(size_t axis) const {
    return begins[axis] != 0 || from_sizes[axis] != space.sizes[axis];
  }
};

// Returns the place that the first element of an axis reads; -1: the value. REQUIRES: the pads are
// checked.
int64_t FirstSource(const std::string& mode, int64_t begin, int64_t size) {
  if (begin <= 0) return -begin < size ? -begin : -1;
  if (mode == "constant") return -1;
  return mode == "edge" ? 0 : begin;
}

StatusOr<PadProblem> PadProblemOf(GroupText* group) {
  const Node& node = group->context().node(0);
  PadProblem p{.mode = node.attributes->String("mode")};
  group->BeginKernel("pad");
  const DType stored = StoredDType(node.outputs[0].dtype, group->context().precision);
  AG_LET(p.from, group->Source(node.inputs[0], {.stored = stored}));
  AG_LET(p.to, group->Target(0));
  p.space = {.sizes = Sizes(p.to.shape.begin(), p.to.shape.end()),
             .strides = {p.to.strides, p.from.strides}};
  const std::vector<size_t> axes = p.space.Sort();
  for (const size_t axis : axes) {
    p.begins.push_back(node.IntList("pads")[axis]);
    p.from_sizes.push_back(p.from.shape[axis]);
  }
  if (axes.empty()) {
    p.begins = {0};
    p.from_sizes = {1};
  }
  for (size_t axis = 0; axis < p.to.shape.size(); ++axis) {
    if (p.to.shape[axis] != 1) continue;
    const int64_t source = FirstSource(p.mode, node.IntList("pads")[axis], p.from.shape[axis]);
    p.is_value |= source < 0;
    p.offset += source * p.from.strides[axis];
  }
  return p;
}

// Returns the widest vector; only an axis without padding moves in vectors.
int64_t WidestVector(const PadProblem& p, int64_t most) {
  int64_t vector = p.IsPadded(p.space.sizes.size() - 1) ? 1 : VectorOf(p.space, most);
  while (p.offset % vector != 0) vector /= 2;
  return vector;
}

StatusOr<std::vector<std::string>> PadVariants(const GroupContext& context) {
  GroupText group(context);
  AG_LET(const PadProblem p, PadProblemOf(&group));
  const int64_t vector = WidestVector(p, 16 / SizeOf(p.to.stored));
  std::vector<std::string> names{fmt::format("v{}/128", vector), fmt::format("v{}/256", vector)};
  if (vector > 1) names.push_back("v1/128");
  return names;
}

// Returns the place that position `at` of a padded axis reads.
std::string SourceOf(const std::string& mode, const std::string& at, int64_t begin, int64_t size) {
  const std::string moved =
      begin < 0 ? fmt::format("{} + {}", at, -begin) : fmt::format("{} - {}", at, begin);
  if (mode == "constant") return moved;
  const int64_t last = size - 1;
  if (mode == "edge") {
    return fmt::format("{} < {} ? 0 : {} > {} ? {} : {}", at, begin, at, begin + last, last, moved);
  }
  return fmt::format("{} < {} ? {} - {} : {} > {} ? {} - {} : {}", at, begin, begin, at, at,
                     begin + last, 2 * last + begin, at, moved);
}

StatusOr<GeneratedGroup> GeneratePad(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(const PadProblem p, PadProblemOf(&group));
  const Lanes lanes = LanesOf(p.space, variant);
  Text text;
  std::vector<std::string> at = BeginLanes(&text, lanes, "ag_block_x()");
  const std::string to = Plus(p.to.name, Offset(at, lanes.space.strides[0]));
  std::vector<std::string> inside;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    if (!p.IsPadded(axis)) continue;
    const std::string source = fmt::format("s{}", axis);
    text.Line("const {} {} = {};", lanes.type, source,
              SourceOf(p.mode, at[axis], p.begins[axis], p.from_sizes[axis]));
    if (p.mode == "constant") {
      inside.push_back(fmt::format("{} >= 0 && {} < {}", source, source, p.from_sizes[axis]));
    }
    at[axis] = source;
  }
  const Node& node = context.node(0);
  const TensorType& type = node.outputs[0];
  text.Line("{} value;", p.to.type());
  text.Line("ag_put(value, {});", Literal(node.Float("value"), type.dtype));
  text.Line("ag_pack<{}, {}> y = ag_fill<{}>(value);", p.to.type(), lanes.vector, lanes.vector);
  if (!p.is_value && NumElements(p.from.shape) > 0) {
    const std::string first = Plus(p.from.name, fmt::format("{}", p.offset));
    const std::string from = Plus(first, Offset(at, lanes.space.strides[1]));
    const std::string condition = inside.empty() ? "" : "if (" + Join(inside, " && ") + ") ";
    text.Line("{}y = {};", condition, LoadLanes(lanes, 1, from));
  }
  StoreLanes(&text, lanes, 0, to, "y");
  AG_TRY(group.EndKernel({.grid = {lanes.blocks(), 1, 1}, .threads = lanes.threads}, text));
  return group.Take();
}

}  // namespace

const Family kPadFamily = {PadVariants, GeneratePad};

}  // namespace ag::cuda
