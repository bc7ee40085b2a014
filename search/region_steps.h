// What a search found for a region (a part of a graph that was searched by itself, such as a cell),
// told so that it can be taken again in any region of the same form (cells.h), of any model. One
// thread at a time.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "search/one_rule.h"
#include "search/region_store.h"
#include "search/rewrite_trail.h"
#include "search/rewrite_walk.h"

namespace ag {

// Takes steps in one region by itself: a place is found again by what is computed there.
class RegionWalk {
 public:
  // `region` is cut out of a graph and need not be cleaned up. `one_rule` must outlive it.
  RegionWalk(const Graph& region, OneRule& one_rule);

  const Graph& graph() const { return walk_.graph(); }

  // Returns the rewrite for which `step` stands, after a clean-up of the region where the step
  // begins a round. kNotFound: there is no such rule, or the rule has no such place; the message
  // names it.
  StatusOr<Rewrite> Find(const RegionStep& step);
  // Returns the step that stands for the rewrite, likewise. kNotFound: its rule has no such
  // rewrite.
  StatusOr<RegionStep> Tell(const RewriteStep& step);

  // As RewriteWalk's.
  StatusOr<Graph> After(const Rewrite& rewrite) const { return walk_.After(rewrite); }
  void GoTo(Graph after) { walk_.GoTo(std::move(after)); }

 private:
  Status BeginStep(bool begins_round);

  OneRule& one_rule_;
  RewriteWalk walk_;
};

// Tells what a search of one region found. What several graphs of the search have in common, from
// the region on, is told once.
class StepTeller {
 public:
  // `region` is the cleaned-up graph at which the trail begins. Trail and rule must outlive it.
  StepTeller(const Graph& region, const RewriteTrail& trail, OneRule& one_rule)
      : region_(region, one_rule), trail_(trail) {}

  // Returns what stands for the trail's rewrites up to `step`. kNotFound: as RegionWalk's Tell.
  StatusOr<std::vector<RegionStep>> StepsTo(int step);

 private:
  struct Told {
    RegionStep step;
    RegionWalk after;
  };
  const RegionWalk region_;
  const RewriteTrail& trail_;
  std::map<int, Told> told_;  // By step of the trail.
};

// Returns the region after the steps. kNotFound: as Find; kFailedPrecondition: as Apply
// (rules/match/rewrite.h).
StatusOr<Graph> TakeSteps(const Graph& region, std::span<const RegionStep> steps,
                          OneRule& one_rule);

}  // namespace ag
