// Files under a temporary name, not complete yet. They are removed when the program is ended at
// once (base/signals.h). Thread-safe.
#pragma once

#include <string>

namespace ag {

// While it lives, an immediate end of the program removes the file.
class PartialFile {
 public:
  explicit PartialFile(std::string path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

 private:
  const std::string path_;
};

// Removes the files of all PartialFiles. For code that ends the program next: no PartialFile can be
// made afterwards.
void RemovePartialFiles();

}  // namespace ag
