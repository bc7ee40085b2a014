// Files that are written under a temporary name until they are whole: a program that is ended at
// once (base/signals.h) takes them with it. Thread-safe.
#pragma once

#include <string>

namespace ag {

// While it lives, the file is removed when the program is ended at once.
class PartialFile {
 public:
  explicit PartialFile(std::string path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

 private:
  const std::string path_;
};

// To be called by who ends the program next: no PartialFile can be made after it.
void RemovePartialFiles();

}  // namespace ag
