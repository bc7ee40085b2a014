// The measured peak rates of this machine, and the floor that they set for a model's latency in any
// engine.
//   build/machine_peak [MODEL...]        (models of the zoo)
// First line: multiply-adds (GFLOP/s, fp32, all cores) and memory (GB/s read, all cores). Then a
// line for each model: its operations, the bytes that every run must read and write (weights,
// inputs, outputs; tensors between may stay in caches), and max(operations / peak, bytes /
// bandwidth).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/thread.h"
#include "device/open_device.h"
#include "plan/fusion/grouping.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

using Vector = float __attribute__((vector_size(64)));
using HalfVector = float __attribute__((vector_size(32)));

// Returns the seconds of `rounds` rounds of kSums independent multiply-adds on V. The sums must fit
// into the registers, and cover two units of four cycles each.
template <class V, int kSums>
inline __attribute__((always_inline)) double MultiplyAdds(int64_t rounds, float* sink) {
  V sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = V{} + (*sink + static_cast<float>(i));
  const V b = V{} + (1.0f + 1e-7f * *sink), c = V{} + 1e-9f;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * b + c;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (const V& sum : sums) *sink += sum[0];
  return took.count();
}

// A loop for an instruction set, and the floats that one round multiplies and adds.
struct PeakLoop {
  int floats;
  double (*run)(int64_t rounds, float* sink);
};
__attribute__((target("avx512f"))) double Avx512Adds(int64_t rounds, float* sink) {
  return MultiplyAdds<Vector, 16>(rounds, sink);
}
__attribute__((target("avx2,fma"))) double Avx2Adds(int64_t rounds, float* sink) {
  return MultiplyAdds<HalfVector, 12>(rounds, sink);
}
double SseAdds(int64_t rounds, float* sink) { return MultiplyAdds<HalfVector, 6>(rounds, sink); }

PeakLoop PeakLoopOfMachine() {
  if (__builtin_cpu_supports("avx512f")) return {16 * 16, Avx512Adds};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {12 * 8, Avx2Adds};
  return {6 * 8, SseAdds};
}

// Returns the seconds of one pass over `floats`.
__attribute__((target_clones("avx512f", "avx2", "default"))) double ReadAll(
    const std::vector<float>& floats, float* sink) {
  Vector sums[4] = {};
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i + 64 <= floats.size(); i += 64) {
    for (int k = 0; k < 4; ++k) {
      Vector v;
      __builtin_memcpy(&v, floats.data() + i + 16 * k, sizeof(v));
      sums[k] += v;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (const Vector& sum : sums) *sink += sum[0];
  return took.count();
}

// Calls work(core) on every core at once and returns the best total rate of several trials. `work`
// returns units per second.
template <class Work>
double BestRate(int cores, const Work& work) {
  double best = 0;
  for (int trial = 0; trial < 9; ++trial) {
    std::vector<double> rates(cores);
    std::vector<std::thread> threads;
    for (int core = 0; core < cores; ++core) {
      threads.emplace_back([&, core] { rates[core] = work(core); });
    }
    for (std::thread& thread : threads) thread.join();
    double sum = 0;
    for (const double rate : rates) sum += rate;
    best = std::max(best, sum);
  }
  return best;
}

double PeakFlops(int cores) {
  std::vector<float> sinks(cores);
  constexpr int64_t kRounds = 4'000'000;
  const PeakLoop loop = PeakLoopOfMachine();
  return BestRate(cores, [&](int core) {
    return 2.0 * loop.floats * kRounds / loop.run(kRounds, &sinks[core]);
  });
}

double PeakBytes(int cores) {
  constexpr size_t kFloats = size_t{64} << 20;  // 256 MiB a core: beyond its share of caches.
  std::vector<std::vector<float>> memory(cores, std::vector<float>(kFloats, 1.0f));
  std::vector<float> sinks(cores);
  return BestRate(cores, [&](int core) {
    return sizeof(float) * kFloats / ReadAll(memory[core], &sinks[core]);
  });
}

double BytesOfEveryRun(const Graph& graph) {
  double bytes = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const OpKind op = graph.node(id).op;
    if (op != OpKind::kConstant && op != OpKind::kInput) continue;
    for (const TensorType& type : graph.node(id).outputs) bytes += type.Bytes();
  }
  for (const GraphOutput& output : graph.outputs()) bytes += graph.type(output.edge).Bytes();
  return bytes;
}

Status PrintFloor(const std::string& model, double flops, double bytes) {
  AG_LET(const std::unique_ptr<Device> device, OpenDevice("cpu"));
  MemoryWeights weights;
  AG_LET(const Graph zoo, BuildZooModel(model, {}, &weights));
  AG_LET(const Graph graph, CleanUp(zoo, BuiltInRules()));
  const Policy policy;
  RooflineTimes times(device->spec());
  AG_LET(const std::vector<Group> groups, FormGroups(graph, device->spec(), policy, times));
  double work = 0;
  for (const Group& group : groups) {
    if (group.pattern != kViewPattern) work += WorkOf(ExtractGroup(graph, group, policy)).flops;
  }
  const double moved = BytesOfEveryRun(graph);
  const double floor_s = std::max(work / flops, moved / bytes);
  std::printf("%-14s %8.3f GFLOP %8.1f MB  floor %8.3f ms\n", model.c_str(), work / 1e9,
              moved / 1e6, floor_s * 1e3);
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  const int cores = ag::UsableCores();
  const double flops = ag::PeakFlops(cores), bytes = ag::PeakBytes(cores);
  std::printf("peak: %d cores, %.0f GFLOP/s, %.1f GB/s\n", cores, flops / 1e9, bytes / 1e9);
  for (int i = 1; i < argc; ++i) {
    const ag::Status status = ag::PrintFloor(argv[i], flops, bytes);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
  return 0;
}
