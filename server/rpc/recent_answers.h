// Answers that were given lately, by the bytes of their requests, so that a repeated request costs
// about as much as the smallest call. Such an answer is given again only while nothing has changed
// that it depends on: which workers offer what, what is remembered, and whether its files are
// there, which is looked at once a second. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include <google/protobuf/unknown_field_set.h>

#include "autograph/v1/optimizer.pb.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace ag {

class RecentAnswers {
 public:
  using HasFiles = std::function<bool(const autograph::v1::Job& answer)>;

  RecentAnswers(Clock& clock, HasFiles has_files)
      : clock_(clock), has_files_(std::move(has_files)) {}

  // What answers depend on: Dispatcher::offers_revision and CacheStore::answers_revision, read
  // before the answer was found.
  struct Revision {
    uint64_t offers = 0, answers = 0;
    bool operator==(const Revision&) const = default;
  };

  // An answer that was kept. Its fields are bytes as well: to write them costs a copy, where a
  // message with the same fields is made, written and taken down piece by piece.
  class Answer {
   public:
    explicit Answer(const autograph::v1::Job& job);
    const autograph::v1::Job& job() const { return job_; }
    // Makes *response, which is empty, what is written as the answer, as of `unix_seconds`. Its
    // fields other than the times can be read by the receiver alone.
    void WriteTo(double unix_seconds, autograph::v1::Job* response) const;

   private:
    autograph::v1::Job job_;
    google::protobuf::UnknownFieldSet fields_;  // Of job_, but for its times.
  };

  // Returns the key of a request of a tenant; "": an answer to it is not kept (it has a request_id,
  // or wants to be searched again).
  static std::string KeyOf(const autograph::v1::OptimizeRequest& request,
                           const std::string& tenant);
  // Returns the answer that was kept under the key; null: none, or it is of another revision, or
  // its files are gone.
  std::shared_ptr<const Answer> Find(const std::string& key, const Revision& now);
  // Keeps an answer. Leaves out those of more than 64 KiB; forgets the oldest of more than 1,000.
  void Keep(const std::string& key, const Revision& revision, const autograph::v1::Job& job);

 private:
  struct Kept {
    Revision revision;
    std::shared_ptr<const Answer> answer;
    std::list<std::string>::iterator place;  // In order_.
    Nanos files_seen;                        // When its files were there.
  };
  using Answers = std::unordered_map<std::string, Kept>;
  void Forget(Answers::iterator kept) AG_REQUIRES(mutex_);

  Clock& clock_;
  const HasFiles has_files_;
  Mutex mutex_;
  Answers kept_ AG_GUARDED_BY(mutex_);
  std::list<std::string> order_ AG_GUARDED_BY(mutex_);  // Keys, the oldest first.
};

}  // namespace ag
