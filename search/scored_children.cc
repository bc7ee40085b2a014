#include "search/scored_children.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace ag {
namespace {

// The children that each thread makes before they are visited. Those behind the one at which `stop`
// is true were made in vain. One thread makes one at a time.
constexpr size_t kPerThread = 8;

// A site's child, as one thread made it.
struct Made {
  Rewrite rewrite;
  std::optional<StructureHash> hash;  // Before the clean-up; nothing: `status` says why.
  std::optional<ChildGraph> child;    // Nothing: it was seen before, or `status` says why.
  StatusOr<ScoredGraph> scored = Err(StatusCode::kAlreadyExists, "graph: seen before");
  Status status;
};

// Mostly the hash tells before a graph is made that it was seen, so commuting rewrites cost only a
// hash in all orders but the first.
Status Fill(const SearchSetting& setting, const absl::flat_hash_set<StructureHash>& seen,
            ChildGraphs* children, Made* made) {
  AG_LET(made->hash, children->Try(made->rewrite));
  if (seen.contains(*made->hash)) return OkStatus();
  AG_LET(made->child, children->Make());
  const StructureHash hash = made->child->hash;
  if (hash != *made->hash && seen.contains(hash)) return OkStatus();
  made->scored = ScoreGraph(made->child->graph, setting);
  return OkStatus();
}

}  // namespace

std::vector<int> AllSites(const MatchSet& matches) {
  std::vector<int> sites(matches.sites().size());
  std::iota(sites.begin(), sites.end(), 0);
  return sites;
}

void VisitChildren(const ChildrenRequest& request, std::span<const int> sites,
                   absl::flat_hash_set<StructureHash>* seen, const std::function<bool()>& stop,
                   const std::function<void(int site, ScoredChild)>& visit) {
  const SearchSetting& setting = request.setting;
  const MatchSet& matches = request.matches;
  ThreadPool& pool = setting.pool;
  const auto threads = static_cast<size_t>(pool.threads());
  const size_t batch_max = threads == 1 ? 1 : threads * kPerThread;
  std::vector<ChildGraphs> makers(threads, request.children);
  while (!sites.empty()) {
    const auto batch = sites.first(std::min(batch_max, sites.size()));
    sites = sites.subspan(batch.size());
    std::vector<Made> made(batch.size());
    pool.Each(static_cast<int>(batch.size()), [&](int i, int thread) {
      made[i].rewrite = matches.At(matches.sites()[batch[i]]);
      made[i].status = Fill(setting, *seen, &makers[thread], &made[i]);
    });
    for (size_t i = 0; i < batch.size(); ++i) {
      Made& one = made[i];
      if (one.hash && !seen->insert(*one.hash).second) continue;
      if (!one.status.ok()) setting.run.WarnOfRule(*one.rewrite.rule, one.status);
      if (!one.child) continue;
      const bool is_new = one.child->hash == *one.hash || seen->insert(one.child->hash).second;
      if (!is_new) continue;
      if (stop()) return;
      visit(batch[i], {std::move(one.rewrite), *std::move(one.child), std::move(one.scored)});
    }
  }
}

}  // namespace ag
