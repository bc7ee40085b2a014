#include "server/rpc/recent_answers.h"

namespace ag {

namespace v1 = autograph::v1;

namespace {

constexpr size_t kBytesMax = size_t{64} << 10;
constexpr size_t kKeptMax = 1000;
constexpr Nanos kFilesPeriod = std::chrono::seconds(1);

}  // namespace

RecentAnswers::Answer::Answer(const v1::Job& job) : job_(job) {
  v1::Job timeless = job;
  timeless.clear_created_unix_seconds();
  timeless.clear_finished_unix_seconds();
  fields_.ParseFromString(timeless.SerializeAsString());
}

void RecentAnswers::Answer::WriteTo(double unix_seconds, v1::Job* response) const {
  response->set_created_unix_seconds(unix_seconds);
  response->set_finished_unix_seconds(unix_seconds);
  response->GetReflection()->MutableUnknownFields(response)->MergeFrom(fields_);
}

std::string RecentAnswers::KeyOf(const v1::OptimizeRequest& request, const std::string& tenant) {
  const bool is_kept =
      request.request_id().empty() && !request.skip_model_cache() && !request.validate_only();
  if (!is_kept) return "";
  if (!request.has_client()) return tenant + "\n" + request.SerializeAsString();
  v1::OptimizeRequest of_anybody = request;
  of_anybody.clear_client();
  return tenant + "\n" + of_anybody.SerializeAsString();
}

void RecentAnswers::Forget(Answers::iterator kept) {
  order_.erase(kept->second.place);
  kept_.erase(kept);
}

std::shared_ptr<const RecentAnswers::Answer> RecentAnswers::Find(const std::string& key,
                                                                 const Revision& now) {
  const Nanos time = clock_.Now();
  MutexLock lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return nullptr;
  Kept& kept = found->second;
  const bool is_due = time - kept.files_seen >= kFilesPeriod;
  if (kept.revision == now && (!is_due || has_files_(kept.answer->job()))) {
    if (is_due) kept.files_seen = time;
    return kept.answer;
  }
  Forget(found);
  return nullptr;
}

void RecentAnswers::Keep(const std::string& key, const Revision& revision, const v1::Job& job) {
  const Nanos time = clock_.Now();
  if (key.empty() || job.ByteSizeLong() > kBytesMax || key.size() > kBytesMax) return;
  MutexLock lock(mutex_);
  if (kept_.contains(key)) return;  // Another call has found it at the same time.
  order_.push_back(key);
  kept_[key] = {revision, std::make_shared<const Answer>(job), std::prev(order_.end()), time};
  if (kept_.size() <= kKeptMax) return;
  Forget(kept_.find(order_.front()));
}

}  // namespace ag
