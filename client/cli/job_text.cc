#include "client/cli/job_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "client/cli/search_text.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

double Largest(const v1::Result& result, double (v1::OutputError::*field)() const) {
  double largest = 0;
  for (const v1::OutputError& error : result.errors())
    largest = std::max(largest, (error.*field)());
  return largest;
}

std::string RatioText(const v1::Ratio& ratio) {
  return fmt::format("{:.3f}x  ({:.3f} to {:.3f})", ratio.median(), ratio.low(), ratio.high());
}

// What the rule gains: measured by leaving it out, else estimated.
std::string GainText(const v1::RewriteCount& rewrite) {
  if (!rewrite.has_gain()) {
    return rewrite.gain_ns() == 0
               ? ""
               : fmt::format("  {:.3f} us by estimate, not measured", rewrite.gain_ns() / 1e3);
  }
  std::string text = "  gains " + RatioText(rewrite.gain());
  if (!rewrite.also_left_out().empty()) {
    text += fmt::format(" with {}, which lack places without it",
                        fmt::join(rewrite.also_left_out(), ", "));
  }
  return text;
}

std::string RewritesText(const google::protobuf::RepeatedPtrField<v1::RewriteCount>& rewrites) {
  if (rewrites.empty()) return "none";
  std::string text;
  for (const v1::RewriteCount& rewrite : rewrites) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} x{}", rewrite.rule(), rewrite.count());
  }
  return text;
}

// Says on how many sets of inputs the output was compared.
std::string ComparedText(const v1::Job& job) {
  std::set<std::string> names;  // Of the user's own.
  for (const v1::InputSet& set : job.request().inputs()) names.insert(set.name());
  int counted = 0, own = 0, left_out = 0;
  for (const v1::ComparedInputs& compared : job.result().compared_inputs()) {
    counted += compared.left_out().empty() ? 1 : 0;
    left_out += compared.left_out().empty() ? 0 : 1;
    own += names.contains(compared.inputs()) ? 1 : 0;
  }
  std::string text = fmt::format("on {} set{} of inputs", counted, counted == 1 ? "" : "s");
  if (own > 0) text += fmt::format(", {} of them your own", own);
  if (left_out > 0) text += fmt::format("; {} left out (see the report)", left_out);
  return text;
}

std::string PolicyText(const v1::Policy& policy, double tolerance) {
  return fmt::format("{}, tolerance {}{}{}", policy.precision(), tolerance,
                     policy.cold_cache() ? ", caches evicted before every run" : "",
                     policy.nonfinite_strict() ? ", Inf and NaN kept exactly" : "");
}

std::string Row(const char* name, const std::string& value) { return TableRow(name, value) + "\n"; }

// Returns today's and the output's latency, both in the unit that fits the shorter one.
std::string LatencyRows(const v1::Result& r) {
  constexpr double kMillisecond = 1e6, kMicrosecond = 1e3;
  const double shorter = std::min(r.input_latency().median_ns(), r.output_latency().median_ns());
  const bool is_short = shorter < 0.1 * kMillisecond;
  const auto text = [&](const v1::Latency& latency) {
    const double unit = is_short ? kMicrosecond : kMillisecond;
    return fmt::format("{:.3f} {}  ({:.3f} to {:.3f})", latency.median_ns() / unit,
                       is_short ? "us" : "ms", latency.low_ns() / unit, latency.high_ns() / unit);
  };
  return Row("today", text(r.input_latency()) + "  " + r.baseline()) +
         Row("output", text(r.output_latency()) + "  " + r.output_runtime());
}

std::string InstancesText(const v1::Result& result) {
  const std::string beside =
      result.beside() > 1 ? fmt::format(", {} beside each other", result.beside()) : "";
  if (result.segments_size() > 1) {
    std::vector<int> counts;
    for (const v1::PlanSegment& segment : result.segments()) counts.push_back(segment.instances());
    return fmt::format(", in segments that run {} times on equal parts of the batch{}",
                       Join(counts, ", "), beside);
  }
  if (result.instances() < 2) return "";
  return fmt::format(", {} times on equal parts of the batch{}", result.instances(), beside);
}

}  // namespace

std::string StateText(v1::Job::State state) {
  std::string text = v1::Job::State_Name(state);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string TableRow(const char* name, const std::string& value) {
  return fmt::format("  {:<12} {}", name, value);
}

namespace {

std::string SizeChange(const v1::Result& r) {
  const double before = static_cast<double>(r.input_facts().file_bytes());
  if (before <= 0) return "";
  const double percent = 100 * (static_cast<double>(r.output_bytes()) / before - 1);
  if (percent > -0.05 && percent < 0.05) return ", file as large";
  return fmt::format(", file {:.1f} % {}", std::abs(percent), percent > 0 ? "larger" : "smaller");
}

std::string AnswersText(const v1::Job& job) {
  if (job.result().errors().empty()) return "";
  return fmt::format(", same answers within {:g}", job.result().tolerance());
}

const char* OutputText(const v1::Result& r) {
  if (r.output() == v1::Result::REWRITTEN) {
    return r.carries_plan() ? "a rewritten model with its plan"
                            : "a rewritten model without a plan";
  }
  if (r.output() == v1::Result::PLAN_ADDED) return "the input's own bytes with a plan behind them";
  return "the input's own bytes";
}

// Returns the operators whose number changed, up to kShownMax of them.
std::string OperatorChanges(const v1::Result& r) {
  constexpr int kShownMax = 8;
  std::map<std::string, std::pair<int, int>> counts;
  for (const v1::OperatorCount& row : r.input_facts().operators()) {
    counts[row.op_type()].first = row.count();
  }
  for (const v1::OperatorCount& row : r.output_facts().operators()) {
    counts[row.op_type()].second = row.count();
  }
  std::string text;
  int shown = 0;
  for (const auto& [name, count] : counts) {
    if (count.first == count.second || ++shown > kShownMax) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", name, count.first, count.second);
  }
  if (shown > kShownMax) text += fmt::format(" and {} more", shown - kShownMax);
  return text;
}

int Operators(const v1::ModelFacts& facts) {
  int sum = 0;
  for (const v1::OperatorCount& row : facts.operators()) sum += row.count();
  return sum;
}

std::string FactsRows(const v1::Result& r) {
  const v1::ModelFacts &a = r.input_facts(), &b = r.output_facts();
  const std::string changes = OperatorChanges(r);
  return Row("operators", fmt::format("{} -> {}{}", Operators(a), Operators(b),
                                      changes.empty() ? "" : "  (" + changes + ")")) +
         Row("parameters", fmt::format("{} -> {}", a.parameters(), b.parameters())) +
         Row("file", fmt::format("{:.3f} -> {:.3f} MB", static_cast<double>(a.file_bytes()) / 1e6,
                                 static_cast<double>(b.file_bytes()) / 1e6));
}

// Whether the output is the input and runs as before, so that nothing is to be compared.
bool IsUnchanged(const v1::Result& r) {
  return r.output() == v1::Result::INPUT && r.speedup_low() == 1 && r.speedup_high() == 1;
}

std::string RatioRows(const v1::Result& r) {
  std::string text;
  if (r.has_over_onnxruntime()) {
    text += Row("over", RatioText(r.over_onnxruntime()) + "  " + r.baseline() + " on the input");
  }
  if (r.has_over_untuned()) {
    text +=
        Row("over", RatioText(r.over_untuned()) +
                        (r.output_in_onnxruntime() ? "  our session: the output over the input, "
                                                     "untuned"
                                                   : "  our untuned session on the input"));
  }
  if (r.has_over_tuned_input() && r.output() != v1::Result::PLAN_ADDED) {
    text += Row("over", RatioText(r.over_tuned_input()) + "  the input with the best plan for it");
  }
  if (!text.empty()) {
    text +=
        Row("", "(medians of pairs taken side by side; today and output are medians of all runs)");
  }
  return text;
}

std::string PortableRows(const v1::Result& r) {
  std::string text;
  for (const v1::PortableStep& step : r.portable()) {
    const std::string places =
        step.applied() == 0 ? "" : fmt::format(" x{} of {}", step.applied(), step.wanted());
    text += Row(step.kept() ? "kept" : "dropped",
                fmt::format("{}{}: {}{}", step.rule(), places, step.reason(),
                            step.has_ratio() ? " " + RatioText(step.ratio()) : ""));
  }
  return text;
}

}  // namespace

std::string Headline(const v1::Job& job) {
  const v1::Result& r = job.result();
  const char* estimate = r.simulated() ? " (simulated device: an estimate)" : "";
  if (r.verdict() == v1::Result::FASTER) {
    const double less = 100 * (1 - 1 / r.speedup());
    return fmt::format("FASTER: {:.0f} % less time than {}, {:.3f}x ({:.3f} to {:.3f}){}{}{}", less,
                       r.baseline(), r.speedup(), r.speedup_low(), r.speedup_high(),
                       AnswersText(job), SizeChange(r), estimate);
  }
  if (r.verdict() == v1::Result::NO_GAIN_FOUND && IsUnchanged(r)) {
    return fmt::format(
        "NO GAIN FOUND over {}: the file is unchanged and runs as before; {} graphs scored, {} "
        "plans "
        "measured{}",
        r.baseline(), r.graphs() + r.cell_graphs(), r.candidates(), estimate);
  }
  if (r.verdict() == v1::Result::NO_GAIN_FOUND) {
    return fmt::format(
        "NO GAIN FOUND over {}: {:.3f}x, at most {:.3f}x; {} graphs scored, {} plans measured{}{}",
        r.baseline(), r.speedup(), r.speedup_high(), r.graphs() + r.cell_graphs(), r.candidates(),
        AnswersText(job), estimate);
  }
  return "NOT MEASURED: no runtime timed both files; the warnings say why";
}

std::string VerdictText(const v1::Result& r) {
  const std::string verdict = v1::Result::Verdict_Name(r.verdict());
  return r.verdict() == v1::Result::NOT_MEASURED ? verdict
                                                 : fmt::format("{} {:.3f}x", verdict, r.speedup());
}

std::string HowToRun(const v1::Result& r, const std::string& path) {
  if (r.output_in_onnxruntime()) return "in ONNX Runtime, as today's model";
  if (r.output_runtime().empty()) return "as today's model";
  if (r.has_over_onnxruntime() && r.over_onnxruntime().high() < 1) {
    return fmt::format("in ONNX Runtime, as today's model: our session takes {:.2f} times as long",
                       1 / r.over_onnxruntime().median());
  }
  return fmt::format(
      "autograph run {0}; to serve it: autograph.Session(\"{0}\") in Python, "
      "runtime/autograph.h in C and C++ (docs/runtime.md)",
      path);
}

std::string ResultTable(const v1::Job& job) {
  const v1::Result& r = job.result();
  std::string text = Headline(job) + "\n";
  for (const std::string& warning : r.warnings()) text += Row("warning", warning);
  text += Row("model", fmt::format("{}  {}", job.request().model_name(), job.name()));
  if (!r.baseline().empty()) text += LatencyRows(r);
  if (r.batch() > 1 && r.samples_per_second() > 0) {
    text += Row("throughput", fmt::format("{:.1f} samples a second, in batches of {}",
                                          r.samples_per_second(), r.batch()));
  }
  text += RatioRows(r) + FactsRows(r);
  text += Row("written is", OutputText(r));
  if (!r.kept_open().empty()) {
    text += Row("kept open",
                fmt::format("{}; measured at {}", fmt::join(r.kept_open(), ", "), r.measured_at()));
  }
  for (const v1::ShapeSetResult& set : r.shape_sets()) {
    text += Row("also for",
                fmt::format("{}  {}{}", set.shapes(), v1::Result::Verdict_Name(set.verdict()),
                            set.has_speedup() ? " " + RatioText(set.speedup()) : ""));
  }
  text += Row("device", fmt::format("{}  {}", r.device(), r.environment()));
  text += Row("policy", PolicyText(job.request().policy(), r.tolerance()));
  if (!r.errors().empty()) {
    text += Row("errors",
                fmt::format("max abs {:.2g}, max rel {:.2g}", Largest(r, &v1::OutputError::max_abs),
                            Largest(r, &v1::OutputError::max_rel)));
  }
  if (!r.compared_inputs().empty()) text += Row("compared", ComparedText(job));
  for (const v1::RewriteCount& rewrite : r.rewrites()) {
    text += Row(&rewrite == &r.rewrites(0) ? "rewrites" : "",
                fmt::format("{} x{}{}", rewrite.rule(), rewrite.count(), GainText(rewrite)));
  }
  if (!r.clean_up().empty()) text += Row("clean-up", RewritesText(r.clean_up()));
  text += PortableRows(r);
  text += Row("plan", fmt::format("{} groups on {} stream{}{}", r.groups(), r.streams(),
                                  r.streams() == 1 ? "" : "s", InstancesText(r)));
  text += SearchRows(r);
  text += Row("cache", r.cache().model_hit() ? std::string("the whole answer; nothing was measured")
                                             : fmt::format("{} hits, {} misses", r.cache().hits(),
                                                           r.cache().misses()));
  text += Row("time", fmt::format("{:.1f} s", r.seconds()));
  return text;
}

}  // namespace ag
