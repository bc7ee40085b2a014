// Real processes for end-to-end tests: run a command to its end, keep one in the background, find a
// port.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace ag {

using Variables = std::map<std::string, std::string>;

struct CommandResult {
  int code = -1;  // Exit code; 128 + signal when it died of one.
  std::string out;
  std::string err;
};

// Path of one of our programs in the build folder, e.g. Program("autograph").
std::string Program(const std::string& name);

// Runs argv[0] to its end with these variables added to the environment.
CommandResult RunCommand(const std::vector<std::string>& argv, const Variables& variables = {});

// A process in the background; destruction kills it with SIGKILL and reaps it.
class Background {
 public:
  Background(const std::vector<std::string>& argv, const std::string& log_path,
             const Variables& variables = {});
  ~Background();
  Background(Background&& other) noexcept;
  Background& operator=(Background&& other) noexcept;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;  // After SIGSTOP none of its threads runs any more.
  int Wait();                     // Its exit code, as CommandResult::code.
  bool Running();
  std::string Log() const;  // Everything it printed so far.

 private:
  pid_t pid_ = -1;
  std::string log_path_;
};

int FreePort();

// The pids of `parent`'s children whose command line contains `word`.
std::vector<pid_t> ChildrenOf(pid_t parent, const std::string& word);

// Polls until `condition` holds; false after `seconds`.
template <class Condition>
bool Eventually(Condition condition, double seconds = 20) {
  for (int i = 0; i < seconds * 50; ++i) {
    if (condition()) return true;
    timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
  }
  return false;
}

}  // namespace ag
