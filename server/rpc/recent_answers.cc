#include "server/rpc/recent_answers.h"

namespace ag {

namespace v1 = autograph::v1;

namespace {

constexpr size_t kBytesMax = size_t{64} << 10;
constexpr size_t kKeptMax = 1000;

}  // namespace

std::string RecentAnswers::KeyOf(const v1::OptimizeRequest& request, const std::string& tenant) {
  const bool is_kept =
      request.request_id().empty() && !request.skip_model_cache() && !request.validate_only();
  if (!is_kept) return "";
  if (!request.has_client()) return tenant + "\n" + request.SerializeAsString();
  v1::OptimizeRequest of_anybody = request;
  of_anybody.clear_client();
  return tenant + "\n" + of_anybody.SerializeAsString();
}

std::shared_ptr<const v1::Job> RecentAnswers::Find(const std::string& key, const Revision& now) {
  MutexLock lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return nullptr;
  if (found->second.revision == now) return found->second.job;
  order_.erase(found->second.place);
  kept_.erase(found);
  return nullptr;
}

void RecentAnswers::Keep(const std::string& key, const Revision& revision, const v1::Job& job) {
  if (key.empty() || job.ByteSizeLong() > kBytesMax || key.size() > kBytesMax) return;
  MutexLock lock(mutex_);
  if (kept_.contains(key)) return;  // Another call has found it at the same time.
  order_.push_back(key);
  kept_[key] = {revision, std::make_shared<const v1::Job>(job), std::prev(order_.end())};
  if (kept_.size() <= kKeptMax) return;
  kept_.erase(order_.front());
  order_.pop_front();
}

}  // namespace ag
