#include "plan/schedule/chain_cover.h"

#include <algorithm>

namespace ag {
namespace {

// Returns the edges of the minimum equivalent graph, by their first group: those that no longer
// path replaces.
std::vector<std::vector<int>> ReducedAfter(const ScheduleProblem& problem,
                                           const std::vector<IndexSet>& ancestors) {
  std::vector<std::vector<int>> after(problem.groups.size());
  for (const int g : problem.order) {
    for (const int b : problem.before[g]) {
      const bool is_implied = std::ranges::any_of(
          problem.before[g], [&](int other) { return ancestors[other].Has(b); });
      if (!is_implied) after[b].push_back(g);
    }
  }
  return after;
}

// A maximum matching of edges by augmenting paths (Kuhn): each group is the first end of at most
// one chosen edge and the second end of at most one.
class Matching {
 public:
  explicit Matching(const std::vector<std::vector<int>>& after)
      : after_(after), previous_(after.size(), -1), visited_(after.size(), -1) {}

  void Extend(int g) { Augment(g, g); }
  int PreviousOf(int g) const { return previous_[g]; }  // -1: g begins a chain.

 private:
  // Recurses at most once for each group of a turn.
  bool Augment(int g, int turn) {
    for (const int f : after_[g]) {
      if (visited_[f] == turn) continue;
      visited_[f] = turn;
      if (previous_[f] >= 0 && !Augment(previous_[f], turn)) continue;
      previous_[f] = g;
      return true;
    }
    return false;
  }

  const std::vector<std::vector<int>>& after_;
  std::vector<int> previous_;
  std::vector<int> visited_;  // By second end: the turn in which it was last looked at.
};

// Deals chains out to streams in list order.
class ChainStreams {
 public:
  ChainStreams(const ScheduleProblem& problem, const std::vector<IndexSet>& ancestors)
      : problem_(problem),
        ancestors_(ancestors),
        last_(problem.streams, -1),
        work_ns_(problem.streams) {}

  // Returns the stream of a chain.
  int Place(const std::vector<int>& chain) {
    const int stream = Choose(chain.front());
    last_[stream] = chain.back();
    for (const int g : chain) work_ns_[stream] += problem_.ns[g];
    return stream;
  }

 private:
  int Choose(int first) const {
    for (size_t s = 0; s < last_.size(); ++s) {
      if (last_[s] >= 0 && ancestors_[first].Has(last_[s])) return static_cast<int>(s);
    }
    const auto empty = std::ranges::find(last_, -1);
    if (empty != last_.end()) return static_cast<int>(empty - last_.begin());
    return static_cast<int>(std::ranges::min_element(work_ns_) - work_ns_.begin());
  }

  const ScheduleProblem& problem_;
  const std::vector<IndexSet>& ancestors_;
  std::vector<int> last_;  // The last group of each stream's latest chain; -1: none.
  std::vector<double> work_ns_;
};

}  // namespace

std::vector<Stream> ChainCover(const ScheduleProblem& problem) {
  const std::vector<IndexSet> ancestors = AncestorsOf(problem);
  const std::vector<double> remaining = RemainingNs(problem);
  std::vector<std::vector<int>> after = ReducedAfter(problem, ancestors);
  for (std::vector<int>& list : after) {
    std::ranges::stable_sort(list, std::ranges::greater(), [&](int g) { return remaining[g]; });
  }
  const std::vector<ListStep> order = ListOrder(problem, remaining);
  Matching matching(after);
  for (const ListStep& step : order) matching.Extend(step.group);
  std::vector<int> chain_of(problem.groups.size());
  std::vector<std::vector<int>> chains;
  for (const auto& [g, is_alone] : order) {
    const int previous = matching.PreviousOf(g);
    chain_of[g] = previous < 0 ? static_cast<int>(chains.size()) : chain_of[previous];
    if (previous < 0) chains.emplace_back();
    chains[chain_of[g]].push_back(g);
  }
  ChainStreams dealt(problem, ancestors);
  std::vector<int> stream_of_chain;
  for (const std::vector<int>& chain : chains) stream_of_chain.push_back(dealt.Place(chain));
  StreamsBuilder builder(problem.groups.size(), problem.streams);
  for (const auto& [g, is_alone] : order) {
    builder.Launch(g, stream_of_chain[chain_of[g]], problem.before[g]);
  }
  return builder.Take(StreamCores(problem.spec, problem.streams));
}

}  // namespace ag
