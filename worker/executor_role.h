// The executor process: the child that owns the device. The agent spawns it (base/process.h, role
// "executor"), opens a device in it, sends it work items and reads results, and may kill it at any
// time. The codecs are pure functions; the page is shared between two processes.
//
// Frames (payloads are base/bytes.h or protobuf bytes):
//   agent -> executor: kOpen {device, blob folder} + fd of the progress page
//                      kItem WorkItem
//   executor -> agent: kOpened {spec text, environment, simulated,
//               version of ONNX Runtime}, or kFailed {code, message}
//                      kResult ItemResult, one per entry; the last of an item has index -1
//                      kFailed {code, message} instead of a result: the device is lost, the
//                      executor ends
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/fields.h"

namespace ag {

inline constexpr char kExecutorRole[] = "executor";

enum ExecutorFrame : uint32_t {
  kOpenFrame = 1,
  kOpenedFrame = 2,
  kFailedFrame = 3,
  kItemFrame = 4,
  kResultFrame = 5,
};

// The shared page: the executor writes it, the agent's watchdog reads it. The agent reports `index`
// as the entry that crashed.
struct ProgressPage {
  std::atomic<uint64_t> counter;  // Grows with every progress.
  std::atomic<int32_t> index;     // The entry in hand; -1 between entries.
  // The process that holds the measuring lock while the executor waits for it, or kUnknownHolder; 0
  // when it does not wait.
  std::atomic<int32_t> lock_holder;
};

struct OpenRequest {
  std::string device;
  std::string blob_dir;
};
void Fields(auto& io, Is<OpenRequest> auto& open) { io(open.device, open.blob_dir); }

struct DeviceFacts {
  std::string spec;
  std::string environment;
  bool simulated = false;
  std::string onnxruntime;  // The version of ONNX Runtime on this machine; empty: none.
};
void Fields(auto& io, Is<DeviceFacts> auto& facts) {
  io(facts.spec, facts.environment, facts.simulated, facts.onnxruntime);
}

// Registers the role. Call it at the top of main, before RunChildRole.
void RegisterExecutorRole();

}  // namespace ag
