// What an executor does with work items, on one device: measure groups, time plans, check
// equivalence, qualify. No protocol here; executor_wire.cc speaks it. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/blobs.h"
#include "base/clock.h"
#include "device/api/device.h"
#include "device/profile/profile.h"
#include "plan/kernel_rivals.h"
#include "plan/measurement.h"
#include "runtime/timing/time_files.h"

namespace ag {

// A graph and how to run it, as bytes from the coordinator; decoded and checked here.
struct CandidateBytes {
  std::string graph;
  std::string plan;
};

struct CheckRequest {
  CandidateBytes reference;
  CandidateBytes candidate;
  std::vector<uint64_t> seeds;
  bool reference_kernels = false;
};

// Model files to time, by digest.
struct FileSetRequest {
  std::vector<std::pair<Digest, FileRuntime>> files;
  std::map<std::string, Shape> shapes;
  bool cold_cache = false;
  double seconds = 10;
  int blocks_max = 21;
  Nanos answer_max{60'000'000'000};  // A process that is silent for so long counts as hung.
};

class Executor {
 public:
  // `on_progress(index)` is called when entry `index` begins (and often within long ones); the
  // watchdog of the agent lives on it. `on_wait` (may be null) hears of the wait for the measuring
  // lock, as LockWait::on_wait does.
  Executor(std::unique_ptr<Device> device, std::unique_ptr<WeightSource> weights, Clock& clock,
           ProfileOptions profile, std::function<void(int)> on_progress,
           std::function<void(pid_t)> on_wait = nullptr);

  Device& device() { return *device_; }

  // What is asked for from now on ends by then: a group or a pair that is not done is kCancelled,
  // and so is a plan that was not made ready in time; plans that were get no further blocks. 0: no
  // such end. A check is never cut.
  void EndWithin(double seconds);

  // Times the group with every kernel. A group of at most kCheckedFlopsMax operations is also
  // compared with the reference kernels: one that computes something else is never used, the next
  // fastest is taken. kDataLoss when none is right; it names the difference of the fastest.
  StatusOr<Measurement> MeasureGroup(int index, const std::string& problem_bytes);
  static constexpr double kCheckedFlopsMax = 5e7;

  // Times two groups together. kDataLoss: the bytes are no pair.
  StatusOr<Measurement> MeasurePair(int index, const std::string& pair_bytes);

  // Entry 0 is the input: when it cannot be built or run, its status is returned for the whole set.
  // So is kUnavailable of any entry: the device is lost.
  struct TimingOptions {
    uint64_t seed = 1;        // Of the inputs' data.
    int blocks_max = 0;       // Paired blocks per candidate; 0: until the verdict is sure.
    bool cold_cache = false;  // Every run from flushed caches.
  };
  StatusOr<std::vector<PlanTiming>> TimePlans(const std::vector<CandidateBytes>& candidates,
                                              const TimingOptions& options);

  // Differences of the candidate's outputs from the reference's, the largest over the seeds, of
  // which there must be one.
  StatusOr<std::vector<OutputError>> Check(const CheckRequest& request);

  // Where files to time are, and the device's name for the processes that run them.
  struct Files {
    std::string device;
    std::shared_ptr<BlobDir> blobs;
  };
  void set_files(Files files) { files_ = std::move(files); }
  // Times files in fresh processes (runtime/timing/time_files.h). kFailedPrecondition: no
  // set_files.
  StatusOr<FileTimes> TimeFileSet(const FileSetRequest& request);
  // Compares the outputs of the second file with the first's in ONNX Runtime.
  StatusOr<std::vector<OutputError>> CompareFileSet(const FileSetRequest& request, int seeds);

  // The rivals that are faster inside the plan than what it names
  // (device/profile/refine_kernels.h), and right: of one group of each problem of at most
  // kCheckedFlopsMax operations the new kernel is compared with the reference kernels.
  StatusOr<std::vector<KernelChoice>> RefinePlan(const CandidateBytes& candidate,
                                                 const std::vector<KernelChoice>& rivals);

  // Runs a convolution with a known answer; kUnavailable when the device gets it wrong.
  Status Qualify();

 private:
  struct Built {
    Graph graph;
    std::unique_ptr<Executable> executable;
  };
  StatusOr<Built> BuildCandidate(const CandidateBytes& bytes);
  StatusOr<std::optional<FileLock>> Alone(int index);
  Status TakeRightKernel(const GroupProblem& problem, Measurement* measurement);
  Status CompareWithReference(const GroupProblem& problem, const Plan& plan);
  StatusOr<bool> IsRight(const GroupProblem& problem, const std::string& kernel);

  std::unique_ptr<Device> device_;
  std::unique_ptr<WeightSource> weights_;
  Clock& clock_;
  ProfileOptions profile_;
  std::optional<QuietWait> quiet_;  // Where foreign load is watched.
  std::function<void(int)> on_progress_;
  Files files_;
  std::function<void(pid_t)> on_wait_;
};

// Random data for every input of the graph; equal seeds give equal data.
std::vector<Tensor> RandomInputs(const Graph& graph, uint64_t seed);
std::vector<Tensor> EmptyOutputs(const Graph& graph);

}  // namespace ag
