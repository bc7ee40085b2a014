// The verbs rules list and rules verify.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/thread.h"
#include "client/cli/verbs.h"
#include "client/cli/verdict_cache.h"
#include "rules/sets/built_in_rules.h"
#include "rules/verify/verify.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

Json CountsJson(const std::vector<std::pair<std::string, int>>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

std::string CountsText(const std::vector<std::pair<std::string, int>>& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", name, count));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// A printer of verdicts, one after another; with --json it gathers them.
class VerdictPrinter {
 public:
  explicit VerdictPrinter(const Context& context) : context_(context) {}

  void Add(const Rule& rule, const VerifyReport& report, bool cached) {
    refused_ += !report.proved;
    cached_ += cached;
    ++count_;
    if (context_.flags().json) return AddJson(rule, report, cached);
    std::string line =
        fmt::format("{:<8} {:<36} {:>4} instances  {}", report.proved ? "proved" : "REFUSED",
                    report.rule, report.instances, report.arithmetic);
    if (report.constant_error_max > 0) {
      line += fmt::format("  constants to {:.1e}", report.constant_error_max);
    }
    context_.Print(line);
    if (context_.flags().verbose) {
      context_.Print("         " + CountsText(report.classes));
      if (!report.ruled_out.empty()) {
        context_.Print("         ruled out by the guards: " + CountsText(report.ruled_out));
      }
    }
    if (!report.proved) context_.Print(report.counter_example);
  }

  int Finish(double seconds) {
    if (context_.flags().json) {
      context_.Print(list_.dump(2));
    } else {
      context_.Print(fmt::format("{} proved, {} refused; {} known from before; {:.1f} s",
                                 count_ - refused_, refused_, cached_, seconds));
    }
    return refused_ == 0 ? kExitOk : kExitFailed;
  }

 private:
  void AddJson(const Rule& rule, const VerifyReport& report, bool cached) {
    list_.push_back({{"rule", report.rule},
                     {"class", RuleClassName(rule.rule_class)},
                     {"file", rule.file},
                     {"line", rule.line},
                     {"proved", report.proved},
                     {"cached", cached},
                     {"instances", report.instances},
                     {"classes", CountsJson(report.classes)},
                     {"ruled_out", CountsJson(report.ruled_out)},
                     {"arithmetic", report.arithmetic},
                     {"float_error_max", report.float_error_max},
                     {"constant_error_max", report.constant_error_max},
                     {"counter_example", report.counter_example}});
  }

  const Context& context_;
  Json list_ = Json::array();
  int count_ = 0, refused_ = 0, cached_ = 0;
};

// The known verdicts and the rules to prove, in the order of the set.
struct VerifyWork {
  std::vector<std::optional<VerifyReport>> known;
  std::vector<const Rule*> open;
};

VerifyWork Divide(const RuleSet& rules, const VerdictCache& cache, const VerifyOptions& options,
                  bool use_cache) {
  VerifyWork work;
  for (const Rule& rule : rules.rules()) {
    work.known.push_back(use_cache ? cache.Find(rule, options) : std::nullopt);
    if (!work.known.back().has_value()) work.open.push_back(&rule);
  }
  return work;
}

}  // namespace

StatusOr<RuleSet> LoadRules(const std::string& file) {
  if (file.empty()) return BuiltInRules();
  AG_LET(const std::string text, ReadFile(file));
  return RuleSet::Parse(text, file);
}

StatusOr<int> RunRulesList(Context& context, const RulesFlags& flags) {
  AG_LET(const RuleSet rules, LoadRules(flags.file));
  Json list = Json::array();
  for (const Rule& rule : rules.rules()) {
    const std::string kind(RuleClassName(rule.rule_class));
    list.push_back({{"name", rule.name},
                    {"class", kind},
                    {"clean_up", rule.clean_up},
                    {"text", rule.text},
                    {"file", rule.file}});
    if (context.flags().json) continue;
    context.Print(fmt::format("{:<36} {:<9} {:<9} {}", rule.name, kind,
                              rule.clean_up ? "clean-up" : "search", rule.file));
  }
  if (context.flags().json) context.Print(list.dump(2));
  return kExitOk;
}

StatusOr<int> RunRulesVerify(Context& context, const RulesFlags& flags) {
  AG_LET(const RuleSet rules, LoadRules(flags.file));
  CatchStopSignals();
  const Nanos begin = RealClock().Now();
  const VerifyOptions options{.instances_min = flags.instances, .seed = flags.seed, .stop = [] {
                                return StopSignal() != 0;
                              }};
  VerdictCache cache(context.flags().data_dir);
  const VerifyWork work = Divide(rules, cache, options, !flags.no_cache);
  AG_TRY(CheckTypes(work.open));

  VerdictPrinter printer(context);
  size_t next = 0;  // Index of the next rule of the set.
  const auto print_known = [&] {
    for (; next < work.known.size() && work.known[next].has_value(); ++next) {
      printer.Add(rules.rules()[next], *work.known[next], /*cached=*/true);
    }
  };
  print_known();
  const int jobs = flags.jobs > 0 ? flags.jobs : UsableCores();
  VerifyAll(work.open, options, jobs, [&](const Rule& rule, const VerifyReport& report) {
    printer.Add(rule, report, /*cached=*/false);
    cache.Add(rule, options, report);
    ++next;
    print_known();
    return true;
  });
  if (!flags.no_cache) {
    const Status saved = cache.Save();
    if (!saved.ok()) context.Note("verdicts are not remembered: " + Message(saved));
  }
  if (StopSignal() != 0) return Err(StatusCode::kCancelled, "interrupted");
  const std::chrono::duration<double> taken = RealClock().Now() - begin;
  return printer.Finish(taken.count());
}

}  // namespace ag
