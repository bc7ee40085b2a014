// The run of a program with verbs: parse the command line, run the chosen verb, report errors in
// the same way in every program. Header-only, as base/command_line.h is. Called by main.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

#include "base/command_line.h"
#include "base/log.h"
#include "base/signals.h"
#include "client/cli/context.h"
#include "net/channel_flags.h"

namespace ag {

using Action = std::function<StatusOr<int>(Context&)>;

// Parses the arguments, which set `flags` and `chosen`, runs the chosen verb, and returns the exit
// code. With --json an error of the command line is printed as a document as well.
inline int RunProgram(CLI::App& app, CommonFlags& flags, const Action& chosen, int argc,
                      char** argv) {
  const auto print_json = [&](const std::string& message) {
    if (!AsksForJson(argc, argv)) return;  // CLI11 may stop before it parses the flag.
    std::puts(ErrorJson(Err(StatusCode::kInvalidArgument, "{}", message)).c_str());
  };
  if (const int code = ParseCommandLine(app, argc, argv, print_json); code >= 0) return code;
  TakeTokenOfEnvironment(flags.channel);
  InitLog(flags.program, flags.verbose ? "info" : "error");
  Context context(flags);
  SetLastWords(context.LastWords());
  const int code = context.CodeOf(chosen(context));
  if (code != kExitOk || (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)) return code;
  return context.Fail(
      Err(StatusCode::kResourceExhausted, "standard output did not take everything"));
}

}  // namespace ag
