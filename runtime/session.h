// The runtime: loads an ONNX model and runs it on a device, with its plan when it carries one that
// fits. What users link to serve optimized models; runtime/autograph.h is the same in C.
// Thread-safe: several threads may run one Session, and runs take turns.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "device/api/device.h"
#include "graph/onnx/onnx.h"
#include "plan/plan.h"

namespace ag {

// How the model is run.
enum class PlanChoice {
  kCarried,  // The plan in the model's metadata when graph and environment match and the device
             // can build it; else kInput.
  kInput,    // Cleaned up and grouped, one stream, no rules, kernels by estimate.
  kEager,    // Every operator by itself, one stream.
};

struct SessionOptions {
  std::string device = "cpu";
  std::map<std::string, Shape> shapes;  // For inputs whose sizes the model leaves open.
  PlanChoice plan = PlanChoice::kCarried;
  // From 1: a plan made here, kInput scheduled on at most so many streams. 0: as the carried plan
  // says; one made here has one, or with `tune` as many as measure best.
  int streams = 0;
  // Whether a plan that is made here (kInput, kEager, or because none is carried that fits) comes
  // from measurements: every kernel of every group is timed while loading, seconds to a minute, in
  // which the host's measuring lock is held. false: from the spec's rates, at once.
  bool tune = false;
  // A folder that remembers what tuning found, for later sessions with `tune` alone. Nothing: the
  // user's own (DefaultTunedPlans), or none where it cannot be written to. Empty: none.
  std::optional<std::string> tuned_plans = std::nullopt;
  std::string name = {};  // Of the model, in errors about it; empty: not said.
  // What keeps the model's bytes alive and unchanged, e.g. a MappedFile: weights are then used
  // where they lie. Empty: the session copies what it needs of the bytes.
  std::shared_ptr<const void> owner = {};
};

struct TensorInfo {
  std::string name;
  TensorType type;
};

class Session {
 public:
  // Opens the device and loads the model. The import runs in this process: for models that are not
  // trusted use the service, which imports in a jail.
  static StatusOr<std::unique_ptr<Session>> Load(std::string_view onnx_bytes,
                                                 const SessionOptions& options);
  // On a device that is open already; it must outlive the session.
  static StatusOr<std::unique_ptr<Session>> Load(std::string_view onnx_bytes,
                                                 const SessionOptions& options, Device& device);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }

  // Runs once on caller's tensors, in the order of inputs(). kInvalidArgument names the input whose
  // type differs.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs);

  // Runs once on the caller's memory, without copies and without allocating: one pointer per input
  // and output, in their order, to exactly the bytes of its type, aligned to the element's size.
  // Returns how long the device took (an estimate on a simulated one). kInvalidArgument names the
  // pointer that does not fit. After an error the outputs hold anything.
  StatusOr<Nanos> RunInPlace(std::span<const void* const> inputs, std::span<void* const> outputs);

  bool uses_carried_plan() const { return uses_carried_plan_; }
  const std::vector<std::string>& warnings() const {
    return warnings_;
  }                                              // Why a plan was not used, ...
  const Graph& graph() const { return graph_; }  // As it runs.
  const Plan& plan() const { return plan_; }
  // For those who measure: REQUIRES that no other thread runs the session meanwhile.
  Device& device() { return *device_; }
  Executable& executable() { return *executable_; }

 private:
  Session() = default;
  static StatusOr<std::unique_ptr<Session>> LoadOn(Device& device, std::string_view onnx_bytes,
                                                   const SessionOptions& options);
  // The first carried plan that the device can build, or one made here.
  Status Build(const ImportedModel& model, const WeightSource& weights,
               const SessionOptions& options);
  Status BuildOwn(const WeightSource& weights, const SessionOptions& options);
  Status BuildCarried(const Graph& graph, std::string_view plan_bytes, const WeightSource& weights);
  StatusOr<Nanos> RunOnDevice(std::span<const Tensor> inputs, std::span<Tensor> outputs)
      AG_REQUIRES(mutex_);

  std::unique_ptr<Device> owned_device_;
  Device* device_ = nullptr;
  Graph graph_;
  Plan plan_;
  std::unique_ptr<Executable> executable_;
  std::vector<TensorInfo> inputs_, outputs_;
  std::vector<std::string> warnings_;
  bool uses_carried_plan_ = false;

  // Held over a whole run: an executable has one arena, so turns are what the memory allows.
  Mutex mutex_;
  // What RunInPlace hands to the executable, made once so that a run allocates nothing.
  std::vector<Tensor> given_ AG_GUARDED_BY(mutex_), wanted_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
