// The store of measurements: group measurements, failed measurements, what was found for regions,
// and whole answers, kept across requests. Losing it is harmless, so an engine may begin anew where
// it cannot read what it had.
//
// What each engine promises (cache_store_test.cc states it for all of them):
// - A row whose bytes do not fit its checksum is a miss, and is in no list.
// - A call that returned OK survives a kill -9; a power cut may lose the last writes.
// - A call is all or nothing, also when it fails or the process ends. The store can be used on
//   after an error.
// - A call sees every call that ended before it began, of any thread.
// - Errors: kInvalidArgument: a measurement that cannot be (CheckMeasurement), or as the function
//   says. What the disk did not do is a fault of the host, as in jobs_store.h.
// - Rows and answers of another namespace than the store was opened with are neither found, listed
//   nor counted, unless a function says so.
// - A store may be opened above what another one left to read: those rows, the ones below, are
//   found, listed and counted too, and are never changed.
// Thread-safe. One process opens a store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "plan/measurement.h"
#include "server/store/group_cache.h"

namespace ag {

struct CacheStats {
  int64_t measurements = 0;
  int64_t failures = 0;
  int64_t models = 0;
  int64_t regions = 0;
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

// The result of reading another store's rows below (StoreOptions::below).
struct CacheBase {
  Status status;  // kNotFound: no snapshot there; else why it cannot be read.
  int64_t measurements = 0;
};

class CacheStore : public GroupCache {
 public:
  struct ListOptions {
    Environment environment;  // "": all.
    int64_t before_row = 0;   // A row number from Listed; 0: from the newest.
    int rows_max = 50;
    std::string key = {};    // How the group's key begins; whole in a namespace. "": all.
    std::string group = {};  // Part of the summary. "": all.
  };
  struct Listed {
    int64_t row = 0;
    CacheRow record;
  };
  // Returns the newest rows first, without failures; leaves corrupt rows out. kInvalidArgument: a
  // part of a key, in a namespace. REQUIRES: rows_max > 0, here and below.
  virtual StatusOr<std::vector<Listed>> List(const ListOptions& options) = 0;
  // Adds the rows that are unknown: all of them, or none after an error.
  struct Imported {
    int64_t added = 0;
    int64_t known = 0;
    int64_t import = 0;  // Its number; 0: nothing was added.
  };
  // `client` is noted with the import. What is added is not checked.
  virtual StatusOr<Imported> Import(const std::vector<CacheRow>& rows,
                                    const std::string& client) = 0;

  // Regions that fit every field that is set, the newest first. Corrupt ones are left out.
  struct RegionFilter {
    Environment environment = {};  // "", as below: all.
    std::string key = {};          // How the key begins.
    int64_t before_row = 0;        // ListedRegion::row; 0: from the newest.
    int rows_max = 50;
  };
  struct ListedRegion {
    int64_t row = 0;
    std::string key;  // The row's.
    RegionRow record;
  };
  virtual StatusOr<std::vector<ListedRegion>> ListRegions(const RegionFilter& filter) = 0;

  // Deletes the rows that fit every field that is set, and the answers and the regions of their
  // environments. kInvalidArgument: none is set.
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
    int64_t regions = 0;
  };
  virtual StatusOr<Forgotten> Forget(const Filter& filter) = 0;

  // Returns nothing when the key is unknown, the row is corrupt, or the key's text differs.
  virtual std::optional<ModelAnswer> FindModel(const std::string& key_text) = 0;
  virtual Status PutModel(const ModelAnswer& answer) = 0;  // Replaces that of the same key.
  // Grows whenever an answer may have changed or gone.
  virtual uint64_t answers_revision() const = 0;
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
  virtual StatusOr<std::vector<ListedAnswer>> ListModels(const AnswerFilter& filter) = 0;
  // Counts answers that were given, by a write.
  virtual Status CountAnswers(int64_t given) = 0;
  // An answer of any namespace; `key` is its row's.
  struct StoredAnswer {
    std::string key;
    AnswerSubject of;
    std::string result;
  };
  // Visits each, those below left out. REQUIRES: `visit` does not call this store.
  virtual Status ForEachAnswer(const std::function<void(const StoredAnswer& answer)>& visit) = 0;
  // Removes the answers of these rows, of any namespace. There need not be such rows.
  virtual Status ForgetModels(const std::vector<std::string>& keys) = 0;

  // As JobsStore::SaveCopy.
  virtual Status SaveCopy(const std::string& folder) = 0;

  virtual StatusOr<CacheStats> Stats() = 0;  // Includes the rows below, but `bytes` does not.
  virtual const CacheBase& base() const = 0;
  // True when what was stored could not be read, and this store began anew.
  virtual bool was_corrupt() const = 0;

  // True when what other processes read of this store (the snapshot) has lacked something for a
  // second, and may be renewed: that never takes more than 2 % of the time. Always false for an
  // engine that other processes can read themselves.
  virtual bool SnapshotIsDue() = 0;
  // Renews it, as of one moment. Other calls wait meanwhile. After an error the old one stays, and
  // only further writes make the next one due.
  virtual Status WriteSnapshot() = 0;
};

}  // namespace ag
