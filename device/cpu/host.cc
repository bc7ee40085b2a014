#include "device/cpu/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "device/cpu/cache_eviction.h"
#include "device/cpu/onednn.h"

namespace ag::cpu {
namespace {

// The version of the measuring policy on CPUs: warm-up, canary, blocks, which kernels there are
// and how fast they are. With a new version old measurements do not count.
constexpr int kMeasuringPolicy = 13;

// The rates are of one core of a current server: with AVX-512 what a quiet Xeon reached, elsewhere
// 2.5 GHz with two multiply-add units of 8 floats, of which well-packed kernels reach about 80 %;
// memory as measured by a copy.
// deploy/devices/cpu.spec documents the same patterns.
constexpr std::string_view kSpec = R"(
name cpu
dtypes f32,f16,bf16,f64,i64,i32,i16,i8,u64,u32,u16,u8,bool
cores {cores}
streams_max {cores}
stream_cores 1
flops_per_second {flops}
{precisions}bytes_per_second 2e10
cache_bytes_per_second 6e10
cache_bytes 16777216
far_weights_bytes {far}
launch_ns 1500
event_ns 1000
memory_bytes {memory}
alignment_bytes 64
pattern conv = Conv [Add] [{activation}] layouts {blocked}plain
pattern expansion = {pointwise} [{activation}] {depthwise} [{activation}>] [ReduceMean] )"
                                   R"(layouts {images}
pattern dense = MatMul [Add] [Add] [{activation}] [Mul] layouts plain
pattern attention = MatMul< [Add|Sub|Mul|Div|Where&]+ Softmax MatMul&< [Transpose&] layouts plain
pattern chain = {elementwise}<>+ max 16 layouts any
pattern scaled = Mul {pointwise} [Add] [{activation}] layouts {vectors}
pattern batch_norm = BatchNorm layouts {blocked}plain
pattern pool = {pooling} layouts {blocked}plain
pattern resize = Resize layouts {blocked}plain
pattern reduce = {reduction} layouts {blocked}plain
pattern softmax = Softmax layouts plain
pattern layer_norm = LayerNorm|RmsNorm layouts plain
pattern chain_norm = {elementwise}<>+ LayerNorm|RmsNorm max 16 layouts plain
pattern concat = Concat|Split|Slice layouts {blocked}plain
pattern rotary = Concat< Mul& Add& layouts plain
pattern pad = Pad layouts channels_last,plain
pattern move = Transpose|Reshape|Expand|Gather layouts channels_last,plain
pattern kept = Opaque layouts plain
)";

// The kernels by which groups are estimated and guessed, in shares of the rates above: fitted to
// 3,569 groups of fifteen networks on a Xeon with AVX-512, with an error of 1.05 to 1.2 in the
// median (bench/results/2026-11-30-panels.md); `expansion`, `scaled` and `resize` to the
// groups of nine networks (2026-11-30-line-buffer.md). Of the products only the order differs
// between instruction sets: with AVX2 oneDNN's matmul falls to half the others' rate on some. With
// AVX-512 their numbers are those between neighbours (`build/kernel_plans`): "convolution" is as
// fast as "matmul" or faster alone, but where weights come from memory it takes 1.17 of its time in
// the plan of BERT-base.
constexpr std::string_view kKernels = R"(
kernel direct = conv full share 0.91 bytes 1.2 far 0.9 fixed_ns 2500 layouts {blocks}
kernel direct = conv full share 0.95 bytes 0.95 far 0.8 fixed_ns 1500 layouts channels_last,plain
kernel direct = conv depthwise share 0.72 bytes 1.4 fixed_ns 2800 layouts {blocks}
kernel direct = conv depthwise share 0.42 bytes 2.4 fixed_ns 3400 layouts channels_last,plain
kernel winograd_tiles = conv winograd4 share 0.91 bytes 1 far 1.8 fixed_ns 7800 layouts {blocks}
kernel winograd_tiles = conv winograd4 share 0.96 bytes 1.06 far 1.6 fixed_ns 8500 )"
                                      R"(layouts channels_last
kernel winograd_small_tiles = conv winograd2 share 0.9 bytes 1.9 far 1.5 fixed_ns 13700 )"
                                      R"(layouts {blocks}
kernel winograd_small_tiles = conv winograd2 share 0.81 bytes 2.1 far 1.7 fixed_ns 9500 )"
                                      R"(layouts channels_last
kernel line_buffer = expansion share 0.96 bytes 0.88 far 0.9 fixed_ns 13400 layouts {blocks}
kernel line_buffer = expansion share 0.91 bytes 0.49 far 1.2 fixed_ns 14100 layouts channels_last
kernel panels = scaled pointwise share 0.72 bytes 2.13 far 0.7 fixed_ns 11200 layouts {blocks}
kernel panels = scaled pointwise share 0.96 bytes 1.36 far 0.5 fixed_ns 6900 layouts channels_last
kernel batched = dense share 1.3 bytes 1.35 fixed_ns 6900
kernel wide_128 = attention share 1.3 bytes 0.3 fixed_ns 1600
kernel fused = chain share 1.03 bytes 1.4 fixed_ns 3500
kernel onednn = pool bytes 1 fixed_ns 10300
kernel rows = resize share 0.18 bytes 1 fixed_ns 2400
kernel loops = reduce bytes 1.4 fixed_ns 2400
kernel rows = softmax bytes 0.7 fixed_ns 500
kernel rows = layer_norm share 0.4 fixed_ns 150
kernel rows = chain_norm share 0.8 bytes 1.4 fixed_ns 8000
kernel rows = rotary share 0.45 bytes 0.64 fixed_ns 900
kernel copy = concat bytes 0.74 fixed_ns 300
kernel copy = pad bytes 0.34 fixed_ns 2700
kernel copy = move fixed_ns 200
kernel onednn = reorder bytes 0.74 fixed_ns 1200
)";
constexpr std::string_view kAvx512Products = R"(
kernel panels = conv pointwise share 0.9 bytes 0.8 far 1.5 fixed_ns 1200 layouts {blocks}
kernel panels = conv pointwise share 0.95 bytes 0.9 far 1.5 fixed_ns 900 layouts channels_last
kernel panels = dense product share 0.96 bytes 1 far 1.5 fixed_ns 3600
kernel matmul = dense product share 0.96 bytes 0.97 fixed_ns 5700
kernel inner_product = dense product share 0.96 bytes 1.75 far 0.8 fixed_ns 500
kernel convolution = dense product share 0.91 bytes 3.5 far 0.7 fixed_ns 1400
)";
constexpr std::string_view kAvx2Products = R"(
kernel convolution = dense product share 1.05 fixed_ns 5500
kernel inner_product = dense product fixed_ns 3500
kernel matmul = dense product share 0.7 fixed_ns 4500
)";
constexpr std::string_view kSse41Products = R"(
kernel inner_product = dense product share 1.05 fixed_ns 3500
kernel matmul = dense product fixed_ns 4500
)";

constexpr std::string_view kOffersBf16 = "precision bf16 4e11\n";
constexpr std::string_view kLacksBf16 =
    "lacks bf16 the processor has neither AVX512-BF16 nor AMX-BF16\n";

std::string Replace(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// Returns whether the processor has what `isa` has and `before` has not.
bool HasWhatIsNewIn(dnnl::cpu_isa isa, dnnl::cpu_isa before) {
  const auto added = static_cast<unsigned>(isa) & ~static_cast<unsigned>(before);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & added) != 0;
}

std::string CpuModel() {
  const StatusOr<std::string> info = ReadFile("/proc/cpuinfo");
  if (!info.ok()) return "unknown";
  constexpr std::string_view kKey = "model name";
  const size_t key = info->find(kKey);
  if (key == std::string::npos) return "unknown";
  const size_t begin = info->find_first_not_of(": \t", key + kKey.size());
  std::string model = info->substr(begin, info->find('\n', begin) - begin);
  // The environment is "key=value;..." in one line.
  std::erase_if(model, [](char c) { return c == ';' || c == '=' || c == '\n'; });
  return model;
}

}  // namespace

std::string InstructionSet() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  if (isa >= dnnl::cpu_isa::avx512_core) return "avx512";
  return isa >= dnnl::cpu_isa::avx2 ? "avx2" : "sse41";
}

bool HasExactByteProducts() {
  return HasWhatIsNewIn(dnnl::cpu_isa::avx512_core_vnni, dnnl::cpu_isa::avx512_core);
}

bool HasBf16Products() {
  return HasWhatIsNewIn(dnnl::cpu_isa::avx512_core_bf16, dnnl::cpu_isa::avx512_core_vnni);
}

std::string SpecText(int cores) {
  const std::string isa = InstructionSet();
  const bool wide = isa == "avx512";
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  std::string text(kSpec);
  text += kKernels;
  text += wide ? kAvx512Products : isa == "avx2" ? kAvx2Products : kSse41Products;
  text = Replace(std::move(text), "{blocks}", wide ? "blocked16" : "blocked8");
  text = Replace(std::move(text), "{cores}", fmt::format("{}", cores));
  text = Replace(std::move(text), "{far}", fmt::format("{}", CacheEviction::kFarBytes));
  text = Replace(std::move(text), "{flops}", wide ? "2e11" : "9e10");
  // Twice the products an instruction; oneDNN's take 0.50 of the time of those in f32.
  text = Replace(std::move(text), "{precisions}", HasBf16Products() ? kOffersBf16 : kLacksBf16);
  text = Replace(std::move(text), "{memory}", fmt::format("{}", memory));
  const std::string images = wide ? "channels_last,blocked16" : "blocked8,channels_last";
  text = Replace(std::move(text), "{images}", images);
  text = Replace(std::move(text), "{vectors}", isa == "sse41" ? "channels_last" : images);
  return Replace(std::move(text), "{blocked}", images + ",");
}

Environment EnvironmentOf(int cores) {
  return fmt::format("cores={};cpu={};isa={};onednn={};policy={}", cores, CpuModel(),
                     InstructionSet(), OneDnnVersion(), kMeasuringPolicy);
}

}  // namespace ag::cpu
