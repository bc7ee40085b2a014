// A walk: the layers of all instances in the order in which one cluster runs them, the pieces of
// tensors that they read and write, and the level of memory of each piece (GraphTurbo's memory
// reuse, Zhao et al., OSDI 2023, section 5.2). Pure functions.
#pragma once

#include <set>
#include <vector>

#include "plan/instances/core_binding.h"
#include "plan/instances/instances.h"
#include "plan/spec/device_spec.h"

namespace ag {

enum class MemoryLevel : uint8_t { kLocal, kGlobal, kMemory };

// The part of a tensor that one instance writes, or, of an input of the graph, that it reads.
struct Piece {
  Edge tensor;
  int64_t bytes = 0;
  int first = 0, last = 0;  // Steps: live from the one to the other.
  int held_until = 0;       // `last`, or one less where a result takes the memory.
  bool is_input = false;    // Of the graph.
  bool is_output = false;
  MemoryLevel level = MemoryLevel::kLocal;
};

struct Step {
  int instance = 0;
  int layer = 0;
  int64_t factor = 1;                          // The layer runs on an f-th of its tensors.
  std::vector<std::pair<int, int64_t>> reads;  // Piece, bytes.
  std::vector<int> writes;
};

struct Walk {
  std::vector<Step> steps;
  std::vector<Piece> pieces;
};

// Returns the walk of instances in an order (of instances.h), with all pieces at level kLocal.
Walk WalkOf(const LayeredGraph& layered, const std::vector<SubGraph>& subs,
            const InstanceGraph& instances, const std::vector<int>& order);

// Returns the largest number of bytes in use at a step, on all levels.
int64_t PeakBytes(const Walk& walk);

// Returns the bytes at the level that the pieces hold during each step.
std::vector<int64_t> HeldBytes(const Walk& walk, MemoryLevel level);

// Buffers of one cluster.
struct ClusterBuffers {
  int64_t local_bytes = 0;  // Of all cores of the cluster.
  int64_t global_bytes = 0;
};
// Returns those of the spec. kUnimplemented: it has no buffers.
StatusOr<ClusterBuffers> BuffersOf(const DeviceSpec& spec);

// Puts pieces of the tensors `global` and pieces that other instances read into the global buffer,
// the others into the local ones; inputs begin in the global one. Where a buffer is too small at a
// step, the piece there that lives longest moves to the next level, until the rest fits.
void PutIntoBuffers(const std::set<Edge>& global, const ClusterBuffers& buffers, Walk& walk);

// Puts every piece into memory: layers that run one by one over the whole batch.
void PutIntoMemory(Walk& walk);

// How many tensors have all pieces at a level or a nearer one, and the bytes of pieces in memory.
// Inputs do not count, outputs lie in memory, reshapes are no tensors of their own.
struct LevelCounts {
  int local = 0, global = 0, memory = 0;
  int64_t memory_bytes = 0;  // Of pieces in memory, each once, without outputs.
};
LevelCounts CountLevels(const LayeredGraph& layered, const Walk& walk);

}  // namespace ag
