// Blobs after a crash of the whole machine. Weights that an import stored are not synced one by one
// (BlobDir::Durable::kAfterSync), so a power loss may leave a blob with the right name and size and
// wrong bytes. A crash of ours cannot; so blobs are hashed once when the machine was started anew.
#pragma once

#include <string>

#include "base/blobs.h"

namespace ag {

struct RebootCheck {
  int checked = 0;  // 0: the machine is still the one that wrote them.
  int removed = 0;  // Had other bytes than their name says; an import makes them again.
};

// Compares the machine's boot with the one noted in <data_dir>/boot, verifies all of `blobs` when
// they differ, and notes this boot. Where no boot id can be read nothing happens.
StatusOr<RebootCheck> CheckAfterReboot(
    const std::string& data_dir, BlobDir& blobs,
    const std::string& boot_id_path = "/proc/sys/kernel/random/boot_id");

}  // namespace ag
