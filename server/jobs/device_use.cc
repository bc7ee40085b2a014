#include "server/jobs/device_use.h"

#include <algorithm>

#include "base/reason.h"

namespace ag {
namespace {

constexpr int64_t kHourSeconds = 3600;
constexpr int64_t kHoursOfDay = 24;

}  // namespace

int64_t DeviceUse::Hour() const { return clock_.UnixSeconds() / kHourSeconds; }

// The hour that is not over yet is the 24th.
void DeviceUse::Forget(std::map<int64_t, double>& hours) const {
  hours.erase(hours.begin(), hours.lower_bound(Hour() - kHoursOfDay + 1));
}

StatusOr<std::unique_ptr<DeviceUse>> DeviceUse::Open(JobsStore& db, Clock& clock,
                                                     QuotaOf quota_of) {
  std::unique_ptr<DeviceUse> use(new DeviceUse(db, clock, std::move(quota_of)));
  AG_LET(const auto rows, db.DeviceUseSince(use->Hour() - kHoursOfDay + 1));
  MutexLock lock(use->mutex_);
  for (const JobsStore::HourOfUse& row : rows) use->used_[row.tenant][row.hour] = row.seconds;
  return use;
}

Status DeviceUse::Add(const std::string& tenant, Nanos time) {
  if (tenant.empty() || time <= Nanos{0}) return OkStatus();
  const double seconds = std::chrono::duration<double>(time).count();
  const int64_t hour = Hour();
  {
    MutexLock lock(mutex_);
    Forget(used_[tenant]);
    used_[tenant][hour] += seconds;
  }
  return db_.AddDeviceUse({tenant, hour, seconds}, hour - kHoursOfDay + 1);
}

double DeviceUse::UsedSeconds(const std::string& tenant) {
  MutexLock lock(mutex_);
  const auto found = used_.find(tenant);
  if (found == used_.end()) return 0;
  Forget(found->second);
  double sum = 0;
  for (const auto& [hour, seconds] : found->second) sum += seconds;
  return sum;
}

Status DeviceUse::Check(const std::string& tenant) {
  const double quota = tenant.empty() ? 0 : quota_of_(tenant);
  if (quota <= 0) return OkStatus();
  const double used = UsedSeconds(tenant);
  if (used < quota) return OkStatus();
  MutexLock lock(mutex_);
  double left = used;
  int64_t free_hour = Hour();
  for (const auto& [hour, seconds] : used_[tenant]) {  // Until enough of it has left the day.
    left -= seconds;
    free_hour = hour + kHoursOfDay;
    if (left < quota) break;
  }
  const int64_t pause = std::max<int64_t>(free_hour * kHourSeconds - clock_.UnixSeconds(), 1);
  return RetryAfter(
      std::chrono::seconds(pause),
      Because(Reason::kQuotaExceeded,
              Err(StatusCode::kResourceExhausted,
                  "{} has used {:.0f} of its {:.0f} device seconds of a day; more in {} min",
                  tenant, used, quota, (pause + 59) / 60)));
}

}  // namespace ag
