// The executor: runs work items on one device: it measures groups, times plans, checks equivalence
// and qualifies the device. Knows no protocol (executor_wire.cc does). One thread at a time.
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
#include "plan/candidate.h"
#include "plan/fusion/kernel_rivals.h"
#include "plan/measurement.h"
#include "runtime/timing/time_files.h"
#include "worker/check_outputs.h"

namespace ag {

struct CheckRequest {
  Candidate reference;
  Candidate candidate;
  std::vector<CheckInputs> inputs;
  double tolerance = 1e-3;
  Nanos optional_max = Nanos::max();  // As OutputsToCheck's.
};

// The inputs on which two graphs differ, what one computes and what the other does.
struct ShownDifference {
  std::string compared;         // As ComparedInputs::inputs.
  uint64_t seed = 0;            // Of them, unless they are the user's own.
  bool on_device_only = false;  // `actual` is the device's; the reference kernels agree.
  std::vector<OutputError> errors;
  std::vector<Tensor> inputs, expected, actual;
};

// Model files to time, by digest.
struct FileSetRequest {
  struct File {
    Digest digest;
    FileRuntime runtime = FileRuntime::kAutograph;
    std::string plan = {};  // As FileToTime::plan.
  };
  std::vector<File> files;
  std::map<std::string, Shape> shapes;
  std::optional<Digest> inputs = {};  // Of the set of inputs to run on; nothing: random ones.
  bool cold_cache = false;
  double seconds = 10;
  int blocks_max = 21;
  Nanos answer_max{60'000'000'000};  // Longest silence of a file's process.
};

class Executor {
 public:
  // Calls `on_progress(index)` when entry `index` begins, and often within long entries; the
  // agent's watchdog depends on it. Calls `on_wait` (may be null) while it waits for the measuring
  // lock, as LockWait::on_wait says.
  Executor(std::unique_ptr<Device> device, std::unique_ptr<WeightSource> weights, Clock& clock,
           ProfileOptions profile, std::function<void(int)> on_progress,
           std::function<void(pid_t)> on_wait = nullptr);

  Device& device() { return *device_; }

  // Sets the time by which all later calls end. A group or a pair that is not done by then is
  // kCancelled, and so is a plan that was not made ready; plans that were ready get no further
  // blocks. Files that cannot be timed often enough are kDeadlineExceeded. 0: no limit. A check is
  // never cut.
  void EndWithin(double seconds);

  // Times the group with every kernel and returns the fastest. For a group of at most
  // kCheckedFlopsMax operations the kernel is compared with the reference kernels; a kernel that
  // differs is never returned, the next fastest is taken. kDataLoss: all kernels differ; the
  // message describes the fastest one's difference.
  StatusOr<Measurement> MeasureGroup(int index, const std::string& problem_bytes);
  static constexpr double kCheckedFlopsMax = 5e7;

  // Times two groups together. kDataLoss: the bytes do not decode to a pair.
  StatusOr<Measurement> MeasurePair(int index, const std::string& pair_bytes);

  // Times the candidates beside each other; entry 0 is the input. A candidate that is an error
  // keeps it. Fails as a whole when the input cannot be built or run, or when an entry is a
  // LostDevice.
  struct TimingOptions {
    uint64_t seed = 1;                  // Seed of the inputs' data.
    std::optional<Digest> inputs = {};  // Of the set of inputs to run on, instead.
    int blocks_max = 0;       // Paired blocks per candidate; 0: until the verdict is sure.
    bool cold_cache = false;  // Evict the caches before every run.
  };
  StatusOr<std::vector<PlanTiming>> TimePlans(const std::vector<StatusOr<Candidate>>& candidates,
                                              const TimingOptions& options);

  // Compares the candidate with the reference (check_outputs.h). kInvalidArgument: no inputs.
  StatusOr<CheckResult> Check(const CheckRequest& request);

  // Runs both graphs on the reference kernels, on the request's inputs in turn, until an output
  // differs in a way that counts (check_outputs.h); the candidate on the device where these agree
  // on all. Returns the values where it differs; nothing: it does not. Errors: as Check.
  StatusOr<std::optional<ShownDifference>> Show(const CheckRequest& request);

  // The folder of files and sets of inputs, and the device's name for the processes that run files.
  struct Files {
    std::string device;
    std::shared_ptr<BlobDir> blobs;
  };
  void set_files(Files files) { files_ = std::move(files); }
  // Times files in fresh processes (runtime/timing/time_files.h). kFailedPrecondition: set_files
  // was not called.
  StatusOr<FileTimes> TimeFileSet(const FileSetRequest& request);
  // Compares the outputs of the second file with the first's in ONNX Runtime, on the sets of inputs
  // or, where there are none, on so many seeds.
  StatusOr<std::vector<OutputError>> CompareFileSet(const FileSetRequest& request,
                                                    const std::vector<Digest>& sets, int seeds);
  // Returns a set of inputs. kFailedPrecondition: set_files was not called.
  StatusOr<InputSet> ReadSet(const Digest& digest) const;

  // Returns the rivals that are faster inside the plan than the kernels that it names
  // (device/profile/refine_kernels.h) and that are right: for one group of each problem of at most
  // kCheckedFlopsMax operations, the new kernel is compared with the reference kernels.
  StatusOr<std::vector<KernelChoice>> RefinePlan(const Candidate& candidate,
                                                 const std::vector<KernelChoice>& rivals);

  // Runs a convolution with a known answer. kUnavailable: the device computes it wrong.
  Status Qualify();

 private:
  StatusOr<std::unique_ptr<Executable>> Build(const Candidate& candidate);
  StatusOr<std::optional<FileLock>> Alone(int index);
  StatusOr<std::vector<Tensor>> InputsToTime(const Graph& graph,
                                             const TimingOptions& options) const;
  Status TakeRightKernel(const GroupProblem& problem, Measurement* measurement);
  Status CompareWithReference(const GroupProblem& problem, const Plan& plan);
  StatusOr<bool> IsRight(const GroupProblem& problem, const std::string& kernel);

  std::unique_ptr<Device> device_;
  std::unique_ptr<WeightSource> weights_;
  Clock& clock_;
  ProfileOptions profile_;
  KernelHistory history_;           // Of the groups of all work items.
  std::optional<QuietWait> quiet_;  // Set when foreign load is watched.
  std::function<void(int)> on_progress_;
  Files files_;
  std::function<void(pid_t)> on_wait_;
};

}  // namespace ag
