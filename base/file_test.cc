#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/file_ops.h"

namespace ag {
namespace {

using Names = std::vector<std::string>;

class FileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  const TempDir folder_ = TempDir::Make("file_test.").value();
};

TEST_F(FileTest, FromErrnoChoosesTheCode) {
  const struct {
    int error;
    const char* expected;
  } cases[] = {
      {ENOENT, "NOT_FOUND: x: No such file or directory"},
      {EACCES, "FAILED_PRECONDITION: x: Permission denied"},
      {EROFS, "FAILED_PRECONDITION: x: Read-only file system"},
      {ENOSPC, "RESOURCE_EXHAUSTED: x: No space left on device"},
      {EMFILE, "RESOURCE_EXHAUSTED: x: Too many open files"},
      {EPIPE, "UNAVAILABLE: x: Broken pipe"},
      {EIO, "INTERNAL: x: Input/output error"},
      {99999, "INTERNAL: x: error 99999"},
  };
  for (const auto& c : cases) EXPECT_EQ(ToString(FromErrno(c.error, "x")), c.expected);
}

TEST_F(FileTest, ReadsWhatWasWritten) {
  for (const size_t size : {0, 1, 4095, 4096, 100'000}) {
    const std::string bytes(size, 'x');
    ASSERT_EQ(ToString(WriteFileAtomically(Path("a"), bytes)), "OK");
    EXPECT_EQ(ReadFile(Path("a")).value(), bytes);
    EXPECT_EQ(MappedFile::Open(Path("a")).value()->bytes(), bytes);
  }
  EXPECT_EQ(ListDir(folder_.path()).value(), Names({"a"}));
  EXPECT_FALSE(ReadFile("/proc/self/stat").value().empty());  // Its size is given as 0.
}

TEST_F(FileTest, ErrorsNameThePath) {
  const std::string missing = Path("missing");
  const std::string inside = Path("missing/a");
  ASSERT_EQ(ToString(WriteFileAtomically(Path("file"), "x")), "OK");
  const struct {
    const char* name;
    Status status;
    std::string expected;
  } cases[] = {
      {"read", ReadFile(missing).status(), "NOT_FOUND: read {}: No such file or directory"},
      {"read a folder", ReadFile(folder_.path()).status(),
       "FAILED_PRECONDITION: read {}: Is a directory"},
      {"map", MappedFile::Open(missing).status(), "NOT_FOUND: read {}: No such file or directory"},
      {"map a folder", MappedFile::Open(folder_.path()).status(),
       "FAILED_PRECONDITION: read {}: not a regular file"},
      {"write", WriteFileAtomically(inside, "x"),
       "FAILED_PRECONDITION: write {}: No such file or directory"},
      {"list", ListDir(missing).status(), "NOT_FOUND: list {}: No such file or directory"},
      {"list a file", ListDir(Path("file")).status(), "NOT_FOUND: list {}: Not a directory"},
      {"make", MakeDirs(Path("file/a")), "FAILED_PRECONDITION: make folder {}: File exists"},
      {"lock", FileLock::TryExclusive(inside, "me").status(),
       "FAILED_PRECONDITION: write {}: No such file or directory"},
  };
  const std::string paths[] = {missing, folder_.path(), missing,      folder_.path(), inside,
                               missing, Path("file"),   Path("file"), inside};
  for (size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(ToString(cases[i].status), fmt::format(fmt::runtime(cases[i].expected), paths[i]))
        << cases[i].name;
  }
}

TEST_F(FileTest, SaysBeforehandWhetherAFileCanBeWritten) {
  ASSERT_EQ(ToString(WriteFileAtomically(Path("old"), "x")), "OK");
  EXPECT_EQ(ToString(CheckWritable(Path("old"))), "OK");
  EXPECT_EQ(ToString(CheckWritable(Path("new"))), "OK");
  EXPECT_EQ(ToString(CheckWritable(Path("no/new"))),
            "FAILED_PRECONDITION: write " + Path("no/new") + ": No such file or directory");
  EXPECT_EQ(ToString(CheckWritable(folder_.path())),
            "FAILED_PRECONDITION: write " + folder_.path() + ": Is a directory");
  EXPECT_EQ(ReadFile(Path("old")).value(), "x");
  EXPECT_EQ(ListDir(folder_.path()).value(), Names({"old"}));
}

// As root, a rename would put a file in the place of /dev/null.
TEST_F(FileTest, ReplacesNoDevice) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("pipe", Path("link").c_str()), 0);
  for (const char* name : {"pipe", "link"}) {
    const std::string expected =
        "FAILED_PRECONDITION: write " + Path(name) + ": not a regular file";
    EXPECT_EQ(ToString(CheckWritable(Path(name))), expected);
    EXPECT_EQ(ToString(WriteFileAtomically(Path(name), "x")), expected);
  }
  EXPECT_EQ(ListDir(folder_.path()).value(), Names({"link", "pipe"}));
}

TEST_F(FileTest, MakesAndListsFolders) {
  EXPECT_EQ(ToString(MakeDirs(Path("b/c/d"))), "OK");
  EXPECT_EQ(ToString(MakeDirs(Path("b/c/"))), "OK");
  EXPECT_EQ(ToString(MakeDirs(Path(".a"))), "OK");
  EXPECT_EQ(ListDir(folder_.path()).value(), Names({".a", "b"}));
  EXPECT_TRUE(FileExists(Path("b/c/d")));
  EXPECT_FALSE(FileExists(Path("b/x")));
}

// When any single call fails, or is the last one before a crash, the file has its old or its new
// bytes, and the next write works.
TEST_F(FileTest, FailedWritesLeaveOldOrNewBytes) {
  for (const bool all_later : {false, true}) {
    int n = 1;
    for (bool fired = true; fired; ++n) {
      ASSERT_EQ(ToString(WriteFileAtomically(Path("a"), "old")), "OK");
      Status status;
      {
        const file_ops::FileFault fault({.n = n, .error = ENOSPC, .all_later = all_later});
        status = WriteFileAtomically(Path("a"), "new bytes");
        fired = fault.Fired();
      }
      const std::string expected =
          "RESOURCE_EXHAUSTED: write " + Path("a") + ": No space left on device";
      EXPECT_EQ(ToString(status), fired ? expected : "OK") << n;
      const std::string bytes = ReadFile(Path("a")).value();
      // Only the last call, the folder's fsync, comes after the rename.
      EXPECT_EQ(bytes, n < 5 ? "old" : "new bytes") << n;
      if (!all_later) {
        EXPECT_EQ(ListDir(folder_.path()).value(), Names({"a"})) << n;
      }
    }
    EXPECT_EQ(n, 7);  // Five calls, each failing in one round, and a sixth round without failure.
  }
}

TEST_F(FileTest, FailedMakeDirsCanBeRepeated) {
  const file_ops::FileFault fault({.n = 3, .error = EIO});
  EXPECT_EQ(ToString(MakeDirs(Path("a/b"))),
            "INTERNAL: make folder " + Path("a/b") + ": Input/output error");
  EXPECT_EQ(ToString(MakeDirs(Path("a/b"))), "OK");
}

TEST_F(FileTest, WritersOfOneNameDoNotMix) {
  std::vector<std::thread> threads;
  for (const char c : {'a', 'b', 'c'}) {
    threads.emplace_back([this, c] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(ToString(WriteFileAtomically(Path("x"), std::string(10'000, c))), "OK");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string bytes = ReadFile(Path("x")).value();
  EXPECT_EQ(bytes, std::string(10'000, bytes[0]));
  EXPECT_EQ(ListDir(folder_.path()).value(), Names({"x"}));
}

TEST_F(FileTest, MapsADescriptor) {
  Fd fd(::memfd_create("file_test", MFD_CLOEXEC));
  ASSERT_EQ(::write(fd.get(), "abc", 3), 3);
  const auto mapped = MappedFile::FromFd(fd.get());
  fd.reset();
  EXPECT_EQ(mapped.value()->bytes(), "abc");
  EXPECT_EQ(ToString(MappedFile::FromFd(-1).status()),
            "INTERNAL: map file descriptor -1: Bad file descriptor");
}

TEST_F(FileTest, AMappingKeepsItsBytesWhenTheFileIsReplaced) {
  ASSERT_EQ(ToString(WriteFileAtomically(Path("a"), "old")), "OK");
  const auto mapped = MappedFile::Open(Path("a")).value();
  ASSERT_EQ(ToString(WriteFileAtomically(Path("a"), "new")), "OK");
  EXPECT_EQ(mapped->bytes(), "old");
}

TEST_F(FileTest, TempDirGoesWithItsContents) {
  std::string path;
  {
    TempDir first = TempDir::Make("file_test.").value();
    path = first.path();
    TempDir second = std::move(first);
    EXPECT_EQ(ToString(MakeDirs(path + "/a/b")), "OK");
    EXPECT_EQ(ToString(WriteFileAtomically(path + "/a/b/c", "x")), "OK");
  }
  EXPECT_FALSE(FileExists(path));
}

TEST_F(FileTest, LocksExclude) {
  const std::string held = "UNAVAILABLE: lock " + Path("lock") + ": held by coordinator, pid 7";
  {
    const FileLock first = FileLock::TryExclusive(Path("lock"), "coordinator, pid 7").value();
    EXPECT_EQ(ToString(FileLock::TryExclusive(Path("lock"), "b").status()), held);
  }
  const FileLock again = FileLock::TryExclusive(Path("lock"), "b").value();
  EXPECT_EQ(ReadFile(Path("lock")).value(), "b");
}

TEST_F(FileTest, SharedLocksExcludeOnlyExclusiveOnes) {
  const FileLock first = FileLock::Wait(Path("lock"), FileLock::Mode::kShared).value();
  {
    const FileLock second = FileLock::Wait(Path("lock"), FileLock::Mode::kShared).value();
    EXPECT_EQ(ToString(FileLock::TryExclusive(Path("lock"), "b").status()),
              "UNAVAILABLE: lock " + Path("lock") + ": held by another process");
  }
}

TEST_F(FileTest, WaitGetsTheLockWhenItIsFree) {
  std::thread waiter;
  {
    const FileLock first = FileLock::TryExclusive(Path("lock"), "a").value();
    waiter = std::thread(
        [this] { EXPECT_TRUE(FileLock::Wait(Path("lock"), FileLock::Mode::kExclusive).ok()); });
  }
  waiter.join();
}

}  // namespace
}  // namespace ag
