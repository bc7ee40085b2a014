#include "runtime/timing/testing/testing.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

namespace ag::testing {

void WriteFakePython(const std::string& path, const std::string& script) {
  AG_CHECK(WriteFileAtomically(path, "#!/bin/sh\n" + script + "\n").ok());
  AG_CHECK(chmod(path.c_str(), 0755) == 0);
}

std::string FakeAnswers(const std::string& ns, const std::string& version) {
  return fmt::format("echo 'ready - {}' >&3; while read -r line <&3; do echo {} >&3; done", version,
                     ns);
}

FakePython::FakePython() : folder_(*TempDir::Make("fake-python")) {
  setenv("AUTOGRAPH_MEASURING_LOCK", (path() + "/lock").c_str(), 1);
}

FakePython::~FakePython() {
  unsetenv("AUTOGRAPH_MEASURING_LOCK");
  unsetenv("AUTOGRAPH_PYTHON");
  unsetenv("PYTHONPATH");
}

std::string FakePython::Write(const std::string& name, const std::string& text) const {
  const std::string file = path() + "/" + name;
  AG_CHECK(MakeDirs(file.substr(0, file.rfind('/'))).ok());
  AG_CHECK(WriteFileAtomically(file, text).ok());
  return file;
}

void FakePython::Runs(const std::string& script) const {
  WriteFakePython(path() + "/python", script);
  setenv("AUTOGRAPH_PYTHON", (path() + "/python").c_str(), 1);
}

}  // namespace ag::testing
