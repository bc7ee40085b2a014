// The interface of devices: describe, build, run. One conformance suite (device/conformance) holds
// for every implementation. A Device is used by one thread at a time; so is an Executable.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "graph/weights.h"
#include "plan/group_problem.h"
#include "plan/plan.h"

namespace ag {

// One group's stay on the device during a traced run.
struct TraceEvent {
  int group = 0;
  int stream = 0;
  Nanos begin{0};
  Nanos end{0};
};

// A plan made ready: weights packed, memory allocated, kernels chosen.
class Executable {
 public:
  virtual ~Executable() = default;

  // Runs once. `inputs` and `outputs` stand in the graph's order and hold exactly the plain bytes
  // of each tensor; the buffers are the caller's and are used in place where the plan says so.
  // kUnavailable with "sticky" in the message: the device must be opened anew in a fresh process.
  virtual Status Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;

  // Runs once and returns how long the device took (what profile/ samples). Timing excludes copies
  // to and from the caller.
  virtual StatusOr<Nanos> TimedRun(std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;

  // Runs `runs` times, one after the other, and returns how long one took on the average. What is
  // sampled: a device whose clock is coarse times all of them at once, one that is far from the
  // caller's memory need not copy the same inputs again, nor give outputs. kDataLoss: a time that
  // is not positive. REQUIRES: runs > 0.
  virtual StatusOr<double> MeanRunNs(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                     int runs);

  // What one run takes that finds the device's caches flushed, the flush not in the time: a sample
  // under a cold policy. Runs as often as the device's clock needs, a flush before each run, and
  // returns the mean; no run finds what another one left. kUnimplemented: the device cannot flush.
  // kDataLoss: a time that is not positive.
  virtual StatusOr<double> ColdRunNs(std::span<const Tensor> inputs, std::span<Tensor> outputs);

  // Runs once, recording when each group began and ended.
  virtual StatusOr<std::vector<TraceEvent>> TracedRun(std::span<const Tensor> inputs,
                                                      std::span<Tensor> outputs) = 0;

  // Bytes held on the device: arena + packed weights.
  virtual int64_t device_bytes() const = 0;

  // How many of the device's cores (SMs) the plan's group keeps busy while it runs alone; 0: not
  // known.
  virtual int busy_cores(int) const { return 0; }
};

// Whether a run's buffers are what the graph wants; the messages name what is not.
class RunTypes {
 public:
  explicit RunTypes(const Graph& graph);
  Status Check(std::span<const Tensor> inputs, std::span<Tensor> outputs) const;

 private:
  struct Named {
    std::string name;
    TensorType type;
  };
  std::vector<Named> inputs_, outputs_;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceSpec& spec() const = 0;
  virtual const Environment& environment() const = 0;

  // Kernels that can run the group, best guess first; measurement chooses. Never empty on success.
  // kUnimplemented names what is missing (operator, dtype, layout).
  virtual StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) = 0;

  // The problem's kernels will be built soon, each alone: what takes long (compiling) may begin.
  // Returns at once.
  virtual void Prepare(const GroupProblem&) {}

  // Makes `plan` runnable. Constants and recipes come from `weights`. kInvalidArgument: the plan
  // does not fit the graph or this device. kResourceExhausted: memory, with the bytes asked for.
  virtual StatusOr<std::unique_ptr<Executable>> Build(const Graph& graph, const Plan& plan,
                                                      const WeightSource& weights) = 0;

  // A fixed piece of work whose time tells drift and foreign load from one sample to the next. It
  // is warm whatever the policy: it speaks of the machine, not of a plan.
  virtual StatusOr<Nanos> Canary() = 0;

  // Under a warm policy: leaves the caches about as the rest of a plan would before a group runs,
  // so that the group's weights are not in the fast ones. False: nothing was done, the device has
  // no such state.
  virtual bool CoolCaches() { return false; }

  // True when timing comes from a model and not from a clock.
  virtual bool simulated() const { return false; }
};

}  // namespace ag
