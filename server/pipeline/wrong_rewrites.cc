#include "server/pipeline/wrong_rewrites.h"

#include <algorithm>

#include "base/log.h"
#include "rules/match/rule_clean_up.h"
#include "search/repeat_rewrites.h"
#include "search/rewrite_trail.h"
#include "server/pipeline/counter_example.h"
#include "server/pipeline/other_sizes.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

// "output y: 0.13, allowed 0.001".
std::string ErrorText(const OutputError& error, double tolerance) {
  return fmt::format("output {}: {:.3g}{}, allowed {:.3g}", error.name, error.max_rel,
                     error.nonfinite_differs ? " and Inf or NaN elsewhere" : "", tolerance);
}

// "rewrite conv-x at /features/0/Conv", "clean-up rule gelu-tanh".
std::string WhatText(const v1::WrongRewrite& wrong) {
  if (wrong.rule().empty()) return "the clean-up without any rule";
  if (wrong.clean_up()) return "clean-up rule " + wrong.rule();
  return fmt::format("rewrite {} at {}", wrong.rule(), wrong.place());
}

std::string WarningText(const v1::WrongRewrite& wrong) {
  const v1::CounterExample& example = wrong.counter_example();
  std::string text = fmt::format("{} gives other results ({}{}): {}", WhatText(wrong),
                                 ErrorText(FromProto(wrong.error()), wrong.tolerance()),
                                 wrong.shapes().empty() ? "" : ", at " + wrong.shapes(),
                                 wrong.rule().empty() ? "it cannot be left out" : "left out");
  if (example.on_device_only()) {
    text += "; on the reference kernels it is right: a kernel of the device is wrong";
  }
  if (!example.left_out().empty()) text += "; no counter-example: " + example.left_out();
  return text;
}

}  // namespace

WrongRewrites::WrongRewrites(Request request, BlobDir& blobs)
    : request_(std::move(request)),
      setting_(*request_.setting),
      searched_(request_.setting->input),
      blobs_(blobs),
      allowed_{*request_.rules} {}

bool WrongRewrites::IsTimeFor(Nanos work) const {
  const Nanos left = request_.time_left();
  return left > Nanos{0} && left >= work;
}

StatusOr<bool> WrongRewrites::Find(const FoundPlan& plan, const OutputFile& refused,
                                   OutputFiles& files) {
  const AtOtherSizes* at = refused.differs_at;
  if (gave_up_ || !looked_at_.insert({plan.graph.digest(), at}).second) return false;
  if (left_out_.size() >= kRulesMax) {
    warnings_.push_back(fmt::format(
        "{} rules were left out because of other results: no more are looked for", kRulesMax));
    gave_up_ = true;
    return false;
  }
  const StatusOr<GuiltyRewrite> guilty = Bisect(plan, at, files);
  if (!guilty.ok()) {
    if (!IsRefusal(guilty.status())) return guilty.status();
    warnings_.push_back("which rewrite is wrong was not found: " + Message(guilty.status()));
    return false;
  }
  LogInfo("{} comparisons were made to find a wrong rewrite", guilty->comparisons);
  if (guilty->outcome != GuiltyRewrite::Outcome::kFound) {
    AG_TRY(SayWhyNot(*guilty, plan, refused, files));
    return false;
  }
  AG_TRY(Say(*guilty, at, files));
  gave_up_ |= guilty->rule.empty();
  if (gave_up_) return false;
  AG_TRY(LeaveOut(*guilty));
  return true;
}

// Compares the graphs on the plan's trail at the sizes where its file differs.
StatusOr<GuiltyRewrite> WrongRewrites::Bisect(const FoundPlan& plan, const AtOtherSizes* at,
                                              OutputFiles& files) {
  TrailRequest trail{ModelAt(at), setting_.input, plan.steps, &rules(), nullptr, nullptr};
  if (at != nullptr) {
    AG_LET(RepeatedRewrites repeated,
           RepeatRewrites(setting_.input, plan.steps, {at->input}, rules()));
    trail.input = at->input;
    trail.steps = std::move(repeated.steps[0]);
  }
  trail.stop = [this] { return !IsTimeFor(comparison_takes_); };
  trail.differs = [&](const Graph& graph) {
    const Nanos before = request_.time_left();
    auto error = files.Differs(at, graph);
    comparison_takes_ = before - request_.time_left();
    return error;
  };
  return FindGuiltyRewrite(trail);
}

// Says what else may be at fault.
Status WrongRewrites::SayWhyNot(const GuiltyRewrite& guilty, const FoundPlan& plan,
                                const OutputFile& refused, OutputFiles& files) {
  switch (guilty.outcome) {
    case GuiltyRewrite::Outcome::kStopped:
      warnings_.emplace_back("which of its rewrites is wrong was not found: the time was over");
      return OkStatus();
    case GuiltyRewrite::Outcome::kModelItself:
      gave_up_ = true;
      warnings_.emplace_back(
          "the model as it came differs from itself on the device: no rewrite is at fault");
      return OkStatus();
    case GuiltyRewrite::Outcome::kNotOnTrail:
    case GuiltyRewrite::Outcome::kFound:
      break;
  }
  const char* right = plan.steps.empty() ? "the model cleaned up gives the results of the model"
                                         : "its rewrites, repeated one by one, give the results "
                                           "of the model";
  std::string culprit = "its file or its plan is at fault";
  if (refused.differs_at == nullptr && IsTimeFor(comparison_takes_)) {
    const auto error = files.Differs(nullptr, refused.graph);
    if (!error.ok() && !IsRefusal(error.status())) return error.status();
    if (error.ok()) {
      culprit =
          error->has_value() ? "its file is at fault" : "its plan is at fault, or a kernel in it";
    }
  }
  warnings_.push_back(fmt::format("{}: {}", right, culprit));
  return OkStatus();
}

// Reports the rewrite, with a counter-example.
Status WrongRewrites::Say(const GuiltyRewrite& guilty, const AtOtherSizes* at, OutputFiles& files) {
  const OnnxOrigin& origin = at == nullptr ? setting_.model->origin : at->origin;
  v1::WrongRewrite& wrong = found_.emplace_back();
  wrong.set_rule(guilty.rule);
  wrong.set_clean_up(guilty.is_clean_up);
  if (guilty.rewrite) {
    wrong.set_place(PlaceText(guilty.before, *guilty.rewrite, origin, ModelAt(at)));
  }
  ToProto(guilty.error, wrong.mutable_error());
  wrong.set_tolerance(setting_.policy.tolerance);
  if (at != nullptr) wrong.set_shapes(ShapesText(at->shapes));
  CounterExampleRequest request;
  request.guilty = &guilty;
  request.rules = &rules();
  request.what = WhatText(wrong);
  request.imported = ModelAt(at);
  request.origin = origin;
  request.blob_root = setting_.blob_root;
  request.child = setting_.child;
  request.show = [&files, at](const GraphPair& pair, int64_t bytes_max) {
    return pair.is_model ? files.ShowModel(at, pair.before, pair.after, bytes_max)
                         : files.ShowCut(pair.before, pair.after, bytes_max);
  };
  request.stop = [this] { return !IsTimeFor(comparison_takes_); };
  AG_LET(*wrong.mutable_counter_example(), MakeCounterExample(request, blobs_));
  warnings_.push_back(WarningText(wrong));
  LogWarn("{}", warnings_.back());
  return OkStatus();
}

Status WrongRewrites::LeaveOut(const GuiltyRewrite& guilty) {
  left_out_.push_back(guilty.rule);
  allowed_.push_back(rules().Without({guilty.rule}, /*strict=*/false));
  if (!guilty.is_clean_up) return OkStatus();
  clean_up_changed_ = true;
  AG_LET(setting_.input, CleanUp(setting_.runnable, rules()));
  if (auto plan = UnfusedPlan(setting_, setting_.input); plan.ok()) {
    setting_.unfused_plan = *std::move(plan);
  }
  for (AtOtherSizes& set : setting_.sets) {
    AG_LET(set.input, CleanUp(set.runnable, rules()));
  }
  return OkStatus();
}

bool WrongRewrites::IsOld(const FoundPlan& plan) const {
  if (clean_up_changed_) return true;
  return std::ranges::any_of(plan.steps, [&](const RewriteStep& step) {
    return rules().Find(step.rewrite.rule->name) == nullptr;
  });
}

StatusOr<std::optional<FoundPlan>> WrongRewrites::Remade(const FoundPlan& searched,
                                                         OutputFiles& files) {
  AG_LET(ReplayedTrail trail, ReplayTrail({.input = searched_,
                                           .steps = searched.steps,
                                           .rules = request_.rules,
                                           .onto = setting_.input,
                                           .allowed = &rules()}));
  if (trail.graph.digest() == setting_.input.digest()) return std::nullopt;
  StatusOr<Plan> plan = files.PlanAnew(trail.graph, searched.plan);
  if (!plan.ok() && !IsRefusal(plan.status())) return plan.status();
  if (!plan.ok()) {
    warnings_.push_back("what is left of its rewrites cannot be planned: " +
                        Message(plan.status()));
    return std::nullopt;
  }
  FoundPlan remade;
  remade.graph = std::move(trail.graph);
  remade.plan = *std::move(plan);
  remade.rewrites = AppliedOf(trail.steps);
  remade.steps = std::move(trail.steps);
  remade.timing = searched.timing;
  return remade;
}

}  // namespace ag
