#include "client/cli/local_model.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "device/open_device.h"
#include "graph/onnx/files/model_view.h"
#include "graph/onnx/tensor_proto.h"

namespace ag {
namespace {

constexpr uint64_t kNextSeed = 7919;  // Of the next tensor of a sequence.

StatusOr<SessionOptions> MakeOptions(const ModelFlags& flags, PlanChoice plan, int streams) {
  SessionOptions options{.device = flags.device,
                         .plan = plan,
                         .streams = streams,
                         .tune = flags.tune,
                         .name = flags.model};
  if (flags.tuned_plans == "none") {
    options.tuned_plans = "";
  } else if (!flags.tuned_plans.empty()) {
    options.tuned_plans = flags.tuned_plans;
  }
  for (const std::string& text : flags.shapes) {
    AG_LET(const auto shape, ParseNamedSizes(text));
    options.shapes[shape.first] = Shape(shape.second.begin(), shape.second.end());
  }
  return options;
}

// Loads by `load`, which takes options, at the sizes of the user's own inputs where the flags have
// some. When that fails, the model's own sizes tell what is wrong with the inputs.
StatusOr<std::unique_ptr<Session>> LoadAtInputs(const ModelFlags& flags,
                                                const SessionOptions& options, const auto& load) {
  if (flags.inputs.empty()) return load(options);
  AG_LET(const std::vector<NamedSet> sets, ReadInputFolder(flags.inputs, flags.model));
  SessionOptions at = options;
  for (const auto& [name, tensor] : sets[0].inputs) at.shapes.emplace(name, tensor.type().shape);
  auto session = load(at);
  if (session.ok()) return session;
  auto without = load(options);
  if (!without.ok()) return without;
  AG_TRY(TensorsOf(**without, sets[0].inputs), "{}", sets[0].name);
  return session;
}

}  // namespace

StatusOr<std::unique_ptr<Device>> OpenLocalDevice(const std::string& name) {
  auto device = OpenDevice(name);
  if (!device.ok()) return Status(StatusCode::kUnavailable, Message(device.status()));
  return device;
}

StatusOr<std::unique_ptr<Session>> LoadSession(const ModelFlags& flags, PlanChoice plan,
                                               int streams) {
  AG_LET(SessionOptions options, MakeOptions(flags, plan, streams));
  AG_LET(const std::shared_ptr<const ModelView> file, ModelView::Open(flags.model));
  options.owner = file;
  auto session = LoadAtInputs(
      flags, options, [&](const SessionOptions& at) { return Session::Load(file->bytes(), at); });
  // Reports a missing device as such, not as a fault of the model.
  if (!session.ok()) AG_TRY(OpenLocalDevice(flags.device));
  return session;
}

StatusOr<std::unique_ptr<Session>> LoadSession(const ModelFlags& flags, PlanChoice plan,
                                               Device& device, int streams) {
  AG_LET(SessionOptions options, MakeOptions(flags, plan, streams));
  AG_LET(const std::shared_ptr<const ModelView> file, ModelView::Open(flags.model));
  options.owner = file;
  return LoadAtInputs(flags, options, [&](const SessionOptions& at) {
    return Session::Load(file->bytes(), at, device);
  });
}

StatusOr<Tensor> ReadTensorFile(const std::string& path) {
  AG_LET(const std::string bytes, ReadFile(path));
  StatusOr<Tensor> tensor = path.ends_with(".pb") ? ParseTensorProto(bytes) : ReadNpy(bytes);
  if (!tensor.ok()) return Within(tensor.status(), path);
  return tensor;
}

StatusOr<ModelValue> ReadValueFile(const std::string& path, OnnxKind kind) {
  AG_LET(const std::string bytes, ReadFile(path));
  StatusOr<ModelValue> value = ParseValueProto(bytes, kind);
  if (!value.ok()) return Within(value.status(), path);
  return value;
}

std::vector<InputSpec> DescribeInputs(const Session& session) {
  const std::vector<InputSpec> in_graph = DescribeInputs(session.graph());
  std::vector<InputSpec> specs;
  for (const TensorInfo& info : session.inputs()) {
    const auto known = std::ranges::find(in_graph, info.name, &InputSpec::name);
    const bool is_same = known != in_graph.end() && known->type == info.type;
    specs.push_back(is_same ? *known : DescribeInput(info.name, info.type));
  }
  return specs;
}

std::vector<ModelValue> ValuesOf(const Session& session,
                                 const std::vector<std::vector<Tensor>>& sets) {
  std::vector<ModelValue> values;
  for (const TensorInfo& info : session.inputs()) {
    std::vector<Tensor> tensors;
    for (const std::vector<Tensor>& set : sets) {
      if (tensors.empty() || info.holds_sequence) tensors.push_back(set[values.size()]);
    }
    values.push_back(MakeValue(info.form(), std::move(tensors)));
  }
  return values;
}

std::vector<ModelValue> MakeValues(const Session& session, InputKind kind, uint64_t seed) {
  const std::vector<InputSpec> specs = DescribeInputs(session);
  return ValuesOf(session,
                  {MakeInputs(specs, kind, seed), MakeInputs(specs, kind, seed + kNextSeed)});
}

StatusOr<std::vector<ModelValue>> GatherInputs(const Session& session,
                                               const std::vector<std::string>& files,
                                               uint64_t seed) {
  std::map<std::string, std::vector<Tensor>> given;
  for (const std::string& text : files) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Err(StatusCode::kInvalidArgument, "--input {}: expected NAME=FILE", text);
    }
    AG_LET(Tensor tensor, ReadTensorFile(text.substr(equals + 1)));
    given[text.substr(0, equals)].push_back(std::move(tensor));
  }
  std::vector<ModelValue> inputs = MakeValues(session, InputKind::kUsual, seed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& info = session.inputs()[i];
    const auto found = given.find(info.name);
    if (found == given.end()) continue;
    if (found->second.size() > 1 && !info.holds_sequence) {
      return Err(StatusCode::kInvalidArgument, "--input {}: {} files for {}", info.name,
                 found->second.size(), ToString(info.form()));
    }
    inputs[i] = MakeValue(info.form(), std::move(found->second));
    given.erase(found);
  }
  if (!given.empty()) {
    return Err(StatusCode::kInvalidArgument, "the model has no input \"{}\"", given.begin()->first);
  }
  return inputs;
}

StatusOr<std::vector<Tensor>> TensorsOf(const Session& session, const InputSet& set) {
  std::vector<InputSpec> specs;
  for (const TensorInfo& info : session.inputs()) {
    specs.push_back({.name = info.name, .type = info.type});
    const auto given = set.find(info.name);
    if (given == set.end()) continue;
    const Shape& shape = given->second.type().shape;
    for (const size_t axis : info.open_axes) {
      if (shape.size() == info.type.shape.size()) specs.back().type.shape[axis] = shape[axis];
    }
  }
  AG_TRY(CheckInputSet(set, specs));
  std::vector<Tensor> tensors;
  for (const InputSpec& spec : specs) tensors.push_back(set.at(spec.name));
  return tensors;
}

StatusOr<std::vector<NamedSet>> OwnInputs(const ModelFlags& flags) {
  if (flags.inputs.empty()) return std::vector<NamedSet>();
  return ReadInputFolder(flags.inputs, flags.model);
}

StatusOr<std::vector<Tensor>> InputsToTime(const Session& session, const ModelFlags& flags) {
  AG_LET(const std::vector<NamedSet> sets, OwnInputs(flags));
  if (sets.empty()) return MakeInputs(DescribeInputs(session), InputKind::kUsual, 1);
  auto tensors = TensorsOf(session, sets[0].inputs);
  AG_TRY(tensors, "{}", sets[0].name);
  return tensors;
}

}  // namespace ag
