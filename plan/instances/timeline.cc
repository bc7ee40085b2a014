#include "plan/instances/timeline.h"

#include <algorithm>

namespace ag {
namespace {

// What a step does, in bytes and nanoseconds.
struct Load {
  double matrix_ns = 0, vector_ns = 0;
  double local_ns = 0, global_ns = 0;
  double memory_bytes = 0;
  double weight_bytes = 0;
  double launch_ns = 0;
};

class Timeline {
 public:
  Timeline(const LayeredGraph& layered, const Walk& walk, const DeviceSpec& spec)
      : layered_(layered), walk_(walk), spec_(spec) {
    cores_ = static_cast<double>(spec.cores) / spec.clusters;
    memory_rate_ = spec.bytes_per_second / spec.clusters / 1e9;
  }

  double Run(bool across_layers) const {
    const std::vector<int64_t> held = HeldBytes(walk_, MemoryLevel::kGlobal);
    double begin = 0, end = 0;  // Of the step before.
    Load before;
    for (size_t i = 0; i < walk_.steps.size(); ++i) {
      const Load load = LoadOf(static_cast<int>(i));
      double early = 0;  // Bytes of weights that come behind the step before.
      if (across_layers && i > 0) {
        const double room = static_cast<double>(spec_.global_bytes - held[i - 1]);
        early = std::min(load.weight_bytes, std::max(room, 0.0));
      }
      const double arrived = begin + (before.memory_bytes + early) / memory_rate_;
      begin = std::max(end, arrived) + (load.weight_bytes - early) / memory_rate_;
      end = begin + StepNs(load, across_layers);
      before = load;
    }
    return end;
  }

 private:
  Load LoadOf(int now) const {
    const Step& step = walk_.steps[now];
    const Layer& layer = layered_.layers[step.layer];
    const auto parts = static_cast<double>(step.factor);
    const double matrix_rate = spec_.FlopsPerSecond(layered_.precision) * cores_ / 1e9;
    const double vector_rate = spec_.vector_flops_per_second * cores_ / 1e9;
    Load load{.matrix_ns = layer.matrix_flops / parts / matrix_rate,
              .vector_ns = layer.vector_flops / parts / vector_rate,
              .weight_bytes = static_cast<double>(layer.weight_bytes)};
    if (layer.moves_nothing) return load;
    load.launch_ns = spec_.launch_ns;
    for (const auto& [piece, bytes] : step.reads) {
      const bool fetched = walk_.pieces[piece].is_input && walk_.pieces[piece].first == now;
      Move(walk_.pieces[piece], bytes, fetched, load);
    }
    for (const int piece : step.writes) {
      Move(walk_.pieces[piece], walk_.pieces[piece].bytes, walk_.pieces[piece].is_output, load);
    }
    return load;
  }

  // `through`: also to or from memory, whatever the piece's level.
  void Move(const Piece& piece, int64_t moved, bool through, Load& load) const {
    const auto bytes = static_cast<double>(moved);
    if (piece.level == MemoryLevel::kMemory || through) load.memory_bytes += bytes;
    if (piece.level == MemoryLevel::kGlobal) {
      load.global_ns += bytes / spec_.global_bytes_per_second * 1e9;
    }
    if (piece.level == MemoryLevel::kLocal) {
      load.local_ns += bytes / (spec_.local_bytes_per_second * cores_) * 1e9;
    }
  }

  double StepNs(const Load& load, bool across_layers) const {
    const bool beside = across_layers && spec_.units > 1;
    const double compute =
        beside ? std::max(load.matrix_ns, load.vector_ns) : load.matrix_ns + load.vector_ns;
    return load.launch_ns +
           std::max({compute, load.local_ns, load.global_ns, load.memory_bytes / memory_rate_});
  }

  const LayeredGraph& layered_;
  const Walk& walk_;
  const DeviceSpec& spec_;
  double cores_ = 1;        // Of a cluster.
  double memory_rate_ = 0;  // Bytes a nanosecond, of a cluster.
};

}  // namespace

double TimelineNs(const LayeredGraph& layered, const Walk& walk, const DeviceSpec& spec,
                  const TimelineOptions& options) {
  return Timeline(layered, walk, spec).Run(options.across_layers);
}

}  // namespace ag
