#include "search/repeats.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/structure_hash.h"

namespace ag {
namespace {

// Bounds of the work: runs that are compared, and kinds of them that are tried.
constexpr size_t kRunsMax = 200'000;
constexpr int kTriesMax = 200;

// Pieces `first` to `end` - 1.
using Run = Region;

class Repeats {
 public:
  Repeats(const Graph& graph, const std::vector<Piece>& pieces,
          const std::function<Digest(const Piece&)>& form, const RepeatOptions& options)
      : graph_(graph), pieces_(pieces), form_(form), taken_(pieces.size(), false) {
    FindKinds(options);
  }

  std::vector<JoinedPiece> Join() {
    for (int i = 0; i < kTriesMax && TakeBest(); ++i) {
    }
    std::vector<JoinedPiece> joined;
    for (size_t i = 0; i < pieces_.size();) {
      const auto run = runs_.find(static_cast<int>(i));
      if (run == runs_.end()) {
        joined.push_back({pieces_[i++], false});
        continue;
      }
      joined.push_back({NodesOf({run->first, run->second}), true});
      i = static_cast<size_t>(run->second);
    }
    return joined;
  }

 private:
  // Runs with the same operators in any order; most are of one form.
  struct Kind {
    int nodes = 0;
    std::vector<Run> runs;  // By their first pieces.
  };
  using KindKey = std::pair<int, StructureHash>;

  // Sums, since an operator may stand in another order.
  static StructureHash Sum(StructureHash a, StructureHash b) { return {a.a + b.a, a.b + b.b}; }

  StructureHash NameOf(const Piece& piece) const {
    StructureHash sum;
    for (const NodeId id : piece) {
      const Node& node = graph_.node(id);
      StructureHash name = node.hash;
      for (const TensorType& type : node.outputs) {
        name = MixIn(name, {static_cast<uint64_t>(type.dtype), type.shape.size()});
        for (const int64_t size : type.shape) name = MixIn(name, {static_cast<uint64_t>(size), 0});
      }
      sum = Sum(sum, name);
    }
    return sum;
  }

  void FindKinds(const RepeatOptions& options) {
    std::vector<StructureHash> names;
    for (const Piece& piece : pieces_) names.push_back(NameOf(piece));
    size_t runs = 0;
    const auto count = static_cast<int>(pieces_.size());
    for (int first = 0; first < count; ++first) {
      StructureHash name;
      int nodes = 0;
      for (int end = first + 1; end <= count; ++end) {
        name = Sum(name, names[end - 1]);
        nodes += static_cast<int>(pieces_[end - 1].size());
        if (nodes > options.nodes_max) break;
        if (nodes < options.nodes_min) continue;
        if (++runs > kRunsMax) return kinds_.clear();
        Kind& kind = kinds_[{nodes, name}];
        kind.nodes = nodes;
        kind.runs.push_back({first, end});
      }
    }
    std::erase_if(kinds_, [](const auto& kind) { return kind.second.runs.size() < 2; });
  }

  Piece NodesOf(const Run& run) const {
    Piece nodes;
    for (int i = run.first; i < run.end; ++i) {
      nodes.insert(nodes.end(), pieces_[i].begin(), pieces_[i].end());
    }
    std::ranges::sort(nodes);
    return nodes;
  }

  // Returns runs of the kind of which no two share a piece, and none one that is taken.
  std::vector<Run> Apart(const Kind& kind) const {
    std::vector<Run> apart;
    for (const Run& run : kind.runs) {
      const bool is_free = std::none_of(taken_.begin() + run.first, taken_.begin() + run.end,
                                        [](bool is_taken) { return is_taken; });
      if (is_free && (apart.empty() || apart.back().end <= run.first)) apart.push_back(run);
    }
    return apart;
  }

  // Takes the runs that leave the fewest distinct operators. False: none are left.
  bool TakeBest() {
    auto best = kinds_.end();
    int64_t best_saved = 0;
    std::vector<Run> best_runs;
    for (auto kind = kinds_.begin(); kind != kinds_.end();) {
      std::vector<Run> apart = Apart(kind->second);
      if (apart.size() < 2) {
        kind = kinds_.erase(kind);
        continue;
      }
      const int64_t saved =
          (static_cast<int64_t>(apart.size()) - 1) * static_cast<int64_t>(kind->second.nodes);
      if (saved > best_saved) {
        best_saved = saved;
        best = kind;
        best_runs = std::move(apart);
      }
      ++kind;
    }
    if (best == kinds_.end()) return false;
    TakeAlike(best_runs);
    kinds_.erase(best);
    return true;
  }

  // Takes the runs of the form that most of them have, if it repeats.
  void TakeAlike(const std::vector<Run>& runs) {
    std::map<Digest, std::vector<Run>> forms;
    for (const Run& run : runs) forms[form_(NodesOf(run))].push_back(run);
    const auto most =
        std::ranges::max_element(forms, {}, [](const auto& form) { return form.second.size(); });
    if (most->second.size() < 2) return;
    for (const Run& run : most->second) {
      runs_[run.first] = run.end;
      std::fill(taken_.begin() + run.first, taken_.begin() + run.end, true);
    }
  }

  const Graph& graph_;
  const std::vector<Piece>& pieces_;
  const std::function<Digest(const Piece&)>& form_;
  std::map<KindKey, Kind> kinds_;
  std::vector<bool> taken_;  // By piece.
  std::map<int, int> runs_;  // The ends of the runs taken, by their first pieces.
};

}  // namespace

std::vector<JoinedPiece> JoinRepeats(const Graph& graph, const std::vector<Piece>& pieces,
                                     const std::function<Digest(const Piece&)>& form,
                                     const RepeatOptions& options) {
  return Repeats(graph, pieces, form, options).Join();
}

}  // namespace ag
