// Models and tensors as files, for the verbs that run models in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "runtime/session.h"

namespace ag {

// kUnavailable when it cannot be opened, whatever the reason.
StatusOr<std::unique_ptr<Device>> OpenLocalDevice(const std::string& name);

// Errors about the model name its file.
StatusOr<std::unique_ptr<Session>> LoadSession(const ModelFlags& flags, PlanChoice plan,
                                               int streams = 0);
// On a device that is open already.
StatusOr<std::unique_ptr<Session>> LoadSession(const ModelFlags& flags, PlanChoice plan,
                                               Device& device, int streams = 0);

// Reads a tensor from FILE.npy (numpy's format 1 to 3, C order) or FILE.pb (ONNX TensorProto).
StatusOr<Tensor> ReadNpy(const std::string& bytes);
StatusOr<Tensor> ReadTensorFile(const std::string& path);
Status WriteNpy(const std::string& path, const Tensor& tensor);

// One tensor per model input: from NAME=FILE flags, random data (seeded) for the rest.
StatusOr<std::vector<Tensor>> GatherInputs(const Session& session,
                                           const std::vector<std::string>& files, uint64_t seed);

}  // namespace ag
