#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "device/open_device.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/operators/operators.h"
#include "plan/format/plan_codec.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "runtime/model_weights.h"
#include "runtime/tuned_plans.h"

namespace ag {
namespace {

// Returns the graph of the plan: the model's, or the cleaned-up one. A file has composites (gelu,
// swish, ...) expanded where its opset lacks them, while a plan may use them whole.
StatusOr<Graph> GraphOfPlan(const Graph& model, const Plan& plan) {
  if (plan.graph == model.digest()) return model;
  AG_LET(Graph cleaned, CleanUp(model, BuiltInRules()));
  if (plan.graph == cleaned.digest()) return cleaned;
  return Err(StatusCode::kFailedPrecondition, "made for graph {}, this is {}", plan.graph.Short(),
             model.digest().Short());
}

// Returns the carried plan when it was made in this environment.
StatusOr<Plan> ReadCarriedPlan(std::string_view bytes, const Device& device) {
  AG_LET(Plan plan, DecodePlan(bytes));
  if (plan.environment != device.environment()) {
    return Err(StatusCode::kFailedPrecondition, "made for environment {}, this is {}",
               plan.environment, device.environment());
  }
  return plan;
}

// Fails for an opaque operator that no kernel here can run.
Status CheckRunnable(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (Has(node.op, kBarrier)) AG_TRY(KeptOperator::Of(node));
  }
  return OkStatus();
}

// True for an error of building that a stored plan causes when it names a kernel that no longer
// exists.
bool MayBeOutdated(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kUnimplemented;
}

// Checks the pointers that RunInPlace got for `infos`.
Status CheckPointers(std::string_view what, const std::vector<TensorInfo>& infos,
                     std::span<const void* const> pointers) {
  if (pointers.size() != infos.size()) {
    return Err(StatusCode::kInvalidArgument, "model: expected {} {}s, got {}", infos.size(), what,
               pointers.size());
  }
  for (size_t i = 0; i < infos.size(); ++i) {
    const auto& [name, type] = infos[i];
    if (pointers[i] == nullptr && type.Bytes() > 0) {
      return Err(StatusCode::kInvalidArgument, "{} \"{}\": expected {} bytes of {}, got NULL", what,
                 name, type.Bytes(), type.ToString());
    }
    const auto element = static_cast<uintptr_t>(SizeOf(type.dtype));
    if (reinterpret_cast<uintptr_t>(pointers[i]) % element == 0) continue;
    return Err(StatusCode::kInvalidArgument, "{} \"{}\": {} must be aligned to {} bytes", what,
               name, type.ToString(), element);
  }
  return OkStatus();
}

// Returns a tensor over the caller's memory; only the kernel of an output writes to it.
Tensor Borrow(const TensorType& type, const void* memory) {
  const auto size = static_cast<size_t>(type.Bytes());
  return Tensor::View(type, {static_cast<const char*>(memory), size}, nullptr);
}

}  // namespace

StatusOr<std::unique_ptr<Session>> Session::Load(std::string_view onnx_bytes,
                                                 const SessionOptions& options) {
  AG_LET(std::unique_ptr<Device> device, OpenDevice(options.device));
  AG_LET(std::unique_ptr<Session> session, Load(onnx_bytes, options, *device));
  session->owned_device_ = std::move(device);
  return session;
}

StatusOr<std::unique_ptr<Session>> Session::Load(std::string_view onnx_bytes,
                                                 const SessionOptions& options, Device& device) {
  StatusOr<std::unique_ptr<Session>> session = LoadOn(device, onnx_bytes, options);
  if (session.ok() || options.name.empty()) return session;
  return Within(session.status(), options.name);
}

StatusOr<std::unique_ptr<Session>> Session::LoadOn(Device& device, std::string_view onnx_bytes,
                                                   const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session());
  session->device_ = &device;
  ModelWeights weights(onnx_bytes, options.owner);
  AG_LET(const ImportedModel model, ImportOnnx(onnx_bytes, {.shapes = options.shapes}, weights));
  AG_TRY(CheckRunnable(model.graph));
  session->warnings_ = model.warnings;
  AG_TRY(session->Build(model, weights, options));
  const Graph& graph = session->graph_;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    session->inputs_.push_back({graph.input_name(i), graph.type({graph.inputs()[i], 0})});
  }
  for (const GraphOutput& output : graph.outputs()) {
    session->outputs_.push_back({output.name, graph.type(output.edge)});
  }
  MutexLock lock(session->mutex_);
  session->given_.resize(session->inputs_.size());
  session->wanted_.resize(session->outputs_.size());
  return session;
}

Status Session::Build(const ImportedModel& model, const WeightSource& weights,
                      const SessionOptions& options) {
  if (options.plan == PlanChoice::kCarried && options.streams == 0) {
    auto plans = model.plans;
    if (!options.plan_bytes.empty()) plans.emplace(plans.begin(), "given", options.plan_bytes);
    for (const auto& [key, bytes] : plans) {
      const Status built = BuildCarried(model.graph, bytes, weights);
      if (built.ok()) return OkStatus();
      warnings_.push_back(fmt::format("plan {} ignored: {}", key.substr(0, 12), Message(built)));
    }
  }
  AG_LET(graph_, CleanUp(model.graph, BuiltInRules()));
  return BuildOwn(weights, options);
}

Status Session::BuildOwn(const WeightSource& weights, const SessionOptions& options) {
  TuningOptions tuning{.grouped = options.plan != PlanChoice::kUnfused,
                       .streams = options.streams,
                       .must_keep = options.tuned_plans.has_value()};
  if (!options.tune) {
    RooflineTimes times(device_->spec());
    AG_LET(plan_, MakePlan(graph_, device_->spec(), Policy(), times, {.grouped = tuning.grouped},
                           std::max(1, options.streams)));
    AG_LET(executable_, device_->Build({graph_, plan_, weights}));
    return OkStatus();
  }
  tuning.folder = options.tuned_plans ? *options.tuned_plans : DefaultTunedPlans();
  AG_LET(plan_, TunedPlan(graph_, *device_, tuning));
  auto built = device_->Build({graph_, plan_, weights});
  if (!tuning.folder.empty() && MayBeOutdated(built.status())) {
    tuning.renew = true;
    AG_LET(plan_, TunedPlan(graph_, *device_, tuning));
    built = device_->Build({graph_, plan_, weights});
  }
  AG_LET(executable_, std::move(built));
  return OkStatus();
}

Status Session::BuildCarried(const Graph& graph, std::string_view plan_bytes,
                             const WeightSource& weights) {
  AG_LET(Plan plan, ReadCarriedPlan(plan_bytes, *device_));
  AG_LET(Graph of_plan, GraphOfPlan(graph, plan));
  AG_LET(executable_, device_->Build({of_plan, plan, weights}));
  graph_ = std::move(of_plan);
  plan_ = std::move(plan);
  uses_carried_plan_ = true;
  return OkStatus();
}

StatusOr<std::vector<Tensor>> Session::Run(const std::vector<Tensor>& inputs) {
  if (inputs.size() != inputs_.size()) {
    return Err(StatusCode::kInvalidArgument, "model: expected {} inputs, got {}", inputs_.size(),
               inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type() == inputs_[i].type) continue;
    return Err(StatusCode::kInvalidArgument, "input \"{}\": expected {}, got {}", inputs_[i].name,
               inputs_[i].type.ToString(), inputs[i].type().ToString());
  }
  std::vector<Tensor> outputs;
  for (const TensorInfo& output : outputs_) outputs.push_back(Tensor::Zeros(output.type));
  MutexLock lock(mutex_);
  AG_TRY(executable_->Run(inputs, outputs));
  return outputs;
}

StatusOr<Nanos> Session::RunInPlace(std::span<const void* const> inputs,
                                    std::span<void* const> outputs) {
  AG_TRY(CheckPointers("input", inputs_, inputs));
  AG_TRY(CheckPointers("output", outputs_, {outputs.data(), outputs.size()}));
  MutexLock lock(mutex_);
  for (size_t i = 0; i < inputs.size(); ++i) given_[i] = Borrow(inputs_[i].type, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) wanted_[i] = Borrow(outputs_[i].type, outputs[i]);
  return executable_->Run(given_, wanted_);
}

}  // namespace ag
