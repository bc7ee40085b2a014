#include "plan/schedule/staged_endings.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace ag {
namespace {

constexpr double kTooLong = std::numeric_limits<double>::infinity();
constexpr int kBlockGroupsMax = 64;  // A set of a block's groups is one word.
constexpr int kComponentGroups[] = {3, 1};

uint64_t BitOf(int i) { return uint64_t{1} << i; }

// Returns BlocksOf with no more than kBlockGroupsMax groups each, in launch order.
std::vector<std::vector<int>> SmallBlocksOf(const ScheduleProblem& problem) {
  std::vector<std::vector<int>> blocks;
  for (const ScheduleBlock& block : BlocksOf(problem)) {
    for (size_t i = 0; i < block.groups.size(); ++i) {
      if (i % kBlockGroupsMax == 0) blocks.emplace_back();
      blocks.back().push_back(block.groups[i]);
    }
  }
  return blocks;
}

// What the stages of a block follow from: its groups by position, and sets of them as words, where
// bit i is position i. Blocks that repeat in a model are equal here.
struct StagedBlock {
  std::vector<double> ns;
  std::vector<int> shares;
  std::vector<uint64_t> before, after;  // Inside the block.

  int size() const { return static_cast<int>(ns.size()); }
  friend bool operator==(const StagedBlock&, const StagedBlock&) = default;
  template <class H>
  friend H AbslHashValue(H h, const StagedBlock& block) {
    return H::combine(std::move(h), block.ns, block.shares, block.before);
  }
};

StagedBlock StagedBlockOf(const ScheduleProblem& problem, std::span<const int> groups) {
  StagedBlock block;
  block.before.resize(groups.size());
  block.after.resize(groups.size());
  std::unordered_map<int, int> position;
  for (size_t i = 0; i < groups.size(); ++i) position.emplace(groups[i], static_cast<int>(i));
  for (size_t i = 0; i < groups.size(); ++i) {
    block.ns.push_back(problem.ns[groups[i]]);
    block.shares.push_back(problem.shares[groups[i]]);
    for (const int b : problem.before[groups[i]]) {
      const auto it = position.find(b);
      if (it == position.end()) continue;
      block.before[i] |= BitOf(it->second);
      block.after[it->second] |= BitOf(static_cast<int>(i));
    }
  }
  return block;
}

// Algorithm 1 on one block. Groups of its stages are positions.
class BlockScheduler {
 public:
  BlockScheduler(const ScheduleProblem& problem, const StagedBlock& block, int component_groups,
                 int endings_max)
      : problem_(problem),
        block_(block),
        component_groups_(component_groups),
        endings_left_(endings_max) {}

  // Returns the stages in launch order; nothing: it would look at too many endings.
  std::optional<std::vector<Stage>> Run() {
    const uint64_t all = block_.size() == 64 ? ~uint64_t{0} : BitOf(block_.size()) - 1;
    Solve(all);
    if (endings_left_ < 0) return std::nullopt;
    std::vector<Stage> stages;
    for (uint64_t left = all; left != 0; left &= ~best_.at(left).ending) {
      stages.push_back(Sorted(ComponentsOf(best_.at(left).ending)));
    }
    std::ranges::reverse(stages);
    return stages;
  }

 private:
  struct Best {
    double ns = kTooLong;
    uint64_t ending = 0;
  };
  using Components = std::vector<uint64_t>;

  double Solve(uint64_t left) {
    if (left == 0) return 0;
    const auto it = best_.find(left);
    if (it != best_.end()) return it->second.ns;
    Best best;
    Extend(left, 0, block_.size(), {}, &best);
    best_.emplace(left, best);
    return best.ns;
  }

  // Tries all endings of `left` that `ending` grows to by groups below `limit`. A group comes after
  // all of its readers, so each ending is made once, by descending positions.
  void Extend(uint64_t left, uint64_t ending, int limit, const Components& components, Best* best) {
    for (int i = limit; i-- > 0;) {
      const bool may_join = (left & BitOf(i)) != 0 && (block_.after[i] & left & ~ending) == 0;
      if (!may_join || endings_left_ < 0) continue;
      uint64_t joined = BitOf(i);
      Components grown;
      for (const uint64_t component : components) {
        const bool touches = (component & (block_.after[i] | block_.before[i])) != 0;
        if (touches) joined |= component;
        if (!touches) grown.push_back(component);
      }
      if (std::popcount(joined) > component_groups_) continue;
      grown.push_back(joined);
      const uint64_t with = ending | BitOf(i);
      if (std::ssize(grown) <= problem_.streams) {
        --endings_left_;
        const double ns = StageNs(with, grown) + Solve(left & ~with);
        if (ns < best->ns) *best = {ns, with};
      }
      Extend(left, with, i, grown, best);
    }
  }

  double StageNs(uint64_t ending, const Components& components) {
    const auto [it, is_new] = stage_ns_.try_emplace(ending, 0);
    if (is_new) it->second = Simulate(Sorted(components));
    return it->second;
  }

  // Returns the time of components that begin together, by the contention model.
  double Simulate(const Stage& stage) const {
    struct Lane {
      size_t next = 0;
      double left_ns = 0;
    };
    std::vector<Lane> lanes;
    for (const std::vector<int>& component : stage) {
      lanes.push_back({0, block_.ns[component[0]]});
    }
    double now = 0;
    for (;;) {
      int running = 0;
      double wanted = 0;
      double least = kTooLong;
      for (size_t i = 0; i < lanes.size(); ++i) {
        if (lanes[i].next == stage[i].size()) continue;
        ++running;
        wanted += block_.shares[stage[i][lanes[i].next]];
        least = std::min(least, lanes[i].left_ns);
      }
      if (running == 0) break;
      now += least / SpeedUnderContention(running, wanted, problem_.spec.cores, problem_.overlap);
      for (size_t i = 0; i < lanes.size(); ++i) {
        if (lanes[i].next == stage[i].size()) continue;
        lanes[i].left_ns -= least;
        if (lanes[i].left_ns > 0) continue;
        if (++lanes[i].next == stage[i].size()) continue;
        lanes[i].left_ns = block_.ns[stage[i][lanes[i].next]];
      }
    }
    if (stage.size() < 2) return now;
    return std::max(now, ComponentNs(stage[1]) + 2 * problem_.spec.event_ns);
  }

  double ComponentNs(const std::vector<int>& component) const {
    double ns = 0;
    for (const int g : component) ns += block_.ns[g];
    return ns;
  }

  Components ComponentsOf(uint64_t ending) const {
    Components components;
    for (uint64_t rest = ending; rest != 0;) {
      uint64_t component = rest & -rest;
      for (uint64_t grown = 0; grown != component;) {
        grown = component;
        for (uint64_t bits = grown; bits != 0; bits &= bits - 1) {
          const int i = std::countr_zero(bits);
          component |= (block_.before[i] | block_.after[i]) & ending;
        }
      }
      components.push_back(component);
      rest &= ~component;
    }
    return components;
  }

  // Returns the groups of the components, the longest one first.
  Stage Sorted(const Components& components) const {
    Stage stage;
    for (const uint64_t component : components) {
      stage.emplace_back();
      for (uint64_t bits = component; bits != 0; bits &= bits - 1) {
        stage.back().push_back(std::countr_zero(bits));
      }
    }
    std::ranges::sort(stage, {}, [&](const std::vector<int>& component) {
      return std::pair(-ComponentNs(component), component);
    });
    return stage;
  }

  const ScheduleProblem& problem_;
  const StagedBlock& block_;
  const int component_groups_;
  int endings_left_;
  std::unordered_map<uint64_t, Best> best_;        // By the groups that are left.
  std::unordered_map<uint64_t, double> stage_ns_;  // By ending.
};

// Returns one stage for each depth of the block's groups.
std::vector<Stage> LevelsOf(const StagedBlock& block) {
  std::vector<size_t> depth(block.ns.size());
  std::vector<Stage> stages;
  for (int i = 0; i < block.size(); ++i) {
    for (uint64_t bits = block.before[i]; bits != 0; bits &= bits - 1) {
      depth[i] = std::max(depth[i], depth[std::countr_zero(bits)] + 1);
    }
    if (stages.size() <= depth[i]) stages.resize(depth[i] + 1);
    stages[depth[i]].push_back({i});
  }
  for (Stage& stage : stages) {
    std::ranges::stable_sort(stage, std::ranges::greater{},
                             [&](const std::vector<int>& one) { return block.ns[one[0]]; });
  }
  return stages;
}

std::vector<Stage> StagesOfBlock(const ScheduleProblem& problem, const StagedBlock& block,
                                 int endings_max) {
  if (block.size() == 1) return {{{0}}};
  for (const int component_groups : kComponentGroups) {
    auto stages = BlockScheduler(problem, block, component_groups, endings_max).Run();
    if (stages) return *std::move(stages);
  }
  return LevelsOf(block);
}

// Puts the components of a stage on streams, the longest one first.
class StageStreams {
 public:
  explicit StageStreams(const ScheduleProblem& problem)
      : problem_(problem), builder_(problem.groups.size(), problem.streams) {}

  void Place(const Stage& stage) {
    std::vector<double> work_ns(problem_.streams);
    for (const std::vector<int>& component : stage) {
      const int stream = Choose(component[0], work_ns);
      for (const int g : component) {
        builder_.Launch(g, stream, problem_.before[g]);
        work_ns[stream] += problem_.ns[g];
      }
    }
  }
  std::vector<Stream> Take() { return builder_.Take(StreamCores(problem_.spec, problem_.streams)); }

 private:
  // Returns the stream with the least work of the stage; of equal ones, one whose last launch the
  // group reads.
  int Choose(int group, const std::vector<double>& work_ns) const {
    const auto rank = [&](int s) {
      const auto& launches = builder_.streams()[s].launches;
      const bool reads = !launches.empty() &&
                         std::ranges::binary_search(problem_.before[group], launches.back().group);
      return std::pair(work_ns[s], !reads);
    };
    int chosen = 0;
    for (int s = 1; s < problem_.streams; ++s) {
      if (rank(s) < rank(chosen)) chosen = s;
    }
    return chosen;
  }

  const ScheduleProblem& problem_;
  StreamsBuilder builder_;
};

}  // namespace

std::vector<Stage> StagesOf(const ScheduleProblem& problem, int endings_max) {
  absl::flat_hash_map<StagedBlock, std::vector<Stage>> known;
  std::vector<Stage> all;
  for (const std::vector<int>& groups : SmallBlocksOf(problem)) {
    StagedBlock block = StagedBlockOf(problem, groups);
    auto it = known.find(block);
    if (it == known.end()) {
      const auto part =
          static_cast<int64_t>(endings_max) * std::ssize(groups) / std::ssize(problem.order);
      std::vector<Stage> stages = StagesOfBlock(problem, block, static_cast<int>(part));
      it = known.emplace(std::move(block), std::move(stages)).first;
    }
    for (Stage stage : it->second) {
      for (std::vector<int>& component : stage) {
        for (int& group : component) group = groups[group];
      }
      all.push_back(std::move(stage));
    }
  }
  return all;
}

std::vector<Stream> StagedEndings(const ScheduleProblem& problem) {
  StageStreams streams(problem);
  for (const Stage& stage : StagesOf(problem)) streams.Place(stage);
  return streams.Take();
}

}  // namespace ag
