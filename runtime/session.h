// The runtime: loads an ONNX model and runs it on a device, with the plan that it carries when that
// fits. Users link it to serve optimized models; runtime/autograph.h is the same in C. Thread-safe:
// several threads may run one Session, and their runs take turns.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "device/api/device.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/model_value.h"
#include "plan/plan.h"
#include "runtime/model_weights.h"
#include "runtime/whole_model.h"

namespace ag {

// The plan that runs the model.
enum class PlanChoice {
  kCarried,  // The plan in the model's metadata when graph and environment match and the device
             // can build it; else kInput.
  kInput,    // Cleaned up and grouped, no rules, kernels and streams by estimate.
  kUnfused,  // Every operator by itself, one stream.
};

struct SessionOptions {
  std::string device = "cpu";
  std::map<std::string, Shape> shapes;  // For inputs whose sizes the model leaves open.
  PlanChoice plan = PlanChoice::kCarried;
  // From 1: a plan made here, kInput scheduled on at most this many streams. 0: the number of the
  // carried plan; a plan made here has one, or more where estimates promise a gain (GuessPlan,
  // plan/schedule/planner.h), or with `tune` as many as measure best.
  int streams = 0;
  // True: a plan that is made here (kInput, kUnfused, or because no carried plan fits) comes from
  // measurements. Every kernel of every group is timed while loading, for seconds to a minute,
  // under the host's measuring lock. False: it comes from the spec's rates, at once.
  bool tune = false;
  // A folder that keeps tuned plans for later sessions with `tune`. Nothing: the user's own
  // (DefaultTunedPlans), or none where it cannot be written to. Empty: none.
  std::optional<std::string> tuned_plans = std::nullopt;
  std::string name = {};  // The model's name in errors; empty: not named.
  // Keeps the model's bytes alive and unchanged, e.g. a MappedFile: weights are then used in place.
  // Empty: the session copies the bytes that it needs.
  std::shared_ptr<const void> owner = {};
  // Gives back pages of the model's bytes that come again when they are read, e.g. those of a
  // mapped file; called while loading, from any thread. For processes that shall hold little: a
  // weight that kernels use in place is read anew by the first run. Empty: the pages stay.
  std::function<void()> drop_pages = {};
  // A plan that counts as carried and comes before those in the metadata; empty: none.
  std::string plan_bytes = {};
};

struct TensorInfo {
  std::string name;
  TensorType type;  // The planned one. Of a sequence or an optional: of its tensors.
  // Axes of an input whose sizes the model leaves open: a run may give others.
  std::vector<size_t> open_axes = {};
  // False for an output of a model with a dynamic part, and for what is no tensor: the shape of
  // `type` says nothing.
  bool has_shape = true;
  OnnxKind kind = OnnxKind::kTensor;
  bool holds_sequence = false;  // A sequence, or an optional of one.

  ValueForm form() const { return {kind, holds_sequence, type}; }
};

class Session {
 public:
  // Opens the device and loads the model. Parses the model in this process; for models that are not
  // trusted use the service, which imports in a sandbox. Returns the errors of ImportOnnx and of
  // the device; kUnimplemented: an operator cannot run here.
  static StatusOr<std::unique_ptr<Session>> Load(std::string_view onnx_bytes,
                                                 const SessionOptions& options);
  // Loads the model on an open device. REQUIRES: the device outlives the session.
  static StatusOr<std::unique_ptr<Session>> Load(std::string_view onnx_bytes,
                                                 const SessionOptions& options, Device& device);

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }

  // Runs once on the caller's tensors, in the order of inputs(), and returns the outputs. Sizes
  // that the model leaves open may differ from the planned ones: the first run of other sizes loads
  // the model for them, with a plan by estimate, and the last eight such sets are kept.
  // kInvalidArgument names the input whose type differs; the errors of Load for other sizes; those
  // of a dynamic part (DynamicProgram::Run); an input or output that is no tensor.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs);

  // Runs as Run, on a model that takes or gives sequences and optionals too (TensorInfo::kind).
  StatusOr<std::vector<ModelValue>> RunValues(const std::vector<ModelValue>& inputs);

  // Runs once on the caller's memory, without copies or allocation: one pointer per input and
  // output, in their order, to exactly the bytes of its type, aligned to the element's size.
  // Returns the time that the device took (an estimate on a simulated one). kInvalidArgument names
  // the pointer that does not fit. After an error the contents of the outputs are undefined.
  // kFailedPrecondition: the model has a dynamic part, so Run must give the outputs.
  StatusOr<Nanos> RunInPlace(std::span<const void* const> inputs, std::span<void* const> outputs);

  bool uses_carried_plan() const { return uses_carried_plan_; }
  // True: some nodes run one by one, and the sizes of outputs are known after a run.
  bool is_dynamic() const { return whole_ != nullptr; }
  // Returns zeros for a run of executable() to write to; none for a dynamic model, which gives its
  // outputs itself (WholeModel).
  std::vector<Tensor> NewOutputs() const;
  const std::vector<std::string>& warnings() const {
    return warnings_;
  }                                              // E.g. why a plan was not used.
  const Graph& graph() const { return graph_; }  // The graph that runs.
  const Plan& plan() const { return plan_; }
  // For measuring. REQUIRES: no other thread runs the session meanwhile.
  Device& device() { return *device_; }
  Executable& executable() { return *executable_; }

 private:
  Session() = default;
  // What a session for other sizes takes from the one on the same device that was loaded from the
  // same bytes.
  struct Base {
    const ModelWeights::Hashes* hashes = nullptr;
    std::vector<Executable*> never_beside = {};  // BuildRequest's.
  };
  // `base` is null for the first session.
  static StatusOr<std::unique_ptr<Session>> LoadOn(Device& device, std::string_view onnx_bytes,
                                                   const SessionOptions& options,
                                                   const Base* base = nullptr);
  // Builds the first carried plan that the device can build, else a plan made here.
  // Names the inputs and outputs, and reads the dynamic part.
  Status Describe(const ImportedModel& model, const WeightSource& weights);
  // Returns the session for these input types, which differ in open sizes only.
  StatusOr<Session*> Variant(const std::vector<ModelValue>& inputs) AG_REQUIRES(mutex_);
  StatusOr<std::vector<ModelValue>> RunPlanned(const std::vector<ModelValue>& inputs)
      AG_REQUIRES(mutex_);
  Status Build(const ImportedModel& model, const WeightSource& weights,
               const SessionOptions& options);
  Status BuildOwn(const WeightSource& weights, const SessionOptions& options);
  BuildRequest RequestFor(const Graph& graph, const Plan& plan, const WeightSource& weights) const;
  Status BuildCarried(const Graph& graph, std::optional<Graph>& cleaned,
                      std::string_view plan_bytes, const WeightSource& weights);

  std::unique_ptr<Device> owned_device_;
  Device* device_ = nullptr;
  Graph graph_;
  Plan plan_;
  std::unique_ptr<Executable> executable_;
  WholeModel* whole_ = nullptr;  // The executable of a model with a dynamic part.
  std::vector<TensorInfo> inputs_, outputs_;
  std::vector<std::string> warnings_;
  bool uses_carried_plan_ = false;
  const Base* base_ = nullptr;  // While it is loaded.
  // What loads the model for other sizes: set where the model leaves some open.
  std::string_view bytes_;
  SessionOptions options_;
  std::shared_ptr<const ModelWeights::Hashes> hashes_;  // Of weights inside bytes_.

  // Held during a whole run: an executable has one arena, so only one run fits at a time.
  Mutex mutex_;
  // The tensors that RunInPlace hands to the executable, made once so that a run allocates nothing.
  std::vector<Tensor> given_ AG_GUARDED_BY(mutex_), wanted_ AG_GUARDED_BY(mutex_);
  // By the shapes of all inputs; the one used last is the first.
  std::list<std::pair<std::vector<Shape>, std::unique_ptr<Session>>> variants_
      AG_GUARDED_BY(mutex_);
};

}  // namespace ag
