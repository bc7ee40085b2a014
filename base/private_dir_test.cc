#include "base/private_dir.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777u;
}

TEST(PrivateDir, IsItsOwners) {
  const TempDir folder = *TempDir::Make("private_dir_test.");
  const mode_t before = ::umask(022);
  EXPECT_EQ(ToString(MakePrivateDir(folder.path() + "/a/b/")), "OK");
  EXPECT_EQ(ModeOf(folder.path() + "/a"), 0755u);
  EXPECT_EQ(ModeOf(folder.path() + "/a/b"), 0700u);
  EXPECT_EQ(ToString(MakeDirs(folder.path() + "/c")), "OK");
  EXPECT_EQ(ToString(MakePrivateDir(folder.path() + "/c")), "OK");
  EXPECT_EQ(ModeOf(folder.path() + "/c"), 0755u) << "it was there";
  ASSERT_TRUE(WriteFileAtomically(folder.path() + "/file", "").ok());
  EXPECT_EQ(ToString(MakePrivateDir(folder.path() + "/file")),
            "FAILED_PRECONDITION: make folder " + folder.path() + "/file: File exists");
  ::umask(before);
}

}  // namespace
}  // namespace ag
