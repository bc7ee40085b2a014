// Pooling. Kernels: "onednn" where the library has more than its reference, "loops" for every
// window.
#include <algorithm>
#include <array>
#include <limits>

#include "device/cpu/onednn.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

constexpr size_t kAxesMax = 3;

struct PoolProblem {
  bool average = false;
  bool include_pads = false;
  bool overshoots = false;  // ceil_mode: windows reach beyond the padded input.
  Dims kernel, strides, dilations, pads_begin, pads_end;  // Dilations begin at 1.
  Dims in, out;                                           // Spatial sizes.
  Desc src, dst;
  int64_t images = 0, channels = 0, lanes = 1;
};

PoolProblem PoolProblemOf(const GroupContext& context) {
  const Node& node = context.node(0);
  const TensorType& x = context.graph.type(node.inputs[0]);
  const Layout layout = context.group.inputs[context.InputOf(node.inputs[0])].layout;
  PoolProblem p;
  p.average = node.op == OpKind::kAveragePool;
  p.include_pads = p.average && node.Int("count_include_pad") != 0;
  p.kernel = node.IntList("kernel_shape");
  p.strides = node.IntList("strides");
  p.dilations = node.IntList("dilations");
  const Ints& pads = node.IntList("pads");
  const size_t axes = p.kernel.size();
  p.pads_begin.assign(pads.begin(), pads.begin() + axes);
  p.pads_end.assign(pads.begin() + axes, pads.end());
  p.in.assign(x.shape.begin() + 2, x.shape.end());
  p.out.assign(node.outputs[0].shape.begin() + 2, node.outputs[0].shape.end());
  for (size_t i = 0; i < axes; ++i) {
    const int64_t extent = p.dilations[i] * (p.kernel[i] - 1) + 1;
    const int64_t end = (p.out[i] - 1) * p.strides[i] + extent - p.in[i] - p.pads_begin[i];
    p.overshoots |= end > p.pads_end[i];
  }
  p.src = DescOf(x, layout);
  p.dst = DescOf(node.outputs[0], layout);
  // Channels-last is one block of all channels.
  p.lanes = layout == Layout::kChannelsLast ? x.shape[1] : BlockOf(layout);
  p.images = x.shape[0];
  p.channels = (x.shape[1] + p.lanes - 1) / p.lanes;
  return p;
}

Status CheckPool(const GroupContext& context) {
  const Node& node = context.node(0);
  const TensorType& type = node.outputs[0];
  if (!context.IsComputed(type.dtype) || type.shape.size() > kAxesMax + 2) {
    return Err(StatusCode::kUnimplemented, "{}: {} is neither f32 nor of rank {} at most",
               Info(node.op).name, type.ToString(), kAxesMax + 2);
  }
  AG_LET(const int port, context.InputPort(0, 0));
  const Layout in = context.group.inputs[port].layout, out = context.group.outputs[0].layout;
  if (in == out) return OkStatus();
  return Err(StatusCode::kUnimplemented, "{}: layouts {} to {}", Info(node.op).name, LayoutName(in),
             LayoutName(out));
}

dnnl::pooling_v2_forward::primitive_desc Describe(const PoolProblem& p) {
  using Algorithm = dnnl::algorithm;
  Dims pads_end(p.kernel.size()), dilations = p.dilations;
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    // Exactly the padding of the last window, because oneDNN requires sizes without remainder.
    const int64_t extent = p.dilations[i] * (p.kernel[i] - 1) + 1;
    const int64_t end = (p.out[i] - 1) * p.strides[i] + extent - p.in[i] - p.pads_begin[i];
    pads_end[i] = std::max<int64_t>(end, 0);
    --dilations[i];
  }
  const Algorithm algorithm = !p.average       ? Algorithm::pooling_max
                              : p.include_pads ? Algorithm::pooling_avg_include_padding
                                               : Algorithm::pooling_avg_exclude_padding;
  const dnnl::pooling_v2_forward::desc desc(dnnl::prop_kind::forward_inference, algorithm, p.src,
                                            p.dst, p.strides, p.kernel, dilations, p.pads_begin,
                                            pads_end);
  return {desc, UserScratchpad(), Engine(), /*allow_empty=*/true};
}

class LibraryPool : public CallKernel {
 public:
  Status Prepare(const GroupContext& context) {
    const PoolProblem p = PoolProblemOf(context);
    const auto desc = Describe(p);
    call_.Input(DNNL_ARG_SRC, p.src, p.src, context.InputOf(context.node(0).inputs[0]));
    call_.Output(DNNL_ARG_DST, p.dst, p.dst, 0);
    call_.Finish(dnnl::pooling_v2_forward(desc), desc.scratchpad_desc());
    return OkStatus();
  }
};

class LoopPool : public Kernel {
 public:
  LoopPool(PoolProblem problem, int port, int cores)
      : p_(std::move(problem)), port_(port), cores_(cores) {
    // Describes every window by three axes; missing ones have size 1.
    const size_t missing = kAxesMax - p_.kernel.size();
    for (size_t i = 0; i < kAxesMax; ++i) {
      Axis& axis = axes_[i];
      if (i < missing) continue;
      const size_t k = i - missing;
      axis = {p_.in[k],        p_.out[k],        p_.kernel[k],  p_.strides[k],
              p_.dilations[k], p_.pads_begin[k], p_.pads_end[k]};
    }
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* src = static_cast<const float*>(inputs[port_]);
    auto* dst = static_cast<float*>(outputs[0]);
    const int64_t in = axes_[0].in * axes_[1].in * axes_[2].in * p_.lanes;
    const int64_t out = axes_[0].out * axes_[1].out * axes_[2].out * p_.lanes;
    ParallelFor(cores_, p_.images * p_.channels, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t plane = begin; plane < end; ++plane) Plane(src + plane * in, dst + plane * out);
    });
    return OkStatus();
  }

 private:
  struct Axis {
    int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
  };

  void Plane(const float* src, float* dst) const {
    for (int64_t z = 0; z < axes_[0].out; ++z) {
      for (int64_t y = 0; y < axes_[1].out; ++y) {
        for (int64_t x = 0; x < axes_[2].out; ++x, dst += p_.lanes) Window(src, {z, y, x}, dst);
      }
    }
  }

  void Window(const float* src, std::array<int64_t, kAxesMax> at, float* dst) const {
    std::fill_n(dst, p_.lanes, p_.average ? 0.0f : -std::numeric_limits<float>::infinity());
    int64_t first[kAxesMax], real = 0, padded = 1;
    for (size_t i = 0; i < kAxesMax; ++i) {
      const Axis& a = axes_[i];
      first[i] = at[i] * a.stride - a.pad_begin;
      int64_t inside = 0;
      for (int64_t k = 0; k < a.kernel; ++k) {
        inside += first[i] + k * a.dilation < a.in + a.pad_end ? 1 : 0;
      }
      padded *= inside;
    }
    for (int64_t i = 0; i < axes_[0].kernel; ++i) {
      const int64_t z = first[0] + i * axes_[0].dilation;
      if (z < 0 || z >= axes_[0].in) continue;
      for (int64_t j = 0; j < axes_[1].kernel; ++j) {
        const int64_t y = first[1] + j * axes_[1].dilation;
        if (y < 0 || y >= axes_[1].in) continue;
        real += Row(src + (z * axes_[1].in + y) * axes_[2].in * p_.lanes, first[2], dst);
      }
    }
    if (!p_.average) return;
    const auto count = static_cast<float>(std::max<int64_t>(p_.include_pads ? padded : real, 1));
    for (int64_t lane = 0; lane < p_.lanes; ++lane) dst[lane] /= count;
  }

  // Folds one row of a window into dst; returns the number of real elements.
  int64_t Row(const float* row, int64_t first, float* dst) const {
    int64_t real = 0;
    for (int64_t k = 0; k < axes_[2].kernel; ++k) {
      const int64_t x = first + k * axes_[2].dilation;
      if (x < 0 || x >= axes_[2].in) continue;
      ++real;
      const float* src = row + x * p_.lanes;
      for (int64_t lane = 0; lane < p_.lanes; ++lane) {
        dst[lane] = p_.average ? dst[lane] + src[lane] : std::max(dst[lane], src[lane]);
      }
    }
    return real;
  }

  PoolProblem p_;
  int port_;
  int cores_;
  std::array<Axis, kAxesMax> axes_;
};

StatusOr<std::vector<std::string>> PoolNames(const GroupContext& context) {
  AG_TRY(CheckPool(context));
  std::vector<std::string> names;
  AG_TRY(Guarded("pool", [&] {
    const PoolProblem p = PoolProblemOf(context);
    if (p.overshoots && p.include_pads) return OkStatus();  // oneDNN divides by the whole kernel.
    const auto desc = Describe(p);
    if (!desc) return OkStatus();
    const std::string impl = desc.impl_info_str();
    if (!impl.starts_with("ref")) names.push_back("onednn");
    return OkStatus();
  }));
  if (context.node(0).outputs[0].dtype == DType::kFloat32) names.push_back("loops");
  if (names.empty()) return Err(StatusCode::kUnimplemented, "pool: oneDNN has no kernel in bf16");
  return names;
}

StatusOr<std::unique_ptr<Kernel>> MakePool(const GroupContext& context, const std::string& name,
                                           size_t* done) {
  AG_TRY(CheckPool(context));
  *done = 1;
  if (name == "loops") {
    const int port = context.InputOf(context.node(0).inputs[0]);
    return std::make_unique<LoopPool>(PoolProblemOf(context), port, context.cores);
  }
  return Prepared<LibraryPool>("pool", context);
}

}  // namespace

const Family kPoolFamily = {PoolNames, MakePool};

}  // namespace ag::cpu
