#include "device/cuda/codegen/epilogue.h"

#include <algorithm>

#include "device/cuda/codegen/lanes.h"

namespace ag::cuda {
namespace {

// Returns `by_axis`, strides (0: repeats) or sizes, for the three axes of the view.
Sizes InView(Epilogue::View view, const Sizes& by_axis, const Shape& shape, bool is_size) {
  const size_t rank = shape.size();
  if (view == Epilogue::View::kConvolution) {
    if (!is_size) return {by_axis[0], by_axis[1], by_axis.back()};
    return {shape[0], shape[1], NumElements(std::span(shape).subspan(2))};
  }
  const Sizes matrix{by_axis[rank - 2], by_axis[rank - 1]};
  const int64_t batches = NumElements(std::span(shape).first(rank - 2));
  if (is_size) return {batches, matrix[0], matrix[1]};
  // Batches follow each other where the tensor has them.
  const bool has_batches = batches > 1 && by_axis[rank - 2] != 0;
  return {has_batches ? shape[rank - 2] * shape[rank - 1] : 0, matrix[0], matrix[1]};
}

// Returns true when a shape that broadcasts to `whole` repeats along all axes but one.
bool RunsAlong(const Shape& shape, const Shape& whole, size_t axis) {
  const size_t missing = whole.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && missing + i != axis) return false;
  }
  return true;
}

std::string Load(const std::string& pointer, int64_t stride, int64_t vector) {
  if (stride == 1) return fmt::format("ag_load<{}>({})", vector, pointer);
  if (stride == 0) return fmt::format("ag_fill<{}>(*({}))", vector, pointer);
  return fmt::format("ag_pick<{}>({}, {})", vector, pointer, stride);
}

}  // namespace

StatusOr<Epilogue> Epilogue::Make(const GroupContext& context, size_t first) {
  if (context.group.outputs.size() != 1) {
    return Err(StatusCode::kUnimplemented, "{} outputs", context.group.outputs.size());
  }
  AG_LET(Pointwise steps, Pointwise::Make(context, first));
  return Epilogue(std::move(steps));
}

int64_t Epilogue::PaddingOf(const GroupContext& context) {
  const auto padding = [&](const Port& port) {
    const Shape& shape = context.graph.type(port.edge).shape;
    return IsChannelsLast(port.layout) ? ChannelsInMemory(shape, port.layout) - shape[1] : 0;
  };
  const int64_t wanted = padding(context.group.outputs[0]);
  const bool all = std::ranges::all_of(context.group.inputs,
                                       [&](const Port& port) { return padding(port) == wanted; });
  if (!all) return 0;
  const Shape& result = context.graph.type(context.group.outputs[0].edge).shape;
  for (size_t i = 1; i < context.group.nodes.size(); ++i) {
    for (const Edge operand : context.node(i).inputs) {
      if (!context.graph.is_constant(operand.node)) continue;
      if (context.graph.type(operand).shape == result) return 0;  // Its channels are exact.
    }
  }
  return wanted;
}

Status Epilogue::Bind(GroupText* group, View view, std::optional<Edge> bias, int64_t padding) {
  const GroupContext& context = group->context();
  const Shape& shape = context.graph.type(context.group.outputs[0].edge).shape;
  operands_.clear();
  has_bias_ = bias.has_value();
  AG_LET(const TensorArgument target, group->Target(0));
  sizes_ = InView(view, Sizes(shape.begin(), shape.end()), shape, true);
  padding_ = padding;
  sizes_[1] += padding;
  if (padding > 0) group->PaddingIsWritten();
  // Returns the form of a constant that has as many elements along `axis` as there are channels, or
  // one.
  const auto form_of = [&](const Shape& of, size_t axis) {
    ConstantForm form;
    if (padding == 0 || of[axis] == 1) return form;
    form.padded.assign(of.begin(), of.end());
    form.padded[axis] += padding;
    return form;
  };
  const auto add = [&](const TensorArgument& argument) {
    const bool is_whole = argument.shape == shape;
    Sizes strides = argument.StridesAs(shape);
    // An axis of one element has no stride of its own, but the three axes need one.
    if (is_whole) strides = argument.strides;
    operands_.push_back({argument, InView(view, strides, shape, false)});
  };
  add(target);
  std::vector<TensorArgument> read;
  if (bias) {
    AG_LET(TensorArgument argument,
           group->Source(*bias, form_of(context.graph.type(*bias).shape, 0)));
    argument.strides.resize(shape.size() - 1, 1);
    const int64_t channels = argument.shape[0];
    argument.shape.assign(shape.size() - 1, 1);
    argument.shape[0] = channels;
    add(argument);
  }
  for (const Pointwise::Operand& operand : steps_.operands()) {
    const Shape& of = context.graph.type(operand.edge).shape;
    ConstantForm form;
    if (NumElements(of) > 1 && of.size() + 1 >= shape.size()) {
      form = form_of(of, of.size() + 1 - shape.size());
    }
    AG_LET(const TensorArgument argument, group->Source(operand.edge, form));
    const size_t axis = view == View::kConvolution ? 1 : shape.size() - 1;
    if (argument.shape != shape && !RunsAlong(argument.shape, shape, axis)) {
      return Err(StatusCode::kUnimplemented, "an operand {} beside {}",
                 ShapeToString(argument.shape), ShapeToString(shape));
    }
    add(argument);
    read.push_back(argument);
  }
  if (is_defined_) return OkStatus();
  is_defined_ = true;
  group->Function(steps_.Define("finish_at", read, std::span(&target, 1)));
  return OkStatus();
}

int64_t Epilogue::VectorOf(size_t axis, int64_t most) const {
  const auto fits = [&](int64_t vector) {
    if (sizes_[axis] % vector != 0) return false;
    for (const Operand& operand : operands_) {
      if (operand.strides[axis] != 1) continue;
      for (size_t other = 0; other < 3; ++other) {
        if (other != axis && operand.strides[other] % vector != 0) return false;
      }
    }
    return true;
  };
  int64_t vector = most;
  while (vector > 1 && !fits(vector)) vector /= 2;
  return vector;
}

void Epilogue::Apply(Text* text, const std::vector<std::string>& place, size_t axis, int64_t vector,
                     const std::string& sum) const {
  const int64_t elements = std::max(sizes_[0] * sizes_[1] * sizes_[2], sizes_[0] * strides()[0]);
  const std::vector<std::string> at = Widened(place, elements);
  std::vector<std::string> arguments{sum};
  for (size_t i = 1; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    const bool is_bias = has_bias_ && i == 1;
    const std::string name = is_bias ? "b" : fmt::format("x{}", i - 1 - (has_bias_ ? 1 : 0));
    text->Line("const ag_pack<{}, {}> {} = {};", operand.argument.type(), vector, name,
               Load(Plus(operand.argument.name, Offset(at, operand.strides)), operand.strides[axis],
                    vector));
    if (is_bias) {
      arguments[0] += fmt::format(" + ag_get({}.at[k])", name);
    } else {
      arguments.push_back(fmt::format("{}.at[k]", name));
    }
  }
  const Operand& target = operands_[0];
  const std::string to = Plus(target.argument.name, Offset(at, target.strides));
  text->Line("ag_pack<{}, {}> y;", target.argument.type(), vector);
  text->Line("AG_UNROLL");
  text->Line("for (int k = 0; k < {}; ++k) finish_at({}, y.at[k]);", vector, Join(arguments, ", "));
  if (padding_ > 0) ZeroPadding(text, target.argument, place[1], vector, "y");
  if (target.strides[axis] == 1) return text->Line("ag_store({}, y);", to);
  text->Line("ag_place({}, {}, y);", to, target.strides[axis]);
}

}  // namespace ag::cuda
