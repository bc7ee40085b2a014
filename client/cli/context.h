// What every verb shares: output, JSON or text, the connection, interruption.
#pragma once

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

  // The service named by --server, or an embedded one started now that offers `device` ("": none).
  // REQUIRES: called once.
  StatusOr<Client*> Connect(const std::string& device);
  bool embedded() const { return embedded_ != nullptr; }

  // One line to standard output; notes go to standard error and are left out with --json.
  void Print(const std::string& line) const;
  void Note(const std::string& line) const;

  // Says "autograph: message" on standard error and returns the exit code for the status. With
  // --json it also prints ErrorJson, unless the verb has printed its document already.
  int Fail(const Status& status) const;
  int FailUsage(const Status& status) const;   // kExitUsage, whatever the status.
  bool terminal() const { return terminal_; }  // Standard error is one: progress may be drawn.

 private:
  CommonFlags flags_;
  bool terminal_;
  mutable bool printed_ = false;
  std::unique_ptr<EmbeddedService> embedded_;
  std::unique_ptr<Client> client_;
};

// The document of every error: {"error": {"code": 3, "message": "..."}}, with a gRPC status code.
std::string ErrorJson(const Status& status);
int ExitCodeOf(const Status& status);

std::string DefaultDataDir();  // Of the embedded service.

// "NAME=1x3x224x224" -> name and sizes.
StatusOr<std::pair<std::string, std::vector<int64_t>>> ParseShapeFlag(const std::string& text);
// "90s", "2m", "1h" -> seconds. A number without a unit is refused: nobody knows what was meant.
StatusOr<double> ParseDuration(const std::string& text);

}  // namespace ag
