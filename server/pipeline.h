// The stages of a job from model bytes to result (docs/design.md, One way through): import,
// clean-up, search, confirm, report. Thread-safe: several jobs run at once.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "graph/onnx/jail.h"
#include "rules/rule_set.h"
#include "server/dispatcher.h"
#include "server/export_child.h"
#include "server/job_runner.h"
#include "server/store/cache_db.h"

namespace ag {

struct PipelineOptions {
  ImportLimits limits;
  JailOptions jail;
  ExportChildOptions child;
  std::string blob_root;
  std::string work_dir;                            // Emptied by the caller at start.
  Nanos offer_wait_max{std::chrono::minutes(15)};  // Wait for a worker of the device.
  // An executor without progress for this long is killed while it measures a group; whole plans
  // have twice as long, checks on the reference kernels ten times as long.
  Nanos hang_time_max{std::chrono::minutes(1)};
};

class Pipeline : public JobRunner {
 public:
  Pipeline(Dispatcher& dispatcher, CacheDb& cache, std::shared_ptr<BlobDir> blobs,
           const RuleSet& rules, Clock& clock, PipelineOptions options);
  StatusOr<JobResult> Run(const Job& job, const JobControl& control) override;

 private:
  struct Stages;
  StatusOr<DeviceOffer> WaitForOffer(const std::string& device, const JobControl& control);

  Dispatcher& dispatcher_;
  CacheDb& cache_;
  std::shared_ptr<BlobDir> blobs_;
  const RuleSet& rules_;
  Clock& clock_;
  PipelineOptions options_;
};

}  // namespace ag
