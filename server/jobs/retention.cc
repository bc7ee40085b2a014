#include "server/jobs/retention.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "autograph/v1/optimizer.pb.h"
#include "base/log.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

constexpr int kRowsAtOnce = 200;

// The blobs that a request and a result name.
std::set<std::string> BlobsOf(const v1::OptimizeRequest& request, const std::string& result) {
  std::set<std::string> names = {request.model_digest()};
  for (const v1::InputSet& set : request.inputs()) names.insert(set.digest());
  v1::Result answer;
  if (answer.ParseFromString(result)) {
    names.insert(answer.output_digest());
    names.insert(answer.report_digest());
    for (const v1::WrongRewrite& wrong : answer.wrong_rewrites()) {
      for (const v1::NamedBlob& file : wrong.counter_example().files()) names.insert(file.digest());
    }
  }
  names.erase("");
  return names;
}

v1::OptimizeRequest RequestOf(const JobRow& row) {
  v1::OptimizeRequest request;
  if (!request.ParseFromString(row.request)) LogWarn("jobs/{}: its request does not parse", row.id);
  return request;
}

struct EndedJob {
  int64_t id = 0;
  int64_t finished = 0;
  std::string tenant, model;
  std::set<std::string> blobs;
};

struct Answer {
  std::string key;  // In the store.
  AnswerSubject of;
  std::set<std::string> blobs;
};

// What names blobs. An answer goes with the last job that has its output; one without a job goes
// first.
struct Names {
  std::vector<EndedJob> jobs;  // The oldest first.
  std::vector<Answer> answers;
  std::map<std::string, int> count;  // By blob: how many of all these, and of unfinished jobs.

  void Take(const std::set<std::string>& blobs) {
    for (const std::string& blob : blobs) ++count[blob];
  }
  void Give(const std::set<std::string>& blobs) {
    for (const std::string& blob : blobs) {
      if (--count[blob] == 0) count.erase(blob);
    }
  }
};

// Calls visit(row) for each ended job, the oldest first.
template <class Visit>
Status ForEachEnded(JobsStore& jobs, const Visit& visit) {
  for (int64_t after = 0;;) {
    AG_LET(const auto rows, jobs.Ended(after, kRowsAtOnce));
    for (const JobRow& row : rows) {
      visit(row);
      after = row.id;
    }
    if (rows.size() < kRowsAtOnce) return OkStatus();
  }
}

StatusOr<Names> ReadNames(const JobStores& stores) {
  Names names;
  AG_LET(const auto unfinished, stores.jobs->Unfinished());
  for (const JobRow& row : unfinished) names.Take(BlobsOf(RequestOf(row), row.result));
  AG_TRY(ForEachEnded(*stores.jobs, [&](const JobRow& row) {
    const v1::OptimizeRequest request = RequestOf(row);
    names.jobs.push_back({row.id, row.finished_unix_seconds, row.tenant, request.model_digest(),
                          BlobsOf(request, row.result)});
    names.Take(names.jobs.back().blobs);
  }));
  AG_TRY(stores.cache->ForEachAnswer([&](const CacheStore::StoredAnswer& answer) {
    names.answers.push_back({answer.key, answer.of, BlobsOf({}, answer.result)});
    names.Take(names.answers.back().blobs);
  }));
  return names;
}

class Remover {
 public:
  Remover(const JobStores& stores, Names& names) : stores_(stores), names_(names) {}

  // Marks what `is_old` says of each ended job.
  template <class IsOld>
  void MarkJobs(const IsOld& is_old) {
    for (const EndedJob& job : names_.jobs) {
      if (!marked_jobs_.contains(job.id) && is_old(job)) Mark(job);
    }
  }
  void Mark(const EndedJob& job) {
    marked_jobs_.insert(job.id);
    names_.Give(job.blobs);
  }
  bool HasMarked() const { return !marked_jobs_.empty() || !marked_answers_.empty(); }
  bool IsMarked(const EndedJob& job) const { return marked_jobs_.contains(job.id); }
  // Marks the answers that say so, as above.
  template <class IsOld>
  void MarkAnswers(const IsOld& is_old) {
    for (const Answer& answer : names_.answers) {
      if (marked_answers_.contains(answer.key) || !is_old(answer)) continue;
      marked_answers_.insert(answer.key);
      names_.Give(answer.blobs);
    }
  }

  // Removes the rows that are marked: first those that name blobs, so that a crash leaves blobs
  // without a name and never names without a blob.
  Status RemoveRows(Removed* removed) {
    AG_TRY(stores_.cache->ForgetModels({marked_answers_.begin(), marked_answers_.end()}));
    AG_TRY(stores_.jobs->Remove({marked_jobs_.begin(), marked_jobs_.end()}));
    removed->answers += static_cast<int64_t>(marked_answers_.size());
    removed->jobs += static_cast<int64_t>(marked_jobs_.size());
    return OkStatus();
  }
  // Leaves one that a job has begun to use since the entries were read: for hundreds of blobs this
  // takes seconds.
  Status RemoveBlob(const BlobDir::Entry& entry, Removed* removed) {
    if (!stores_.blobs->IsAsBefore(entry)) return OkStatus();
    // First the owners: a blob without any is found again after a crash, owners without a blob are
    // not, and would see the same bytes when another tenant sends them.
    AG_TRY(stores_.jobs->DisownBlob(entry.digest.Hex(), ""));
    AG_LET(const bool is_removed, stores_.blobs->RemoveUnused(entry));
    if (!is_removed) return OkStatus();
    ++removed->blobs;
    removed->bytes += entry.bytes;
    return OkStatus();
  }

 private:
  const JobStores& stores_;
  Names& names_;
  std::set<int64_t> marked_jobs_;
  std::set<std::string> marked_answers_;
};

int64_t InSeconds(Nanos duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

// Marks the oldest jobs, with their answers, until the blobs that are named have at most so many
// bytes.
void MarkForSpace(const std::vector<BlobDir::Entry>& entries, int64_t bytes_max, Names& names,
                  Remover& remover) {
  std::map<std::string, int64_t> bytes;
  int64_t all = 0;
  for (const BlobDir::Entry& entry : entries) {
    bytes[entry.digest.Hex()] = entry.bytes;
    if (names.count.contains(entry.digest.Hex())) all += entry.bytes;
  }
  const auto free_of = [&](const std::set<std::string>& blobs) {
    for (const std::string& blob : blobs) {
      if (!names.count.contains(blob)) all -= bytes[blob];
    }
  };
  for (size_t i = 0; i < names.jobs.size() && all > bytes_max; ++i) {
    const EndedJob& job = names.jobs[i];
    if (remover.IsMarked(job)) continue;
    remover.Mark(job);
    remover.MarkAnswers([&](const Answer& answer) {
      return std::ranges::all_of(answer.blobs,
                                 [&](const auto& b) { return job.blobs.contains(b); });
    });
    free_of(job.blobs);
  }
}

// Marks the jobs that ended too long ago, and the answers whose jobs have all gone.
void MarkForAge(int64_t oldest, Names& names, Remover& remover) {
  std::set<std::string> kept;
  for (const EndedJob& job : names.jobs) {
    if (job.finished >= oldest) kept.insert(job.blobs.begin(), job.blobs.end());
  }
  std::set<std::string> old;
  remover.MarkJobs([&](const EndedJob& job) {
    if (job.finished < oldest) old.insert(job.blobs.begin(), job.blobs.end());
    return job.finished < oldest;
  });
  remover.MarkAnswers([&](const Answer& answer) {
    const auto has = [&](const std::set<std::string>& all) {
      return std::ranges::any_of(answer.blobs, [&](const auto& b) { return all.contains(b); });
    };
    return has(old) && !has(kept);
  });
}

void MarkOld(const std::vector<BlobDir::Entry>& entries, const RetentionOptions& options,
             int64_t now, Names& names, Remover& remover) {
  std::ranges::sort(names.jobs, {}, &EndedJob::finished);
  if (options.job_age_max > Nanos{0}) {
    MarkForAge(now - InSeconds(options.job_age_max), names, remover);
  }
  if (options.blob_bytes_max > 0) MarkForSpace(entries, options.blob_bytes_max, names, remover);
}

int64_t UnusedSince(const RetentionOptions& options, int64_t now, int64_t in_use_since) {
  const int64_t since = now - InSeconds(options.blob_pause);
  return in_use_since > 0 ? std::min(since, in_use_since - 1) : since;
}

bool IsUnused(const BlobDir::Entry& entry, const Names& names, int64_t unused_since) {
  return !names.count.contains(entry.digest.Hex()) && entry.used_unix_seconds <= unused_since;
}

}  // namespace

StatusOr<std::map<std::string, std::string>> NamedBlobs(JobsStore& jobs) {
  std::map<std::string, std::string> named;
  const auto add = [&](const std::set<std::string>& blobs, const std::string& who) {
    for (const std::string& blob : blobs) named.emplace(blob, who);
  };
  AG_LET(const auto unfinished, jobs.Unfinished());
  for (const JobRow& row : unfinished) {
    add(BlobsOf(RequestOf(row), row.result), fmt::format("jobs/{}", row.id));
  }
  AG_TRY(ForEachEnded(jobs, [&](const JobRow& row) {
    add(BlobsOf({}, row.result), fmt::format("jobs/{}", row.id));
  }));
  return named;
}

StatusOr<bool> HasOld(const JobStores& stores, const RetentionOptions& options, int64_t now,
                      int64_t in_use_since) {
  AG_LET(Names names, ReadNames(stores));
  AG_LET(const auto entries, stores.blobs->Entries());
  Remover remover(stores, names);
  MarkOld(entries, options, now, names, remover);
  const int64_t unused_since = UnusedSince(options, now, in_use_since);
  return remover.HasMarked() || std::ranges::any_of(entries, [&](const BlobDir::Entry& entry) {
           return IsUnused(entry, names, unused_since);
         });
}

StatusOr<Removed> RemoveOld(const JobStores& stores, const RetentionOptions& options, int64_t now,
                            int64_t in_use_since) {
  Removed removed;
  AG_LET(Names names, ReadNames(stores));
  AG_LET(const auto entries, stores.blobs->Entries());
  Remover remover(stores, names);
  MarkOld(entries, options, now, names, remover);
  AG_TRY(remover.RemoveRows(&removed));
  const int64_t unused_since = UnusedSince(options, now, in_use_since);
  for (const BlobDir::Entry& entry : entries) {
    if (IsUnused(entry, names, unused_since)) AG_TRY(remover.RemoveBlob(entry, &removed));
  }
  return removed;
}

StatusOr<Removed> RemoveModel(const JobStores& stores, const Digest& model, const Tenant& tenant) {
  Removed removed;
  AG_LET(Names names, ReadNames(stores));
  AG_LET(const auto entries, stores.blobs->Entries());
  Remover remover(stores, names);
  std::set<std::string> theirs = {model.Hex()};
  for (const EndedJob& job : names.jobs) {
    if (job.model != model.Hex() || !tenant.Sees(job.tenant)) continue;
    theirs.insert(job.blobs.begin(), job.blobs.end());
    remover.Mark(job);
  }
  remover.MarkAnswers([&](const Answer& answer) {
    const bool fits = answer.of.model == model.Hex() && tenant.Sees(answer.of.tenant);
    if (fits) theirs.insert(answer.blobs.begin(), answer.blobs.end());
    return fits;
  });
  AG_TRY(remover.RemoveRows(&removed));
  for (const BlobDir::Entry& entry : entries) {
    const std::string hex = entry.digest.Hex();
    if (!theirs.contains(hex)) continue;
    if (!tenant.sees_all) AG_TRY(stores.jobs->DisownBlob(hex, tenant.name));
    // Another tenant that has sent the same bytes keeps them.
    AG_LET(const bool is_others, stores.jobs->IsBlobOwned(hex));
    const bool stays = names.count.contains(hex) || (!tenant.sees_all && is_others);
    if (!stays) AG_TRY(remover.RemoveBlob(entry, &removed));
  }
  return removed;
}

}  // namespace ag
