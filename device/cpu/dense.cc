// Matrix products. With constant two-dimensional weights four kernels compete, all with packed
// weights: "inner_product", "matmul" and "convolution" (1x1, channels last) on oneDNN, and one of
// our own (panels.h). Everything else is "batched": oneDNN's matmul over broadcast batch
// dimensions.
#include <algorithm>
#include <functional>

#include "device/cpu/first_guess.h"
#include "device/cpu/host.h"
#include "device/cpu/panels.h"
#include "device/cpu/post_ops.h"

namespace ag::cpu {
namespace {

using Algorithm = dnnl::algorithm;
constexpr auto kInference = dnnl::prop_kind::forward_inference;

// x[rows, inner] times w[inner, columns].
struct DenseProblem {
  int64_t rows = 0, inner = 0, columns = 0;
  bool packed = false;            // Weights are constant and two-dimensional.
  DType dtype = DType::kFloat32;  // Of both operands and of the result.
  Dims a, b, result;              // For "batched": equal rank, batch dimensions first.
};

Dims Lifted(const Shape& shape, size_t rank) {
  Dims dims(rank - shape.size(), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  return dims;
}

DenseProblem DenseProblemOf(const GroupContext& context) {
  const Node& node = context.node(0);
  const Shape& a = context.graph.type(node.inputs[0]).shape;
  const Shape& b = context.graph.type(node.inputs[1]).shape;
  DenseProblem p;
  p.inner = a.back();
  p.columns = b.back();
  p.rows = NumElements(a) / std::max<int64_t>(p.inner, 1);
  p.packed = b.size() == 2 && context.InputOf(node.inputs[1]) < 0;
  const size_t rank = std::max(a.size(), b.size());
  p.a = Lifted(a, rank);
  p.b = Lifted(b, rank);
  p.result = ToDims(node.outputs[0].shape);
  p.dtype = node.outputs[0].dtype;
  return p;
}

// The descriptors that a primitive chose; `make` compiles it.
struct Made {
  std::function<dnnl::primitive()> make;
  Desc weights, scratchpad;
  std::string impl;
};

template <class Primitive>
Made MadeFrom(const typename Primitive::desc& desc, const dnnl::post_ops& ops) {
  dnnl::primitive_attr attributes = UserScratchpad();
  attributes.set_post_ops(ops);
  const typename Primitive::primitive_desc made(desc, attributes, Engine(), /*allow_empty=*/true);
  if (!made) return {};
  return {[made] { return dnnl::primitive(Primitive(made)); }, made.weights_desc(),
          made.scratchpad_desc(), made.impl_info_str()};
}

// The operands' descriptors for one kernel.
struct DenseForm {
  Desc src, weights_given, weights_dims, bias, dst;
};

DenseForm DenseFormOf(const DenseProblem& p, const std::string& name) {
  const int64_t m = p.rows, k = p.inner, n = p.columns;
  constexpr auto kF32 = dnnl::memory::data_type::f32;
  const Desc a = PlainDesc({m, k}, p.dtype), result = PlainDesc({m, n}, p.dtype);
  if (name == "inner_product") {
    return {a, Desc({n, k}, kF32, Dims{1, n}), AnyDesc({n, k}, p.dtype), PlainDesc({n}), result};
  }
  if (name == "convolution") {
    const auto channels_last = [&](int64_t channels) {
      return DescOf({p.dtype, {1, channels, m, 1}}, Layout::kChannelsLast);
    };
    return {channels_last(k), Desc({n, k, 1, 1}, kF32, Dims{1, n, n, n}),
            AnyDesc({n, k, 1, 1}, p.dtype), PlainDesc({n}), channels_last(n)};
  }
  if (name == "matmul") {
    return {a, PlainDesc({k, n}), AnyDesc({k, n}, p.dtype), PlainDesc({1, n}), result};
  }
  Dims bias(p.result.size(), 1);
  bias.back() = n;
  const Desc b = PlainDesc(p.b, p.dtype);
  return {PlainDesc(p.a, p.dtype), b, b, PlainDesc(bias), PlainDesc(p.result, p.dtype)};
}

Made Described(const DenseForm& f, const std::string& name, bool with_bias,
               const dnnl::post_ops& ops) {
  const Desc bias = with_bias ? f.bias : Desc();
  if (name == "inner_product") {
    return MadeFrom<dnnl::inner_product_forward>({kInference, f.src, f.weights_dims, bias, f.dst},
                                                 ops);
  }
  if (name == "convolution") {
    const Dims ones{1, 1}, zeros{0, 0};
    return MadeFrom<dnnl::convolution_forward>({kInference, Algorithm::convolution_direct, f.src,
                                                f.weights_dims, bias, f.dst, ones, zeros, zeros},
                                               ops);
  }
  return MadeFrom<dnnl::matmul>({f.src, f.weights_dims, bias, f.dst}, ops);
}

Status CheckDense(const GroupContext& context) {
  const TensorType& out = context.node(0).outputs[0];
  if (!context.IsComputed(out.dtype) || out.shape.size() > 6) {
    return Err(StatusCode::kUnimplemented, "matmul: {} is neither f32 nor of rank 6 at most",
               out.ToString());
  }
  for (const Port& port : context.group.inputs) {
    if (port.layout == Layout::kPlain) continue;
    return Err(StatusCode::kUnimplemented, "matmul: layout {}", LayoutName(port.layout));
  }
  const int64_t inner = context.graph.type(context.node(0).inputs[0]).shape.back();
  if (inner == 0) {
    return Err(StatusCode::kUnimplemented, "matmul: sums over nothing");
  }
  return OkStatus();
}

// oneDNN's (2.6) SSE4.1 convolution of one tap adds up wrong numbers for 201 rows of 410.
bool MayRunAsConvolution(const DenseProblem& p) {
  return InstructionSet() != "sse41" && MayConvolve(p.dtype, p.columns);
}

constexpr const char* kPackedNames[] = {"convolution", "matmul", "inner_product"};

// In f32 the last resort, in bf16 only where oneDNN is fast.
StatusOr<std::vector<std::string>> BatchedNames(const DenseProblem& p) {
  const std::string name = "batched";
  std::string impl;
  AG_TRY(Guarded("matmul", [&] {
    impl = Described(DenseFormOf(p, name), name, false, {}).impl;
    return OkStatus();
  }));
  if (p.dtype == DType::kFloat32 || !IsSlow(impl)) return std::vector{name};
  return Err(StatusCode::kUnimplemented, "matmul: oneDNN has no kernel in bf16");
}

StatusOr<std::vector<std::string>> DenseNames(const GroupContext& context) {
  AG_TRY(CheckDense(context));
  const DenseProblem p = DenseProblemOf(context);
  if (!p.packed || context.InputOf(context.node(0).inputs[0]) < 0) {
    return BatchedNames(p);
  }
  std::vector<std::string> names;
  AG_TRY(Guarded("matmul", [&] {
    for (const std::string name : kPackedNames) {
      if (name == "convolution" && !MayRunAsConvolution(p)) continue;
      if (!IsSlow(Described(DenseFormOf(p, name), name, false, {}).impl)) names.push_back(name);
    }
    if (CheckPanels(context).ok()) names.emplace_back(kPanelsName);
    SortByEstimate(context, "dense", &names);
    std::stable_partition(names.begin(), names.end(), [&](const std::string& name) {
      if (name == kPanelsName) return !PanelsPackHeldWeights(context);
      const Desc given = DenseFormOf(p, name).weights_given;
      return !HeldForms(context, context.node(0).inputs[1], given).empty();
    });
    return OkStatus();
  }));
  return names.empty() ? BatchedNames(p) : std::move(names);
}

class Dense : public CallKernel {
 public:
  Status Prepare(const GroupContext& context, const std::string& name, size_t* done) {
    const DenseProblem p = DenseProblemOf(context);
    const DenseForm form = DenseFormOf(p, name);
    const bool with_bias = HasBias(context, p);
    const auto operand = [&](const GroupContext& c, Edge edge) {
      return OperandOf(c, edge, form, name);
    };
    const size_t first = with_bias ? 2 : 1;
    Tail tail;
    Made made;
    for (size_t count = context.group.nodes.size() - first + 1; count-- > 0;) {
      tail = MakeTail(context, first, count, operand);
      made = Described(form, name, with_bias, tail.ops);
      if (!IsSlow(made.impl) || (count == 0 && !made.impl.empty())) break;
    }
    UseHeldWeights(context, form, name, with_bias, tail.ops, &made);
    if (made.impl.empty()) return Err(StatusCode::kUnimplemented, "matmul: no {} for it", name);
    *done = tail.done;
    const Node& node = context.node(0);
    const auto given = [&](size_t i, const Desc& desc) {
      return GivenDesc(context, node.inputs[i], desc);
    };
    AG_TRY(call_.Operand(context, node.inputs[0], DNNL_ARG_SRC, form.src, given(0, form.src)));
    AG_TRY(call_.Operand(context, node.inputs[1], DNNL_ARG_WEIGHTS, made.weights,
                         given(1, form.weights_given)));
    if (with_bias) {
      const Edge bias = context.node(1).inputs[OtherOperand(context, 1)];
      AG_TRY(call_.Operand(context, bias, DNNL_ARG_BIAS, form.bias, form.bias));
    }
    call_.Output(DNNL_ARG_DST, form.dst, form.dst, 0);
    AG_TRY(BindTail(context, tail, &call_));
    call_.Finish(made.make(), made.scratchpad);
    return OkStatus();
  }

 private:
  // Sets `made` to the same product of weights that the device holds, where it has some, but not
  // these, and there is a kernel for them.
  static void UseHeldWeights(const GroupContext& context, const DenseForm& form,
                             const std::string& name, bool with_bias, const dnnl::post_ops& ops,
                             Made* made) {
    const std::vector<Desc> all = HeldForms(context, context.node(0).inputs[1], form.weights_given);
    if (std::ranges::count(all, made->weights) > 0) return;
    for (const Desc& weights : all) {
      DenseForm on_held = form;
      on_held.weights_dims = weights;
      Made held = Described(on_held, name, with_bias, ops);
      if (!IsAsGood(held.impl, made->impl)) continue;
      *made = std::move(held);
      return;
    }
  }

  // Returns true when an add of a constant vector over columns follows the product: it is the
  // primitive's bias.
  static bool HasBias(const GroupContext& context, const DenseProblem& p) {
    return context.group.nodes.size() >= 2 &&
           context.node(1).outputs[0] == context.node(0).outputs[0] &&
           ColumnBias(context, 1, p.columns).has_value();
  }

  // Accepts operands of the result's own shape, constant vectors over columns, and scalars.
  static OperandDescs OperandOf(const GroupContext& context, Edge edge, const DenseForm& form,
                                const std::string& name) {
    const TensorType& type = context.graph.type(edge);
    const TensorType& result = context.node(0).outputs[0];
    if (type.dtype != result.dtype) return {};
    if (type.shape == result.shape) return {form.dst, GivenDesc(context, edge, form.dst)};
    const bool vector = !type.shape.empty() && type.shape.back() == result.shape.back() &&
                        type.NumElements() == result.shape.back();
    if (!vector && type.NumElements() != 1) return {};
    Dims dims(form.dst.dims().size(), 1);
    dims[name == "convolution" ? 1 : dims.size() - 1] = type.NumElements();
    const Desc desc = PlainDesc(dims, context.InputOf(edge) < 0 ? DType::kFloat32 : type.dtype);
    return {desc, desc};
  }
};

StatusOr<std::unique_ptr<Kernel>> MakeDense(const GroupContext& context, const std::string& name,
                                            size_t* done) {
  AG_TRY(CheckDense(context));
  if (name == kPanelsName) return MakePanels(context, done);
  return Prepared<Dense>("matmul", context, name, done);
}

}  // namespace

const Family kDenseFamily = {DenseNames, MakeDense};

}  // namespace ag::cpu
