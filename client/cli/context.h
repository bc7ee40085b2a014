// The context of a verb: output as JSON or text, the connection, interruption. One thread at a
// time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "client/cli/flags.h"
#include "client/cpp/client.h"

namespace ag {

class EmbeddedService;

class Context {
 public:
  explicit Context(CommonFlags flags);
  ~Context();

  const CommonFlags& flags() const { return flags_; }

  // Returns a client of the service named by --server, or of an embedded service that is started
  // now and offers `device` ("": none). kUnavailable: no server answers. REQUIRES: called once.
  StatusOr<Client*> Connect(const std::string& device);
  bool embedded() const { return embedded_ != nullptr; }

  // Print writes one line to standard output. Note writes to standard error, and nothing with
  // --json. Texts of others have no control characters then (Printable).
  void Print(const std::string& line) const;
  void Note(const std::string& line) const;

  // Returns what to call when a signal ends the program at once, from another thread, however far
  // the verb is: with --json it is told as an error, unless the verb has printed its document.
  std::function<void()> LastWords() const;

  // Prints "PROGRAM: message" on standard error and returns the exit code of the status. With
  // --json also prints ErrorJson, unless the verb has printed its document already.
  int Fail(const Status& status) const;
  // Returns the exit code that a verb returned, or that of its error, which is printed.
  int CodeOf(const StatusOr<int>& code) const { return code.ok() ? *code : Fail(code.status()); }
  int FailUsage(const Status& status) const;   // Returns kExitUsage for any status.
  bool terminal() const { return terminal_; }  // Standard error is a terminal.

 private:
  CommonFlags flags_;
  bool terminal_;
  const std::shared_ptr<std::atomic<bool>> printed_;  // Standard output has something.
  std::unique_ptr<EmbeddedService> embedded_;
  std::unique_ptr<Client> client_;
};

// Returns the document of an error: {"error": {"code": 3, "message": "..."}}, with a gRPC status
// code.
std::string ErrorJson(const Status& status);
int ExitCodeOf(const Status& status);

// Whether the words of a command line ask for JSON, whatever else is wrong with them.
bool AsksForJson(int argc, char** argv);
// The document of an error where there is no memory to make one.
inline constexpr const char* kNoMemoryJson =
    R"({"error": {"code": 8, "message": "no memory is left, or no thread", )"
    R"("reason": "RESOURCE_EXHAUSTED"}})"
    "\n";

std::string DefaultDataDir();  // Of the embedded service.

// Parses "90s", "2m" or "1h" into seconds. A number without a unit is an error, since it is
// ambiguous.
StatusOr<double> ParseDuration(const std::string& text);

}  // namespace ag
