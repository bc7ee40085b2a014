// The metrics that Prometheus scrapes (docs/protocol.md lists the names), read from their sources
// at each scrape. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "server/jobs/jobs.h"
#include "server/store/cache_store.h"
#include "server/store/jobs_store.h"
#include "server/workers/dispatcher.h"

namespace ag {

// What has happened since the start, as counters and histograms. Thread-safe.
class Records {
 public:
  Records();
  ~Records();
  void Ended(const Job& job);
  void Wrote(std::string_view store, Nanos took);  // See StoreOptions::on_write.

 private:
  friend class MetricsEndpoint;
  struct State;
  std::unique_ptr<State> state_;
};

struct MetricsSources {
  Records* records = nullptr;
  Jobs* jobs = nullptr;
  JobsStore* jobs_store = nullptr;
  CacheStore* cache = nullptr;
  Dispatcher* dispatcher = nullptr;
  const std::atomic<int64_t>* answers_given = nullptr;  // That the cache does not count yet.
  // Rows of the cache that were measured again.
  const std::atomic<int64_t>* held = nullptr;
  const std::atomic<int64_t>* drifted = nullptr;
};

// An HTTP endpoint that serves the metrics until it is destroyed.
class MetricsEndpoint {
 public:
  // Starts the endpoint. kUnavailable: cannot listen on `address`.
  static StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const std::string& address,
                                                          const MetricsSources& sources);
  ~MetricsEndpoint();

 private:
  struct State;
  explicit MetricsEndpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ag
