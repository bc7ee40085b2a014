// Helpers for tests that time files: shell scripts that stand for a Python with ONNX Runtime. One
// thread at a time, since they set environment variables.
#pragma once

#include <string>

#include "base/file.h"

namespace ag::testing {

// Writes an interpreter to `path`: a shell script that answers on descriptor 3; $3 is the request.
void WriteFakePython(const std::string& path, const std::string& script);

// Returns the part of a script that reports `version` as ready and answers each question with `ns`,
// which the shell may expand.
std::string FakeAnswers(const std::string& ns, const std::string& version = "1.2.3");

// A folder, a measuring lock and an interpreter for one test. One at a time in a process.
class FakePython {
 public:
  FakePython();
  ~FakePython();
  const std::string& path() const { return folder_.path(); }
  // Writes a file into the folder and returns its path.
  std::string Write(const std::string& name, const std::string& text) const;
  void Runs(const std::string& script) const;  // Sets AUTOGRAPH_PYTHON.

 private:
  const TempDir folder_;
};

}  // namespace ag::testing
