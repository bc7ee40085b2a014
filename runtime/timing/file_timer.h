// The role "time-file": a process that loads one model file as a session and runs it on request.
// The codecs are pure functions. Private to this folder.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "graph/types.h"

namespace ag::internal {

inline constexpr const char* kTimeFileRole = "time-file";
inline constexpr uint32_t kTimeFileFrame = 1;

struct FileTimerRequest {
  std::string path;
  std::string device;
  std::map<std::string, Shape> shapes;
  bool cold_cache = false;
  std::string plan = {};  // As FileToTime::plan.
};

std::string EncodeFileTimerRequest(const FileTimerRequest& request);
StatusOr<FileTimerRequest> DecodeFileTimerRequest(std::string_view bytes);

}  // namespace ag::internal
