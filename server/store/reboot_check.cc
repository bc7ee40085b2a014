#include "server/store/reboot_check.h"

#include "base/blobs.h"
#include "base/file.h"

namespace ag {

StatusOr<RebootCheck> CheckAfterReboot(const std::string& data_dir, BlobDir& blobs,
                                       const std::string& boot_id_path) {
  RebootCheck check;
  const StatusOr<std::string> boot = ReadFile(boot_id_path);
  if (!boot.ok()) return check;
  const std::string note = data_dir + "/boot";
  const StatusOr<std::string> noted = ReadFile(note);
  if (noted.ok() && *noted == *boot) return check;
  AG_LET(const std::vector<Digest> digests, blobs.List());
  for (const Digest& digest : digests) {
    ++check.checked;
    const Status status = blobs.Verify(digest);
    if (status.code() != StatusCode::kDataLoss) {
      AG_TRY(status);
      continue;
    }
    AG_TRY(blobs.Remove(digest));
    ++check.removed;
  }
  AG_TRY(WriteFileAtomically(note, *boot));
  return check;
}

}  // namespace ag
