// What Prometheus scrapes (docs/protocol.md lists the names): read from the parts at each scrape.
#pragma once

#include <memory>
#include <string>

#include "server/dispatcher.h"
#include "server/jobs.h"
#include "server/store/cache_db.h"
#include "server/store/jobs_db.h"

namespace ag {

struct MetricsSources {
  Jobs* jobs = nullptr;
  JobsDb* jobs_db = nullptr;
  CacheDb* cache = nullptr;
  Dispatcher* dispatcher = nullptr;
};

// The HTTP endpoint; serves until destroyed.
class MetricsEndpoint {
 public:
  // kUnavailable: cannot listen on `address`.
  static StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const std::string& address,
                                                          const MetricsSources& sources);
  ~MetricsEndpoint();

 private:
  struct State;
  explicit MetricsEndpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ag
