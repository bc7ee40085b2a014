#include "device/api/lost_device.h"

#include "absl/strings/cord.h"

namespace ag {
namespace {

constexpr char kLostDeviceType[] = "autograph/lost-device";

}  // namespace

Status LostDevice(Status error) {
  error.SetPayload(kLostDeviceType, absl::Cord());
  return error;
}

bool IsLostDevice(const Status& status) { return status.GetPayload(kLostDeviceType).has_value(); }

}  // namespace ag
