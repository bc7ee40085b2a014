#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "device/open_device.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/import/obstacles.h"
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

// Sets of sizes other than the planned ones that stay loaded.
constexpr size_t kVariantsMax = 8;

// Returns the graph of the plan: the model's, or the cleaned-up one. A file has composites (gelu,
// swish, ...) expanded where its opset lacks them, while a plan may use them whole. `cleaned` holds
// the second one once it was made.
StatusOr<Graph> GraphOfPlan(const Graph& model, const Plan& plan, std::optional<Graph>& cleaned) {
  if (plan.graph == model.digest()) return model;
  if (!cleaned) {
    AG_LET(cleaned, CleanUp(model, BuiltInRules()));
  }
  if (plan.graph == cleaned->digest()) return *cleaned;
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

// As many different reasons why a model cannot run are told at once.
constexpr int kObstaclesMax = 8;

// Fails for opaque operators that no kernel here can run, and tells of all.
Status CheckRunnable(const ImportedModel& model) {
  Obstacles obstacles(kObstaclesMax);
  const auto& names = model.origin.names;
  for (NodeId id = 0; id < model.graph.size() && !obstacles.Ends(); ++id) {
    const Node& node = model.graph.node(id);
    if (!Has(node.op, kBarrier)) continue;
    const Status status = KeptOperator::Of(node).status();
    if (status.ok()) continue;
    const auto at = static_cast<size_t>(id);
    const bool has_name = at < names.size() && !names[at].node.empty();
    const std::string noun = has_name ? fmt::format("node {}", Quoted(names[at].node)) : "";
    obstacles.Add(noun, has_name ? Within(status, noun) : status, {});
  }
  return obstacles.All();
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
    const std::string& name = infos[i].name;
    const TensorType& type = infos[i].type;
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

// Whether the type is the planned one, up to the sizes that the model leaves open.
bool FitsOpenSizes(const TensorInfo& info, const TensorType& given) {
  if (given.dtype != info.type.dtype || given.shape.size() != info.type.shape.size()) return false;
  for (size_t axis = 0; axis < given.shape.size(); ++axis) {
    const bool open = std::ranges::count(info.open_axes, axis) > 0;
    if (!open && given.shape[axis] != info.type.shape[axis]) return false;
  }
  return true;
}

// Returns an input with the axes that the model leaves open.
TensorInfo InfoOf(const std::string& name, const TensorType& type, const OnnxOrigin& origin) {
  TensorInfo info{name, type};
  for (size_t axis = 0; axis < info.type.shape.size(); ++axis) {
    const std::string place = fmt::format("{}:{}", info.name, axis);
    const auto names_it = [&](const auto& open) { return open.first == place; };
    if (std::ranges::any_of(origin.dim_names, names_it)) info.open_axes.push_back(axis);
  }
  return info;
}

// Returns a tensor over the caller's memory; only the kernel of an output writes to it.
Tensor Borrow(const TensorType& type, const void* memory) {
  const auto size = static_cast<size_t>(type.Bytes());
  return Tensor::View(type, {static_cast<const char*>(memory), size}, nullptr);
}

// Puts the model's name, if it has one, in front of an error.
StatusOr<std::unique_ptr<Session>> Named(StatusOr<std::unique_ptr<Session>> loaded,
                                         const std::string& name) {
  if (loaded.ok() || name.empty()) return loaded;
  return Within(loaded.status(), name);
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
  return Named(LoadOn(device, onnx_bytes, options), options.name);
}

StatusOr<std::unique_ptr<Session>> Session::LoadOn(Device& device, std::string_view onnx_bytes,
                                                   const SessionOptions& options,
                                                   const Base* base) {
  std::unique_ptr<Session> session(new Session());
  session->device_ = &device;
  ModelWeights weights(onnx_bytes, options.owner, options.drop_pages);
  if (base != nullptr) weights.Know(*base->hashes);
  session->base_ = base;
  AG_LET(const ImportedModel model, ImportOnnx(onnx_bytes, {.shapes = options.shapes}, weights));
  AG_TRY(CheckRunnable(model));
  session->warnings_ = model.warnings;
  AG_TRY(session->Build(model, weights, options));
  session->base_ = nullptr;
  AG_TRY(session->Describe(model, weights));
  if (model.origin.dim_names.empty()) return session;
  session->options_ = options;
  session->options_.plan_bytes.clear();
  session->options_.tune = false;
  session->bytes_ = onnx_bytes;
  if (options.owner != nullptr) {
    session->hashes_ = std::make_shared<const ModelWeights::Hashes>(weights.hashes());
    return session;
  }
  const auto copy = std::make_shared<const std::string>(onnx_bytes);
  session->bytes_ = *copy;
  session->options_.owner = copy;
  session->hashes_ = std::make_shared<const ModelWeights::Hashes>(weights.HashesIn(*copy));
  return session;
}

Status Session::Describe(const ImportedModel& model, const WeightSource& weights) {
  for (size_t i = 0; i < graph_.inputs().size(); ++i) {
    inputs_.push_back(
        InfoOf(graph_.input_name(i), graph_.type({graph_.inputs()[i], 0}), model.origin));
  }
  for (const GraphOutput& output : graph_.outputs()) {
    outputs_.push_back({output.name, graph_.type(output.edge)});
  }
  MutexLock lock(mutex_);
  given_.resize(inputs_.size());
  wanted_.resize(outputs_.size());
  if (model.origin.dynamic.empty()) return OkStatus();
  AG_LET(DynamicProgram dynamic, DynamicProgram::Of(model.origin, weights));
  for (size_t i = 0; i < dynamic.inputs().size(); ++i) {
    const DynamicPart::Input& input = dynamic.inputs()[i];
    const ValueForm& form = dynamic.input_forms()[i];
    const bool is_tensor = form.kind == OnnxKind::kTensor;
    TensorInfo info = is_tensor ? InfoOf(input.name, input.type, model.origin)
                                : TensorInfo{.name = input.name, .type = form.item};
    info.has_shape = is_tensor;
    info.kind = form.kind;
    info.holds_sequence = form.holds_sequence;
    inputs_.insert(inputs_.begin() + input.position, std::move(info));
  }
  outputs_.clear();
  for (const auto& [name, form] : dynamic.outputs()) {
    outputs_.push_back({.name = name,
                        .type = {form.item.dtype, {}},
                        .has_shape = false,
                        .kind = form.kind,
                        .holds_sequence = form.holds_sequence});
  }
  auto whole =
      std::make_unique<WholeModel>(std::move(executable_), std::move(dynamic), graph_, *device_);
  whole_ = whole.get();
  executable_ = std::move(whole);
  return OkStatus();
}

Status Session::Build(const ImportedModel& model, const WeightSource& weights,
                      const SessionOptions& options) {
  if (options.plan == PlanChoice::kCarried && options.streams == 0) {
    auto plans = model.plans;
    if (!options.plan_bytes.empty()) plans.emplace(plans.begin(), "given", options.plan_bytes);
    std::optional<Graph> cleaned;
    std::vector<std::string> ignored;
    for (const auto& [key, bytes] : plans) {
      const Status built = BuildCarried(model.graph, cleaned, bytes, weights);
      if (built.ok()) return OkStatus();  // The others are for other sizes, or devices.
      auto& list = key == "given" ? warnings_ : ignored;
      // The key and what the message quotes are bytes of the file.
      list.push_back(
          OneLine(fmt::format("plan {} ignored: {}", key.substr(0, 12), Message(built))));
    }
    warnings_.insert(warnings_.end(), ignored.begin(), ignored.end());
  }
  AG_LET(graph_, CleanUp(model.graph, BuiltInRules()));
  return BuildOwn(weights, options);
}

Status Session::BuildOwn(const WeightSource& weights, const SessionOptions& options) {
  TuningOptions tuning{.grouped = options.plan != PlanChoice::kUnfused,
                       .streams = options.streams,
                       .must_keep = options.tuned_plans.has_value()};
  if (!options.tune) {
    AG_LET(plan_, GuessedPlan(graph_, device_->spec(), tuning));
    AG_LET(executable_, device_->Build(RequestFor(graph_, plan_, weights)));
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

BuildRequest Session::RequestFor(const Graph& graph, const Plan& plan,
                                 const WeightSource& weights) const {
  BuildRequest request{.graph = graph, .plan = plan, .weights = weights};
  if (base_ == nullptr) return request;
  request.prefers_held_weights = true;
  request.never_beside = base_->never_beside;
  return request;
}

Status Session::BuildCarried(const Graph& graph, std::optional<Graph>& cleaned,
                             std::string_view plan_bytes, const WeightSource& weights) {
  AG_LET(Plan plan, ReadCarriedPlan(plan_bytes, *device_));
  AG_LET(Graph of_plan, GraphOfPlan(graph, plan, cleaned));
  AG_LET(executable_, device_->Build(RequestFor(of_plan, plan, weights)));
  graph_ = std::move(of_plan);
  plan_ = std::move(plan);
  uses_carried_plan_ = true;
  return OkStatus();
}

StatusOr<std::vector<Tensor>> Session::Run(const std::vector<Tensor>& inputs) {
  for (const auto& [what, infos] : {std::pair{"input", &inputs_}, {"output", &outputs_}}) {
    for (const TensorInfo& info : *infos) {
      if (info.kind == OnnxKind::kTensor) continue;
      return Err(StatusCode::kInvalidArgument, "{} \"{}\" is {}: only a run of values has it", what,
                 info.name, ToString(info.form()));
    }
  }
  AG_LET(const std::vector<ModelValue> values, RunValues({inputs.begin(), inputs.end()}));
  std::vector<Tensor> outputs;
  for (const ModelValue& value : values) outputs.push_back(value.tensor);
  return outputs;
}

StatusOr<std::vector<ModelValue>> Session::RunValues(const std::vector<ModelValue>& inputs) {
  if (inputs.size() != inputs_.size()) {
    return Err(StatusCode::kInvalidArgument, "model: expected {} inputs, got {}", inputs_.size(),
               inputs.size());
  }
  bool is_planned = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& info = inputs_[i];
    if (info.kind != OnnxKind::kTensor || inputs[i].kind != OnnxKind::kTensor) {
      AG_TRY(CheckForm(inputs[i], info.form()), "input \"{}\"", info.name);
      continue;
    }
    const TensorType& given = inputs[i].tensor.type();
    is_planned = is_planned && given == info.type;
    if (FitsOpenSizes(info, given)) continue;
    return Err(StatusCode::kInvalidArgument, "input \"{}\": expected {}, got {}", info.name,
               info.type.ToString(), given.ToString());
  }
  MutexLock lock(mutex_);
  if (is_planned) return RunPlanned(inputs);
  AG_LET(Session* const variant, Variant(inputs));
  MutexLock variant_lock(variant->mutex_);
  return variant->RunPlanned(inputs);
}

StatusOr<std::vector<ModelValue>> Session::RunPlanned(const std::vector<ModelValue>& inputs) {
  if (is_dynamic()) {
    AG_TRY(whole_->RunValues(inputs).status());
    return whole_->TakeResults();
  }
  std::vector<Tensor> tensors, outputs = NewOutputs();
  for (const ModelValue& input : inputs) tensors.push_back(input.tensor);
  AG_TRY(executable_->Run(tensors, outputs));
  return std::vector<ModelValue>(outputs.begin(), outputs.end());
}

std::vector<Tensor> Session::NewOutputs() const {
  return is_dynamic() ? std::vector<Tensor>() : EmptyOutputs(graph_);
}

StatusOr<Session*> Session::Variant(const std::vector<ModelValue>& inputs) {
  std::vector<Shape> shapes;
  for (const ModelValue& input : inputs) shapes.push_back(input.tensor.type().shape);
  const auto found =
      std::ranges::find(variants_, shapes, [](const auto& entry) { return entry.first; });
  if (found != variants_.end()) {
    variants_.splice(variants_.begin(), variants_, found);
    return variants_.front().second.get();
  }
  SessionOptions options = options_;
  options.shapes.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs_[i].kind == OnnxKind::kTensor) options.shapes[inputs_[i].name] = shapes[i];
  }
  Base base{.hashes = hashes_.get(), .never_beside = {executable_.get()}};
  for (const auto& [of_shapes, other] : variants_) {
    base.never_beside.push_back(other->executable_.get());
  }
  AG_LET(std::unique_ptr<Session> variant,
         Named(LoadOn(*device_, bytes_, options, &base), options.name));
  if (variants_.size() == kVariantsMax) variants_.pop_back();
  variants_.emplace_front(std::move(shapes), std::move(variant));
  return variants_.front().second.get();
}

StatusOr<Nanos> Session::RunInPlace(std::span<const void* const> inputs,
                                    std::span<void* const> outputs) {
  if (is_dynamic()) {
    return Err(
        StatusCode::kFailedPrecondition,
        "the sizes of the model's outputs are known after a run, so it cannot write in place");
  }
  AG_TRY(CheckPointers("input", inputs_, inputs));
  AG_TRY(CheckPointers("output", outputs_, {outputs.data(), outputs.size()}));
  MutexLock lock(mutex_);
  for (size_t i = 0; i < inputs.size(); ++i) given_[i] = Borrow(inputs_[i].type, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) wanted_[i] = Borrow(outputs_[i].type, outputs[i]);
  return executable_->Run(given_, wanted_);
}

}  // namespace ag
