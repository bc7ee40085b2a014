// The runtime: loads an ONNX model and runs it on a device, with its plan when it carries one that
// fits. What users link to serve optimized models. One Session is used by one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/api/device.h"
#include "graph/onnx/onnx.h"
#include "plan/plan.h"

namespace ag {

// How the model is run.
enum class PlanChoice {
  kCarried,  // The plan in the model's metadata when graph and environment match and the device
             // can build it; else kInput.
  kInput,    // Cleaned up and grouped, one stream, no rules: the denominator of every speedup.
  kEager,    // Every operator by itself, one stream.
};

struct SessionOptions {
  std::string device = "cpu";
  std::map<std::string, Shape> shapes;  // For inputs whose sizes the model leaves open.
  PlanChoice plan = PlanChoice::kCarried;
  int streams = 0;        // Beyond 1: kInput scheduled on so many streams. 0: as the plan says.
  std::string name = {};  // Of the model, in errors about it; empty: not said.
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

  bool uses_carried_plan() const { return uses_carried_plan_; }
  const std::vector<std::string>& warnings() const {
    return warnings_;
  }                                              // Why a plan was not used, ...
  const Graph& graph() const { return graph_; }  // As it runs.
  const Plan& plan() const { return plan_; }
  Device& device() { return *device_; }
  Executable& executable() { return *executable_; }

 private:
  Session() = default;
  static StatusOr<std::unique_ptr<Session>> LoadOn(Device& device, std::string_view onnx_bytes,
                                                   const SessionOptions& options);
  // The first carried plan that the device can build, or one made here.
  Status Build(const ImportedModel& model, const WeightSource& weights,
               const SessionOptions& options);
  Status BuildCarried(const Graph& graph, std::string_view plan_bytes, const WeightSource& weights);

  std::unique_ptr<Device> owned_device_;
  Device* device_ = nullptr;
  Graph graph_;
  Plan plan_;
  std::unique_ptr<Executable> executable_;
  std::vector<TensorInfo> inputs_, outputs_;
  std::vector<std::string> warnings_;
  bool uses_carried_plan_ = false;
};

// The metadata key of a plan: a digest of what it is bound to.
std::string PlanKey(const Digest& graph, const Environment& environment, const Policy& policy);

}  // namespace ag
