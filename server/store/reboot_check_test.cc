#include "server/store/reboot_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/blobs.h"
#include "base/file.h"

namespace ag {
namespace {

class RebootCheckTest : public testing::Test {
 protected:
  RebootCheck Check() {
    const auto check = CheckAfterReboot(folder_.path(), *blobs_, boot_);
    AG_CHECK(check.ok());
    return *check;
  }
  void Boot(std::string_view id) { ASSERT_TRUE(WriteFileAtomically(boot_, id).ok()); }
  // The right size with wrong bytes, as after a power loss.
  void Zero(const Digest& digest) {
    const std::string path = blobs_->PathOf(digest);
    const auto size = std::filesystem::file_size(path);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    std::ofstream(path, std::ios::binary) << std::string(size, '\0');
  }

  const TempDir folder_ = *TempDir::Make("reboot-check");
  const std::string boot_ = folder_.path() + "/boot_id";
  std::shared_ptr<BlobDir> blobs_ = *BlobDir::Open(folder_.path() + "/blobs");
};

TEST_F(RebootCheckTest, LooksOnlyAfterAReboot) {
  const Digest kept = *blobs_->Put("kept"), lost = *blobs_->Put("lost");
  Boot("one");
  EXPECT_EQ(Check().checked, 2);  // No boot id was noted before.
  Zero(lost);
  EXPECT_EQ(Check().checked, 0);
  Boot("two");
  const RebootCheck check = Check();
  EXPECT_EQ(check.checked, 2);
  EXPECT_EQ(check.removed, 1);
  EXPECT_TRUE(blobs_->Has(kept));
  EXPECT_FALSE(blobs_->Has(lost));
  EXPECT_EQ(Check().checked, 0);
}

TEST_F(RebootCheckTest, WithoutABootIdNothingIsLookedAt) {
  Zero(*blobs_->Put("lost"));
  EXPECT_EQ(Check().checked, 0);
  EXPECT_FALSE(FileExists(folder_.path() + "/boot"));
}

}  // namespace
}  // namespace ag
