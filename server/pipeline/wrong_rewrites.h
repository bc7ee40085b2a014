// What a job does about candidates that compute something else than the model: it finds the rule at
// fault, says so with a counter-example, and goes on without the rule. One thread at a time.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rules/language/rule_set.h"
#include "server/pipeline/guilty_rewrite.h"
#include "server/pipeline/output_file.h"

namespace ag {

class WrongRewrites {
 public:
  // The most rules that one job leaves out.
  static constexpr int kRulesMax = 4;

  struct Request {
    OutputSetting* setting = nullptr;  // Its graphs change when a rule of the clean-up is left out.
    const RuleSet* rules = nullptr;    // Those of the search.
    std::function<Nanos()> time_left;  // REQUIRES: not null.
  };
  WrongRewrites(Request request, BlobDir& blobs);

  // Looks for the rewrite of `plan`, of whose file `refused` an output differs. True: a rule was
  // found and is left out from here on. Else a warning says why none was. REQUIRES: the steps of
  // `plan` belong to rules(), and the file was made by `files`.
  StatusOr<bool> Find(const FoundPlan& plan, const OutputFile& refused, OutputFiles& files);

  // Whether the plan has rewrites that are left out, or was made on another clean-up.
  bool IsOld(const FoundPlan& plan) const;
  // Returns a plan of the search without what is left out; nothing: no rewrite is left of it, or it
  // cannot be planned. REQUIRES: the search made it.
  StatusOr<std::optional<FoundPlan>> Remade(const FoundPlan& searched, OutputFiles& files);

  const RuleSet& rules() const { return allowed_.back(); }
  // Whether the setting's graphs are not those of the search any more.
  bool clean_up_changed() const { return clean_up_changed_; }
  const std::vector<v1::WrongRewrite>& found() const { return found_; }
  std::vector<std::string> TakeWarnings() { return std::exchange(warnings_, {}); }

 private:
  StatusOr<GuiltyRewrite> Bisect(const FoundPlan& plan, const AtOtherSizes* at, OutputFiles& files);
  Status SayWhyNot(const GuiltyRewrite& guilty, const FoundPlan& plan, const OutputFile& refused,
                   OutputFiles& files);
  Status Say(const GuiltyRewrite& guilty, const AtOtherSizes* at, OutputFiles& files);
  Status LeaveOut(const GuiltyRewrite& guilty);
  const Graph& ModelAt(const AtOtherSizes* at) const {
    return at == nullptr ? request_.setting->runnable : at->runnable;
  }
  bool IsTimeFor(Nanos work) const;

  const Request request_;
  OutputSetting& setting_;
  const Graph searched_;  // The input of the search.
  BlobDir& blobs_;
  std::list<RuleSet> allowed_;  // Steps of plans point into each of them.
  std::vector<std::string> left_out_;
  std::set<std::pair<Digest, const AtOtherSizes*>> looked_at_;  // Graphs of plans.
  std::vector<v1::WrongRewrite> found_;
  std::vector<std::string> warnings_;
  bool gave_up_ = false;  // No rewrite is at fault, or none that could be left out.
  bool clean_up_changed_ = false;
  Nanos comparison_takes_{0};
};

}  // namespace ag
