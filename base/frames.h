// Messages over a socket pair: a 4-byte type, an 8-byte length, the payload, and up to
// kFrameFdsMax file descriptors. Used between worker agent and executor, and with the jail.
// One thread may send while another receives; the sockets are blocking ones. Only the system calls
// sendmsg, recvmsg and ppoll (with a timeout) are used until a frame is refused; then also shutdown
// and recvfrom. A payload's memory grows with the bytes that came, never with the length claimed.
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

// Blocks until the peer or the socket's buffer took all of it; the fds stay open here.
// kUnavailable when the peer is gone (never SIGPIPE). kInvalidArgument: too many fds.
Status SendFrame(int socket, uint32_t type, std::string_view payload,
                 const std::vector<int>& fds = {});

// Waits for one frame. kUnavailable: the peer closed or died. kDeadlineExceeded: nothing complete
// within `timeout` (zero: no limit). kResourceExhausted: the frame is larger than
// `payload_bytes_max`, or it has more fds than fit. A timeout before a frame began may be followed
// by another try; every other error in the middle of a frame shuts the socket down, and later calls
// return kUnavailable.
struct ReceiveOptions {
  Nanos timeout{0};
  uint64_t payload_bytes_max = uint64_t{1} << 32;
};
StatusOr<Frame> ReceiveFrame(int socket, const ReceiveOptions& options = {});

}  // namespace ag
