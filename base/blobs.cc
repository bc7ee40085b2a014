#include "base/blobs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/file_ops.h"
#include "base/file_reader.h"
#include "base/partial_files.h"

namespace ag {
namespace {

std::string TempFolder(const std::string& root) { return root + "/tmp"; }
std::string FolderOf(const std::string& root, const std::string& hex) {
  return root + "/" + hex.substr(0, 2);
}
std::string PathIn(const std::string& root, const Digest& digest) {
  const std::string hex = digest.Hex();
  return FolderOf(root, hex) + "/" + hex;
}

Status BlobsWriteError(const std::string& root, int error) {
  return FromErrno(error, "write to blobs " + root);
}

// Whether `fd` gets the lock (no living writer holds it) and its file still has a name.
bool OwnsFile(int fd) {
  struct stat info {};
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

// Removes the temporary files that no living writer holds, except those that cannot be opened.
void RemoveAbandoned(const std::string& root) {
  const StatusOr<std::vector<std::string>> names = ListDir(TempFolder(root));
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = TempFolder(root) + "/" + name;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd && OwnsFile(fd.get())) file_ops::Remove(path);
  }
}

// Whether there is a file of this size. After a power loss a name may exist without its bytes; such
// a file is empty or short, and the next Put replaces it.
bool HasSize(const std::string& path, uint64_t size) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && static_cast<uint64_t>(info.st_size) == size;
}

std::string SharedFolder(const std::string& root, const Digest& digest) {
  return root + "/shared/" + digest.Hex();
}

// Returns a name that changes when the file is written to.
std::string StampOf(const struct stat& info) {
  return fmt::format("{}.{}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// Returns the path of a shared blob that is as it was when it was shared, else "".
std::string FindShared(const std::string& root, const Digest& digest) {
  const std::string folder = SharedFolder(root, digest);
  const StatusOr<std::vector<std::string>> names = ListDir(folder);
  if (!names.ok()) return "";
  for (const std::string& name : *names) {
    const std::string path = folder + "/" + name;
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && StampOf(info) == name) return path;
  }
  return "";
}

// Returns the blob's path in this folder, or "".
std::string Find(const std::string& root, const Digest& digest) {
  const std::string path = PathIn(root, digest);
  return FileExists(path) ? path : FindShared(root, digest);
}

// Whether both are names of one file.
bool IsSameInode(const std::string& a, const std::string& b) {
  struct stat x {
  }, y{};
  return ::lstat(a.c_str(), &x) == 0 && ::lstat(b.c_str(), &y) == 0 && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

// Makes the folder `path` in `root`, unless it exists, and makes its name durable.
int MakeFolder(const std::string& root, const std::string& path) {
  const int error = file_ops::MakeDir(path);
  if (error == EEXIST) return 0;
  return error != 0 ? error : file_ops::SyncDir(root);
}

}  // namespace

StatusOr<std::shared_ptr<BlobDir>> BlobDir::Open(const std::string& root,
                                                 const std::string& below) {
  AG_TRY(MakeDirs(TempFolder(root)), "blobs {}", root);
  RemoveAbandoned(root);
  return std::shared_ptr<BlobDir>(new BlobDir(root, below));
}

StatusOr<Digest> BlobDir::Put(std::string_view bytes, Durable durable) {
  const Digest digest = Sha256(bytes);
  if (HasSize(PathIn(root_, digest), bytes.size())) {
    Touch(digest);
    return digest;
  }
  AG_LET(const std::unique_ptr<Writer> writer, NewWriter());
  AG_TRY(writer->Write(bytes));
  AG_TRY(writer->Publish(digest, durable));
  return digest;
}

Status BlobDir::Sync() {
  const int error = file_ops::SyncFileSystem(root_);
  return error == 0 ? OkStatus() : BlobsWriteError(root_, error);
}

StatusOr<std::shared_ptr<const MappedFile>> BlobDir::Get(const Digest& digest) const {
  StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(PathOf(digest));
  if (file.status().code() == StatusCode::kNotFound) {
    return Err(StatusCode::kNotFound, "blob {}: not in {}", digest.Hex(), root_);
  }
  return file;
}

bool BlobDir::Has(const Digest& digest) const { return FileExists(PathOf(digest)); }

Status BlobDir::Adopt(const Digest& digest) {
  if (!Find(root_, digest).empty()) {
    Touch(digest);
    return OkStatus();
  }
  AG_LET(const std::shared_ptr<const MappedFile> file, Get(digest));
  return Put(file->bytes()).status();
}

Status BlobDir::Share(const Digest& digest, const std::string& path) {
  const auto no_link = [&] {
    return Err(StatusCode::kUnimplemented, "blob {} cannot be linked as {}", digest.Hex(), path);
  };
  const std::string from = Find(root_, digest);
  if (from.empty()) return no_link();
  if (IsSameInode(from, path)) return MoveToShared(digest, from);
  AG_TRY(Verify(digest));
  const std::string link = fmt::format("{}.partial-{}", path, ::getpid());
  const PartialFile unfinished(link);
  file_ops::Remove(link);
  if (file_ops::Link(from, link) != 0) return no_link();
  Status shared = MoveToShared(digest, from);
  if (shared.ok()) {
    const int error = file_ops::Rename(link, path);
    if (error == 0) return OkStatus();
    shared = FromErrno(error, "write " + path);
  }
  file_ops::Remove(link);
  return shared;
}

// Moves the file `from`, which somebody else may write to from now on, to where shared blobs are.
// The new name holds before the file gets its time, and the old one until then.
Status BlobDir::MoveToShared(const Digest& digest, const std::string& from) {
  const std::string folder = SharedFolder(root_, digest);
  AG_TRY(MakeDirs(folder));
  AG_LET(std::vector<std::string> old, ListDir(folder));
  struct stat info {};
  if (::stat(from.c_str(), &info) != 0) return BlobsWriteError(root_, errno);
  // In nanoseconds: the kernel sets times in ticks of milliseconds, so no later write gives this.
  ::clock_gettime(CLOCK_REALTIME, &info.st_mtim);
  const std::string path = folder + "/" + StampOf(info);
  const auto set_times = [&] {
    const struct timespec times[] = {info.st_mtim, info.st_mtim};
    const bool is_set =
        ::chmod(path.c_str(), 0644) == 0 && ::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0;
    return is_set ? 0 : errno;
  };
  int error = file_ops::Link(from, path);
  if (error == 0) error = set_times();
  if (error == 0 && !from.starts_with(folder)) error = file_ops::Remove(from);
  if (error != 0) return BlobsWriteError(root_, error);
  for (const std::string& other : old) file_ops::Remove(folder + "/" + other);
  error = file_ops::SyncDir(folder);
  return error == 0 ? OkStatus() : BlobsWriteError(root_, error);
}

std::string BlobDir::PathOf(const Digest& digest) const {
  std::string path = Find(root_, digest);
  if (path.empty() && !below_.empty()) path = Find(below_, digest);
  return path.empty() ? PathIn(root_, digest) : path;
}

Status BlobDir::Verify(const Digest& digest) const {
  AG_LET(const std::shared_ptr<const MappedFile> file, Get(digest));
  // Not through the mapping: its pages would stay in memory.
  AG_LET(const Digest found, Sha256OfFile(PathOf(digest)));
  if (found == digest) return OkStatus();
  return Err(StatusCode::kDataLoss, "blob {}: its {} bytes in {} have the digest {}", digest.Hex(),
             file->bytes().size(), root_, found.Hex());
}

Status BlobDir::Remove(const Digest& digest) {
  const std::string path = Find(root_, digest);
  const int error = path.empty() ? ENOENT : file_ops::Remove(path);
  if (error == ENOENT) {
    return Err(StatusCode::kNotFound, "blob {}: not in {}", digest.Hex(), root_);
  }
  return error == 0 ? OkStatus() : BlobsWriteError(root_, error);
}

StatusOr<std::vector<Digest>> BlobDir::List() const {
  std::vector<Digest> digests;
  AG_LET(const std::vector<std::string> folders, ListDir(root_));
  for (const std::string& folder : folders) {
    if (folder.size() != 2) continue;
    AG_LET(const std::vector<std::string> names, ListDir(root_ + "/" + folder));
    for (const std::string& name : names) {
      const StatusOr<Digest> digest = ParseDigest(name);
      if (digest.ok() && digest->Hex() == name && name.starts_with(folder)) {
        digests.push_back(*digest);
      }
    }
  }
  const StatusOr<std::vector<std::string>> shared = ListDir(root_ + "/shared");
  for (const std::string& name : shared.value_or(std::vector<std::string>())) {
    const StatusOr<Digest> digest = ParseDigest(name);
    if (digest.ok() && !FindShared(root_, *digest).empty()) digests.push_back(*digest);
  }
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

StatusOr<std::vector<BlobDir::Entry>> BlobDir::Entries() const {
  AG_LET(const std::vector<Digest> digests, List());
  std::vector<Entry> entries;
  for (const Digest& digest : digests) {
    struct stat info {};
    // One that has gone meanwhile is left out.
    if (::stat(Find(root_, digest).c_str(), &info) != 0) continue;
    entries.push_back({digest, info.st_size, info.st_mtim.tv_sec});
  }
  return entries;
}

bool BlobDir::IsAsBefore(const Entry& entry) const {
  struct stat info {};
  const bool is_there = ::stat(Find(root_, entry.digest).c_str(), &info) == 0;
  return is_there && info.st_mtim.tv_sec == entry.used_unix_seconds;
}

StatusOr<bool> BlobDir::RemoveUnused(const Entry& entry) {
  if (!IsAsBefore(entry)) return false;
  AG_TRY(Remove(entry.digest));
  return true;
}

void BlobDir::Touch(const Digest& digest) const {
  (void)::utimensat(AT_FDCWD, PathIn(root_, digest).c_str(), nullptr, 0);
}

StatusOr<std::unique_ptr<BlobDir::Writer>> BlobDir::NewWriter() {
  static std::atomic<uint64_t> next{0};
  // Skips names of writers that died, and a file that Open locked between its creation and our
  // lock.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::string path = fmt::format("{}/{}.{}", TempFolder(root_), ::getpid(), next++);
    Fd fd;
    const int error = file_ops::CreateNew(path, 0444, fd);
    if (error == EEXIST) continue;
    if (error != 0) return BlobsWriteError(root_, error);
    if (!OwnsFile(fd.get())) continue;
    return std::unique_ptr<Writer>(new Writer(root_, std::move(path), std::move(fd)));
  }
  return BlobsWriteError(root_, EEXIST);
}

BlobDir::Writer::~Writer() {
  if (!path_.empty()) file_ops::Remove(path_);  // The next Open removes a file that stays.
}

Status BlobDir::Writer::Append(std::string_view bytes) {
  hasher_.Update(bytes);
  return Write(bytes);
}

Status BlobDir::Writer::Write(std::string_view bytes) {
  if (const int error = file_ops::AppendAll(fd_.get(), bytes)) return BlobsWriteError(root_, error);
  size_ += bytes.size();
  return OkStatus();
}

Status BlobDir::Writer::TakeIn() {
  constexpr int64_t kPieceBytes = int64_t{1} << 20;
  AG_LET(FileReader file, FileReader::Open(path_));
  for (auto at = static_cast<int64_t>(size_); at < file.size(); at += kPieceBytes) {
    const int64_t size = std::min(file.size() - at, kPieceBytes);
    AG_LET(const std::string_view piece,
           file.Read(static_cast<uint64_t>(at), static_cast<size_t>(size)));
    hasher_.Update(piece);
  }
  size_ = static_cast<uint64_t>(file.size());
  return OkStatus();
}

StatusOr<Digest> BlobDir::Writer::Commit(Durable durable) {
  const Digest found = hasher_.Finish();
  AG_TRY(Publish(found, durable));
  return found;
}

Status BlobDir::Writer::Commit(const Digest& expected, Durable durable) {
  const Digest found = hasher_.Finish();
  if (found != expected) {
    return Err(StatusCode::kInvalidArgument, "blob: expected digest {}, got {} of {} bytes",
               expected.Hex(), found.Hex(), size_);
  }
  return Publish(found, durable);
}

Status BlobDir::Writer::Publish(const Digest& digest, Durable durable) {
  const bool now = durable == Durable::kNow;
  const std::string hex = digest.Hex();
  const std::string folder = FolderOf(root_, hex);
  const std::string final_path = folder + "/" + hex;
  if (HasSize(final_path, size_)) {
    (void)::utimensat(AT_FDCWD, final_path.c_str(), nullptr, 0);  // As Touch.
    return OkStatus();  // The destructor removes our copy.
  }
  if (const int error = now ? file_ops::Sync(fd_.get()) : 0) return BlobsWriteError(root_, error);
  if (const int error = MakeFolder(root_, folder)) return BlobsWriteError(root_, error);
  if (const int error = file_ops::Rename(path_, final_path)) return BlobsWriteError(root_, error);
  path_.clear();
  if (const int error = now ? file_ops::SyncDir(folder) : 0) return BlobsWriteError(root_, error);
  return OkStatus();
}

}  // namespace ag
