// A check of the blobs after the whole machine crashed. Weights that an import stored are not
// synced one by one (BlobDir::Durable::kAfterSync), so a power loss may leave a blob with the right
// name and size and wrong bytes; a crash of the process cannot. So blobs are hashed once after each
// boot. One thread at a time.
#pragma once

#include <string>

#include "base/blobs.h"

namespace ag {

struct RebootCheck {
  int checked = 0;  // 0: the machine has not been booted since.
  int removed = 0;  // Blobs whose bytes do not match their name; an import makes them again.
};

// Compares the machine's boot id with the one noted in <data_dir>/boot; when they differ, verifies
// all of `blobs` and notes the new one. Does nothing where no boot id can be read.
StatusOr<RebootCheck> CheckAfterReboot(
    const std::string& data_dir, BlobDir& blobs,
    const std::string& boot_id_path = "/proc/sys/kernel/random/boot_id");

}  // namespace ag
