// cache.db: group measurements, failed measurements and whole answers, kept across requests
// (docs/store.md). Losing it is harmless: a corrupt row is a miss, a corrupt file is set aside and
// made anew. What a call acknowledged survives a kill -9; a power cut may lose the last writes. One
// process opens the file; another process reads its snapshot, below a cache of its own.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "plan/measurement.h"
#include "server/store/group_cache.h"

namespace ag {

struct CacheStats {
  int64_t measurements = 0;
  int64_t failures = 0;
  int64_t models = 0;
  int64_t hits = 0;  // Since the cache was made.
  int64_t misses = 0;
  int64_t answers = 0;  // Whole answers that were given since then.
  int64_t bytes = 0;
  std::vector<std::pair<Environment, int64_t>> environments;  // Sorted.
};

// What an answer is looked up by.
struct AnswerSubject {
  std::string model;  // SHA-256 of the ONNX file, in hexadecimal digits.
  std::string device;
  Environment environment;
  std::string tenant;  // Whose it is; "": made without a token.
};

struct ModelAnswer {
  std::string key_text;  // Canonical text of everything that the answer depends on.
  std::string result;    // Encoded by server/.
  Digest output;
  AnswerSubject of = {};  // Parts of key_text.
};

struct CacheDbOptions {
  std::string path;
  std::string vfs;                               // Tests only.
  Nanos failure_expiry{std::chrono::hours(24)};  // A failure is tried again after this.
  std::string snapshot;                          // Where WriteSnapshot writes; "": nowhere.
  // Part of every key: rows and answers of another namespace are neither found, listed nor counted.
  std::string cache_namespace;
  // The snapshot of another process's cache: its rows are found here too, and it is never written.
  // When it cannot be read it is left out, see base(). "": none. REQUIRES: `path` names no file
  // yet.
  std::string base;
};

// The result of opening CacheDbOptions::base.
struct CacheBase {
  Status status;  // kNotFound: no snapshot there; else why it cannot be read.
  int64_t measurements = 0;
};

class CacheDb : public GroupCache {
 public:
  // Opens or creates the file. kFailedPrecondition: newer schema, or read-only. Renames a corrupt
  // file to <path>.corrupt-N and one of an older schema to <path>.old-N, with a warning.
  static StatusOr<std::unique_ptr<CacheDb>> Open(const CacheDbOptions& options, Clock& clock);
  ~CacheDb() override;

  std::optional<CacheRow> Find(const Digest& key, std::string_view problem,
                               const Environment& environment) override;
  Status Put(const CacheRow& row) override;
  Status Count(int64_t hits, int64_t misses, const std::vector<Digest>& keys) override;
  Status SetChecked(const Digest& key) override;

  struct ListOptions {
    Environment environment;  // "": all.
    int64_t before_row = 0;   // A row number from Listed; 0: from the newest.
    int rows_max = 50;
  };
  struct Listed {
    int64_t row = 0;
    CacheRow record;
  };
  // Returns the newest rows first, without failures; leaves corrupt rows out.
  StatusOr<std::vector<Listed>> List(const ListOptions& options);
  // Adds the rows that are unknown: all of them, or none after an error.
  struct Imported {
    int64_t added = 0;
    int64_t known = 0;
    int64_t import = 0;  // Its number; 0: nothing was added.
  };
  // `client` is noted with the import. What is added is not checked.
  StatusOr<Imported> Import(const std::vector<CacheRow>& rows, const std::string& client);

  // Deletes the rows that fit every field that is set, and the answers of their environments.
  // kInvalidArgument: none is set.
  struct Filter {
    Environment environment;
    std::string worker;
    int64_t import = 0;
    std::string kernel;
    bool all = false;
  };
  struct Forgotten {
    int64_t measurements = 0;
    int64_t models = 0;
  };
  StatusOr<Forgotten> Forget(const Filter& filter);

  // Returns nothing when the key is unknown, the row is corrupt, or the key's text differs.
  std::optional<ModelAnswer> FindModel(const std::string& key_text);
  Status PutModel(const ModelAnswer& answer);
  // Grows whenever an answer may have changed or gone.
  uint64_t answers_revision() const;
  // Whole answers that fit every field that is set, the newest first. Corrupt ones are left out.
  struct AnswerFilter {
    std::string key;            // How the key begins. "", as below: any.
    std::string model, device;  // Exact.
    Environment environment;
    std::optional<std::string> tenant;  // None: of all.
    std::string before;                 // ListedAnswer::place; "": from the newest.
    int rows_max = 50;
  };
  struct ListedAnswer {
    std::string key;    // The row's.
    std::string place;  // In the list.
    int64_t made_unix_seconds = 0;
    ModelAnswer answer;
  };
  // kInvalidArgument: `before` is no place of a list.
  StatusOr<std::vector<ListedAnswer>> ListModels(const AnswerFilter& filter);
  // Counts answers that were given, by a write.
  Status CountAnswers(int64_t given);
  // An answer of any namespace; `key` is its row's.
  struct StoredAnswer {
    std::string key;
    AnswerSubject of;
    std::string result;
  };
  // Visits each, under the cache's lock.
  Status ForEachAnswer(const std::function<void(const StoredAnswer& answer)>& visit);
  Status ForgetModels(const std::vector<std::string>& keys);

  // Writes a copy of all rows, as they are at this moment, to a file that is not there yet.
  Status SaveCopy(const std::string& path);

  StatusOr<CacheStats> Stats();  // Includes the rows of the base, but `bytes` does not.
  const CacheBase& base() const;

  // True when the snapshot has lacked something for a second. Writing snapshots never takes more
  // than 2 % of the time.
  bool SnapshotIsDue();
  // Writes all rows as one file that appears by rename and is never written again. Other calls wait
  // meanwhile. After an error the old snapshot stays, and only further writes make the next one
  // due.
  Status WriteSnapshot();

 private:
  struct State;
  explicit CacheDb(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ag
