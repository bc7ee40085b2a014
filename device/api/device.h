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

// The time of one group on the device in a traced run.
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

  // Runs once. `inputs` and `outputs` are in the graph's order and hold exactly the plain bytes of
  // each tensor; the caller's buffers are used in place where the plan says so. kUnavailable with
  // "sticky" in the message: the device must be opened anew in a fresh process.
  virtual Status Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;

  // Runs once and returns the time that the device took, which profile/ samples. Leaves out copies
  // to and from the caller.
  virtual StatusOr<Nanos> TimedRun(std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;

  // Runs `runs` times in a row and returns the mean time of one run, which profile/ samples. A
  // device with a coarse clock may time all runs at once; a device far from the caller's memory
  // need not copy the same inputs again, nor give outputs. kDataLoss: a time that is not positive.
  // REQUIRES: runs > 0.
  virtual StatusOr<double> MeanRunNs(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                                     int runs);

  // Returns the time of a run from flushed caches, without the flush: a sample under a cold policy.
  // Runs as often as the device's clock needs, with a flush before each run, and returns the mean;
  // no run finds data that another one left. kUnimplemented: the device cannot flush. kDataLoss: a
  // time that is not positive.
  virtual StatusOr<double> ColdRunNs(std::span<const Tensor> inputs, std::span<Tensor> outputs);

  // Runs once and records when each group began and ended.
  virtual StatusOr<std::vector<TraceEvent>> TracedRun(std::span<const Tensor> inputs,
                                                      std::span<Tensor> outputs) = 0;

  // Returns the bytes held on the device: arena and packed weights.
  virtual int64_t device_bytes() const = 0;

  // Returns how many of the device's cores (SMs) the plan's group keeps busy while it runs alone;
  // 0: unknown.
  virtual int busy_cores(int) const { return 0; }
};

// The types of a graph's inputs and outputs. Check fails with the name of the buffer of a run that
// does not fit.
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

  // Returns the kernels that can run the group, best guess first; measurement chooses. Never empty
  // on success. kUnimplemented names what is missing (operator, dtype, layout).
  virtual StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) = 0;

  // Begins long preparations (compiling) of the problem's kernels, which will soon be built, each
  // alone. Returns at once.
  virtual void Prepare(const GroupProblem&) {}

  // Makes `plan` runnable. Constants and recipes come from `weights`. kInvalidArgument: the plan
  // does not fit the graph or this device. kResourceExhausted: no memory; the message has the bytes
  // asked for.
  virtual StatusOr<std::unique_ptr<Executable>> Build(const Graph& graph, const Plan& plan,
                                                      const WeightSource& weights) = 0;

  // Runs a fixed piece of work and returns its time, which shows drift and foreign load between
  // samples. It is warm under every policy: it measures the machine, not a plan.
  virtual StatusOr<Nanos> Canary() = 0;

  // Under a warm policy: leaves the caches about as the rest of a plan would before a group runs,
  // so that the group's weights are not in the fast ones. Returns false when the device has no such
  // state and nothing was done.
  virtual bool CoolCaches() { return false; }

  // Returns true when times come from a model and not from a clock.
  virtual bool simulated() const { return false; }
};

}  // namespace ag
