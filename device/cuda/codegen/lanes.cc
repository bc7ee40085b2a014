#include "device/cuda/codegen/lanes.h"

#include <algorithm>

namespace ag::cuda {
namespace {

// Returns the stride of a tensor along the innermost axis, in elements.
int64_t LaneStride(const Lanes& lanes, size_t tensor) {
  return lanes.space.strides[tensor].back() / lanes.vector;
}

// Returns true for one run: a last incomplete vector can then be done element by element.
bool HasRest(const Space& space, int64_t vector) {
  return space.sizes.size() == 1 && space.sizes[0] % vector != 0 && space.sizes[0] > vector;
}

}  // namespace

Lanes MakeLanes(Space space, int64_t vector, int64_t threads) {
  Lanes lanes{.threads = threads, .type = IndexType(space)};
  lanes.vector = HasRest(space, vector) ? vector : VectorOf(space, vector);
  lanes.rest = space.sizes.back() % lanes.vector;
  space.CountVectors(lanes.vector);
  lanes.space = std::move(space);
  return lanes;
}

std::vector<std::string> LaneVariants(const Space& space, int64_t bytes) {
  const int64_t widest = std::min<int64_t>(16 / bytes, 8);
  const int64_t vector = HasRest(space, widest) ? widest : VectorOf(space, widest);
  std::vector<std::string> names{fmt::format("v{}/128", vector)};
  if (vector > 1) names.push_back(fmt::format("v{}/128", vector / 2));
  if (vector > 2) names.push_back("v1/128");
  names.push_back(fmt::format("v{}/256", vector));
  return names;
}

Lanes LanesOf(const Space& space, const std::string& variant) {
  const std::vector<int64_t> numbers = NumbersIn(variant);
  return MakeLanes(space, numbers[0], numbers[1]);
}

std::vector<std::string> BeginLanes(Text* text, const Lanes& lanes, const std::string& block) {
  const std::string wide = lanes.type == "int" ? "" : "(long long)";
  text->Line("const {} at = {}{} * {} + ag_thread();", lanes.type, wide, block, lanes.threads);
  text->Line("if (at >= {}) return;", lanes.count() + (lanes.rest > 0 ? 1 : 0));
  return Coordinates(text, lanes.space.sizes, "at", "a", lanes.type);
}

std::string LoadLanes(const Lanes& lanes, size_t tensor, const std::string& pointer) {
  const int64_t stride = LaneStride(lanes, tensor);
  if (stride == 1) return fmt::format("ag_load<{}>({})", lanes.vector, pointer);
  if (stride == 0) return fmt::format("ag_fill<{}>(*({}))", lanes.vector, pointer);
  return fmt::format("ag_pick<{}>({}, {})", lanes.vector, pointer, stride);
}

void ZeroPadding(Text* text, const TensorArgument& of, const std::string& place, int64_t vector,
                 const std::string& pack) {
  text->Line("AG_UNROLL");
  text->Open("for (int k = 0; k < {}; ++k)", vector);
  text->Line("if ({} + k >= {}) ag_put({}.at[k], {});", place, of.shape[1], pack,
             Literal(0, of.stored));
  text->Close();
}

void StoreLanes(Text* text, const Lanes& lanes, size_t tensor, const std::string& pointer,
                const std::string& pack) {
  const int64_t stride = LaneStride(lanes, tensor);
  if (stride == 1) return text->Line("ag_store({}, {});", pointer, pack);
  text->Line("ag_place({}, {}, {});", pointer, stride, pack);
}

}  // namespace ag::cuda
