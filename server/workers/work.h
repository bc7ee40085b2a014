// The work that the coordinator gives to workers, as the message that is sent, and their results as
// plain data (worker_wire.cc converts). One item is leased to one worker at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograph/v1/worker.pb.h"
#include "base/clock.h"
#include "plan/file_times.h"
#include "plan/fusion/kernel_rivals.h"
#include "plan/measurement.h"

namespace ag {

namespace v1 = autograph::v1;

using BoundShapes = google::protobuf::RepeatedPtrField<v1::BoundShape>;

// Returns the number of results of an item: one per group (to measure or to check) or candidate,
// one for any other item.
int EntryCount(const v1::WorkItem& work);

// Returns the item with only these entries, in this order. REQUIRES: in range; {0} when the item
// has one entry.
v1::WorkItem Subset(const v1::WorkItem& work, const std::vector<int>& entries);

// Returns the entries of an item in parts, at most `parts_max` (1 or more), each of which a worker
// of its own may do. The groups of a batch are dealt out, and so are the candidates of a set that
// is only to be ranked: each part has the first one, with which they are compared. Any other item
// is one part; for a verdict all candidates are timed on one device.
std::vector<std::vector<int>> PartsOf(const v1::WorkItem& work, int parts_max);

// Returns the time in which a worker may send nothing because the item was given it: a batch of
// groups sends each result when it has it, other work all at its end.
Nanos QuietTime(const v1::WorkItem& work);

struct EntryResult {
  int index = 0;  // -1: the item as a whole ended.
  Status status;
  Measurement measurement;               // GroupBatch.
  PlanTiming timing;                     // PlanSet.
  std::vector<OutputError> errors;       // Check; FileSet that compares.
  std::vector<ComparedInputs> compared;  // Check.
  FileTimes file_times;                  // FileSet that times.
  std::vector<KernelChoice> kernels;     // Refine.
  std::optional<v1::ShownValues> shown;  // Show, where something differs.
  bool executor_died = false;            // The entry crashed the executor, which ended the attempt.
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
  std::shared_ptr<const v1::WorkItem>
      work;  // Null: the worker reported that it holds this attempt.
};
struct Desired {
  uint64_t epoch = 0;
  std::optional<Lease> lease;
  std::vector<uint64_t> acknowledged;
  bool drain = false;
};

}  // namespace ag
