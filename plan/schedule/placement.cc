#include "plan/schedule/placement.h"

#include <algorithm>
#include <set>

#include "plan/liveness.h"

namespace ag {
namespace {

// The least alignment of offsets in the arena: a cache line.
constexpr int64_t kArenaAlignment = 64;

// A root of the view forest that needs memory in the arena.
struct Block {
  Port root;
  const LiveRange* range = nullptr;
  int64_t bytes = 0;
  int64_t offset = 0;
};

std::set<Port> PortsOf(const Graph& graph, const Plan& plan) {
  std::set<Port> ports;
  for (const Group& group : plan.groups) {
    ports.insert(group.inputs.begin(), group.inputs.end());
    ports.insert(group.outputs.begin(), group.outputs.end());
  }
  std::erase_if(ports, [&](const Port& port) { return graph.is_constant(port.edge.node); });
  return ports;
}

// The places of ports in the caller's buffers: plain ones, and between segments others, which no
// group makes of an input or makes plain for an output.
class Ends {
 public:
  Ends(const Graph& graph, const Plan& plan) {
    const std::set<Port> ports = PortsOf(graph, plan);
    std::set<Port> written, by_nodes;
    for (const Group& group : plan.groups) {
      written.insert(group.outputs.begin(), group.outputs.end());
      if (!group.nodes.empty()) by_nodes.insert(group.outputs.begin(), group.outputs.end());
    }
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const Edge edge{graph.inputs()[i], 0};
      Add({edge, Layout::kPlain}, Place::Kind::kInput, i);
      for (const Port& port : ports) {
        if (port.edge == edge && !written.contains(port)) Add(port, Place::Kind::kInput, i);
      }
    }
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const Edge edge = graph.outputs()[i].edge;
      const Port plain{edge, Layout::kPlain};
      if (ports.contains(plain) || graph.is_constant(edge.node)) {
        Add(plain, Place::Kind::kOutput, i);
        continue;
      }
      for (const Port& port : by_nodes) {
        if (port.edge == edge) Add(port, Place::Kind::kOutput, i);
      }
    }
  }

  // Returns the home of a root: the caller's buffer of a graph input or output, else the arena.
  Place HomeOf(const Port& root) const {
    const auto it = homes_.find(root);
    return it != homes_.end() ? it->second : Place{root, Place::Kind::kArena, 0, 0};
  }

 private:
  void Add(const Port& port, Place::Kind kind, size_t index) {
    homes_.emplace(port, Place{port, kind, static_cast<int32_t>(index), 0});
  }

  std::map<Port, Place> homes_;
};

// Returns the offset of the smallest gap between `taken` ranges (begin, end) that is large enough,
// else the end of the last range.
int64_t BestFit(std::vector<std::pair<int64_t, int64_t>> taken, int64_t bytes, int64_t alignment) {
  std::ranges::sort(taken);
  int64_t best = -1;
  int64_t best_gap = 0;
  int64_t free_from = 0;
  for (const auto& [begin, end] : taken) {
    const int64_t gap = begin - free_from;
    if (gap >= bytes && (best < 0 || gap < best_gap)) {
      best = free_from;
      best_gap = gap;
    }
    free_from = std::max(free_from, RoundUp(end, alignment));
  }
  return best >= 0 ? best : free_from;
}

// Returns an offset for `block` that is free of all placed blocks whose ranges may overlap its own.
int64_t OffsetAmong(std::span<const Block> placed, const Block& block, int64_t alignment) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Block& other : placed) {
    if (EndsBefore(*other.range, *block.range) || EndsBefore(*block.range, *other.range)) continue;
    taken.emplace_back(other.offset, other.offset + other.bytes);
  }
  return BestFit(std::move(taken), block.bytes, alignment);
}

// Places blocks, the largest first, each into the best-fitting gap; returns the arena's size.
// Always: two placed blocks share bytes only if one ends before the other begins in every
// execution. Time O(n^2) for n blocks, and O(k log k) more for each that k others overlap.
int64_t AssignOffsets(std::vector<Block>* blocks, int64_t alignment) {
  std::ranges::sort(*blocks, {}, [](const Block& b) { return std::pair(-b.bytes, b.root); });
  int64_t end = 0;
  for (size_t i = 0; i < blocks->size(); ++i) {
    Block& block = (*blocks)[i];
    block.offset = OffsetAmong({blocks->data(), i}, block, alignment);
    end = std::max(end, block.offset + block.bytes);
  }
  return end;
}

int64_t ArenaAlignment(const DeviceSpec& spec) {
  return std::max(kArenaAlignment, spec.alignment_bytes);
}

Status CheckArena(const DeviceSpec& spec, int64_t bytes) {
  if (spec.memory_bytes <= 0 || bytes <= spec.memory_bytes) return OkStatus();
  return Err(StatusCode::kResourceExhausted, "plan: needs {} bytes, device {} has {}", bytes,
             spec.name, spec.memory_bytes);
}

}  // namespace

Status PlaceTensors(const Graph& graph, const DeviceSpec& spec, Plan* plan) {
  AG_LET(const HappensBefore before, HappensBefore::Make(plan->groups.size(), plan->streams));
  AG_LET(const ViewForest forest, ForestOf(graph, *plan, spec));
  const std::map<Port, LiveRange> ranges = Liveness(graph, *plan, forest, before);
  const Ends ends(graph, *plan);
  std::vector<Block> blocks;
  for (const auto& [root, range] : ranges) {
    if (ends.HomeOf(root).kind != Place::Kind::kArena) continue;
    const TensorType type = StoredType(graph.type(root.edge), plan->policy.precision);
    blocks.push_back({root, &range, LayoutBytes(type, root.layout), 0});
  }
  plan->arena_bytes = AssignOffsets(&blocks, ArenaAlignment(spec));
  AG_TRY(CheckArena(spec, plan->arena_bytes));
  std::map<Port, int64_t> offsets;
  for (const Block& block : blocks) offsets[block.root] = block.offset;
  plan->places.clear();
  const std::set<Port> ports = PortsOf(graph, *plan);
  for (const Port& port : ports) {
    const ViewForest::Location location = forest.Find(port);
    Place place = ends.HomeOf(location.root);
    if (place.kind == Place::Kind::kArena) place.offset_bytes = offsets.at(location.root);
    place.port = port;
    place.offset_bytes += location.offset_bytes;
    plan->places.push_back(place);
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {  // The places that copies fill.
    const Port port{graph.outputs()[i].edge, Layout::kPlain};
    const Place place{port, Place::Kind::kOutput, static_cast<int32_t>(i), 0};
    const bool is_constant = graph.is_constant(port.edge.node);
    if (!is_constant && !ports.contains(port)) continue;  // It lies there in another layout.
    if (is_constant || ends.HomeOf(port) != place) plan->places.push_back(place);
  }
  std::ranges::sort(plan->places);
  return OkStatus();
}

StatusOr<std::vector<int64_t>> PlaceWorkspaces(const Graph& graph, const DeviceSpec& spec,
                                               const std::vector<int64_t>& bytes, Plan* plan) {
  const size_t groups = plan->groups.size();
  AG_CHECK(bytes.size() == groups);
  AG_LET(const HappensBefore before, HappensBefore::Make(groups, plan->streams));
  AG_LET(const ViewForest forest, ForestOf(graph, *plan, spec));
  const std::map<Port, LiveRange> ranges = Liveness(graph, *plan, forest, before);
  std::vector<Block> blocks;
  for (const auto& [root, range] : ranges) {
    const Place* place = FindPlace(*plan, root);
    if (place == nullptr || place->kind != Place::Kind::kArena) continue;
    const TensorType type = StoredType(graph.type(root.edge), plan->policy.precision);
    blocks.push_back({root, &range, LayoutBytes(type, root.layout), place->offset_bytes});
  }
  std::vector<int> largest_first;
  for (size_t g = 0; g < groups; ++g) {
    if (bytes[g] > 0) largest_first.push_back(static_cast<int>(g));
  }
  std::ranges::stable_sort(largest_first, {}, [&](int g) { return -bytes[g]; });
  std::vector<LiveRange> own(groups);
  std::vector<int64_t> offsets(groups, -1);
  for (const int g : largest_first) {
    own[g].Add(g, /*writes=*/true, before);
    Block block{{}, &own[g], bytes[g], 0};
    block.offset = offsets[g] = OffsetAmong(blocks, block, ArenaAlignment(spec));
    plan->arena_bytes = std::max(plan->arena_bytes, block.offset + block.bytes);
    blocks.push_back(block);
  }
  AG_TRY(CheckArena(spec, plan->arena_bytes));
  return offsets;
}

}  // namespace ag
