#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/signals.h"
#include "client/cli/verbs.h"
#include "rules/generate/generate.h"

namespace ag {

int RunRulesGenerate(Context& context, const GenerateFlags& flags) {
  if (const Status writable = CheckWritable(flags.output); !writable.ok()) return Fail(writable);
  CatchStopSignals();
  const auto report =
      generate::Generate({.ops_max = flags.ops_max,
                          .ops = flags.ops,
                          .seed = flags.seed,
                          .stop = [] { return StopSignal() != 0; },
                          .progress = [&](const std::string& line) { context.Note(line); }});
  if (!report.ok()) return Fail(report.status());
  if (const Status written = WriteFileAtomically(flags.output, report->text); !written.ok()) {
    return Fail(written);
  }
  const double per_second =
      static_cast<double>(report->graphs) / std::max(report->enumerate_seconds, 1e-3);
  if (context.flags().json) {
    context.Print(nlohmann::ordered_json{{"file", flags.output},
                                         {"rules", report->rules},
                                         {"graphs", report->graphs},
                                         {"graphs_per_second", per_second},
                                         {"equations", report->equations},
                                         {"implied", report->implied},
                                         {"unproved", report->unproved},
                                         {"seconds", report->seconds},
                                         {"complete", report->complete}}
                      .dump());
  } else {
    context.Print(fmt::format(
        "{}: {} rules, every one proved\n"
        "{} graphs enumerated in {:.1f} s ({:.0f} a second), {} equations: {} follow from others, "
        "{} not proved; {:.1f} s in all",
        flags.output, report->rules, report->graphs, report->enumerate_seconds, per_second,
        report->equations, report->implied, report->unproved, report->seconds));
  }
  if (StopSignal() != 0) {
    context.Note("stopped early: the file holds what was found so far");
    return kExitInterrupted;
  }
  if (!report->complete) context.Note("ended early: out of memory; the file holds what was found");
  return kExitOk;
}

}  // namespace ag
