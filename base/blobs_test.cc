#include "base/blobs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/file_ops.h"

namespace ag {
namespace {

using Names = std::vector<std::string>;

constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class BlobsTest : public testing::Test {
 protected:
  std::shared_ptr<BlobDir> Open() { return BlobDir::Open(root_).value(); }
  // Returns the names of unfinished writes.
  Names Unfinished() { return ListDir(root_ + "/tmp").value(); }

  const TempDir folder_ = TempDir::Make("blobs_test.").value();
  const std::string root_ = folder_.path() + "/blobs";
  const std::shared_ptr<BlobDir> blobs_ = Open();
};

TEST_F(BlobsTest, PutGetListRemove) {
  const Digest abc = blobs_->Put("abc").value();
  EXPECT_EQ(abc.Hex(), kAbc);
  EXPECT_EQ(blobs_->PathOf(abc), root_ + "/ba/" + kAbc);
  EXPECT_EQ(blobs_->Put("abc").value(), abc);
  const Digest empty = blobs_->Put("").value();
  EXPECT_TRUE(blobs_->Has(abc));
  EXPECT_EQ(blobs_->Get(abc).value()->bytes(), "abc");
  EXPECT_EQ(blobs_->Get(empty).value()->bytes(), "");
  EXPECT_EQ(Open()->List().value(), std::vector<Digest>({abc, empty}));
  EXPECT_EQ(ToString(blobs_->Verify(abc)), "OK");
  EXPECT_EQ(ToString(blobs_->Remove(abc)), "OK");
  EXPECT_FALSE(blobs_->Has(abc));
  EXPECT_EQ(blobs_->List().value(), std::vector<Digest>({empty}));
  EXPECT_EQ(Unfinished(), Names());
}

TEST_F(BlobsTest, ErrorsNameTheBlobAndTheFolder) {
  const Digest abc = Sha256("abc");
  const std::string missing = std::string("NOT_FOUND: blob ") + kAbc + ": not in " + root_;
  EXPECT_EQ(ToString(blobs_->Get(abc).status()), missing);
  EXPECT_EQ(ToString(blobs_->Verify(abc)), missing);
  EXPECT_EQ(ToString(blobs_->Remove(abc)), missing);
  ASSERT_EQ(blobs_->Put("abc").value(), abc);
  ASSERT_EQ(ToString(WriteFileAtomically(blobs_->PathOf(abc), "")), "OK");
  EXPECT_EQ(ToString(blobs_->Verify(abc)), std::string("DATA_LOSS: blob ") + kAbc +
                                               ": its 0 bytes in " + root_ + " have the digest " +
                                               Sha256("").Hex());
  EXPECT_EQ(ToString(BlobDir::Open("/dev/null/x").status()),
            "FAILED_PRECONDITION: blobs /dev/null/x: make folder /dev/null: File exists");
}

TEST_F(BlobsTest, WriterShowsNothingBeforeCommit) {
  std::unique_ptr<BlobDir::Writer> writer = blobs_->NewWriter().value();
  EXPECT_EQ(ToString(writer->Append("a")), "OK");
  EXPECT_EQ(ToString(writer->Append("bc")), "OK");
  EXPECT_EQ(writer->size(), 3u);
  EXPECT_EQ(blobs_->List().value(), std::vector<Digest>());
  EXPECT_EQ(ToString(writer->Commit(Sha256("abc"))), "OK");
  writer.reset();
  EXPECT_EQ(blobs_->Get(Sha256("abc")).value()->bytes(), "abc");
  EXPECT_EQ(Unfinished(), Names());
}

TEST_F(BlobsTest, WriterRefusesAnotherDigest) {
  std::unique_ptr<BlobDir::Writer> writer = blobs_->NewWriter().value();
  EXPECT_EQ(ToString(writer->Append("abd")), "OK");
  EXPECT_EQ(ToString(writer->Commit(Sha256("abc"))),
            std::string("INVALID_ARGUMENT: blob: expected digest ") + kAbc + ", got " +
                Sha256("abd").Hex() + " of 3 bytes");
  writer.reset();
  EXPECT_EQ(blobs_->List().value(), std::vector<Digest>());
  EXPECT_EQ(Unfinished(), Names());
}

TEST_F(BlobsTest, WriterNamesWhatWasWritten) {
  std::unique_ptr<BlobDir::Writer> writer = blobs_->NewWriter().value();
  EXPECT_EQ(ToString(writer->Append("ab")), "OK");
  EXPECT_EQ(ToString(writer->Append("c")), "OK");
  EXPECT_EQ(writer->Commit().value().Hex(), kAbc);
  EXPECT_EQ(ToString(blobs_->Verify(Sha256("abc"))), "OK");
  writer = blobs_->NewWriter().value();
  EXPECT_EQ(ToString(writer->Append("abc")), "OK");
  EXPECT_EQ(writer->Commit().value().Hex(), kAbc);
}

TEST_F(BlobsTest, AWriterMayLeaveTheSyncToLater) {
  std::unique_ptr<BlobDir::Writer> writer = blobs_->NewWriter().value();
  EXPECT_EQ(ToString(writer->Append("abc")), "OK");
  // Make the folder, sync its name, rename: the file and its folder are not synced.
  const file_ops::FileFault fault({.n = 4, .error = EIO});
  EXPECT_EQ(ToString(writer->Commit(Sha256("abc"), BlobDir::Durable::kAfterSync)), "OK");
  EXPECT_FALSE(fault.Fired());
  EXPECT_TRUE(blobs_->Has(Sha256("abc")));
}

TEST_F(BlobsTest, WhatIsMissingIsReadFromBelowAndNeverWrittenThere) {
  const Digest abc = blobs_->Put("abc").value();
  const std::string root = folder_.path() + "/above";
  const auto above = BlobDir::Open(root, root_).value();
  EXPECT_EQ(above->Get(abc).value()->bytes(), "abc");
  EXPECT_EQ(above->PathOf(abc), blobs_->PathOf(abc));
  EXPECT_EQ(ToString(above->Verify(abc)), "OK");
  EXPECT_EQ(above->List().value(), std::vector<Digest>());
  EXPECT_EQ(ToString(above->Remove(abc)),
            std::string("NOT_FOUND: blob ") + kAbc + ": not in " + root);
  EXPECT_EQ(ToString(above->Adopt(abc)), "OK");
  EXPECT_EQ(above->PathOf(abc), root + "/ba/" + kAbc);
  EXPECT_EQ(ToString(above->Adopt(abc)), "OK") << "it is here already";
  EXPECT_EQ(above->Adopt(Sha256("x")).code(), StatusCode::kNotFound);
  EXPECT_EQ(above->Put("abc").value(), abc);
  const Digest empty = above->Put("").value();
  EXPECT_EQ(blobs_->List().value(), std::vector<Digest>({abc}));
  EXPECT_FALSE(above->Has(Sha256("x")));
  EXPECT_EQ(above->PathOf(Sha256("x")), root + "/2d/" + Sha256("x").Hex());
  EXPECT_EQ(above->List().value(), std::vector<Digest>({abc, empty}));
}

class SharedBlobsTest : public BlobsTest {
 protected:
  const Digest abc_ = blobs_->Put("abc").value();
  const std::string file_ = folder_.path() + "/result";
};

TEST_F(SharedBlobsTest, AFileAndABlobAreOne) {
  ASSERT_EQ(ToString(WriteFileAtomically(file_, "old")), "OK");
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(ToString(blobs_->Share(abc_, file_)), "OK");
    EXPECT_EQ(ReadFile(file_).value(), "abc");
    struct stat file {
    }, blob{};
    ASSERT_EQ(::stat(file_.c_str(), &file), 0);
    ASSERT_EQ(::stat(blobs_->PathOf(abc_).c_str(), &blob), 0);
    EXPECT_EQ(file.st_ino, blob.st_ino);
    EXPECT_EQ(file.st_nlink, 2u);
    EXPECT_EQ(file.st_mode & 0777, 0644u);
  }
  EXPECT_TRUE(blobs_->Has(abc_));
  EXPECT_EQ(ToString(blobs_->Verify(abc_)), "OK");
  EXPECT_EQ(blobs_->List().value(), std::vector<Digest>({abc_}));
  const auto above = BlobDir::Open(folder_.path() + "/above", root_).value();
  EXPECT_EQ(above->Get(abc_).value()->bytes(), "abc");
  EXPECT_EQ(above->Share(abc_, file_).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(ToString(blobs_->Share(abc_, file_ + "2")), "OK") << "a third name";
  EXPECT_EQ(ToString(blobs_->Remove(abc_)), "OK");
  EXPECT_FALSE(blobs_->Has(abc_));
  EXPECT_EQ(ReadFile(file_).value(), "abc");
}

TEST_F(SharedBlobsTest, WhatItsUserHasChangedIsNotThere) {
  ASSERT_EQ(ToString(blobs_->Share(abc_, file_)), "OK");
  {
    const Fd fd(::open(file_.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(file_ops::WriteAll(fd.get(), "x"), 0);  // The size stays.
  }
  EXPECT_FALSE(blobs_->Has(abc_));
  EXPECT_EQ(blobs_->List().value(), std::vector<Digest>());
  EXPECT_EQ(blobs_->Put("abc").value(), abc_);
  EXPECT_EQ(blobs_->Get(abc_).value()->bytes(), "abc");
  EXPECT_EQ(ReadFile(file_).value(), "xbc");
  EXPECT_EQ(ToString(blobs_->Share(abc_, file_)), "OK");
  EXPECT_EQ(ReadFile(file_).value(), "abc");
  EXPECT_EQ(ListDir(root_ + "/shared/" + kAbc).value().size(), 1u) << "the old one is gone";
}

TEST_F(SharedBlobsTest, WhatIsWrongOrCannotBeLinkedIsNotShared) {
  EXPECT_EQ(ToString(blobs_->Share(abc_, folder_.path() + "/none/x")),
            std::string("UNIMPLEMENTED: blob ") + kAbc + " cannot be linked as " + folder_.path() +
                "/none/x");
  EXPECT_EQ(blobs_->Share(Sha256("x"), file_).code(), StatusCode::kUnimplemented);
  ASSERT_EQ(ToString(WriteFileAtomically(blobs_->PathOf(abc_), "abd")), "OK");
  EXPECT_EQ(blobs_->Share(abc_, file_).code(), StatusCode::kDataLoss);
  EXPECT_FALSE(FileExists(file_));
}

// After a failure of any call the old file or the whole blob is there, and a second try works.
TEST_F(SharedBlobsTest, AFailedShareLeavesWholeFiles) {
  int n = 1;
  for (bool fired = true; fired; ++n) {
    ASSERT_EQ(ToString(WriteFileAtomically(file_, "old")), "OK");
    Status status;
    {
      const file_ops::FileFault fault({.n = n, .error = ENOSPC});
      status = blobs_->Share(abc_, file_);
      fired = fault.Fired();
    }
    const std::string now = ReadFile(file_).value();
    EXPECT_EQ(now, status.ok() ? "abc" : "old") << n;
    EXPECT_EQ(ToString(blobs_->Verify(abc_)), "OK") << n;
    EXPECT_EQ(ListDir(folder_.path()).value(), Names({"blobs", "result"})) << n;
    EXPECT_EQ(ToString(blobs_->Share(abc_, file_)), "OK") << n;
  }
  EXPECT_GT(n, 5);
}

TEST_F(BlobsTest, OpenRemovesOnlyWhatNobodyWrites) {
  std::unique_ptr<BlobDir::Writer> writer = blobs_->NewWriter().value();
  const Names living = Unfinished();
  ASSERT_EQ(ToString(WriteFileAtomically(root_ + "/tmp/left.over", "x")), "OK");
  EXPECT_EQ(Unfinished().size(), 2u);
  Open();
  EXPECT_EQ(Unfinished(), living);
  EXPECT_EQ(ToString(writer->Append("abc")), "OK");
  EXPECT_EQ(ToString(writer->Commit(Sha256("abc"))), "OK");
}

TEST_F(BlobsTest, ListIgnoresOtherFiles) {
  ASSERT_EQ(ToString(MakeDirs(root_ + "/ba/folder")), "OK");
  ASSERT_EQ(ToString(WriteFileAtomically(root_ + "/ba/" + std::string(64, 'c'), "")), "OK");
  ASSERT_EQ(ToString(WriteFileAtomically(root_ + "/README", "x")), "OK");
  EXPECT_EQ(blobs_->List().value(), std::vector<Digest>());
}

TEST_F(BlobsTest, AMappedBlobOutlivesItsRemoval) {
  const Digest abc = blobs_->Put("abc").value();
  const auto mapped = blobs_->Get(abc).value();
  EXPECT_EQ(ToString(blobs_->Remove(abc)), "OK");
  EXPECT_EQ(mapped->bytes(), "abc");
}

TEST_F(BlobsTest, ManyBlobsNeedOneSync) {
  // Create, write, make the folder, sync its name, rename: no sync of the file and of the folder.
  const file_ops::FileFault fault({.n = 6, .error = EIO});
  EXPECT_EQ(blobs_->Put("abc", BlobDir::Durable::kAfterSync).value().Hex(), kAbc);
  EXPECT_FALSE(fault.Fired());
  EXPECT_EQ(ToString(blobs_->Sync()), "INTERNAL: write to blobs " + root_ + ": Input/output error");
  EXPECT_EQ(ToString(blobs_->Sync()), "OK");
}

TEST_F(BlobsTest, PutReplacesABlobThatAPowerLossCutShort) {
  const Digest abc = blobs_->Put("abc").value();
  ASSERT_EQ(ToString(WriteFileAtomically(blobs_->PathOf(abc), "")), "OK");
  EXPECT_EQ(blobs_->Put("abc").value(), abc);
  EXPECT_EQ(ToString(blobs_->Verify(abc)), "OK");
}

TEST_F(BlobsTest, BlobsAreReadOnly) {
  struct stat info {};
  ASSERT_EQ(::stat(blobs_->PathOf(blobs_->Put("abc").value()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0222, 0u);
}

TEST_F(BlobsTest, ThreadsMayPutTheSameBytes) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] { EXPECT_EQ(blobs_->Put("abc").value().Hex(), kAbc); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ToString(blobs_->Verify(Sha256("abc"))), "OK");
  EXPECT_EQ(Unfinished(), Names());
}

// After a failure of any call, or a crash after it, a visible blob is complete, and a second try
// works.
TEST_F(BlobsTest, FailedPutsShowNothingHalf) {
  for (const bool all_later : {false, true}) {
    int n = 1;
    for (bool fired = true; fired; ++n) {
      Status status;
      {
        const file_ops::FileFault fault({.n = n, .error = ENOSPC, .all_later = all_later});
        status = blobs_->Put("abc").status();
        fired = fault.Fired();
      }
      EXPECT_EQ(ToString(status),
                fired ? "RESOURCE_EXHAUSTED: write to blobs " + root_ + ": No space left on device"
                      : "OK")
          << n;
      if (blobs_->Has(Sha256("abc"))) {
        EXPECT_EQ(ToString(blobs_->Verify(Sha256("abc"))), "OK") << n;
      }
      Open();
      EXPECT_EQ(Unfinished(), Names()) << n;
      EXPECT_EQ(ToString(blobs_->Put("abc").status()), "OK") << n;
      EXPECT_EQ(ToString(blobs_->Remove(Sha256("abc"))), "OK") << n;
      if (fired) ::rmdir((root_ + "/ba").c_str());  // So that each round makes it again.
    }
    // Create, write, sync, make the folder, sync its name, rename, sync; then a round without
    // error.
    EXPECT_EQ(n, 9);
  }
}

}  // namespace
}  // namespace ag
