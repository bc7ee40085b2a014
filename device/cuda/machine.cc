#include "device/cuda/machine.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "device/cuda/cuda_status.h"

namespace ag::cuda {
namespace {

// The version of the measuring policy on GPUs: events, copies, canary. With a new version old
// measurements do not count.
constexpr int kMeasuringPolicy = 2;

// The part of a datasheet's rates that kernels reach in practice.
constexpr double kReached = 0.8;
constexpr double kBandwidthReached = 0.9;

// Operations of one SM in one clock, multiply and add counted as two, by generation.
struct Generation {
  int capability = 0;
  double fp32 = 0, tf32 = 0, fp16 = 0;  // tf32 0: the chip has none. bf16 is as fp16 where tf32 is.
};
constexpr Generation kGenerations[] = {
    {75, 128, 0, 1024},    {80, 128, 1024, 2048},  {86, 256, 512, 1024}, {89, 256, 512, 1024},
    {90, 256, 2048, 4096}, {100, 256, 2048, 4096}, {120, 256, 512, 1024}};

// deploy/devices/h200.spec documents the same patterns.
constexpr std::string_view kPatterns =
    R"(
pattern conv = Conv [Add] [{activation}] layouts channels_last,channels_last8,plain
)"
    "pattern separable = {depthwise} [{activation}] {pointwise} [Add] [{activation}] "
    "layouts channels_last,channels_last8"
    R"(
pattern dense = MatMul [Add] [Add] [{activation}] layouts plain
pattern chain = {elementwise}+ max 16 layouts any
pattern batch_norm = BatchNorm layouts any
pattern pool = {pooling} layouts any
pattern resize = Resize layouts any
pattern reduce = {reduction} layouts any
pattern softmax = Softmax layouts plain
pattern layer_norm = LayerNorm|RmsNorm layouts plain
pattern concat = Concat|Split|Slice layouts any
pattern move = Transpose|Reshape|Expand|Pad|Gather layouts plain
)";

int Capability(const MachineFacts& facts) {
  return 10 * facts.capability_major + facts.capability_minor;
}

StatusOr<int> Attribute(cudaDeviceAttr attribute, int ordinal) {
  int value = 0;
  AG_TRY(FromCuda(cudaDeviceGetAttribute(&value, attribute, ordinal), "read attribute {}",
                  static_cast<int>(attribute)));
  return value;
}

// Returns true for this process and for our other programs, which measure one after the other.
bool IsOurs(unsigned pid) {
  if (pid == static_cast<unsigned>(getpid())) return true;
  std::error_code error;
  const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  return !error && program.filename().string().starts_with("autograph");
}

// NVIDIA's management library, which comes with the driver. All of it is optional.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = Find<int (*)()>("nvmlInit_v2");
    is_open_ = init != nullptr && init() == 0;
  }
  ~Nvml() {
    if (const auto shut = Find<int (*)()>("nvmlShutdown"); is_open_ && shut != nullptr) shut();
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string DriverVersion() const {
    std::array<char, 96> text{};
    const auto get = Find<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
    return is_open_ && get != nullptr && get(text.data(), text.size() - 1) == 0 ? text.data() : "";
  }

  void ReadDevice(MachineFacts* facts) const {
    void* device = nullptr;
    const auto find = Find<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    if (!is_open_ || find == nullptr || find(facts->pci_bus_id.c_str(), &device) != 0) return;
    unsigned current = 0, pending = 0;
    const auto mig = Find<int (*)(void*, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");
    facts->is_mig = mig != nullptr && mig(device, &current, &pending) == 0 && current != 0;
    struct Process {  // nvmlProcessInfo_t.
      unsigned pid;
      unsigned long long bytes;
      unsigned gpu_instance, compute_instance;
    };
    std::array<Process, 256> processes{};
    unsigned count = processes.size();
    const auto list =
        Find<int (*)(void*, unsigned*, Process*)>("nvmlDeviceGetComputeRunningProcesses_v3");
    if (list == nullptr || list(device, &count, processes.data()) != 0) return;
    facts->other_processes = static_cast<int>(
        std::count_if(processes.begin(), processes.begin() + std::min<size_t>(count, 256),
                      [](const Process& process) { return !IsOurs(process.pid); }));
  }

 private:
  template <class Call>
  Call Find(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Call>(dlsym(library_, name));
  }

  void* library_;
  bool is_open_ = false;
};

std::string DottedVersion(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

StatusOr<MachineFacts> ReadMachine(int ordinal) {
  cudaDeviceProp properties{};
  AG_TRY(FromCuda(cudaGetDeviceProperties(&properties, ordinal), "read the device's properties"));
  MachineFacts facts;
  facts.name = properties.name;
  // The environment is "key=value;..." in one line.
  std::erase_if(facts.name, [](char c) { return c == ';' || c == '=' || c == '\n'; });
  facts.capability_major = properties.major;
  facts.capability_minor = properties.minor;
  facts.sms = properties.multiProcessorCount;
  facts.shared_bytes_max = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  facts.memory_bus_bits = properties.memoryBusWidth;
  facts.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  facts.l2_bytes = properties.l2CacheSize;
  AG_LET(const int clock_khz, Attribute(cudaDevAttrClockRate, ordinal));
  facts.clock_mhz = clock_khz / 1000;
  AG_LET(const int memory_clock_khz, Attribute(cudaDevAttrMemoryClockRate, ordinal));
  facts.memory_clock_mhz = memory_clock_khz / 1000;
  std::array<char, 64> bus{};
  AG_TRY(FromCuda(cudaDeviceGetPCIBusId(bus.data(), bus.size(), ordinal), "read the bus id"));
  facts.pci_bus_id = bus.data();
  AG_TRY(FromCuda(cudaDriverGetVersion(&facts.cuda_driver), "read the driver's version"));
  AG_TRY(FromCuda(cudaRuntimeGetVersion(&facts.cuda_runtime), "read the runtime's version"));
  const Nvml nvml;
  facts.driver = nvml.DriverVersion();
  nvml.ReadDevice(&facts);
  return facts;
}

StatusOr<DeviceSpec> SpecOf(const MachineFacts& facts) {
  const Generation* own = nullptr;  // The last one that is not newer than the chip.
  for (const Generation& generation : kGenerations) {
    if (generation.capability <= Capability(facts)) own = &generation;
  }
  if (own == nullptr) {
    return Err(StatusCode::kUnimplemented,
               "{}: compute capability {}.{}; 7.5 (Turing) and newer are supported", facts.name,
               facts.capability_major, facts.capability_minor);
  }
  const double clock = facts.clock_mhz * 1e6 * kReached;
  const double bandwidth =
      2.0 * facts.memory_clock_mhz * 1e6 * facts.memory_bus_bits / 8 * kBandwidthReached;
  std::string text = "name cuda\ndtypes f32,f16,bf16,f64,i64,i32,i8,u8,bool\nstreams_max 8\n";
  text += "channel_bytes 16\n";    // Bytes of a pixel that cuDNN's fast kernels read at once.
  text += "block_outputs 4096\n";  // 64 x 64, the libraries' usual choice.
  text += fmt::format("cores {}\nflops_per_second {}\n", facts.sms, own->fp32 * clock);
  text += fmt::format("bytes_per_second {}\n", std::max(bandwidth, 1e9));
  // The level-2 cache of these chips has about 1.5 times the bandwidth of their memory, or more.
  text += fmt::format("cache_bytes_per_second {}\ncache_bytes {}\n",
                      std::max(1.5 * bandwidth, 1.5e9), facts.l2_bytes);
  text += fmt::format("launch_ns 1200\nevent_ns 1000\nmemory_bytes {}\nalignment_bytes 16\n",
                      facts.memory_bytes);
  if (own->tf32 > 0) text += fmt::format("precision tf32 {}\n", own->tf32 * clock);
  text += fmt::format("precision fp16 {}\n", own->fp16 * clock);
  if (own->tf32 > 0) text += fmt::format("precision bf16 {}\n", own->fp16 * clock);
  text += kPatterns;
  return ParseDeviceSpec(text);
}

Environment EnvironmentOf(const MachineFacts& facts, const LibraryVersions& versions) {
  return fmt::format(
      "cc={}.{};clock_mhz={};cublaslt={};cuda={}.{};cudnn={};driver={};gpu={};memory_mib={};mig={};"
      "policy={};sms={}",
      facts.capability_major, facts.capability_minor, facts.clock_mhz,
      DottedVersion(versions.cublaslt), facts.cuda_runtime / 1000, facts.cuda_runtime % 1000 / 10,
      DottedVersion(versions.cudnn), facts.driver.empty() ? "unknown" : facts.driver, facts.name,
      facts.memory_bytes >> 20, facts.is_mig ? 1 : 0, kMeasuringPolicy, facts.sms);
}

Chip ChipOf(const MachineFacts& facts) {
  return {.compute_capability = Capability(facts),
          .sms = facts.sms,
          .shared_bytes_max = facts.shared_bytes_max};
}

}  // namespace ag::cuda
