// Models and tensors as files, for the verbs that run models in this process. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "client/cli/input_folder.h"
#include "graph/inputs/make_inputs.h"
#include "runtime/session.h"

namespace ag {

// Opens the device. kUnavailable: it cannot be opened, whatever the reason.
StatusOr<std::unique_ptr<Device>> OpenLocalDevice(const std::string& name);

// Loads the flags' model on the flags' device. Errors about the model name its file.
StatusOr<std::unique_ptr<Session>> LoadSession(const ModelFlags& flags, PlanChoice plan,
                                               int streams = 0);
// Loads the model on an open device.
StatusOr<std::unique_ptr<Session>> LoadSession(const ModelFlags& flags, PlanChoice plan,
                                               Device& device, int streams = 0);

// Reads a tensor from FILE.npy (numpy's format 1 to 3, C order) or FILE.pb (ONNX TensorProto).
StatusOr<Tensor> ReadNpy(const std::string& bytes);
StatusOr<Tensor> ReadTensorFile(const std::string& path);
// Reads a value of this kind from FILE.pb (ONNX TensorProto, SequenceProto, OptionalProto).
StatusOr<ModelValue> ReadValueFile(const std::string& path, OnnxKind kind);
Status WriteNpy(const std::string& path, const Tensor& tensor);

// Describes the session's inputs, in their order (graph/inputs/describe.h).
std::vector<InputSpec> DescribeInputs(const Session& session);

// Returns a value for each of the session's inputs, made of its tensor in each set: a sequence has
// all of them, a tensor and an optional that of the first set.
std::vector<ModelValue> ValuesOf(const Session& session,
                                 const std::vector<std::vector<Tensor>>& sets);

// Returns made data for each of the session's inputs; a sequence has two tensors.
std::vector<ModelValue> MakeValues(const Session& session, InputKind kind, uint64_t seed);

// Returns a value for each of the session's inputs: from the NAME=FILE flags, else usual data. A
// sequence has the files of its flags in their order.
StatusOr<std::vector<ModelValue>> GatherInputs(const Session& session,
                                               const std::vector<std::string>& files,
                                               uint64_t seed);

// Returns the set's tensors in the session's order. Sizes that the model leaves open may differ
// from the planned ones. Errors as CheckInputSet.
StatusOr<std::vector<Tensor>> TensorsOf(const Session& session, const InputSet& set);

// Returns the flags' own sets of inputs; none where they name no folder.
StatusOr<std::vector<NamedSet>> OwnInputs(const ModelFlags& flags);

// Returns what a model is timed on: the first of the flags' own sets, else usual data.
StatusOr<std::vector<Tensor>> InputsToTime(const Session& session, const ModelFlags& flags);

}  // namespace ag
