// Convolutions. Kernels on oneDNN: "direct" works in the given layouts, "repacked" reorders to the
// layouts that oneDNN prefers and back, "winograd" is F(4x4, 3x3) where the machine has it,
// "pieces" computes a function behind the convolution by a loop of ours. Of our own: winograd.h
// and, with one tap, panels.h.
#include <algorithm>
#include <optional>

#include "device/cpu/block_ops.h"
#include "device/cpu/first_guess.h"
#include "device/cpu/host.h"
#include "device/cpu/panels.h"
#include "device/cpu/parallel.h"
#include "device/cpu/post_ops.h"
#include "device/cpu/winograd.h"
#include "plan/fusion/contraction_blocks.h"

namespace ag::cpu {
namespace {

using dnnl::convolution_forward;
using Algorithm = dnnl::algorithm;

// The convolution's geometry in oneDNN's terms.
struct ConvolutionProblem {
  DType dtype = DType::kFloat32;  // Of both images, and of the weights as they are packed.
  Dims src, weights, bias, dst;
  Dims strides, dilations, pads_begin, pads_end;
  Desc src_given, dst_given, weights_given;
  bool turned = false;  // Height and width are swapped.
};

// Returns true when images and windows are one pixel wide. oneDNN's kernels work along the width,
// so a column is described as a row, which has the same bytes in every layout.
bool IsColumn(const Shape& x, const Shape& w, const Ints& pads) {
  return x.size() == 4 && x[3] == 1 && w[3] == 1 && pads[1] == 0 && pads[3] == 0;
}

void Turn(Dims* dims) { std::swap((*dims)[dims->size() - 2], dims->back()); }

Desc TurnedDesc(const TensorType& type, Layout layout, bool turned) {
  TensorType lies = type;
  if (turned) std::swap(lies.shape[2], lies.shape[3]);
  return DescOf(lies, layout);
}

// A part of a convolution's result: so many images, so many channels of each.
struct Piece {
  int64_t images, channels;
};

// Returns true when each channel of the result is made of one channel of the image.
bool IsByChannel(const Graph& graph, const Node& conv) {
  return IsDepthwise(graph, conv) && conv.outputs[0].shape[1] == conv.Int("group");
}

// Returns the whole convolution, or what makes one piece of it. REQUIRES: of the channels of a
// grouped convolution a piece has all, unless it IsByChannel.
ConvolutionProblem ConvolutionProblemOf(const GroupContext& context, const Piece* piece = nullptr) {
  const Node& node = context.node(0);
  TensorType x = context.graph.type(node.inputs[0]);
  TensorType w = context.graph.type(node.inputs[1]);
  TensorType y = node.outputs[0];
  int64_t group = node.Int("group");
  if (piece != nullptr) {
    if (IsByChannel(context.graph, node)) x.shape[1] = group = piece->channels;
    x.shape[0] = y.shape[0] = piece->images;
    y.shape[1] = w.shape[0] = piece->channels;
  }
  ConvolutionProblem p;
  p.dtype = y.dtype;
  p.src = ToDims(x.shape);
  p.dst = ToDims(y.shape);
  p.weights = ToDims(w.shape);
  if (group > 1) {
    p.weights[0] /= group;
    p.weights.insert(p.weights.begin(), group);
  }
  p.bias = {w.shape[0]};
  const Ints& pads = node.IntList("pads");
  const size_t axes = pads.size() / 2;
  p.strides = node.IntList("strides");
  p.dilations = node.IntList("dilations");
  for (int64_t& d : p.dilations) --d;
  p.pads_begin.assign(pads.begin(), pads.begin() + axes);
  p.pads_end.assign(pads.begin() + axes, pads.end());
  p.turned = IsColumn(x.shape, w.shape, pads);
  if (p.turned) {
    for (Dims* dims :
         {&p.src, &p.dst, &p.weights, &p.strides, &p.dilations, &p.pads_begin, &p.pads_end}) {
      Turn(dims);
    }
  }
  const Layout src_layout = context.group.inputs[context.InputOf(node.inputs[0])].layout;
  p.src_given = TurnedDesc(x, src_layout, p.turned);
  p.dst_given = TurnedDesc(y, context.group.outputs[0].layout, p.turned);
  p.weights_given = PlainDesc(p.weights);
  return p;
}

// What a primitive works on, and how.
struct ConvolutionForm {
  Algorithm algorithm = Algorithm::convolution_direct;
  Desc src, dst;
  Desc weights;      // That oneDNN prefers.
  std::string impl;  // Its implementation with these weights; empty: none.
};

convolution_forward::primitive_desc Describe(const ConvolutionProblem& p,
                                             const ConvolutionForm& form, const Desc& weights,
                                             const dnnl::post_ops& ops) {
  const convolution_forward::desc desc(dnnl::prop_kind::forward_inference, form.algorithm, form.src,
                                       weights, PlainDesc(p.bias), form.dst, p.strides, p.dilations,
                                       p.pads_begin, p.pads_end);
  dnnl::primitive_attr attributes = UserScratchpad();
  attributes.set_post_ops(ops);
  return convolution_forward::primitive_desc(desc, attributes, Engine(), /*allow_empty=*/true);
}

std::string ImplOf(const convolution_forward::primitive_desc& desc) {
  return desc ? desc.impl_info_str() : "";
}

// Returns the form of a named kernel; an error for a kernel that this problem does not have.
StatusOr<ConvolutionForm> ConvolutionFormOf(const ConvolutionProblem& p, const std::string& name) {
  ConvolutionForm form{.src = p.src_given, .dst = p.dst_given};
  if (name == "winograd") form.algorithm = Algorithm::convolution_winograd;
  if (name != "direct") {
    form.src = AnyDesc(p.src, p.dtype);
    form.dst = AnyDesc(p.dst, p.dtype);
  }
  const auto desc = Describe(p, form, AnyDesc(p.weights, p.dtype), {});
  if (!desc) {
    return Err(StatusCode::kUnimplemented, "conv: oneDNN has no {} convolution{}", name,
               name == "direct" ? " for these layouts" : "");
  }
  form.src = desc.src_desc();
  form.dst = desc.dst_desc();
  form.weights = desc.weights_desc();
  form.impl = ImplOf(desc);
  return form;
}

// Returns true when the weights are held in other forms than `wanted`.
bool NeedsPacking(const GroupContext& context, const ConvolutionProblem& p, const Desc& wanted) {
  const std::vector<Desc> held = HeldForms(context, context.node(0).inputs[1], p.weights_given);
  return !held.empty() && std::ranges::count(held, wanted) == 0;
}

// Sets `desc` to the same convolution on weights that the device holds, where there is a kernel
// for them.
void UseHeldWeights(const GroupContext& context, const ConvolutionProblem& p,
                    const ConvolutionForm& form, const dnnl::post_ops& ops,
                    convolution_forward::primitive_desc* desc) {
  if (!NeedsPacking(context, p, desc->weights_desc())) return;
  const Edge edge = context.node(0).inputs[1];
  for (const Desc& weights : HeldForms(context, edge, p.weights_given)) {
    auto held = Describe(p, form, weights, ops);
    if (!IsAsGood(ImplOf(held), ImplOf(*desc))) continue;
    *desc = std::move(held);
    return;
  }
}

Status CheckConvolution(const GroupContext& context) {
  const Node& node = context.node(0);
  if (!context.IsComputed(node.outputs[0].dtype) || node.outputs[0].shape.size() > 5) {
    return Err(StatusCode::kUnimplemented, "conv: {} is neither f32 nor of rank 5 at most",
               node.outputs[0].ToString());
  }
  if (!MayConvolve(node.outputs[0].dtype, node.outputs[0].shape[1])) {
    return Err(StatusCode::kUnimplemented, "conv: channels in no whole vectors of bf16");
  }
  // With dilated windows oneDNN's (2.6) bf16 kernels gave wrong sums in 2 of some 20 processes of
  // the conformance suite, always or never within a process.
  const auto is_dilated = [](int64_t dilation) { return dilation > 1; };
  if (node.outputs[0].dtype == DType::kBFloat16 &&
      std::ranges::any_of(node.IntList("dilations"), is_dilated)) {
    return Err(StatusCode::kUnimplemented, "conv: dilated windows in bf16");
  }
  return context.InputPort(0, 0).status();
}

constexpr std::string_view kPiecesName = "pieces";
// Bytes of a piece for each core, which stay in its cache until the function has passed over them.
constexpr int64_t kPieceBytes = 1 << 19;
// Of smaller results the second pass takes longer than it saves.
constexpr int64_t kPieceElements = 1 << 14;

// Returns the greatest divisor of n that is a multiple of `unit` and at most `most`, at least
// `unit`. REQUIRES: unit divides n.
int64_t DivisorBelow(int64_t n, int64_t unit, int64_t most) {
  int64_t divisor = std::max(std::min(n, most) / unit * unit, unit);
  while (n % divisor != 0) divisor -= unit;
  return divisor;
}

// Returns the pieces of a convolution with a sigmoid or swish behind it, in f32: the kernels of
// oneDNN (2.6) take two to three times as long for the function as a loop over results that are
// still in the cache. Nothing: the group is another one, or its pieces would not be contiguous.
std::optional<Piece> PieceOf(const GroupContext& context) {
  const Node& node = context.node(0);
  const TensorType& y = node.outputs[0];
  if (context.group.nodes.size() != 2 || !Follows(context, 1) || y.dtype != DType::kFloat32 ||
      y.shape.size() != 4 || y != context.node(1).outputs[0]) {
    return std::nullopt;
  }
  const OpKind function = context.node(1).op;
  if (function != OpKind::kSigmoid && function != OpKind::kSwish) return std::nullopt;
  if (context.InputOf(node.inputs[1]) >= 0 || context.InputOf(node.inputs[2]) >= 0) {
    return std::nullopt;
  }
  const Layout out = context.group.outputs[0].layout;
  const Layout in = context.group.inputs[context.InputOf(node.inputs[0])].layout;
  const int64_t block = BlockOf(out), images = y.shape[0], channels = y.shape[1];
  // Padding lanes hold zeros.
  if (channels % block != 0 && function == OpKind::kSigmoid) return std::nullopt;
  const int64_t bytes = LayoutBytes(y, out) / images, bytes_max = kPieceBytes * context.cores;
  if (bytes <= bytes_max) return Piece{DivisorBelow(images, 1, bytes_max / bytes), channels};
  const bool has_place = IsByChannel(context.graph, node) ? in == out : node.Int("group") == 1;
  const bool is_cut = has_place && channels % block == 0 && out != Layout::kChannelsLast;
  if (!is_cut) return Piece{1, channels};
  return Piece{1, DivisorBelow(channels, block, channels * bytes_max / bytes)};
}

StatusOr<std::vector<std::string>> ConvolutionNames(const GroupContext& context) {
  AG_TRY(CheckConvolution(context));
  std::vector<std::string> names;
  const Status status = Guarded("conv", [&] {
    const ConvolutionProblem p = ConvolutionProblemOf(context);
    const StatusOr<ConvolutionForm> direct = ConvolutionFormOf(p, "direct");
    const std::string impl = direct.ok() ? direct->impl : "";
    const StatusOr<ConvolutionForm> repacked = ConvolutionFormOf(p, "repacked");
    if (!IsSlow(impl)) names.push_back("direct");
    if (repacked.ok() && (repacked->src != p.src_given || repacked->dst != p.dst_given)) {
      // A matrix product over unfolded patches is slower than a reorder and a direct kernel.
      const bool first = impl.starts_with("gemm");
      names.insert(first ? names.begin() : names.end(), "repacked");
    }
    if (p.dtype != DType::kFloat32) {  // What oneDNN's bf16 is slow at runs in f32.
      if (repacked.ok() && IsSlow(repacked->impl)) std::erase(names, "repacked");
      return OkStatus();
    }
    if (names.empty() && direct.ok()) names.push_back("direct");
    // Never a guess: oneDNN packs its weights in 40 ns each, in another form for other sizes.
    if (ConvolutionFormOf(p, "winograd").ok()) names.push_back("winograd");
    return OkStatus();
  });
  AG_TRY(status);
  // oneDNN's winograd, repacked and kernels that would pack held weights anew are no guesses.
  std::vector<std::string> guesses, others;
  for (std::string& name : names) {
    auto& list = name == "direct" && others.empty() ? guesses : others;
    list.push_back(std::move(name));
  }
  for (const std::string_view name : {kWinogradName, kSmallWinogradName}) {
    if (!CheckWinograd(context, name).ok()) continue;
    // On bf16 oneDNN's take half as long, and the sizes say which one is faster.
    const bool is_last = PacksHeldWeights(context, name) || context.stores_bf16;
    (is_last ? others : guesses).emplace_back(name);
  }
  if (CheckPanels(context).ok()) {
    (PanelsPackHeldWeights(context) ? others : guesses).emplace_back(kPanelsName);
  }
  SortByEstimate(context, "conv", &guesses);
  names = std::move(guesses);
  std::ranges::move(others, std::back_inserter(names));
  const auto direct = std::ranges::find(names, "direct");
  if (direct != names.end() && PieceOf(context)) {
    const bool is_large = context.node(0).outputs[0].NumElements() >= kPieceElements;
    names.insert(is_large ? direct : direct + 1, std::string(kPiecesName));
  }
  if (names.empty()) return Err(StatusCode::kUnimplemented, "conv: oneDNN has no kernel for it");
  return names;
}

class Convolution : public CallKernel {
 public:
  Status Prepare(const GroupContext& context, const std::string& name, size_t* done) {
    const ConvolutionProblem p = ConvolutionProblemOf(context);
    AG_LET(const ConvolutionForm form, ConvolutionFormOf(p, name));
    auto [tail, desc] = LongestTail(context, p, form);
    *done = tail.done;
    UseHeldWeights(context, p, form, tail.ops, &desc);
    const Node& node = context.node(0);
    call_.Input(DNNL_ARG_SRC, form.src, p.src_given, context.InputOf(node.inputs[0]));
    AG_TRY(BindParameter(context, 1, DNNL_ARG_WEIGHTS, desc.weights_desc(), p.weights_given));
    AG_TRY(BindParameter(context, 2, DNNL_ARG_BIAS, PlainDesc(p.bias), PlainDesc(p.bias)));
    call_.Output(DNNL_ARG_DST, form.dst, p.dst_given, 0);
    AG_TRY(BindTail(context, tail, &call_));
    call_.Finish(convolution_forward(desc), desc.scratchpad_desc());
    return OkStatus();
  }

 private:
  struct Described {
    Tail tail;
    convolution_forward::primitive_desc desc;
  };

  // Returns the longest tail with which oneDNN still has a kernel other than its reference.
  static Described LongestTail(const GroupContext& context, const ConvolutionProblem& p,
                               const ConvolutionForm& form) {
    const auto operand = [&](const GroupContext& c, Edge edge) {
      return OperandOf(c, edge, form, p);
    };
    for (size_t count = context.group.nodes.size() - 1;; --count) {
      Tail tail = MakeTail(context, 1, count, operand);
      auto desc = Describe(p, form, AnyDesc(p.weights, p.dtype), tail.ops);
      const std::string impl = ImplOf(desc);
      if (count == 0 || (!impl.empty() && (IsSlow(form.impl) || !IsSlow(impl)))) {
        return {std::move(tail), std::move(desc)};
      }
    }
  }

  // Returns false where oneDNN's (2.6) SSE4.1 and AVX convolutions add a residual at wrong places:
  // when the channels are no multiple of their block of 8, and for columns described as rows. The
  // AVX-512 ones do so in some images of one column with dilated windows, so no dilated one is
  // trusted. Then the loops behind the convolution add it.
  static bool HasSoundResidual(const ConvolutionProblem& p) {
    if (std::ranges::any_of(p.dilations, [](int64_t d) { return d > 0; })) return false;
    return InstructionSet() != "sse41" || (!p.turned && p.dst[1] % 8 == 0);
  }

  // Accepts residuals in the result's own layout, vectors over channels, and scalars.
  static OperandDescs OperandOf(const GroupContext& context, Edge edge, const ConvolutionForm& form,
                                const ConvolutionProblem& p) {
    const TensorType& type = context.graph.type(edge);
    const int port = context.InputOf(edge);
    if (type.dtype != p.dtype) return {};
    if (type.shape == context.node(0).outputs[0].shape) {
      if (!HasSoundResidual(p)) return {};
      if (port < 0) return {form.dst, PlainDesc(p.dst)};
      const Layout layout = context.group.inputs[port].layout;
      const bool same = TurnedDesc(type, layout, p.turned) == form.dst;
      return same ? OperandDescs{form.dst, form.dst} : OperandDescs{};
    }
    if (port >= 0) return {};
    Dims dims(p.dst.size(), 1);
    const size_t missing = dims.size() - std::min(dims.size(), type.shape.size());
    for (size_t i = missing; i < dims.size(); ++i) dims[i] = type.shape[i - missing];
    const bool vector = NumElements(type.shape) == dims[1] && type.shape.size() <= dims.size();
    if (!vector || (dims[1] != 1 && dims[1] != p.dst[1])) return {};
    return {PlainDesc(dims), PlainDesc(dims)};
  }

  Status BindParameter(const GroupContext& context, size_t index, int arg, const Desc& wanted,
                       const Desc& constant) {
    const Edge edge = context.node(0).inputs[index];
    const int port = context.InputOf(edge);
    const Desc given =
        port < 0 ? constant : PlainDesc(constant.dims(), context.graph.type(edge).dtype);
    if (port >= 0 && context.group.inputs[port].layout != Layout::kPlain) {
      return Err(StatusCode::kUnimplemented, "conv: operand {} is not plain", index);
    }
    return call_.Operand(context, edge, arg, wanted, given);
  }
};

// The convolution piece by piece, each followed by a pass of the function behind it.
class PiecedConvolution : public Kernel {
 public:
  Status Prepare(const GroupContext& context, size_t* done) {
    const std::optional<Piece> piece = PieceOf(context);
    if (!piece) return Err(StatusCode::kUnimplemented, "conv: the group has no pieces");
    const ConvolutionProblem whole = ConvolutionProblemOf(context);
    ConvolutionProblem p = ConvolutionProblemOf(context, &*piece);
    p.weights_given = whole.weights_given.submemory_desc(p.weights, Dims(p.weights.size(), 0));
    AG_LET(const ConvolutionForm form, ConvolutionFormOf(p, "direct"));
    auto desc = Describe(p, form, form.weights, {});
    UseHeldWeights(context, p, form, {}, &desc);  // Of the first piece; the others have its form.
    const dnnl::primitive convolution = convolution_forward(desc);
    const Node& node = context.node(0);
    const int port = context.InputOf(node.inputs[0]);
    const size_t src_bytes = form.src.get_size();
    const bool is_by_channel = whole.src[1] != p.src[1];
    const int64_t pieces = whole.dst[1] / piece->channels;
    piece_bytes_ = form.dst.get_size();
    for (int64_t i = 0; i < whole.dst[0] / piece->images * pieces; ++i) {
      const int64_t channel = i % pieces * piece->channels;
      Dims first(p.weights.size(), 0);
      first[0] = channel;
      Call& call = calls_.emplace_back();
      call.Input(DNNL_ARG_SRC, form.src, p.src_given, port,
                 src_bytes * (is_by_channel ? i : i / pieces));
      AG_TRY(call.Constant(context, node.inputs[1], DNNL_ARG_WEIGHTS, desc.weights_desc(),
                           whole.weights_given.submemory_desc(p.weights, first)));
      AG_TRY(call.Constant(context, node.inputs[2], DNNL_ARG_BIAS, PlainDesc(p.bias),
                           PlainDesc(whole.bias).submemory_desc(p.bias, {channel})));
      call.Output(DNNL_ARG_DST, form.dst, p.dst_given, 0, piece_bytes_ * i);
      call.Finish(convolution, desc.scratchpad_desc());
    }
    function_ = BlockOpOf<float>(context.node(1));
    cores_ = context.cores;
    *done = 2;
    return OkStatus();
  }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    auto* y = static_cast<std::byte*>(outputs[0]);
    for (Call& call : calls_) {
      AG_TRY(call.Run(context, inputs, outputs));
      auto* values = reinterpret_cast<float*>(y);
      const auto n = static_cast<int64_t>(piece_bytes_ / sizeof(float));
      ParallelFor(cores_, n, kLightGrain / 4, [&](int64_t begin, int64_t end, int) {
        float* part = values + begin;
        function_.run(part, part, part, part, end - begin, function_.p, function_.q);
      });
      y += piece_bytes_;
    }
    return OkStatus();
  }
  size_t scratch_bytes() const override { return calls_.front().scratch_bytes(); }

 private:
  std::vector<Call> calls_;  // In the order of their results, which lie one behind the other.
  size_t piece_bytes_ = 0;
  BlockOp<float> function_;
  int cores_ = 1;
};

StatusOr<std::unique_ptr<Kernel>> MakeConvolution(const GroupContext& context,
                                                  const std::string& name, size_t* done) {
  AG_TRY(CheckConvolution(context));
  if (name == kWinogradName || name == kSmallWinogradName) return MakeWinograd(context, name, done);
  if (name == kPanelsName) return MakePanels(context, done);
  if (name == kPiecesName) return Prepared<PiecedConvolution>("conv", context, done);
  return Prepared<Convolution>("conv", context, name, done);
}

}  // namespace

const Family kConvolutionFamily = {ConvolutionNames, MakeConvolution};

}  // namespace ag::cpu
