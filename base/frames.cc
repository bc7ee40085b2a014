#include "base/frames.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/file.h"

namespace ag {
namespace {

constexpr size_t kHeaderBytes = sizeof(uint32_t) + sizeof(uint64_t);
constexpr size_t kControlBytes = CMSG_SPACE(kFrameFdsMax * sizeof(int));

// A payload's buffer starts with at most this size, whatever length the peer claims. It doubles
// each time it is full of received bytes, so each byte is copied once on average.
constexpr uint64_t kFirstBufferBytes = uint64_t{1} << 20;

bool IsPeerGone(int error) { return error == EPIPE || error == ECONNRESET || error == ENOTCONN; }

// Puts `fds` into `message`, whose control buffer is `control`.
void AttachFds(const std::vector<int>& fds, char* control, msghdr& message) {
  if (fds.empty()) return;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
}

// Takes the file descriptors that came with `message` into `fds`, which closes them after any
// error.
void CollectFds(msghdr& message, std::vector<Fd>& fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}

// Removes the first `sent` bytes from the two parts.
void Advance(size_t sent, std::array<iovec, 2>& parts) {
  for (iovec& part : parts) {
    const size_t taken = std::min(sent, part.iov_len);
    part.iov_base = static_cast<char*>(part.iov_base) + taken;
    part.iov_len -= taken;
    sent -= taken;
  }
}

// Receives one frame from a socket, within a deadline.
class Receiver {
 public:
  Receiver(int socket, const ReceiveOptions& options) : socket_(socket), options_(options) {
    if (options.timeout > Nanos{0}) deadline_ = RealClock().Now() + options.timeout;
  }

  StatusOr<Frame> Receive();

 private:
  // Reads 1 to `size` bytes, and file descriptors only when `fds` is given.
  StatusOr<size_t> ReadSome(char* data, size_t size, std::vector<Fd>* fds);
  Status ReadHeader();
  Status ReadPayload();
  Status WaitForBytes();
  Status Ended(StatusCode code, std::string_view what) const;
  void Abandon();

  int socket_;
  ReceiveOptions options_;
  std::optional<Nanos> deadline_;
  Frame frame_;
  size_t header_got_ = 0;
  uint64_t payload_bytes_ = 0;
  uint64_t payload_got_ = 0;
};

// Returns the status for an incomplete frame; it says how much arrived.
Status Receiver::Ended(StatusCode code, std::string_view what) const {
  if (header_got_ < kHeaderBytes) {
    return Err(code, "frame: {} after {} of {} header bytes", what, header_got_, kHeaderBytes);
  }
  return Err(code, "frame {}: {} after {} of {} bytes", frame_.type, what, payload_got_,
             payload_bytes_);
}

Status Receiver::WaitForBytes() {
  if (!deadline_) return OkStatus();
  for (;;) {
    const Nanos left = *deadline_ - RealClock().Now();
    if (left <= Nanos{0}) {
      return Ended(
          StatusCode::kDeadlineExceeded,
          fmt::format("timeout of {} ms", options_.timeout / std::chrono::milliseconds{1}));
    }
    timespec wait{left / std::chrono::seconds{1}, (left % std::chrono::seconds{1}).count()};
    pollfd event{socket_, POLLIN, 0};
    const int ready = ::ppoll(&event, 1, &wait, nullptr);
    if (ready > 0) return OkStatus();
    if (ready < 0 && errno != EINTR) return FromErrno(errno, "frame: poll");
  }
}

StatusOr<size_t> Receiver::ReadSome(char* data, size_t size, std::vector<Fd>* fds) {
  alignas(cmsghdr) std::array<char, kControlBytes> control;
  for (;;) {
    AG_TRY(WaitForBytes());
    iovec part{data, size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = fds != nullptr ? control.data() : nullptr;
    message.msg_controllen = fds != nullptr ? control.size() : 0;
    const ssize_t got = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (got < 0 && IsPeerGone(errno))) {
      return Ended(StatusCode::kUnavailable, "the peer is gone");
    }
    if (got < 0) return FromErrno(errno, "frame: receive");
    if (fds != nullptr) CollectFds(message, *fds);
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
      return Err(StatusCode::kResourceExhausted,
                 "frame: file descriptors were lost: more than {} came, or this process may have "
                 "no more",
                 kFrameFdsMax);
    }
    return static_cast<size_t>(got);
  }
}

Status Receiver::ReadHeader() {
  std::array<char, kHeaderBytes> header;
  while (header_got_ < kHeaderBytes) {
    AG_LET(const size_t got,
           ReadSome(header.data() + header_got_, kHeaderBytes - header_got_, &frame_.fds));
    header_got_ += got;
  }
  ByteReader reader({header.data(), header.size()});
  AG_LET(frame_.type, reader.U32());
  AG_LET(payload_bytes_, reader.U64());
  if (payload_bytes_ <= options_.payload_bytes_max) return OkStatus();
  return Err(StatusCode::kResourceExhausted, "frame {}: expected at most {} bytes, got {}",
             frame_.type, options_.payload_bytes_max, payload_bytes_);
}

Status Receiver::ReadPayload() {
  while (payload_got_ < payload_bytes_) {
    if (payload_got_ == frame_.payload.size()) {
      const uint64_t size = std::max(kFirstBufferBytes, 2 * payload_got_);
      frame_.payload.resize(std::min(size, payload_bytes_));
    }
    AG_LET(const size_t got, ReadSome(frame_.payload.data() + payload_got_,
                                      frame_.payload.size() - payload_got_, nullptr));
    payload_got_ += got;
  }
  return OkStatus();
}

// Drops the rest of a frame that nobody will read: shuts the socket down in both directions and
// discards the bytes that arrived. The next call then finds the end, not a wrong header.
void Receiver::Abandon() {
  ::shutdown(socket_, SHUT_RDWR);
  std::array<char, 65536> dropped;
  for (;;) {
    const ssize_t got = ::recv(socket_, dropped.data(), dropped.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

StatusOr<Frame> Receiver::Receive() {
  Status status = ReadHeader();
  if (status.ok()) status = ReadPayload();
  if (status.ok()) return std::move(frame_);
  if (header_got_ > 0) Abandon();
  return status;
}

}  // namespace

Status SendFrame(int socket, uint32_t type, std::string_view payload, const std::vector<int>& fds) {
  if (fds.size() > kFrameFdsMax) {
    return Err(StatusCode::kInvalidArgument,
               "frame {}: expected at most {} file descriptors, got {}", type, kFrameFdsMax,
               fds.size());
  }
  ByteWriter writer;
  writer.U32(type);
  writer.U64(payload.size());
  std::string header = writer.Take();
  std::array<iovec, 2> parts = {
      {{header.data(), header.size()}, {const_cast<char*>(payload.data()), payload.size()}}};
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  AttachFds(fds, control.data(), message);
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && IsPeerGone(errno)) {
      return Err(StatusCode::kUnavailable, "frame {}: the peer is gone", type);
    }
    if (sent < 0) return FromErrno(errno, fmt::format("frame {}: send", type));
    Advance(static_cast<size_t>(sent), parts);
    message.msg_control = nullptr;  // The file descriptors went with the first byte.
    message.msg_controllen = 0;
  }
  return OkStatus();
}

StatusOr<Frame> ReceiveFrame(int socket, const ReceiveOptions& options) {
  return Receiver(socket, options).Receive();
}

}  // namespace ag
