#include "lab/generate/world.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace ag::generate {
namespace {

// Worlds of higher rank first: their rules are general, and others repeat them.
constexpr World kWorlds[] = {
    {.name = "cube",
     .sizes = "A=2,3 B=3,4 C=4,2",
     .leaves = "x:A,B,C y:A,B,C",
     .ops = "add relu concat split transpose slice reshape softmax reduce_sum reduce_max"},
    {.name = "batch",
     .sizes = "N=2,3 A=3,2 B=2,4 C=4,3",
     .leaves = "x:N,A,B y:N,A,B w:N,B,C v:N,B,C",
     .ops = "matmul add relu concat split transpose",
     .elements_max = 64},
    {.name = "pointwise",
     .sizes = "A=2,3",
     .leaves = "x:A y:A z:A u:A",
     .ops = "add mul sub relu erf"},
    {.name = "order",
     .rationals = true,
     .sizes = "A=5,7",
     .leaves = "x:A y:A z:A",
     .ops = "add sub relu max"},
    {.name = "matrix",
     .sizes = "A=2,3 B=3,4 C=4,2 D=3,2",
     .leaves = "x:A,B y:A,B z:D,B s:D,B w:B,C v:B,C u:B,D p:C,D",
     .ops = "add mul relu matmul concat split transpose"},
    {.name = "layout",
     .sizes = "A=2,3 B=3,4 C=4,2",
     .leaves = "x:A,B y:A,B z:C,B",
     .ops = "add relu erf concat split transpose slice reshape"},
    {.name = "reduce",
     .sizes = "A=2,3 B=3,4",
     .leaves = "x:A,B y:A,B r:A,1",
     .ops = "add mul relu reduce_sum reduce_mean reduce_max softmax concat"},
    {.name = "conv",
     .sizes = "N=1,2 C=2,4 M=4,2 H=4,3 W=3,4",
     .leaves = "x:N,C,H,W y:N,C,H,W w:M,C,3,3 v:M,C,3,3",
     .ops = "conv add relu concat split",
     .elements_max = 192},
    {.name = "kernels",
     .sizes = "N=1,2 C=2,3 M=3,2 K=2,4 H=4,3 W=3,4",
     .leaves = "x:N,C,H,W w:M,C,3,3 v:K,C,3,3 k:M,C,1,1",
     .ops = "conv relu concat split pad",
     .elements_max = 192},
    {.name = "groups",
     .sizes = "N=1,2 C=4,2 G=2,1 M=2,4 H=3,2 W=2,3",
     .leaves = "x:N,C,H,W y:N,C,H,W w:M,G,3,3 v:M,G,3,3",
     .ops = "conv relu concat split",
     .elements_max = 192},
    {.name = "pool",
     .rationals = true,
     .sizes = "N=1,2 C=2,3 D=3,1 H=4,5 W=5,4",
     .leaves = "x:N,C,H,W y:N,C,H,W z:N,D,H,W",
     .ops = "max_pool average_pool relu concat split add",
     .elements_max = 200},
};

using Values = std::vector<int64_t>;

// Parses "A=2,3" into A and {2, 3}.
StatusOr<std::pair<std::string, Values>> ReadSize(std::string_view text) {
  const size_t equals = text.find('=');
  Values values;
  for (const std::string_view value : Split(text.substr(equals + 1), ',')) {
    AG_LET(const int64_t number, ParseInt(value));
    values.push_back(number);
  }
  return std::pair(std::string(text.substr(0, equals)), values);
}

StatusOr<Leaf> ReadLeaf(std::string_view text, const std::map<std::string, Values>& sizes) {
  const size_t colon = text.find(':');
  Leaf leaf{.name = std::string(text.substr(0, colon))};
  leaf.shapes.resize(sizes.begin()->second.size());
  for (const std::string_view size : Split(text.substr(colon + 1), ',')) {
    const auto symbol = sizes.find(std::string(size));
    const StatusOr<int64_t> literal = ParseInt(size);
    if (symbol == sizes.end() && !literal.ok()) {
      return Err(StatusCode::kInvalidArgument, "leaf {}: unknown size {}", leaf.name, size);
    }
    for (size_t s = 0; s < leaf.shapes.size(); ++s) {
      leaf.shapes[s].push_back(symbol == sizes.end() ? *literal : symbol->second[s]);
    }
  }
  return leaf;
}

// ---- The grid. `x` is the first operand.

Ints RepeatOf(int64_t value, size_t count) { return Ints(count, value); }

void Everywhere(Attributes attributes, size_t assignments, Grid* grid) {
  grid->push_back(std::vector<Attributes>(assignments, std::move(attributes)));
}

// Whether the axis has size 1 everywhere. Operators along such axes are left out: they do nothing,
// or are reshapes, and give many rules of little use.
bool IsOne(const Shapes& x, size_t axis) {
  return std::all_of(x.begin(), x.end(), [&](const Shape& shape) { return shape[axis] == 1; });
}

void AxisGrid(const char* name, const Shapes& x, Grid* grid) {
  for (size_t axis = 0; axis < x[0].size(); ++axis) {
    Everywhere({{name, static_cast<int64_t>(axis)}}, x.size(), grid);
  }
}

// Returns every cut of an axis in two whose first part is a size of the world, or a sum of two.
std::vector<Values> CutsOf(const Shapes& x, size_t axis, const Universe& universe) {
  std::vector<Values> cuts;
  for (const Values& first : universe.sizes) {
    bool fits = true;
    Values rest(x.size());
    for (size_t s = 0; s < x.size(); ++s) {
      rest[s] = x[s][axis] - first[s];
      fits = fits && rest[s] > 0;
    }
    const auto known = [&](const Values& v) {
      return std::find(universe.sizes.begin(), universe.sizes.end(), v) != universe.sizes.end();
    };
    if (fits && known(rest)) cuts.push_back(first);
  }
  return cuts;
}

void SplitGrid(const Shapes& x, const Universe& universe, Grid* grid) {
  for (size_t axis = 0; axis < x[0].size(); ++axis) {
    for (const Values& cut : CutsOf(x, axis, universe)) {
      std::vector<Attributes> choice;
      for (size_t s = 0; s < x.size(); ++s) {
        choice.push_back(
            {{"axis", static_cast<int64_t>(axis)}, {"sizes", Ints{cut[s], x[s][axis] - cut[s]}}});
      }
      grid->push_back(std::move(choice));
    }
  }
}

void SliceGrid(const Shapes& x, const Universe& universe, Grid* grid) {
  for (size_t axis = 0; axis < x[0].size(); ++axis) {
    for (const Values& cut : CutsOf(x, axis, universe)) {
      for (const bool first : {true, false}) {
        std::vector<Attributes> choice;
        for (size_t s = 0; s < x.size(); ++s) {
          choice.push_back({{"axes", Ints{static_cast<int64_t>(axis)}},
                            {"starts", Ints{first ? 0 : cut[s]}},
                            {"ends", Ints{first ? cut[s] : x[s][axis]}},
                            {"steps", Ints{1}}});
        }
        grid->push_back(std::move(choice));
      }
    }
  }
}

void TransposeGrid(const Shapes& x, Grid* grid) {
  const size_t rank = x[0].size();
  if (rank > 3) return;
  Ints perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
  while (std::next_permutation(perm.begin(), perm.end())) {
    Ints moved;
    for (const int64_t axis : perm) {
      if (!IsOne(x, static_cast<size_t>(axis))) moved.push_back(axis);
    }
    if (std::is_sorted(moved.begin(), moved.end())) continue;
    Everywhere({{"perm", perm}}, x.size(), grid);
  }
}

// Reshapes that merge two neighbouring axes, or that give the shape of a leaf.
void ReshapeGrid(const Shapes& x, const Universe& universe, Grid* grid) {
  for (size_t axis = 0; axis + 1 < x[0].size(); ++axis) {
    std::vector<Attributes> choice;
    for (const Shape& shape : x) {
      Ints merged(shape.begin(), shape.end());
      merged[axis] *= merged[axis + 1];
      merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
      choice.push_back({{"shape", merged}});
    }
    grid->push_back(std::move(choice));
  }
  std::set<Shapes> seen = {x};
  for (const Leaf& leaf : universe.leaves) {
    std::vector<Attributes> choice;
    for (size_t s = 0; s < x.size(); ++s) {
      if (NumElements(leaf.shapes[s]) != NumElements(x[s])) break;
      choice.push_back({{"shape", Ints(leaf.shapes[s].begin(), leaf.shapes[s].end())}});
    }
    if (choice.size() == x.size() && seen.insert(leaf.shapes).second) grid->push_back(choice);
  }
}

void SoftmaxGrid(const Shapes& x, Grid* grid) {
  for (size_t axis = 0; axis < x[0].size(); ++axis) {
    if (!IsOne(x, axis)) Everywhere({{"axis", static_cast<int64_t>(axis)}}, x.size(), grid);
  }
}

// A reduction without its axis is tried on matrices only; higher ranks repeat it many times.
void ReduceGrid(const Shapes& x, Grid* grid) {
  for (size_t axis = 0; axis < x[0].size(); ++axis) {
    for (const int64_t keepdims : {1, 0}) {
      if ((keepdims == 0 && x[0].size() > 2) || IsOne(x, axis)) continue;
      Everywhere({{"axes", Ints{static_cast<int64_t>(axis)}}, {"keepdims", keepdims}}, x.size(),
                 grid);
    }
  }
}

// Strides, pads, and the groups that the channels allow; 3x3 with pads 1 keeps the plane's size.
void ConvGrid(const Shapes& x, const Shapes& w, Grid* grid) {
  if (x[0].size() != 4 || w[0].size() != 4 || x[0][1] % w[0][1] != 0) return;
  const auto groups = [&](size_t s) { return x[s][1] / std::max<int64_t>(w[s][1], 1); };
  const bool large = w[0][2] > 1;
  for (const Ints& strides : {Ints{1, 1}, Ints{1, 2}}) {
    for (const Ints& pads : {RepeatOf(large ? 1 : 0, 4), Ints{0, 1, 1, 1}}) {
      if (strides[1] == 2 && pads[0] == 0) continue;
      std::vector<Attributes> choice;
      for (size_t s = 0; s < x.size(); ++s) {
        choice.push_back({{"strides", strides},
                          {"pads", pads},
                          {"dilations", RepeatOf(1, 2)},
                          {"group", groups(s)}});
      }
      grid->push_back(std::move(choice));
    }
  }
}

void PoolGrid(const Shapes& x, Grid* grid) {
  if (x[0].size() != 4) return;
  const auto pool = [&](Ints kernel, Ints strides, Ints pads) {
    Everywhere({{"kernel_shape", std::move(kernel)},
                {"strides", std::move(strides)},
                {"pads", std::move(pads)},
                {"dilations", RepeatOf(1, 2)}},
               x.size(), grid);
  };
  pool({2, 2}, {2, 1}, {0, 0, 0, 0});
  pool({3, 3}, {1, 1}, {1, 1, 1, 1});
}

// Pads that make a 1x1 kernel 3x3.
void PadGrid(const Shapes& x, Grid* grid) {
  if (x[0].size() != 4 || x[0][2] != 1 || x[0][3] != 1) return;
  Everywhere({{"pads", Ints{0, 0, 1, 1, 0, 0, 1, 1}}}, x.size(), grid);
}

}  // namespace

std::span<const World> DefaultWorlds() { return kWorlds; }

std::vector<std::string> DefaultOps() {
  std::set<std::string> names;
  for (const World& world : kWorlds) {
    for (const std::string_view name : Split(world.ops, ' ')) names.insert(std::string(name));
  }
  return {names.begin(), names.end()};
}

StatusOr<Universe> ReadWorld(const World& world) {
  Universe universe{.name = std::string(world.name),
                    .rationals = world.rationals,
                    .elements_max = world.elements_max};
  std::map<std::string, Values> sizes;
  for (const std::string_view text : Split(world.sizes, ' ')) {
    AG_LET(const auto size, ReadSize(text));
    sizes.insert(size);
    universe.sizes.push_back(size.second);
  }
  for (const std::string_view text : Split(world.leaves, ' ')) {
    AG_LET(Leaf leaf, ReadLeaf(text, sizes));
    universe.leaves.push_back(std::move(leaf));
  }
  for (const std::string_view text : Split(world.ops, ' ')) {
    AG_LET(const OpKind op, OpKindFromText(text));
    universe.ops.push_back(op);
  }
  return universe;
}

Grid AttributeGrid(OpKind op, std::span<const Shapes* const> operands, const Universe& universe) {
  const Shapes& x = *operands[0];
  Grid grid;
  if (op == OpKind::kConcat) {
    AxisGrid("axis", x, &grid);
  } else if (op == OpKind::kSoftmax) {
    SoftmaxGrid(x, &grid);
  } else if (op == OpKind::kSplit) {
    SplitGrid(x, universe, &grid);
  } else if (op == OpKind::kSlice) {
    SliceGrid(x, universe, &grid);
  } else if (op == OpKind::kTranspose) {
    TransposeGrid(x, &grid);
  } else if (op == OpKind::kReshape) {
    ReshapeGrid(x, universe, &grid);
  } else if (op == OpKind::kConv) {
    ConvGrid(x, *operands[1], &grid);
  } else if (op == OpKind::kPad) {
    PadGrid(x, &grid);
  } else if (Has(op, kReduction)) {
    ReduceGrid(x, &grid);
  } else if (Has(op, kPooling)) {
    PoolGrid(x, &grid);
  } else {
    Everywhere({}, x.size(), &grid);  // No attributes, or all have defaults; else it is ill-typed.
  }
  return grid;
}

}  // namespace ag::generate
