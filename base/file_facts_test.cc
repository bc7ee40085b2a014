#include "base/file_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace ag {
namespace {

class FileFactsTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  const TempDir folder_ = *TempDir::Make("file-facts");
};

TEST_F(FileFactsTest, LinksLeadToOneFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "same").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("b"), "same").ok());
  ASSERT_EQ(::symlink("a", Path("soft").c_str()), 0);
  ASSERT_EQ(::link(Path("a").c_str(), Path("hard").c_str()), 0);
  for (const char* name : {"a", "soft", "hard", "./a"}) {
    EXPECT_TRUE(IsSameFile(Path("a"), Path(name))) << name;
  }
  for (const char* name : {"b", "none"}) EXPECT_FALSE(IsSameFile(Path("a"), Path(name))) << name;
  EXPECT_FALSE(IsSameFile(Path("none"), Path("none")));
}

TEST_F(FileFactsTest, TheHolderOfALockIsKnown) {
  EXPECT_EQ(LockHolder(Path("lock")), 0);
  {
    const FileLock held = FileLock::Wait(Path("lock"), FileLock::Mode::kShared).value();
    EXPECT_EQ(LockHolder(Path("lock")), ::getpid());
  }
  EXPECT_EQ(LockHolder(Path("lock")), 0);
}

}  // namespace
}  // namespace ag
