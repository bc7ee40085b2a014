#include "server/rpc/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <map>

#include "server/rpc/listen_error.h"

namespace ag {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class FamilyBuilder {
 public:
  FamilyBuilder(const std::string& name, const std::string& help, MetricType type) {
    family_.name = name;
    family_.help = help;
    family_.type = type;
  }
  FamilyBuilder& Add(double value, const std::string& label = "", const std::string& text = "") {
    ClientMetric metric;
    if (!label.empty()) metric.label.push_back({label, text});
    metric.counter.value = value;
    metric.gauge.value = value;
    family_.metric.push_back(std::move(metric));
    return *this;
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

class Collector : public prometheus::Collectable {
 public:
  explicit Collector(const MetricsSources& sources) : sources_(sources) {}

  std::vector<MetricFamily> Collect() const override {
    std::vector<MetricFamily> families;
    if (const auto counts = sources_.jobs_db->CountByState(); counts.ok()) {
      FamilyBuilder jobs("autograph_jobs", "Jobs in the store by state", MetricType::Gauge);
      for (const auto& [state, count] : *counts)
        jobs.Add(static_cast<double>(count), "state", state);
      families.push_back(jobs.Take());
    }
    const Jobs::Counts counts = sources_.jobs->counts();
    families.push_back(FamilyBuilder("autograph_queue_depth", "Jobs that wait", MetricType::Gauge)
                           .Add(counts.queued)
                           .Take());
    families.push_back(FamilyBuilder("autograph_jobs_running", "Jobs that run", MetricType::Gauge)
                           .Add(counts.running)
                           .Take());
    families.push_back(
        FamilyBuilder("autograph_items_waiting", "Work items without a worker", MetricType::Gauge)
            .Add(sources_.dispatcher->waiting())
            .Take());
    AddCache(families);
    families.push_back(Workers());
    return families;
  }

 private:
  void AddCache(std::vector<MetricFamily>& families) const {
    const auto stats = sources_.cache->Stats();
    if (!stats.ok()) return;
    families.push_back(FamilyBuilder("autograph_cache_lookups_total",
                                     "Group measurements looked up", MetricType::Counter)
                           .Add(static_cast<double>(stats->hits), "result", "hit")
                           .Add(static_cast<double>(stats->misses), "result", "miss")
                           .Take());
    families.push_back(FamilyBuilder("autograph_cache_rows", "Rows in the cache", MetricType::Gauge)
                           .Add(static_cast<double>(stats->measurements), "kind", "measurement")
                           .Add(static_cast<double>(stats->failures), "kind", "failure")
                           .Add(static_cast<double>(stats->models), "kind", "model")
                           .Take());
    families.push_back(
        FamilyBuilder("autograph_cache_bytes", "Size of the cache file", MetricType::Gauge)
            .Add(static_cast<double>(stats->bytes))
            .Take());
  }

  MetricFamily Workers() const {
    std::map<std::string, int> by_health;
    for (const WorkerView& view : sources_.dispatcher->Workers()) {
      ++by_health[std::string(WorkerHealthName(view.state.health))];
    }
    FamilyBuilder workers("autograph_workers", "Workers by health", MetricType::Gauge);
    for (const auto& [health, count] : by_health) workers.Add(count, "health", health);
    return workers.Take();
  }

  MetricsSources sources_;
};

}  // namespace

struct MetricsEndpoint::State {
  std::shared_ptr<Collector> collector;
  std::unique_ptr<prometheus::Exposer> exposer;
};

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
MetricsEndpoint::~MetricsEndpoint() = default;

StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(const std::string& address,
                                                                  const MetricsSources& sources) {
  auto state = std::make_unique<State>();
  state->collector = std::make_shared<Collector>(sources);
  try {
    state->exposer = std::make_unique<prometheus::Exposer>(address, 1);
  } catch (const std::exception& e) {
    const Status why = ListenError(address);
    if (why.code() != StatusCode::kInternal) return Within(why, "metrics");
    return Err(StatusCode::kUnavailable, "metrics: {}: {}", Message(why), e.what());
  }
  state->exposer->RegisterCollectable(state->collector);
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(state)));
}

}  // namespace ag
