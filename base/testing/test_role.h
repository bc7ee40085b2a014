// A role (base/process.h) for test programs that start themselves as children. gtest provides main,
// so a constant runs the role before it: const int kRole = RunRoleBeforeMain("sandbox",
// RunMisbehaving); Runs before main, on its one thread.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/process.h"

namespace ag {

// Runs the role and ends the process when it was started as that child; else returns -1. A test
// asserts the -1, so that the linker keeps the constant.
inline int RunRoleBeforeMain(const char* role, ChildMain run) {
  RegisterChildRole(role, run);
  const StatusOr<std::string> line = ReadFile("/proc/self/cmdline");
  std::vector<std::string> arguments;
  for (size_t at = 0; line.ok() && at < line->size(); at += arguments.back().size() + 1) {
    arguments.emplace_back(line->c_str() + at);
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const int code = RunChildRole(static_cast<int>(argv.size()), argv.data());
  if (code >= 0) ::_exit(code);
  return code;
}

}  // namespace ag
