#include "net/address.h"

#include "base/text.h"

namespace ag {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr int64_t kPortMax = 65535;

Status CheckAddress(const std::string& address, int64_t port_min) {
  const Status wrong =
      Err(StatusCode::kInvalidArgument, "{}: expected HOST:PORT or unix:PATH", address);
  if (address.starts_with(kUnix)) return address.size() > kUnix.size() ? OkStatus() : wrong;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return wrong;
  const auto port = ParseInt(address.substr(colon + 1));
  return port.ok() && *port >= port_min && *port <= kPortMax ? OkStatus() : wrong;
}

}  // namespace

Status CheckListenAddress(const std::string& address) { return CheckAddress(address, 0); }
Status CheckServerAddress(const std::string& address) { return CheckAddress(address, 1); }

std::string WrongListenAddress(const std::string& address) {
  return Message(CheckListenAddress(address));
}
std::string WrongServerAddress(const std::string& address) {
  return Message(CheckServerAddress(address));
}

}  // namespace ag
