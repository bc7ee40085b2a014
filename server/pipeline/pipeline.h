// The stages of a job from model bytes to result (docs/design.md, One way through): import,
// clean-up, search, confirm, conclude. Each stage takes values and returns one. Thread-safe:
// several jobs may run at once. A coordinator runs it in a process per job (job_process.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/blobs.h"
#include "base/clock.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/sandbox/sandbox.h"
#include "rules/language/rule_set.h"
#include "server/jobs/job_runner.h"
#include "server/pipeline/budget.h"
#include "server/pipeline/export_child.h"
#include "server/pipeline/publish.h"
#include "server/store/group_cache.h"
#include "server/workers/dispatcher.h"

namespace ag {

// Of the JSON report (docs/report.md).
inline constexpr int kReportVersion = 4;

struct PipelineOptions {
  ImportLimits limits;
  SandboxOptions sandbox;
  ExportChildOptions child;
  std::string blob_root;
  // An executor without progress for this long is killed while it measures a group; whole plans
  // have twice as long, checks on the reference kernels ten times as long.
  Nanos hang_time_max{std::chrono::minutes(1)};
  std::string more_rules;  // As BuiltInRulesAnd's.
  // Threads of a job that score graphs; 0: one per core that it may run on, at most 8.
  int search_threads = 0;
};

class Pipeline {
 public:
  Pipeline(WorkRunner& workers, GroupCache& cache, std::shared_ptr<BlobDir> blobs,
           const RuleSet& rules, Clock& clock, PipelineOptions options);
  // As JobRunner::Run, on the device of the offer.
  StatusOr<JobOutcome> Run(const Job& job, const DeviceOffer& offer, const JobControl& control);

 private:
  struct Setting;
  struct Imported;
  struct Output;

  static IsCut CutFor(const DeviceSpec& spec);
  PoolMeasurer::Options Measuring(const Setting& setting, SearchTurn& turn) const;
  OutputSetting ToOutput(const Setting& setting, const Imported& imported,
                         const SearchResult& found) const;

  StatusOr<Setting> Prepare(const Job& job, DeviceOffer offer, const JobControl& control);
  StatusOr<Imported> Import(const Setting& setting);
  StatusOr<ImportedModel> ImportAtInputs(const v1::OptimizeRequest& asked,
                                         const ImportOptions& options);
  StatusOr<std::vector<GivenInputs>> PlaceGiven(const v1::OptimizeRequest& asked,
                                                const Imported& imported);
  using BestPublisher = std::function<StatusOr<JobOutcome>(const SearchResult&)>;
  StatusOr<SearchResult> Search(const Setting& setting, const Imported& imported,
                                const Budget& budget, SearchTurn& turn, PoolMeasurer& measurer,
                                const BestPublisher& publish_best);
  StatusOr<JobOutcome> PublishBest(const Setting& setting, const Imported& imported,
                                   const SearchResult& found, const Budget& budget,
                                   PoolMeasurer& measurer);
  StatusOr<Published> Confirm(const Setting& setting, const Imported& imported,
                              const SearchResult& found, Nanos until, PoolMeasurer& measurer);
  StatusOr<JobOutcome> Conclude(const Setting& setting, const Imported& imported,
                                const SearchResult& found, const Published& published,
                                PoolMeasurer& measurer);
  static std::vector<std::string> Warnings(const Imported& imported, const SearchResult& found,
                                           const Published& published, const Plan& plan,
                                           const PoolMeasurer& measurer);
  static v1::Report ReportOf(const Setting& setting, const Imported& imported,
                             const SearchResult& found, const Output& output,
                             PoolMeasurer& measurer);

  WorkRunner& workers_;
  GroupCache& cache_;
  std::shared_ptr<BlobDir> blobs_;
  const RuleSet& rules_;
  Clock& clock_;
  PipelineOptions options_;
};

}  // namespace ag
