#include "device/cuda/codegen/group_text.h"

#include <algorithm>
#include <numeric>

namespace ag::cuda {
namespace {

constexpr int64_t kGridMax[] = {2147483647, 65535, 65535};

// Returns the strides of a dense tensor whose axes are in memory in `order`; empty: as they are.
Sizes StridesIn(std::span<const int64_t> shape, std::vector<int> order) {
  if (order.empty()) {
    order.resize(shape.size());
    std::iota(order.begin(), order.end(), 0);
  }
  Sizes strides(shape.size(), 1);
  int64_t below = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = below;
    below *= shape[order[i]];
  }
  return strides;
}

bool IsVector(const Shape& shape) {
  return std::ranges::count_if(shape, [](int64_t size) { return size != 1; }) <= 1;
}

}  // namespace

void GroupText::BeginKernel(std::string name) {
  kernel_ = GeneratedKernel{.function = std::move(name)};
  parameters_.clear();
  padded_.clear();
}

std::string GroupText::Register(GeneratedArgument::Kind kind, int index, int64_t offset_bytes,
                                std::string_view type) {
  using Kind = GeneratedArgument::Kind;
  const bool is_written = kind == Kind::kOutput || kind == Kind::kWorkspace;
  const char letter = "iocw"[static_cast<int>(kind)];
  const std::string name = fmt::format("{}{}", letter, std::max<int64_t>(index, offset_bytes));
  const std::string parameter = fmt::format("{}{}* {}", is_written ? "" : "const ", type, name);
  if (std::ranges::count(parameters_, parameter) == 0) {
    parameters_.push_back(parameter);
    kernel_.arguments.push_back({kind, index, offset_bytes});
  }
  return name;
}

StatusOr<TensorArgument> GroupText::Argument(GeneratedArgument::Kind kind, int index,
                                             const TensorType& type, Layout layout) {
  if (BlockOf(layout) > 1) {
    return Err(StatusCode::kUnimplemented, "layout {}", LayoutName(layout));
  }
  TensorArgument argument{.stored = StoredDType(type.dtype, context_.precision),
                          .shape = type.shape};
  AG_LET(const std::string_view name, StoredType(argument.stored));
  argument.strides = DenseStrides(type.shape, layout);
  if (ChannelMultipleOf(layout) > 1) {
    argument.padding = ChannelsInMemory(type.shape, layout) - type.shape[1];
  }
  argument.name = Register(kind, index, 0, name);
  return argument;
}

StatusOr<TensorArgument> GroupText::Source(Edge edge, const ConstantForm& form) {
  const int port = context_.InputOf(edge);
  if (port < 0) return Constant(edge, form);
  return Argument(GeneratedArgument::Kind::kInput, port, context_.graph.type(edge),
                  context_.group.inputs[port].layout);
}

StatusOr<TensorArgument> GroupText::Target(size_t index) {
  const Port& port = context_.group.outputs[index];
  AG_LET(TensorArgument target, Argument(GeneratedArgument::Kind::kOutput, static_cast<int>(index),
                                         context_.graph.type(port.edge), port.layout));
  const bool is_new = std::ranges::count(padded_, target.name, &TensorArgument::name) == 0;
  if (target.padding > 0 && is_new) padded_.push_back(target);
  return target;
}

// Writes the padding, one pixel per thread; its blocks follow those of the body along axis 0.
void GroupText::WritePadding(Launch* launch, Text* text) const {
  for (const TensorArgument& target : padded_) {
    const int64_t channels = target.shape[1];
    const int64_t pixels = channels == 0 ? 0 : NumElements(target.shape) / channels;
    const int64_t begin = launch->grid[0];
    launch->grid[0] += CeilDiv(pixels, launch->threads);
    const char* index = IsWide(pixels * (channels + target.padding)) ? "long long" : "int";
    text->Open("if (ag_block_x() >= {} && ag_block_x() < {})", begin, launch->grid[0]);
    text->Line("const {0} pixel = ({0})(ag_block_x() - {1}) * {2} + ag_thread();", index, begin,
               launch->threads);
    text->Line("if (ag_block_y() != 0 || ag_block_z() != 0 || pixel >= {}) return;", pixels);
    text->Line("AG_UNROLL");
    text->Line("for (int k = {}; k < {}; ++k) ag_put({}[pixel * {} + k], {});", channels,
               channels + target.padding, target.name, channels + target.padding,
               Literal(0, target.stored));
    text->Line("return;");
    text->Close();
  }
}

StatusOr<TensorArgument> GroupText::Constant(Edge edge, const ConstantForm& form) {
  const TensorType& type = context_.graph.type(edge);
  const DType usual =
      IsVector(type.shape) ? type.dtype : StoredDType(type.dtype, context_.precision);
  TensorArgument argument{.stored = form.stored.value_or(usual), .shape = type.shape};
  AG_LET(const std::string_view name, StoredType(argument.stored));
  argument.strides = StridesIn(form.padded.empty() ? type.shape : form.padded, form.order);
  const GeneratedConstant wanted{edge, argument.stored, form.order, form.padded};
  auto at = std::ranges::find(group_.constants, wanted);
  if (at == group_.constants.end()) {
    group_.constants.push_back(wanted);
    at = group_.constants.end() - 1;
  }
  const int index = static_cast<int>(at - group_.constants.begin());
  argument.name = Register(GeneratedArgument::Kind::kConstant, index, 0, name);
  return argument;
}

TensorArgument GroupText::Workspace(int64_t offset_bytes, DType dtype, const Shape& shape) {
  TensorArgument argument{.stored = dtype, .shape = shape, .strides = StridesIn(shape, {})};
  argument.name =
      Register(GeneratedArgument::Kind::kWorkspace, 0, offset_bytes, *StoredType(dtype));
  return argument;
}

Status GroupText::EndKernel(const Launch& of_body, const Text& body) {
  Launch launch = of_body;
  Text padding;
  WritePadding(&launch, &padding);
  for (size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] > kGridMax[axis]) {
      return Err(StatusCode::kUnimplemented, "a grid of {} blocks, axis {} has {} at most",
                 launch.grid[axis], axis, kGridMax[axis]);
    }
    kernel_.grid[axis] = static_cast<uint32_t>(launch.grid[axis]);
  }
  kernel_.block = {static_cast<uint32_t>(launch.threads), 1, 1};
  Text text;
  text.Open("AG_KERNEL({}) {}({})", launch.threads, kernel_.function, Join(parameters_, ", "));
  text.Line("ag_launch_dependents();");
  text.Line("ag_wait();");
  text.Insert(padding);
  text.Insert(body);
  text.Close();
  text.Line("AG_ENTRY({})", kernel_.function);
  group_.source += text.str() + "\n";
  group_.kernels.push_back(std::move(kernel_));
  group_.can_begin_early = true;
  return OkStatus();
}

GeneratedGroup GroupText::Take() {
  if (!group_.source.empty()) group_.source.pop_back();  // The blank line after the last kernel.
  return std::move(group_);
}

std::vector<int64_t> NumbersIn(std::string_view variant) {
  std::vector<int64_t> numbers;
  bool in_number = false;
  for (const char c : variant) {
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && !in_number) numbers.push_back(0);
    if (is_digit) numbers.back() = numbers.back() * 10 + (c - '0');
    in_number = is_digit;
  }
  return numbers;
}

}  // namespace ag::cuda
