// The device seconds that tenants have used, and what each may use in a day. A count by hours,
// kept in the store, so that neither a restart nor a deleted job forgets it. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/store/jobs_store.h"

namespace ag {

class DeviceUse {
 public:
  // Returns what a tenant may use in 24 hours, in seconds; 0: without a limit.
  using QuotaOf = std::function<double(const std::string& tenant)>;

  // Reads what was used within the last day.
  static StatusOr<std::unique_ptr<DeviceUse>> Open(JobsStore& db, Clock& clock, QuotaOf quota_of);

  // Counts time that a worker spent for the tenant; nothing without a name. Stored before it
  // returns OK.
  Status Add(const std::string& tenant, Nanos time);
  double UsedSeconds(const std::string& tenant);  // In the last 24 hours.

  // Returns OK where the tenant has something left. kResourceExhausted, QUOTA_EXCEEDED: it has not;
  // the pause is the time until an hour of what it used leaves the day.
  Status Check(const std::string& tenant);

 private:
  DeviceUse(JobsStore& db, Clock& clock, QuotaOf quota_of)
      : db_(db), clock_(clock), quota_of_(std::move(quota_of)) {}
  int64_t Hour() const;
  void Forget(std::map<int64_t, double>& hours) const;

  JobsStore& db_;
  Clock& clock_;
  const QuotaOf quota_of_;
  Mutex mutex_;
  // Seconds by tenant and hour since 1970.
  std::map<std::string, std::map<int64_t, double>> used_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
