// Element-wise operators in one pass: a thread reads and writes 16 bytes at a time where all
// tensors allow it.
#include <algorithm>

#include "device/cuda/codegen/families.h"
#include "device/cuda/codegen/lanes.h"
#include "device/cuda/codegen/pointwise.h"

namespace ag::cuda {
namespace {

// The chain's tensors, results first: their arguments and their space.
struct Chain {
  Pointwise operators;
  std::vector<TensorArgument> results, operands;
  Space space;          // Tensors in that order.
  int64_t padding = 0;  // Channels behind each pixel's own that are computed, too, and set to zero.
  int64_t bytes = 8;    // Of the smallest element that is accessed in vectors.
};

// Returns the padding that the chain computes, too: where every tensor has its channels padded
// alike, or has one value for all channels. Pixels are whole vectors then.
int64_t CommonPadding(const Chain& chain) {
  const TensorArgument& first = chain.results[0];
  const auto is_alike = [&](const TensorArgument& argument) {
    return argument.padding == first.padding && argument.shape.size() == 4 &&
           argument.shape[1] == first.shape[1];
  };
  const auto repeats = [&](const TensorArgument& argument) {
    return argument.StridesAs(first.shape)[1] == 0;
  };
  const bool all = std::ranges::all_of(chain.results, is_alike) &&
                   std::ranges::all_of(chain.operands, [&](const TensorArgument& argument) {
                     return is_alike(argument) || repeats(argument);
                   });
  return all ? first.padding : 0;
}

StatusOr<Chain> MakeChain(GroupText* group) {
  const GroupContext& context = group->context();
  AG_LET(Pointwise operators, Pointwise::Make(context, 0));
  Chain chain{.operators = std::move(operators)};
  const Shape& shape = context.graph.type(context.group.outputs[0].edge).shape;
  chain.space.sizes.assign(shape.begin(), shape.end());
  group->BeginKernel("chain");
  const auto add = [&](const TensorArgument& argument) {
    chain.space.strides.push_back(argument.StridesAs(shape));
    chain.bytes = std::min(chain.bytes, SizeOf(argument.stored));
  };
  const bool is_last = IsChannelsLast(context.group.outputs[0].layout);
  for (const Pointwise::Operand& operand : chain.operators.operands()) {
    ConstantForm form;
    if (is_last && operand.shape.size() == 4) form.order = {0, 2, 3, 1};
    if (operand.shape != context.graph.type(operand.edge).shape) form.order.clear();
    AG_LET(TensorArgument argument, group->Source(operand.edge, form));
    // A lifted vector: its only axis is the one that is longer than 1.
    if (operand.shape != argument.shape) argument.strides.resize(operand.shape.size(), 1);
    argument.shape = operand.shape;
    chain.operands.push_back(std::move(argument));
  }
  for (size_t i = 0; i < context.group.outputs.size(); ++i) {
    AG_LET(const TensorArgument result, group->Target(i));
    if (result.shape != shape) {
      return Err(StatusCode::kUnimplemented, "outputs of shapes {} and {}", ShapeToString(shape),
                 ShapeToString(result.shape));
    }
    add(result);
    chain.results.push_back(result);
  }
  for (const TensorArgument& operand : chain.operands) add(operand);
  chain.padding = CommonPadding(chain);
  if (chain.padding > 0) {
    chain.space.sizes[1] += chain.padding;
    group->PaddingIsWritten();
  }
  chain.space.Simplify();
  return chain;
}

StatusOr<std::vector<std::string>> ChainVariants(const GroupContext& context) {
  GroupText group(context);
  AG_LET(const Chain chain, MakeChain(&group));
  return LaneVariants(chain.space, chain.bytes);
}

// Writes the last, incomplete vector of a space of one axis.
void Rest(Text* text, const Lanes& lanes, const Chain& chain) {
  std::vector<std::string> arguments;
  const auto add = [&](const TensorArgument& argument, size_t tensor) {
    const bool moves = lanes.space.strides[tensor].back() != 0;
    arguments.push_back(fmt::format("{}[{}]", argument.name, moves ? "e" : "0"));
  };
  const size_t results = chain.results.size();
  for (size_t i = 0; i < chain.operands.size(); ++i) add(chain.operands[i], results + i);
  for (size_t i = 0; i < results; ++i) add(chain.results[i], i);
  const int64_t begin = lanes.count() * lanes.vector;
  text->Open("if (at == {})", lanes.count());
  text->Line("for ({} e = {}; e < {}; ++e) chain_at({});", lanes.type, begin, begin + lanes.rest,
             Join(arguments, ", "));
  text->Line("return;");
  text->Close();
}

StatusOr<GeneratedGroup> GenerateChain(const GroupContext& context, const std::string& variant) {
  GroupText group(context);
  AG_LET(const Chain chain, MakeChain(&group));
  group.Function(chain.operators.Define("chain_at", chain.operands, chain.results));
  const Lanes lanes = LanesOf(chain.space, variant);
  Text text;
  const std::vector<std::string> at = BeginLanes(&text, lanes, "ag_block_x()");
  if (lanes.rest > 0) Rest(&text, lanes, chain);
  const size_t results = chain.results.size();
  const auto pointer = [&](const TensorArgument& argument, size_t tensor) {
    return Plus(argument.name, Offset(at, lanes.space.strides[tensor]));
  };
  std::vector<std::string> arguments;
  for (size_t i = 0; i < chain.operands.size(); ++i) {
    const TensorArgument& operand = chain.operands[i];
    text.Line("const ag_pack<{}, {}> x{} = {};", operand.type(), lanes.vector, i,
              LoadLanes(lanes, results + i, pointer(operand, results + i)));
    arguments.push_back(fmt::format("x{}.at[k]", i));
  }
  for (size_t i = 0; i < results; ++i) {
    text.Line("ag_pack<{}, {}> y{};", chain.results[i].type(), lanes.vector, i);
    arguments.push_back(fmt::format("y{}.at[k]", i));
  }
  text.Line("AG_UNROLL");
  text.Line("for (int k = 0; k < {}; ++k) chain_at({});", lanes.vector, Join(arguments, ", "));
  for (size_t i = 0; i < results; ++i) {
    if (chain.padding > 0) {
      const TensorArgument& result = chain.results[i];
      const std::string place = fmt::format("({}) * {}", at.back(), lanes.vector);
      ZeroPadding(&text, result, Remainder(place, result.shape[1] + chain.padding), lanes.vector,
                  fmt::format("y{}", i));
    }
    StoreLanes(&text, lanes, i, pointer(chain.results[i], i), fmt::format("y{}", i));
  }
  AG_TRY(group.EndKernel({.grid = {lanes.blocks(), 1, 1}, .threads = lanes.threads}, text));
  return group.Take();
}

}  // namespace

const Family kChainFamily = {ChainVariants, GenerateChain};

}  // namespace ag::cuda
