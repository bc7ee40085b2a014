// Messages over a socket pair: a 4-byte type, an 8-byte length, the payload, and up to kFrameFdsMax
// file descriptors. The worker agent and the executor use them, and the sandbox. Sockets are
// blocking. One thread may send while another one receives. System calls, for the sandbox's filter:
// sendmsg and recvmsg, ppoll when there is a timeout, and shutdown and recvfrom after a frame is
// refused. The memory of a payload grows with the bytes that arrived, never with the length that
// the peer claims.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/status.h"

namespace ag {

inline constexpr size_t kFrameFdsMax = 16;

struct Frame {
  uint32_t type = 0;
  std::string payload;
  std::vector<Fd> fds;
};

// Sends one frame and returns when the peer or the socket's buffer has all of it. The fds stay open
// in this process. kUnavailable: the peer is gone (never SIGPIPE). kInvalidArgument: too many fds.
Status SendFrame(int socket, uint32_t type, std::string_view payload,
                 const std::vector<int>& fds = {});

// Waits for one frame. kUnavailable: the peer closed or died. kDeadlineExceeded: no complete frame
// within `timeout` (zero: no limit). kResourceExhausted: the frame is larger than
// `payload_bytes_max`, or it has too many fds. After a timeout before the first byte of a frame the
// caller may try again. Every error inside a frame shuts the socket down; later calls return
// kUnavailable.
struct ReceiveOptions {
  Nanos timeout{0};
  uint64_t payload_bytes_max = uint64_t{1} << 32;
};
StatusOr<Frame> ReceiveFrame(int socket, const ReceiveOptions& options = {});

}  // namespace ag
