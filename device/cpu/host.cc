#include "device/cpu/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "device/cpu/onednn.h"

namespace ag::cpu {
namespace {

// The version of the measuring policy on CPUs: warm-up, canary, blocks, which kernels there are
// and how fast they are. With a new version old measurements do not count.
constexpr int kMeasuringPolicy = 8;

// The rates are of one core of a current server: 2.5 GHz with two multiply-add units of 8 floats
// (16 for AVX-512), of which well-packed kernels reach about 80 %; memory as measured by a copy.
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
launch_ns 1500
event_ns 1000
memory_bytes {memory}
alignment_bytes 64
pattern conv = Conv [Add] [{activation}] layouts {blocked}plain
pattern dense = MatMul [Add] [Add] [{activation}] layouts plain
pattern attention = MatMul< [Mul|Div] [Add&] [Add&] Softmax MatMul&< [Transpose&] layouts plain
pattern chain = {elementwise}<>+ max 16 layouts any
pattern batch_norm = BatchNorm layouts {blocked}plain
pattern pool = {pooling} layouts {blocked}plain
pattern resize = Resize layouts {blocked}plain
pattern reduce = {reduction} layouts {blocked}plain
pattern softmax = Softmax layouts plain
pattern layer_norm = LayerNorm|RmsNorm layouts plain
pattern chain_norm = {elementwise}<>+ LayerNorm|RmsNorm max 16 layouts plain
pattern concat = Concat|Split|Slice layouts {blocked}plain
pattern pad = Pad layouts channels_last,plain
pattern move = Transpose|Reshape|Expand|Gather layouts plain
pattern kept = Opaque layouts plain
)";

constexpr std::string_view kOffersBf16 = "precision bf16 2.4e11\n";
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
  const bool wide = InstructionSet() == "avx512";
  const int64_t memory = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  std::string text(kSpec);
  text = Replace(std::move(text), "{cores}", fmt::format("{}", cores));
  text = Replace(std::move(text), "{flops}", wide ? "1.2e11" : "9e10");
  // Twice the products an instruction; oneDNN's take 0.50 of the time of those in f32.
  text = Replace(std::move(text), "{precisions}", HasBf16Products() ? kOffersBf16 : kLacksBf16);
  text = Replace(std::move(text), "{memory}", fmt::format("{}", memory));
  return Replace(std::move(text), "{blocked}",
                 wide ? "channels_last,blocked16," : "blocked8,channels_last,");
}

Environment EnvironmentOf(int cores) {
  return fmt::format("cores={};cpu={};isa={};onednn={};policy={}", cores, CpuModel(),
                     InstructionSet(), OneDnnVersion(), kMeasuringPolicy);
}

}  // namespace ag::cpu
