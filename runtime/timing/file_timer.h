// The role "time-file": a process that loads one model file as a session and runs it on request.
// Plain data. Private to this folder.
#pragma once

#include <map>
#include <string>

#include "base/fields.h"
#include "graph/types.h"

namespace ag::internal {

inline constexpr const char* kTimeFileRole = "time-file";
inline constexpr uint32_t kTimeFileFrame = 1;

struct FileTimerRequest {
  std::string path;
  std::string device;
  std::map<std::string, Shape> shapes;
  bool cold_cache = false;
  std::string plan = {};    // As FileToTime::plan.
  std::string inputs = {};  // As TimeFilesRequest::inputs.
};

void Fields(auto& io, Is<FileTimerRequest> auto& request) {
  io(request.path, request.device, request.cold_cache, request.plan, request.shapes,
     request.inputs);
}

}  // namespace ag::internal
