// The one way through (DESIGN section 4): import, clean-up, search, confirm, report.
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
  Nanos offer_wait_max{std::chrono::minutes(15)};  // For a worker to appear.
  // Without progress for so long the executor that measures a group is killed; whole plans have
  // twice, checks on the reference kernels ten times as long.
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
