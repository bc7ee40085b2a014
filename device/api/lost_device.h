// The mark of an error after which a device is lost: every later call fails, and the device must be
// opened anew in a fresh process. The mark is a payload of the status, so Within keeps it; other
// processes are told by the message that they exchange. Pure functions.
#pragma once

#include "base/status.h"

namespace ag {

// Returns the error with the mark.
Status LostDevice(Status error);

bool IsLostDevice(const Status& status);

}  // namespace ag
