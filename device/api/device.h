// The interface of devices: describe, build, run. One conformance suite (device/conformance) holds
// for every implementation. A Device is used by one thread at a time; so is an Executable.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "graph/weights.h"
#include "plan/fusion/group_problem.h"
#include "plan/plan.h"

namespace ag {

// The time of one group on the device in a traced run.
struct TraceEvent {
  int group = 0;
  int stream = 0;
  Nanos begin{0};
  Nanos end{0};
};

// What the caches hold when a timed run begins.
enum class Caches : uint8_t {
  kAsLeft,  // What ran before.
  // About what the rest of a plan leaves before a group: its inputs, which were just written, and
  // not its weights. The outputs' values are unspecified then. As kAsLeft on a device that does not
  // cool its caches.
  kInputs,
  kEvicted,  // Nothing of the plan.
};

struct TimeRequest {
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  int runs = 1;  // 1 with other caches than kAsLeft, and with a trace.
  Caches caches = Caches::kAsLeft;
  std::vector<TraceEvent>* trace = nullptr;  // Not null: set to the times of the groups.
};

// A plan made ready: weights packed, memory allocated, kernels chosen.
class Executable {
 public:
  virtual ~Executable() = default;

  // Runs once and returns the time that the device took, without copies to and from the caller.
  // `inputs` and `outputs` are in the graph's order and hold exactly the plain bytes of each
  // tensor; the caller's buffers are used in place where the plan says so. LostDevice
  // (lost_device.h): the device must be opened anew in a fresh process.
  virtual StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;

  // Runs `runs` times in a row and returns the mean time of one run in nanoseconds, which profile/
  // samples. Leaves out copies to and from the caller and what brings the caches into their state.
  // A device with a coarse clock may time all runs at once, and make more runs from evicted caches
  // with an eviction before each; a device far from the caller's memory need not copy the same
  // inputs again, nor give outputs. kUnimplemented: the device cannot evict. kDataLoss: a time that
  // is not positive.
  virtual StatusOr<double> Time(const TimeRequest& request) = 0;

  // Returns how many of the device's cores (SMs) the plan's group keeps busy while it runs alone;
  // 0: unknown.
  int active_cores(size_t group) const {
    return group < active_cores_.size() ? active_cores_[group] : 0;
  }

 protected:
  std::vector<int> active_cores_;  // By group; empty: all unknown.
};

// Calls `run` so often and returns its mean time, for Executable::Time.
StatusOr<double> MeanNs(int runs, const std::function<StatusOr<Nanos>()>& run);

// Returns zeros for each output of the graph, for a run to write to.
std::vector<Tensor> EmptyOutputs(const Graph& graph);

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

struct DeviceDescription {
  DeviceSpec spec;
  Environment environment;
  bool simulated = false;     // Times come from a model and not from a clock.
  bool cools_caches = false;  // The cores have caches that Caches::kInputs describes.
};

// All references must outlive the call.
struct BuildRequest {
  const Graph& graph;
  const Plan& plan;
  const WeightSource& weights;  // Of constants and recipes.
  // Groups whose kernel is left to the device prefer those whose weights another executable of the
  // device holds ready to those that are faster.
  bool prefers_held_weights = false;
  // Executables of the device that never run while this one does: their memory for what lies
  // between groups may be this one's as well.
  std::span<Executable* const> never_beside = {};
  // The caller's tensors hold the bytes of their places' layouts, as large as plain ones: what one
  // segment leaves for the next. A device that does not know this converts on both sides.
  bool keeps_layouts = false;
};

class Device {
 public:
  explicit Device(DeviceDescription description) : description_(std::move(description)) {}
  virtual ~Device() = default;

  const DeviceSpec& spec() const { return description_.spec; }
  const Environment& environment() const { return description_.environment; }
  bool simulated() const { return description_.simulated; }
  bool cools_caches() const { return description_.cools_caches; }

  // Returns the kernels that can run the group, best guess first; measurement chooses. Never empty
  // on success. kUnimplemented names what is missing (operator, dtype, layout).
  virtual StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) = 0;

  // Begins long preparations (compiling) of the problem's kernels, which will soon be built, each
  // alone. Returns at once.
  virtual void Prepare(const GroupProblem&) {}

  // Makes the plan runnable. kInvalidArgument: the plan does not fit the graph or this device.
  // kResourceExhausted: no memory; the message has the bytes asked for.
  virtual StatusOr<std::unique_ptr<Executable>> Build(const BuildRequest& request) = 0;

  // Calls work(i) for each i below `count`, beside each other on an even share of the cores each,
  // where the device can. Returns the time until all had ended; nothing: they ran one after the
  // other, so that their own times add up.
  virtual std::optional<Nanos> RunBeside(int count, const std::function<void(int)>& work) {
    for (int i = 0; i < count; ++i) work(i);
    return std::nullopt;
  }

  // Runs a fixed piece of work and returns its time, which shows drift and foreign load between
  // samples. It is warm under every policy: it measures the machine, not a plan.
  virtual StatusOr<Nanos> Canary() = 0;

 protected:
  DeviceDescription description_;
};

}  // namespace ag
