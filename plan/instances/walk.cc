#include "plan/instances/walk.h"

#include <algorithm>
#include <map>

namespace ag {
namespace {

class WalkMaker {
 public:
  WalkMaker(const LayeredGraph& layered, const std::vector<SubGraph>& subs,
            const InstanceGraph& instances)
      : layered_(layered), subs_(subs), instances_(instances), of_layer_(layered.layers.size()) {
    for (int i = 0; i < static_cast<int>(subs.size()); ++i) {
      for (const int layer : subs[i].layers) of_layer_[layer] = i;
      begin_.push_back(i == 0 ? 0 : begin_.back() + static_cast<int>(subs[i - 1].split.factor));
    }
  }

  Walk Run(const std::vector<int>& order) {
    for (const int instance : order) {
      for (const int layer : subs_[instances_.instances[instance].sub_graph].layers) {
        AddStep(instance, layer);
      }
    }
    for (Piece& piece : walk_.pieces) piece.held_until = piece.last;
    ReuseInPlace();
    return std::move(walk_);
  }

 private:
  void AddStep(int instance, int layer) {
    const Instance& own = instances_.instances[instance];
    const SubGraph& sub = subs_[own.sub_graph];
    const int now = static_cast<int>(walk_.steps.size());
    Step step{.instance = instance, .layer = layer, .factor = sub.split.factor};
    for (const Edge input : layered_.layers[layer].inputs) {
      AddReads(own, instance, input, now, step);
    }
    for (const Edge output : layered_.layers[layer].outputs) {
      const bool cut = sub.split.axes.contains(output.node);
      const int64_t bytes = layered_.Bytes(output) / (cut ? sub.split.factor : 1);
      const int piece = PieceOf(output, instance, bytes, now);
      walk_.pieces[piece].is_output = layered_.graph.is_output(output);
      step.writes.push_back(piece);
    }
    walk_.steps.push_back(std::move(step));
  }

  void AddReads(const Instance& own, int instance, Edge input, int now, Step& step) {
    const SubGraph& sub = subs_[own.sub_graph];
    const int64_t all = layered_.Bytes(input);
    const int from = layered_.layer_of[input.node];
    if (from >= 0 && of_layer_[from] == own.sub_graph) {
      Read(PieceOf(input, instance, 0, now), all, now, step);
      return;
    }
    const int64_t wanted = all / (AxisRead(layered_, sub, input) >= 0 ? sub.split.factor : 1);
    if (from < 0) {
      const int piece = PieceOf(input, instance, wanted, now);
      walk_.pieces[piece].is_input = true;
      Read(piece, wanted, now, step);
      return;
    }
    const int producer = of_layer_[from];
    const auto [first, last] = PiecesRead(layered_, subs_[producer], sub, input, own.number);
    for (int64_t number = first; number <= last; ++number) {
      const int piece = PieceOf(input, begin_[producer] + static_cast<int>(number), 0, now);
      Read(piece, wanted, now, step);
    }
  }

  void Read(int piece, int64_t wanted, int now, Step& step) {
    walk_.pieces[piece].last = now;
    step.reads.emplace_back(piece, std::min(wanted, walk_.pieces[piece].bytes));
  }

  // Returns the piece; a new one of `bytes` begins now.
  int PieceOf(Edge tensor, int instance, int64_t bytes, int now) {
    const auto [at, fresh] =
        known_.emplace(std::pair(tensor, instance), static_cast<int>(walk_.pieces.size()));
    if (fresh) {
      walk_.pieces.push_back({.tensor = tensor, .bytes = bytes, .first = now, .last = now});
    }
    return at->second;
  }

  // A result takes the memory of the operand that its layer may write over, if nobody reads it
  // later.
  void ReuseInPlace() {
    for (int now = 0; now < static_cast<int>(walk_.steps.size()); ++now) {
      const Step& step = walk_.steps[now];
      const Edge operand = layered_.layers[step.layer].in_place;
      if (operand.node < 0 || step.writes.size() != 1) continue;
      for (const auto& [piece, bytes] : step.reads) {
        Piece& read = walk_.pieces[piece];
        const bool fits = read.bytes == walk_.pieces[step.writes[0]].bytes;
        if (read.tensor == operand && fits && read.last == now) read.held_until = now - 1;
      }
    }
  }

  const LayeredGraph& layered_;
  const std::vector<SubGraph>& subs_;
  const InstanceGraph& instances_;
  std::vector<int> of_layer_, begin_;
  std::map<std::pair<Edge, int>, int> known_;
  Walk walk_;
};

// Moves the pieces that live longest from a level to the next one until the others fit.
void Spill(Walk& walk, MemoryLevel level, int64_t capacity) {
  const auto length = [&](int piece) {
    return walk.pieces[piece].held_until - walk.pieces[piece].first;
  };
  for (int now = 0; now < static_cast<int>(walk.steps.size()); ++now) {
    std::vector<int> here;
    int64_t held = 0;
    for (int i = 0; i < static_cast<int>(walk.pieces.size()); ++i) {
      const Piece& piece = walk.pieces[i];
      if (piece.level != level || piece.first > now || piece.held_until < now) continue;
      here.push_back(i);
      held += piece.bytes;
    }
    std::ranges::stable_sort(here, [&](int a, int b) { return length(a) > length(b); });
    for (size_t i = 0; i < here.size() && held > capacity; ++i) {
      Piece& piece = walk.pieces[here[i]];
      piece.level = level == MemoryLevel::kLocal ? MemoryLevel::kGlobal : MemoryLevel::kMemory;
      held -= piece.bytes;
    }
  }
}

}  // namespace

Walk WalkOf(const LayeredGraph& layered, const std::vector<SubGraph>& subs,
            const InstanceGraph& instances, const std::vector<int>& order) {
  return WalkMaker(layered, subs, instances).Run(order);
}

std::vector<int64_t> HeldBytes(const Walk& walk, MemoryLevel level) {
  std::vector<int64_t> held(walk.steps.size());
  for (const Piece& piece : walk.pieces) {
    if (piece.level != level) continue;
    for (int step = piece.first; step <= piece.held_until; ++step) held[step] += piece.bytes;
  }
  return held;
}

int64_t PeakBytes(const Walk& walk) {
  int64_t peak = 0;
  std::vector<int64_t> sum(walk.steps.size());
  for (const auto level : {MemoryLevel::kLocal, MemoryLevel::kGlobal, MemoryLevel::kMemory}) {
    const std::vector<int64_t> held = HeldBytes(walk, level);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += held[i];
  }
  for (const int64_t bytes : sum) peak = std::max(peak, bytes);
  return peak;
}

StatusOr<ClusterBuffers> BuffersOf(const DeviceSpec& spec) {
  if (spec.clusters == 0) {
    return Err(StatusCode::kUnimplemented, "{}: no buffers (clusters, global_bytes, ...)",
               spec.name);
  }
  return ClusterBuffers{spec.local_bytes * (spec.cores / spec.clusters), spec.global_bytes};
}

void PutIntoBuffers(const std::set<Edge>& global, const ClusterBuffers& buffers, Walk& walk) {
  std::vector<int> writer(walk.pieces.size(), -1);
  for (const Step& step : walk.steps) {
    for (const int piece : step.writes) writer[piece] = step.instance;
  }
  for (Piece& piece : walk.pieces) {
    const bool wide = piece.is_input || global.contains(piece.tensor);
    piece.level = wide ? MemoryLevel::kGlobal : MemoryLevel::kLocal;
  }
  for (const Step& step : walk.steps) {
    for (const auto& [piece, bytes] : step.reads) {
      if (writer[piece] != step.instance) walk.pieces[piece].level = MemoryLevel::kGlobal;
    }
  }
  Spill(walk, MemoryLevel::kLocal, buffers.local_bytes);
  Spill(walk, MemoryLevel::kGlobal, buffers.global_bytes);
}

void PutIntoMemory(Walk& walk) {
  for (Piece& piece : walk.pieces) piece.level = MemoryLevel::kMemory;
}

LevelCounts CountLevels(const LayeredGraph& layered, const Walk& walk) {
  std::map<Edge, MemoryLevel> farthest;
  LevelCounts counts;
  for (const Piece& piece : walk.pieces) {
    const int layer = layered.layer_of[piece.tensor.node];
    if (piece.is_input || layered.layers[layer].moves_nothing) continue;
    const MemoryLevel level = piece.is_output ? MemoryLevel::kMemory : piece.level;
    MemoryLevel& known = farthest.emplace(piece.tensor, level).first->second;
    known = std::max(known, level);
    if (piece.level == MemoryLevel::kMemory && !piece.is_output) counts.memory_bytes += piece.bytes;
  }
  for (const auto& [tensor, level] : farthest) {
    counts.local += level == MemoryLevel::kLocal ? 1 : 0;
    counts.global += level == MemoryLevel::kGlobal ? 1 : 0;
    counts.memory += level == MemoryLevel::kMemory ? 1 : 0;
  }
  return counts;
}

}  // namespace ag
