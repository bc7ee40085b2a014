// The verb generate.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/signals.h"
#include "lab/generate/generate.h"
#include "lab/verbs.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

void PrintGenerated(const Context& context, const std::string& file,
                    const generate::GenerateReport& report) {
  const double per_second =
      static_cast<double>(report.graphs) / std::max(report.enumerate_seconds, 1e-3);
  if (context.flags().json) {
    context.Print(Json{{"file", file},
                       {"rules", report.rules},
                       {"graphs", report.graphs},
                       {"graphs_per_second", per_second},
                       {"equations", report.equations},
                       {"implied", report.implied},
                       {"growing", report.growing},
                       {"unproved", report.unproved},
                       {"refused", report.fallen},
                       {"not_looked_at", report.open},
                       {"seconds", report.seconds},
                       {"complete", report.complete}}
                      .dump());
    return;
  }
  context.Print(fmt::format(
      "{}: {} rules, every one proved\n"
      "{} graphs enumerated in {:.1f} s ({:.0f} a second), {} equations: {} follow from others, "
      "{} not proved, {} not looked at; {} rules refused by a later proof; {} directions only "
      "grow; "
      "{:.1f} s in all",
      file, report.rules, report.graphs, report.enumerate_seconds, per_second, report.equations,
      report.implied, report.unproved, report.open, report.fallen, report.growing, report.seconds));
}

}  // namespace

int RunGenerate(Context& context, const GenerateFlags& flags) {
  if (const Status writable = CheckWritable(flags.output); !writable.ok())
    return context.Fail(writable);
  CatchStopSignals();
  const auto report =
      generate::Generate({.ops_max = flags.ops_max,
                          .ops = flags.ops,
                          .seed = flags.seed,
                          .proofs = flags.proofs,
                          .stop = [] { return StopSignal() != 0; },
                          .progress = [&](const std::string& line) { context.Note(line); }});
  if (!report.ok()) return context.Fail(report.status());
  if (const Status written = WriteFileAtomically(flags.output, report->text); !written.ok()) {
    return context.Fail(written);
  }
  PrintGenerated(context, flags.output, *report);
  if (StopSignal() != 0) {
    context.Note("stopped early: the file holds what was found so far");
    return kExitInterrupted;
  }
  if (!report->complete) context.Note("ended early: out of memory; the file holds what was found");
  return kExitOk;
}

}  // namespace ag
