// What the forms of `autograph bench` share. Each form prints everything and returns the exit code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "client/cli/flags.h"
#include "device/profile/profile.h"
#include "runtime/session.h"

namespace ag {

int BenchCompare(Context& context, const BenchFlags& flags);  // An old model against a new one.
int BenchClients(Context& context, const BenchFlags& flags);  // Several sessions at once.

// A session's plan with these inputs and room for its outputs. The session outlives it.
PlanToTime ToTime(Session& session, std::vector<Tensor> inputs);

// Finals of about so many seconds as the flags say or the form's default is, from flushed caches
// where the flags say so, holding the host's measuring lock. plans[0] is what the others are
// compared with.
StatusOr<std::vector<PlanTiming>> TimePlans(Device& device, std::vector<PlanToTime> plans,
                                            const BenchFlags& flags);

// {device, environment, simulated, cold_cache}: how each form's document begins.
nlohmann::ordered_json BenchJson(const BenchFlags& flags, const Device& device);

// When --ort asks for it, times one or two model files in ONNX Runtime: prints the line and sets
// "onnxruntime" in `json`. An error only with `require`.
Status AddOrtTimes(Context& context, const BenchFlags& flags,
                   const std::vector<std::string>& models, nlohmann::ordered_json* json);

// The document with --json; else a note when every time is an estimate.
void FinishBench(Context& context, const Device& device, const nlohmann::ordered_json& json);

}  // namespace ag
