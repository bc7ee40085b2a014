// The program autograph: the command line and, in its embedded mode, its own executor and sandbox.
#include "base/no_memory.h"
#include "base/process.h"
#include "base/signals.h"
#include "client/cli/commands.h"
#include "client/cli/context.h"
#include "client/cli/embedded.h"
#include "wire/library_log.h"

int main(int argc, char** argv) {
  ag::RouteLibraryLogs();
  ag::RegisterEmbeddedRoles();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  ag::EndWithoutMemoryAs("autograph", ag::kExitUnavailable);
  if (ag::AsksForJson(argc, argv)) ag::SetNoMemoryDocument(ag::kNoMemoryJson);
  ag::LeaveAtStopSignal();
  return ag::CliMain(argc, argv);
}
