// A folder of immutable bytes named by their SHA-256: weights, models, artifacts.
// Layout: <root>/<first two digits>/<64 digits>. Thread-safe and safe between processes: a blob
// appears by rename only when it is whole, its digest was checked and its bytes are on the disk.
// Errors name the folder's path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"

namespace ag {

class BlobDir {
 public:
  // Makes the folder when it is missing and removes what writers that died have left in <root>/tmp.
  // What is not in `root` is read from the folder `below`, which is never written ("": none); Put,
  // Remove and List mean `root` alone.
  static StatusOr<std::shared_ptr<BlobDir>> Open(const std::string& root,
                                                 const std::string& below = "");

  // When a new blob must survive a power loss (a crash of ours it survives at once).
  enum class Durable { kNow, kAfterSync };
  // Stores `bytes` and returns their name; a blob that exists with the right size is left alone.
  // A durable blob costs two fsyncs, some 10 ms: the thousand weights of a model are better put
  // with kAfterSync and one Sync at the end.
  StatusOr<Digest> Put(std::string_view bytes, Durable durable = Durable::kNow);
  Status Sync();  // Makes all blobs so far durable: one syncfs.

  // Maps the blob. kNotFound: no such blob. kDataLoss: its size is wrong is found by Verify only.
  StatusOr<std::shared_ptr<const MappedFile>> Get(const Digest& digest) const;

  // Copies a blob that only the folder below has into this one, for readers that know nothing of
  // the other. kNotFound: neither has it.
  Status Adopt(const Digest& digest);

  bool Has(const Digest& digest) const;
  std::string PathOf(const Digest& digest) const;
  Status Verify(const Digest& digest) const;  // Re-hashes; kDataLoss when the bytes changed.
  // kNotFound: no such blob. Who has it mapped keeps its bytes.
  Status Remove(const Digest& digest);
  StatusOr<std::vector<Digest>> List() const;  // Sorted.

  // Bytes that arrive in pieces (an upload, a download). Nothing is visible until Commit. A writer
  // belongs to one thread and may outlive its BlobDir; after an error it is of no further use.
  class Writer {
   public:
    ~Writer();  // Removes what was not committed.
    Status Append(std::string_view bytes);
    uint64_t size() const { return size_; }
    // kInvalidArgument, with both digests, when `expected` is not what was written. An OK writer is
    // used up. REQUIRES: one Commit, once, after the last Append.
    Status Commit(const Digest& expected, Durable durable = Durable::kNow);
    // Names the blob by what was written, and returns that name.
    StatusOr<Digest> Commit(Durable durable = Durable::kNow);

   private:
    friend class BlobDir;
    Writer(std::string root, std::string path, Fd fd)
        : root_(std::move(root)), path_(std::move(path)), fd_(std::move(fd)) {}
    Status Write(std::string_view bytes);  // Append without hashing.
    Status Publish(const Digest& digest, Durable durable);

    std::string root_;
    std::string path_;  // Of the temporary file; empty when there is none to remove.
    Fd fd_;             // Locked (flock) as long as this writer lives: others leave the file alone.
    Hasher hasher_;
    uint64_t size_ = 0;
  };
  StatusOr<std::unique_ptr<Writer>> NewWriter();

 private:
  BlobDir(std::string root, std::string below) : root_(std::move(root)), below_(std::move(below)) {}
  std::string root_, below_;
};

}  // namespace ag
