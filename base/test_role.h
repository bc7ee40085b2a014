// For test programs that are their own children. gtest brings the main, so the role is run before
// it, by a constant: const int kRole = RunRoleBeforeMain("jail", RunMisbehaving);
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/process.h"

namespace ag {

// Ends the process where it was started as that child; else -1, as RunChildRole. (A test asserts
// the -1, so that the constant is not left out.)
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
