#include "server/jobs/backup.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/file_ops.h"
#include "base/file_reader.h"
#include "base/private_dir.h"
#include "base/write_pieces.h"
#include "server/store/open_store.h"

namespace ag {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

// Copies one file, durably, to a name that appears when it is whole.
Status CopyFile(const std::string& from, const std::string& to) {
  AG_LET(FileReader file, FileReader::Open(from));
  return WriteFileInPieces(to, [&](const WritePiece& write) -> Status {
    for (int64_t begin = 0; begin < file.size(); begin += kPieceBytes) {
      AG_LET(const std::string_view piece,
             file.Read(begin, std::min(kPieceBytes, file.size() - begin)));
      AG_TRY(write(piece));
    }
    return OkStatus();
  });
}

// Holds the store's lock where there is one, so that no process writes meanwhile.
StatusOr<std::optional<FileLock>> LockStore(const std::string& folder) {
  const std::string path = folder + "/lock";
  if (!FileExists(path)) return std::optional<FileLock>();
  auto lock = FileLock::Try(path, FileLock::Mode::kExclusive);
  AG_TRY(lock.status(), "store {}", folder);
  return std::optional<FileLock>(*std::move(lock));
}

// A store, its rows opened from copies, with what only a log of theirs holds.
struct Opened {
  TempDir copies;
  Store rows;
  std::shared_ptr<BlobDir> blobs;
};

StatusOr<Opened> OpenCopies(const std::string& folder, Clock& clock, StoreFacts* facts) {
  AG_LET(TempDir copies, TempDir::Make("store-"));
  for (const std::string& name : FilesOfStore(folder)) {
    AG_TRY(CopyFile(folder + "/" + name, copies.path() + "/" + name));
  }
  Opened opened{.copies = std::move(copies)};
  const std::string& at = opened.copies.path();
  AG_LET(opened.rows, OpenStore({.folder = at}, clock));
  if (opened.rows.cache->was_corrupt()) facts->problems.push_back("the cache is corrupt");
  // A folder without blobs stays as it is: each that is named is missing.
  const bool has_blobs = FileExists(folder + "/blobs");
  AG_LET(opened.blobs, BlobDir::Open((has_blobs ? folder : at) + "/blobs"));
  return opened;
}

Status CountRows(const Store& rows, StoreFacts* facts) {
  AG_LET(const auto counts, rows.jobs->CountByState());
  for (const JobsStore::StateCount& count : counts) facts->jobs += count.jobs;
  AG_LET(const auto unfinished, rows.jobs->Unfinished());
  facts->unfinished = static_cast<int64_t>(unfinished.size());
  AG_LET(const CacheStats stats, rows.cache->Stats());
  facts->measurements = stats.measurements;
  facts->answers = stats.models;
  return OkStatus();
}

}  // namespace

Status SaveDatabases(const JobStores& stores, const std::string& folder) {
  // A job's row is written after its blobs and its answer's row after the job's, so the list of
  // blobs, which is read after these, has all that they name.
  AG_TRY(stores.jobs->SaveCopy(folder));
  return stores.cache->SaveCopy(folder);
}

StatusOr<StoreFacts> CheckStore(const std::string& folder, Clock& clock) {
  if (!HasStore(folder)) {
    return Err(StatusCode::kNotFound, "{} is no store and no backup: it has no jobs", folder);
  }
  AG_LET(const auto lock, LockStore(folder));
  StoreFacts facts;
  AG_LET(const Opened opened, OpenCopies(folder, clock, &facts));
  AG_TRY(CountRows(opened.rows, &facts));
  AG_LET(const auto entries, opened.blobs->Entries());
  for (const BlobDir::Entry& entry : entries) {
    ++facts.blobs;
    facts.bytes += entry.bytes;
    if (const Status sound = opened.blobs->Verify(entry.digest); !sound.ok()) {
      facts.problems.push_back(fmt::format("blob {}: {}", entry.digest.Hex(), Message(sound)));
    }
  }
  AG_LET(const auto named, NamedBlobs(*opened.rows.jobs));
  for (const auto& [hex, who] : named) {
    const auto digest = ParseDigest(hex);
    if (digest.ok() && opened.blobs->Has(*digest)) continue;
    facts.problems.push_back(fmt::format("blob {}, which {} names: it is missing", hex, who));
  }
  return facts;
}

StatusOr<StoreFacts> RestoreStore(const std::string& backup, const std::string& folder,
                                  Clock& clock) {
  if (HasStore(folder)) {
    return Err(StatusCode::kFailedPrecondition,
               "{} has a store already; move it away, or name another folder", folder);
  }
  AG_LET(StoreFacts facts, CheckStore(backup, clock));
  if (!facts.problems.empty()) {
    return Err(StatusCode::kDataLoss, "backup {}: {} ({} problems; autograph store verify has all)",
               backup, facts.problems[0], facts.problems.size());
  }
  AG_TRY(MakePrivateDir(folder));
  AG_LET(const auto lock, FileLock::TryExclusive(folder + "/lock", "autograph store restore"));
  AG_LET(const auto from, BlobDir::Open(backup + "/blobs"));
  AG_LET(const auto to, BlobDir::Open(folder + "/blobs"));
  AG_LET(const auto entries, from->Entries());
  for (const BlobDir::Entry& entry : entries) {
    if (to->Has(entry.digest)) continue;
    AG_LET(const auto bytes, from->Get(entry.digest));
    AG_TRY(to->Put(bytes->bytes(), BlobDir::Durable::kAfterSync).status());
  }
  AG_TRY(to->Sync());
  // What a call that was interrupted left, perhaps of another backup.
  for (const std::string& name : FilesOfStore(folder)) {
    const std::string path = folder + "/" + name;
    if (const int error = file_ops::Remove(path); error != 0) return FromErrno(error, path);
  }
  std::vector<std::string> names = FilesOfStore(backup);
  std::ranges::reverse(names);
  for (const std::string& name : names) {
    const Status copied = CopyFile(backup + "/" + name, folder + "/" + name);
    if (!copied.ok()) file_ops::Remove(folder + "/" + name);  // It may be there, but not durable.
    AG_TRY(copied);
  }
  return facts;
}

}  // namespace ag
