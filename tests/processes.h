// Real processes for end-to-end tests: runs a command to its end, keeps one in the background,
// finds a free port. One thread at a time for one object.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/testing/eventually.h"  // Its users wait for processes.

namespace ag {

using Variables = std::map<std::string, std::string>;

struct CommandResult {
  int code = -1;  // Exit code; 128 + signal when it died of one.
  std::string out;
  std::string err;
};

// Returns the path of a program in the build folder, e.g. Program("autograph").
std::string Program(const std::string& name);

// Runs argv[0] to its end with these variables added to the environment.
CommandResult RunCommand(const std::vector<std::string>& argv, const Variables& variables = {});

// A process in the background; the destructor kills it with SIGKILL and reaps it.
class Background {
 public:
  Background(const std::vector<std::string>& argv, const std::string& log_path,
             const Variables& variables = {});
  ~Background();
  Background(Background&& other) noexcept;
  Background& operator=(Background&& other) noexcept;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;  // After SIGSTOP none of its threads runs any more.
  int Wait();                     // Returns its exit code, as CommandResult::code.
  bool Running();
  std::string Log() const;  // Returns everything that it has printed.

 private:
  pid_t pid_ = -1;
  std::string log_path_;
};

int FreePort();

// Returns the pids of `parent`'s children whose command line contains `word`.
std::vector<pid_t> ChildrenOf(pid_t parent, const std::string& word);

}  // namespace ag
