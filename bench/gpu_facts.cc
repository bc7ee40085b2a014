// The facts that decide speed on a GPU, measured: gaps between the kernels of a graph, with and
// without early launches, forks and joins, the number of small kernels that run beside each other,
// bandwidths and rates by number of blocks. Prints one JSON object; each number replaces an
// assumption of the estimates.
//
//   gpu_facts [ORDINAL] [FOLDER-OF-CUDA-LIBRARIES...]     needs a GPU
//   gpu_facts --compile [FOLDER...]      only compiles its kernels, for sm_90
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/cudnn_source.h"
#include "device/cuda/launch/compiler.h"
#include "device/cuda/machine.h"
#include "device/cuda_module.h"

namespace ag::cuda {
namespace {

constexpr int kReplays = 50;
constexpr int kRounds = 7;
constexpr int64_t kLargeBytes = int64_t{1} << 30;   // Larger than every cache.
constexpr int64_t kSmallBytes = int64_t{16} << 20;  // Fits the second-level cache.

// `spin` keeps its blocks busy for about 5 us; `read` sums 16-byte words, each block its part, so
// its time is that of the memory behind it; `fma_chain` and `mma_chain` are chains without memory.
constexpr char kSource[] = R"(
typedef unsigned int u32;
typedef unsigned long long u64;
extern "C" __global__ void empty(float* out) {}
extern "C" __global__ void early(float* out) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
}
extern "C" __global__ void spin(float* out) {
  u64 begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); } while (now - begin < 5000);
}
template <u64 kBytes> __device__ void Read(float* out, const float4* in) {
  const u64 words = kBytes / 16;
  float sum = 0;
  for (u64 i = blockIdx.x * 1024ull + threadIdx.x; i < words; i += gridDim.x * 1024ull) {
    const float4 v = in[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 12345.678f) out[0] = sum;
}
extern "C" __global__ void read_large(float* out, const float4* in) { Read<1ull << 30>(out, in); }
extern "C" __global__ void read_small(float* out, const float4* in) { Read<1ull << 24>(out, in); }
extern "C" __global__ void fma_chain(float* out) {
  float a[8];
  for (int k = 0; k < 8; ++k) a[k] = threadIdx.x + k;
  for (int i = 0; i < 4096; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) a[k] = a[k] * 1.0001f + 0.5f;
  }
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += a[k];
  if (sum == 12345.678f) out[0] = sum;
}
extern "C" __global__ void mma_chain(float* out) {
  float c[4][4] = {};
  const u32 a = threadIdx.x, b = threadIdx.x * 3;
  for (int i = 0; i < 4096; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},"
                   "{%4,%4,%4,%4},{%5,%5},{%0,%1,%2,%3};"
                   : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3]) : "r"(a), "r"(b));
    }
  }
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += c[k][0] + c[k][1] + c[k][2] + c[k][3];
  if (sum == 12345.678f) out[0] = sum;
}
)";

class Facts {
 public:
  static StatusOr<nlohmann::json> Measure(int ordinal, Compiler& compiler) {
    Facts facts;
    AG_LET(facts.driver_, OpenCudaDriver(ordinal));
    AG_LET(facts.machine_, ReadMachine(ordinal));
    const int capability = ChipOf(facts.machine_).compute_capability;
    AG_LET(const std::string image, compiler.Compile(kSource, capability));
    AG_TRY(facts.Prepare(image));
    nlohmann::json json;
    json["gpu"] = facts.machine_.name;
    json["sms"] = facts.machine_.sms;
    AG_LET(const std::unique_ptr<CudnnSource> cudnn, CudnnSource::Open());
    AG_LET(const std::string properties, cudnn->device().ToJson());  // For deploy/devices.
    json["cudnn_device"] = nlohmann::json::parse(properties, nullptr, /*allow_exceptions=*/false);
    AG_LET(json["chain_us"], facts.Chains("empty"));
    AG_LET(json["early_chain_us"], facts.Chains("early"));
    json["early_after_two"] = facts.EarlyAfterTwo();
    AG_LET(json["fork_join_us"], facts.Forks());
    AG_LET(json["beside_us"], facts.Beside());
    AG_LET(json["read_bytes_per_second"], facts.Bandwidths());
    AG_LET(json["flops_per_second"], facts.Rates());
    return json;
  }

 private:
  // A node to capture: a kernel, its blocks, and the positions of the nodes before it.
  struct Item {
    std::string function;
    uint32_t blocks = 1;
    uint32_t threads = 32;
    std::vector<size_t> after;
  };

  Status Prepare(const std::string& image) {
    AG_LET(const ModuleRef module, driver_->LoadModule(image));
    module_ = OwnedModule(*driver_, module);
    AG_LET(const StreamRef stream, driver_->MakeStream(0));
    stream_ = OwnedStream(*driver_, stream);
    AG_LET(const EventRef begin, driver_->MakeEvent());
    begin_ = OwnedEvent(*driver_, begin);
    AG_LET(const EventRef end, driver_->MakeEvent());
    end_ = OwnedEvent(*driver_, end);
    AG_LET(std::byte* const memory, driver_->Allocate(kLargeBytes));
    memory_ = OwnedMemory(*driver_, memory);
    return driver_->Fill(memory, 0, kLargeBytes, stream);
  }

  // Returns the median nanoseconds of one replay of the items.
  StatusOr<double> Time(const std::vector<Item>& items, int replays) {
    AG_LET(const GraphRef graph, driver_->MakeGraph());
    const OwnedGraph owned(*driver_, graph);
    std::vector<NodeRef> ends;
    for (const Item& item : items) {
      std::vector<NodeEdge> edges;
      for (const size_t before : item.after) edges.push_back({ends[before], false});
      KernelLaunch launch;
      AG_LET(launch.function, driver_->FindFunction(module_.get(), item.function, 0));
      launch.grid[0] = item.blocks;
      launch.block[0] = item.threads;
      launch.arguments = {memory_.get(), memory_.get()};
      if (!item.function.starts_with("read")) launch.arguments.pop_back();
      launch.is_early = item.function == "early" && !edges.empty();
      AG_TRY(driver_->BeginCapture(stream_.get(), graph, edges));
      const Status sent = driver_->Launch(launch, stream_.get());
      StatusOr<std::vector<NodeRef>> end = driver_->EndCapture(stream_.get());
      AG_TRY(sent);
      AG_TRY(end);
      ends.push_back(end->at(0));
    }
    AG_LET(const ReplayRef replay, driver_->Instantiate(graph));
    const OwnedReplay owned_replay(*driver_, replay);
    AG_TRY(driver_->Prepare(replay, stream_.get()));
    std::vector<double> samples;
    for (int round = 0; round <= kRounds; ++round) {  // The first is not counted.
      AG_TRY(driver_->Record(begin_.get(), stream_.get()));
      for (int i = 0; i < replays; ++i) AG_TRY(driver_->Replay(replay, stream_.get()));
      AG_TRY(driver_->Record(end_.get(), stream_.get()));
      AG_LET(const Nanos took, driver_->Between(begin_.get(), end_.get()));
      if (round > 0) samples.push_back(static_cast<double>(took.count()) / replays);
    }
    std::ranges::sort(samples);
    return samples[samples.size() / 2];
  }

  // Times nodes in a row, by number of nodes.
  StatusOr<nlohmann::json> Chains(const std::string& function) {
    nlohmann::json json;
    if (function == "early" && !ChipOf(machine_).has_early_launch()) return json;
    for (const size_t count : {8, 32, 128, 512}) {
      std::vector<Item> items;
      for (size_t i = 0; i < count; ++i) {
        items.push_back({function, 1, 32, i == 0 ? std::vector<size_t>() : std::vector{i - 1}});
      }
      AG_LET(const double ns, Time(items, kReplays));
      json[std::to_string(count)] = ns / 1e3;
    }
    return json;
  }

  // Returns whether a node instantiates that begins early after one parent and plainly after
  // another.
  std::string EarlyAfterTwo() {
    if (!ChipOf(machine_).has_early_launch()) return "no early launches on this chip";
    const auto ns = Time({{"empty", 1, 32, {}}, {"empty", 1, 32, {}}, {"early", 1, 32, {0, 1}}}, 1);
    return ns.ok() ? "ok" : Message(ns.status());
  }

  // Times a node, then branches of 8 spinning kernels of 8 blocks each, then a node; by number of
  // branches.
  StatusOr<nlohmann::json> Forks() {
    nlohmann::json json;
    for (const int branches : {1, 2, 4, 8, 16}) {
      std::vector<Item> items = {{"empty", 1, 32, {}}};
      std::vector<size_t> ends;
      for (int b = 0; b < branches; ++b) {
        size_t last = 0;
        for (int i = 0; i < 8; ++i) {
          items.push_back({"spin", 8, 32, {last}});
          last = items.size() - 1;
        }
        ends.push_back(last);
      }
      items.push_back({"empty", 1, 32, ends});
      AG_LET(const double ns, Time(items, kReplays));
      json[std::to_string(branches)] = ns / 1e3;
    }
    return json;
  }

  // Times eight independent spinning kernels of 1024 threads; by blocks of each.
  StatusOr<nlohmann::json> Beside() {
    nlohmann::json json;
    for (const uint32_t blocks : {8, 16, 32, 64, 132, 264}) {
      std::vector<Item> items = {{"empty", 1, 32, {}}};
      for (int k = 0; k < 8; ++k) items.push_back({"spin", blocks, 1024, {0}});
      AG_LET(const double ns, Time(items, kReplays));
      json[std::to_string(blocks)] = ns / 1e3;
    }
    return json;
  }

  StatusOr<nlohmann::json> Bandwidths() {
    nlohmann::json json;
    for (const auto& [name, bytes] :
         {std::pair("read_small", kSmallBytes), std::pair("read_large", kLargeBytes)}) {
      for (const int parts : {8, 4, 2, 1}) {  // An eighth of the chip, a quarter, ...
        const auto blocks = static_cast<uint32_t>(std::max(1, machine_.sms / parts));
        AG_LET(const double ns, Time({{name, 2 * blocks, 1024, {}}}, 10));
        json[name][std::to_string(blocks)] = static_cast<double>(bytes) / ns * 1e9;
      }
    }
    return json;
  }

  StatusOr<nlohmann::json> Rates() {
    const auto blocks = static_cast<uint32_t>(2 * machine_.sms);
    nlohmann::json json;
    AG_LET(const double fma_ns, Time({{"fma_chain", blocks, 1024, {}}}, 10));
    json["fp32"] = 2.0 * 8 * 4096 * 1024 * blocks / fma_ns * 1e9;
    AG_LET(const double mma_ns, Time({{"mma_chain", blocks, 1024, {}}}, 10));
    json["fp16_mma_sync"] = 2.0 * 16 * 8 * 16 * 4 * 4096 * 32 * blocks / mma_ns * 1e9;
    return json;
  }

  std::unique_ptr<Driver> driver_;
  MachineFacts machine_;
  OwnedModule module_;
  OwnedStream stream_;
  OwnedEvent begin_, end_;
  OwnedMemory memory_;
};

int Main(int argc, char** argv) {
  const bool compile_only = argc > 1 && std::strcmp(argv[1], "--compile") == 0;
  std::vector<std::string> folders = CudaLibraryFolders();
  for (int i = 2; i < argc; ++i) folders.insert(folders.begin(), argv[i]);
  const std::unique_ptr<Compiler> compiler = MakeNvrtcCompiler({Join(folders, ":")});
  if (compile_only) {
    const auto image = compiler->Compile(kSource, 90);
    if (image.ok()) std::printf("%zu bytes for sm_90\n", image->size());
    if (!image.ok()) std::fprintf(stderr, "gpu_facts: %s\n", ToString(image.status()).c_str());
    return image.ok() ? 0 : 1;
  }
  const StatusOr<int64_t> ordinal = argc > 1 ? ParseInt(argv[1]) : StatusOr<int64_t>(0);
  if (!ordinal.ok()) {
    std::fprintf(stderr, "usage: gpu_facts [ORDINAL | --compile] [FOLDER...]\n");
    return 2;
  }
  const auto facts = Facts::Measure(static_cast<int>(*ordinal), *compiler);
  if (!facts.ok()) {
    std::fprintf(stderr, "gpu_facts: %s\n", ToString(facts.status()).c_str());
    return 1;
  }
  std::printf("%s\n", facts->dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace ag::cuda

int main(int argc, char** argv) { return ag::cuda::Main(argc, argv); }
