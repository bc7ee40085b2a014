// The work that the coordinator gives to workers, and their results: plain data, the counterpart of
// the messages of worker.proto (worker_wire.cc converts). One item is leased to one worker at a
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "autograph/v1/optimizer.pb.h"
#include "base/digest.h"
#include "plan/file_times.h"
#include "plan/fusion/kernel_rivals.h"
#include "plan/measurement.h"

namespace ag {

using BoundShapes = google::protobuf::RepeatedPtrField<autograph::v1::BoundShape>;

struct GroupBatchWork {
  std::vector<std::string> problems;  // Canonical bytes of groups or of pairs.
  std::string policy;
};

struct CandidateWork {
  std::string graph;  // Canonical bytes.
  std::string plan;
};

struct PlanSetWork {
  std::vector<CandidateWork> candidates;  // Entry 0 is the input.
  std::string policy;
  uint64_t seed = 1;
  int blocks_max = 0;  // Paired blocks per candidate; 0: until the verdict is sure.
};

struct CheckWork {
  CandidateWork reference;
  CandidateWork candidate;
  std::vector<uint64_t> seeds;
  bool reference_kernels = false;
  double tolerance = 0;
};

struct FileWork {
  Digest file;
  bool in_onnxruntime = false;  // Else in our runtime.
  std::string plan = {};        // The plan to run in our runtime; empty: the one that it carries.
};

// Model files that are timed in fresh processes, or two files that are compared in ONNX Runtime
// (`compare_seeds` above 0).
struct FileSetWork {
  std::vector<FileWork> files;
  BoundShapes shapes;
  std::string policy;
  double seconds_max = 10;
  int blocks_max = 0;
  int compare_seeds = 0;
};

struct RefineWork {
  CandidateWork candidate;
  std::vector<KernelChoice> rivals;
};

struct WorkItem {
  std::variant<GroupBatchWork, PlanSetWork, CheckWork, FileSetWork, RefineWork> body;
  double time_max_seconds = 60;  // An executor without progress for this long is killed.
  // Entries not measured this long after the item began come back kCancelled; 0: no such limit.
  double end_within_seconds = 0;
};

// Returns the number of results of an item: one per group or candidate, one for any other item.
int EntryCount(const WorkItem& work);

// Returns the item with only these entries, in this order. REQUIRES: in range; {0} when the item
// has one entry.
WorkItem Subset(const WorkItem& work, const std::vector<int>& entries);

struct EntryResult {
  int index = 0;  // -1: the item as a whole ended.
  Status status;
  Measurement measurement;            // GroupBatch.
  PlanTiming timing;                  // PlanSet.
  std::vector<OutputError> errors;    // Check; FileSet that compares.
  FileTimes file_times;               // FileSet that times.
  std::vector<KernelChoice> kernels;  // Refine.
  bool executor_died = false;         // The entry crashed the executor, which ended the attempt.
};

struct WorkerResult {
  uint64_t sequence = 0;
  uint64_t epoch = 0;
  std::string attempt;
  EntryResult entry;
};

enum class WorkerHealth : uint8_t { kStarting = 1, kServing = 2, kNotServing = 3, kDraining = 4 };
std::string_view WorkerHealthName(WorkerHealth health);

// A worker's report about itself.
struct WorkerReport {
  std::string worker_id;
  std::string device;
  std::string device_spec;  // Empty: unchanged since it was last sent.
  Environment environment;
  WorkerHealth health = WorkerHealth::kStarting;
  std::string reason;
  uint64_t epoch = 0;
  std::string attempt;
  std::vector<WorkerResult> results;
  std::string version;
  int executor_restarts = 0;
  bool simulated = false;
  std::string onnxruntime;  // The version of ONNX Runtime beside the worker; empty: none.
  std::string waits_for;    // What the current work waits for; empty: nothing.
};

// The state that the coordinator wants of a worker.
struct Lease {
  std::string attempt;
  std::shared_ptr<const WorkItem> work;  // Null: the worker reported that it holds this attempt.
};
struct Desired {
  uint64_t epoch = 0;
  std::optional<Lease> lease;
  std::vector<uint64_t> acknowledged;
};

}  // namespace ag
