#include "client/cli/local_model.h"

#include "base/file.h"
#include "base/text.h"
#include "device/open_device.h"
#include "graph/onnx/files/model_view.h"
#include "graph/onnx/tensor_proto.h"

namespace ag {
namespace {

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
  StatusOr<std::unique_ptr<Session>> session = Session::Load(file->bytes(), options);
  // Reports a missing device as such, not as a fault of the model.
  if (!session.ok()) AG_TRY(OpenLocalDevice(flags.device));
  return session;
}

StatusOr<std::unique_ptr<Session>> LoadSession(const ModelFlags& flags, PlanChoice plan,
                                               Device& device, int streams) {
  AG_LET(SessionOptions options, MakeOptions(flags, plan, streams));
  AG_LET(const std::shared_ptr<const ModelView> file, ModelView::Open(flags.model));
  options.owner = file;
  return Session::Load(file->bytes(), options, device);
}

StatusOr<Tensor> ReadTensorFile(const std::string& path) {
  AG_LET(const std::string bytes, ReadFile(path));
  StatusOr<Tensor> tensor = path.ends_with(".pb") ? ParseTensorProto(bytes) : ReadNpy(bytes);
  if (!tensor.ok()) return Within(tensor.status(), path);
  return tensor;
}

StatusOr<std::vector<Tensor>> GatherInputs(const Session& session,
                                           const std::vector<std::string>& files, uint64_t seed) {
  std::map<std::string, Tensor> given;
  for (const std::string& text : files) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Err(StatusCode::kInvalidArgument, "--input {}: expected NAME=FILE", text);
    }
    AG_LET(given[text.substr(0, equals)], ReadTensorFile(text.substr(equals + 1)));
  }
  std::vector<Tensor> inputs;
  for (const TensorInfo& info : session.inputs()) {
    const auto found = given.find(info.name);
    if (found == given.end()) {
      inputs.push_back(RandomTensor(info.type, seed + inputs.size()));
      continue;
    }
    inputs.push_back(found->second);
    given.erase(found);
  }
  if (!given.empty()) {
    return Err(StatusCode::kInvalidArgument, "the model has no input \"{}\"", given.begin()->first);
  }
  return inputs;
}

}  // namespace ag
