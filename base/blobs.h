// A folder of immutable bytes named by their SHA-256: weights, models, artifacts.
// Layout: <root>/<first two digits>/<64 digits>, and <root>/shared/<64 digits>/ for a blob that is
// a user's file as well (Share).
// A blob appears under its name by a rename, after it is whole and its digest is known. Errors name
// the folder's path. BlobDir is thread-safe, also between processes; a Writer belongs to one
// thread.
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
  // Opens the folder and makes it when it is missing. Removes the files in <root>/tmp whose writer
  // died. `below` is a second folder that is only read ("": none): Get, Has, PathOf, Verify and
  // Adopt look there for a blob that `root` does not have. Put, Remove and List use `root` only.
  static StatusOr<std::shared_ptr<BlobDir>> Open(const std::string& root,
                                                 const std::string& below = "");

  // When a new blob survives a power loss: at once, or after Sync. Both survive a crash of the
  // process.
  enum class Durable { kNow, kAfterSync };
  // Stores `bytes` and returns their digest. Does nothing when a blob with this name and size
  // exists. kNow costs two fsyncs, about 10 ms; to store many blobs, use kAfterSync and call Sync
  // once at the end.
  StatusOr<Digest> Put(std::string_view bytes, Durable durable = Durable::kNow);
  Status Sync();  // Makes all blobs stored so far durable, with one syncfs.

  // Returns the blob as a mapping. Does not check its bytes; Verify does. kNotFound: no such blob.
  StatusOr<std::shared_ptr<const MappedFile>> Get(const Digest& digest) const;

  // Copies a blob from the folder `below` into `root`, for readers that know only `root`. Does
  // nothing when `root` has it. kNotFound: neither folder has it.
  Status Adopt(const Digest& digest);

  // Makes `path` a second name (a hard link) of the blob, replaces the file of that name, and sets
  // its time of change to now. From then on the blob counts as there only while its size and time
  // of change stay as they are, since its user may write to it. kUnimplemented: no link is
  // possible, copy it; kDataLoss: its bytes have another digest.
  Status Share(const Digest& digest, const std::string& path);

  // Returns the path of the blob; when there is none, the path that Put would give it.
  bool Has(const Digest& digest) const;
  std::string PathOf(const Digest& digest) const;
  Status Verify(const Digest& digest) const;  // Hashes the bytes again. kDataLoss: they changed.
  // Removes the blob's name; existing mappings stay valid. kNotFound: no such blob.
  Status Remove(const Digest& digest);
  StatusOr<std::vector<Digest>> List() const;  // Returns all names, sorted.
  // A blob of `root`, its size, and when it was last stored, asked for again (Put, Adopt) or
  // touched, as a time of day. A shared one counts from the moment when it was shared.
  struct Entry {
    Digest digest;
    int64_t bytes = 0;
    int64_t used_unix_seconds = 0;
  };
  StatusOr<std::vector<Entry>> Entries() const;  // Sorted by digest.
  // Returns whether the blob was not used since the entry was read; false: it was, or has gone.
  bool IsAsBefore(const Entry& entry) const;
  // Removes it if so, and returns whether it did. Another process may count on a blob from the
  // moment when it stored or touched it.
  StatusOr<bool> RemoveUnused(const Entry& entry);
  // Notes that the blob is used now. Does nothing for a shared one, and where it cannot.
  void Touch(const Digest& digest) const;

  // Writes one blob in pieces (an upload, a download). The blob is visible after Commit. One thread
  // at a time. A writer may outlive its BlobDir. After an error it cannot be used any more.
  class Writer {
   public:
    ~Writer();  // Removes the temporary file when nothing was committed.
    Status Append(std::string_view bytes);
    uint64_t size() const { return size_; }
    // The unfinished file, for a process that appends to it. REQUIRES: TakeIn() afterwards.
    int fd() const { return fd_.get(); }
    const std::string& path() const { return path_; }
    Status TakeIn();  // Counts and hashes what another process has appended.
    // Publishes the bytes under `expected`. kInvalidArgument, with both digests: the bytes have
    // another digest. REQUIRES: one Commit, once, after the last Append.
    Status Commit(const Digest& expected, Durable durable = Durable::kNow);
    // Publishes the bytes under their own digest and returns it.
    StatusOr<Digest> Commit(Durable durable = Durable::kNow);

   private:
    friend class BlobDir;
    Writer(std::string root, std::string path, Fd fd)
        : root_(std::move(root)), path_(std::move(path)), fd_(std::move(fd)) {}
    Status Write(std::string_view bytes);  // Appends without hashing.
    Status Publish(const Digest& digest, Durable durable);

    std::string root_;
    std::string path_;  // The temporary file's; empty when there is none to remove.
    Fd fd_;  // Locked (flock) while this writer lives, so that Open does not remove the file.
    Hasher hasher_;
    uint64_t size_ = 0;
  };
  StatusOr<std::unique_ptr<Writer>> NewWriter();

 private:
  BlobDir(std::string root, std::string below) : root_(std::move(root)), below_(std::move(below)) {}
  Status MoveToShared(const Digest& digest, const std::string& from);
  std::string root_, below_;
};

}  // namespace ag
