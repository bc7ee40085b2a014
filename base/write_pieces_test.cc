#include "base/write_pieces.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/file_ops.h"

namespace ag {
namespace {

class WritePiecesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::Make("pieces");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(*std::move(folder));
    path_ = folder_->path() + "/file";
  }
  Status Write(const Status& last) const {
    return WriteFileInPieces(path_, [&](const WritePiece& write) -> Status {
      AG_TRY(write("ab"));
      AG_TRY(write(""));
      AG_TRY(write("c"));
      return last;
    });
  }
  std::optional<TempDir> folder_;
  std::string path_;
};

TEST_F(WritePiecesTest, ReplacesTheFile) {
  ASSERT_TRUE(Write(OkStatus()).ok());
  ASSERT_TRUE(Write(OkStatus()).ok());
  EXPECT_EQ(*ReadFile(path_), "abc");
  EXPECT_EQ(*ListDir(folder_->path()), std::vector<std::string>{"file"});
}

TEST_F(WritePiecesTest, AnErrorLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  EXPECT_EQ(ToString(Write(Err(StatusCode::kDataLoss, "no more"))), "DATA_LOSS: no more");
  EXPECT_EQ(*ReadFile(path_), "old");
  int faults = 0;
  for (int n = 1;; ++n) {
    const file_ops::FileFault fault({.n = n, .error = ENOSPC});
    const Status status = Write(OkStatus());
    if (!fault.Fired()) {
      EXPECT_EQ(ToString(status), "OK");
      break;
    }
    ++faults;
    EXPECT_EQ(ToString(status), "RESOURCE_EXHAUSTED: write " + path_ + ": No space left on device");
    const std::string now = *ReadFile(path_);
    EXPECT_TRUE(now == "old" || now == "abc") << n;  // Only the last step follows the rename.
    EXPECT_EQ(*ListDir(folder_->path()), std::vector<std::string>{"file"}) << n;
  }
  EXPECT_GE(faults, 6);
}

TEST_F(WritePiecesTest, AMissingFolder) {
  const std::string path = folder_->path() + "/none/file";
  EXPECT_EQ(ToString(WriteFileInPieces(path, [](const WritePiece&) { return OkStatus(); })),
            "FAILED_PRECONDITION: write " + path + ": No such file or directory");
}

}  // namespace
}  // namespace ag
