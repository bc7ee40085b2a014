#include "server/rpc/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <map>

#include "base/build_facts.h"
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
    if (const auto counts = sources_.jobs_store->CountByState(); counts.ok()) {
      FamilyBuilder jobs("autograph_jobs", "Jobs in the store by state", MetricType::Gauge);
      for (const auto& [state, count] : *counts)
        jobs.Add(static_cast<double>(count), "state", state);
      families.push_back(jobs.Take());
    }
    AddQueues(families);
    families.push_back(
        FamilyBuilder("autograph_items_waiting", "Work items without a worker", MetricType::Gauge)
            .Add(sources_.dispatcher->waiting())
            .Take());
    AddCache(families);
    families.push_back(Workers());
    families.push_back(Restarts());
    families.push_back(
        FamilyBuilder("autograph_build_info", "The version of the program", MetricType::Gauge)
            .Add(1, "version", std::string(Version()))
            .Take());
    return families;
  }

 private:
  // Of every device that has workers or jobs, so that an empty queue is 0 and not absent.
  void AddQueues(std::vector<MetricFamily>& families) const {
    std::map<std::string, Jobs::Counts> counts = sources_.jobs->counts();
    for (const DeviceOffer& offer : sources_.dispatcher->Offers()) counts[offer.device];
    FamilyBuilder queued("autograph_queue_depth", "Jobs that wait", MetricType::Gauge);
    FamilyBuilder oldest("autograph_queue_oldest_seconds", "How long the oldest job has waited",
                         MetricType::Gauge);
    FamilyBuilder running("autograph_jobs_running", "Jobs that run", MetricType::Gauge);
    for (const auto& [device, of_device] : counts) {
      queued.Add(of_device.queued, "device", device);
      oldest.Add(of_device.oldest_seconds, "device", device);
      running.Add(of_device.running, "device", device);
    }
    families.push_back(queued.Take());
    families.push_back(oldest.Take());
    families.push_back(running.Take());
  }

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
                           .Add(static_cast<double>(stats->regions), "kind", "region")
                           .Take());
    families.push_back(FamilyBuilder("autograph_answers_total",
                                     "Whole answers that were given from the cache",
                                     MetricType::Counter)
                           .Add(static_cast<double>(stats->answers + *sources_.answers_given))
                           .Take());
    families.push_back(FamilyBuilder("autograph_cache_measured_again_total",
                                     "Rows that were measured again while no job ran",
                                     MetricType::Counter)
                           .Add(static_cast<double>(*sources_.held), "result", "holds")
                           .Add(static_cast<double>(*sources_.drifted), "result", "drifted")
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

  MetricFamily Restarts() const {
    FamilyBuilder restarts("autograph_executor_restarts_total",
                           "Executors that a worker has replaced since its start",
                           MetricType::Counter);
    for (const WorkerView& view : sources_.dispatcher->Workers()) {
      restarts.Add(view.state.executor_restarts, "worker", view.state.worker_id);
    }
    return restarts.Take();
  }

  MetricsSources sources_;
};

}  // namespace

struct Records::State {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  prometheus::Family<prometheus::Counter>& ended =
      prometheus::BuildCounter()
          .Name("autograph_jobs_total")
          .Help("Jobs that ended since the start, by device and outcome")
          .Register(*registry);
  prometheus::Family<prometheus::Histogram>& seconds =
      prometheus::BuildHistogram()
          .Name("autograph_job_duration_seconds")
          .Help("How long jobs that ended have run, by device and outcome")
          .Register(*registry);
  prometheus::Family<prometheus::Counter>& device_seconds =
      prometheus::BuildCounter()
          .Name("autograph_device_seconds_total")
          .Help("Time that workers spent on jobs that ended since the start, by device")
          .Register(*registry);
  prometheus::Family<prometheus::Counter>& candidates =
      prometheus::BuildCounter()
          .Name("autograph_candidates_total")
          .Help("Whole graphs that were measured since the start, by device")
          .Register(*registry);
  prometheus::Family<prometheus::Histogram>& writes =
      prometheus::BuildHistogram()
          .Name("autograph_store_write_duration_seconds")
          .Help("How long writes to the files of jobs and of the cache took")
          .Register(*registry);
};

Records::Records() : state_(std::make_unique<State>()) {}
Records::~Records() = default;

void Records::Ended(const Job& job) {
  // Of a job that succeeded its verdict, else its state: "FASTER", "CANCELLED".
  const std::string outcome = job.state == v1::Job::SUCCEEDED && job.result.has_value()
                                  ? v1::Result::Verdict_Name(job.result->verdict())
                                  : v1::Job::State_Name(job.state);
  const std::map<std::string, std::string> labels = {{"device", job.request.device()},
                                                     {"outcome", outcome}};
  state_->ended.Add(labels).Increment();
  state_->seconds
      .Add(labels, prometheus::Histogram::BucketBoundaries{0.1, 0.5, 1, 5, 10, 30, 60, 120, 300,
                                                           600, 1800, 3600})
      .Observe(job.progress.elapsed_seconds());
  const std::map<std::string, std::string> of_device = {{"device", job.request.device()}};
  state_->device_seconds.Add(of_device).Increment(job.device_seconds);
  state_->candidates.Add(of_device).Increment(job.progress.candidates());
}

void Records::Wrote(std::string_view store, Nanos took) {
  state_->writes
      .Add({{"store", std::string(store)}},
           prometheus::Histogram::BucketBoundaries{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                   0.5, 1, 5})
      .Observe(std::chrono::duration<double>(took).count());
}

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
  if (sources.records != nullptr) {
    state->exposer->RegisterCollectable(sources.records->state_->registry);
  }
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(state)));
}

}  // namespace ag
