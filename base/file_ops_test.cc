#include "base/file_ops.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"

namespace ag::file_ops {
namespace {

class FileOpsTest : public testing::Test {
 protected:
  const TempDir folder_ = TempDir::Make("file_ops_test.").value();
  const std::string path_ = folder_.path() + "/a";
};

TEST_F(FileOpsTest, ReturnsErrnoValues) {
  Fd fd;
  EXPECT_EQ(CreateNew(path_, 0600, fd), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  Fd other;
  EXPECT_EQ(CreateNew(path_, 0600, other), EEXIST);
  EXPECT_FALSE(other);
  EXPECT_EQ(MakeDir(path_), EEXIST);
  EXPECT_EQ(SyncDir(path_), ENOTDIR);
  EXPECT_EQ(SyncDir(folder_.path()), 0);
  EXPECT_EQ(WriteAll(fd.get(), "abc"), 0);
  EXPECT_EQ(Sync(fd.get()), 0);
  EXPECT_EQ(Rename(path_, path_ + "b"), 0);
  EXPECT_EQ(Remove(path_), ENOENT);
  EXPECT_EQ(Link(path_ + "b", path_), 0);
  EXPECT_EQ(Link(path_ + "b", path_), EEXIST);
  EXPECT_EQ(Remove(path_), 0);
  EXPECT_EQ(Remove(path_ + "b"), 0);
  EXPECT_EQ(WriteAll(-1, "abc"), EBADF);
}

TEST_F(FileOpsTest, ZerosBecomeHoles) {
  constexpr size_t kKiB = 1024;
  const std::string zeros(300 * kKiB, '\0'), text(100 * kKiB, 'a');
  const std::string pieces[] = {"x", zeros, text + zeros + "b", zeros + text, "", zeros};
  Fd fd;
  ASSERT_EQ(CreateNew(path_, 0600, fd), 0);
  std::string all;
  for (const std::string& piece : pieces) {
    ASSERT_EQ(AppendAll(fd.get(), piece), 0);
    all += piece;
    ASSERT_EQ(ReadFile(path_).value(), all);
  }
  struct stat info {};
  ASSERT_EQ(::fstat(fd.get(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, static_cast<off_t>(all.size() / 2));
  EXPECT_EQ(AppendAll(-1, zeros), EBADF);
  EXPECT_EQ(AppendAll(-1, "x"), EBADF);
}

TEST_F(FileOpsTest, FaultHitsTheNthCallOnly) {
  const FileFault fault({.n = 2, .error = EDQUOT});
  Fd fd;
  EXPECT_EQ(CreateNew(path_, 0600, fd), 0);
  EXPECT_FALSE(fault.Fired());
  EXPECT_EQ(WriteAll(fd.get(), "abcd"), EDQUOT);
  EXPECT_TRUE(fault.Fired());
  EXPECT_EQ(ReadFile(path_).value(), "ab");
  EXPECT_EQ(Remove(path_), 0);
}

TEST_F(FileOpsTest, FaultCanLast) {
  {
    const FileFault fault({.n = 1, .error = EIO, .all_later = true});
    EXPECT_EQ(MakeDir(path_), EIO);
    EXPECT_EQ(MakeDir(path_), EIO);
  }
  EXPECT_EQ(MakeDir(path_), 0);
}

TEST_F(FileOpsTest, OtherCallsCountAsWell) {
  EXPECT_EQ(InjectedFault(), 0);
  const FileFault fault({.n = 2, .error = EIO});
  EXPECT_EQ(InjectedFault(), 0);
  EXPECT_EQ(InjectedFault(), EIO);
  EXPECT_EQ(MakeDir(path_), 0);
}

TEST_F(FileOpsTest, SyncsCanBeLeftOut) {
  EXPECT_EQ(Sync(-1), EBADF);
  const NoSyncs no_syncs;
  EXPECT_EQ(Sync(-1), 0);
  const FileFault fault({.n = 1, .error = EIO, .all_later = true});
  EXPECT_EQ(Sync(-1), EIO);
  EXPECT_EQ(SyncDir(folder_.path()), EIO);
}

}  // namespace
}  // namespace ag::file_ops
