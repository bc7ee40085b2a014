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
  bool terminal() const { return terminal_; }  // Standard error is one: progress may be drawn.

 private:
  CommonFlags flags_;
  bool terminal_;
  std::unique_ptr<EmbeddedService> embedded_;
  std::unique_ptr<Client> client_;
};

// Prints "autograph: message" and returns the exit code for the status.
int Fail(const Status& status);
int ExitCodeOf(const Status& status);

// "NAME=1x3x224x224" -> name and sizes.
StatusOr<std::pair<std::string, std::vector<int64_t>>> ParseShapeFlag(const std::string& text);
// "90", "90s", "2m", "1h" -> seconds.
StatusOr<double> ParseDuration(const std::string& text);

}  // namespace ag
