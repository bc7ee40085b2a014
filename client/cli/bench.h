// Functions that the forms of `autograph bench` share. Each form prints everything and returns the
// exit code. One thread at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "client/cli/flags.h"
#include "device/profile/profile.h"
#include "graph/inputs/input_set.h"
#include "runtime/session.h"

namespace ag {

StatusOr<int> BenchCompare(Context& context,
                           const BenchFlags& flags);  // An old model against a new one.
StatusOr<int> BenchClients(Context& context, const BenchFlags& flags);  // Several sessions at once.

// Returns a session's plan with these inputs and room for its outputs. REQUIRES: the session
// outlives it.
PlanToTime ToTime(Session& session, std::vector<Tensor> inputs);

// Times the plans beside each other for as many seconds as the flags or the form's default say,
// from evicted caches where the flags say so, under the host's measuring lock. plans[0] is what the
// others are compared with.
StatusOr<std::vector<PlanTiming>> TimePlans(Device& device, std::vector<PlanToTime> plans,
                                            const BenchFlags& flags);

// Returns {device, environment, simulated, cold_cache}, the beginning of each form's document.
nlohmann::ordered_json BenchJson(const BenchFlags& flags, const Device& device);

// Times one or two model files in ONNX Runtime on `inputs` when --ort asks for it: prints the line
// and sets "onnxruntime" in `json`. Fails only with `require`.
Status AddOrtTimes(Context& context, const BenchFlags& flags,
                   const std::vector<std::string>& models, const InputSet& inputs,
                   nlohmann::ordered_json* json);

// Prints the document with --json; else a note when every time is an estimate.
void FinishBench(Context& context, const Device& device, const nlohmann::ordered_json& json);

}  // namespace ag
