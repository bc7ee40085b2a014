#include "base/file_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace ag {
namespace {

class FileReaderTest : public testing::Test {
 protected:
  FileReader Opened(std::string_view bytes) {
    EXPECT_TRUE(WriteFileAtomically(path_, bytes).ok());
    auto reader = FileReader::Open(path_);
    AG_CHECK(reader.ok());
    return *std::move(reader);
  }
  const TempDir folder_ = *TempDir::Make("file-reader-test");
  const std::string path_ = folder_.path() + "/file";
};

TEST_F(FileReaderTest, ReadsPiecesInAnyOrder) {
  FileReader reader = Opened("0123456789");
  EXPECT_EQ(reader.size(), 10);
  EXPECT_EQ(*reader.Read(0, 4), "0123");
  EXPECT_EQ(*reader.Read(8, 2), "89");
  EXPECT_EQ(*reader.Read(3, 1), "3");
  EXPECT_EQ(*reader.Read(10, 0), "");
}

TEST_F(FileReaderTest, SaysWhatIsWrong) {
  EXPECT_EQ(FileReader::Open(folder_.path() + "/none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ToString(FileReader::Open(folder_.path()).status()),
            "FAILED_PRECONDITION: read " + folder_.path() + ": not a regular file");
  FileReader reader = Opened("0123456789");
  EXPECT_EQ(ToString(reader.Read(8, 3).status()),
            "FAILED_PRECONDITION: read " + path_ + ": it ends before byte 11");
}

TEST_F(FileReaderTest, AFileThatIsCutIsAnError) {
  FileReader reader = Opened("0123456789");
  ASSERT_EQ(::truncate(path_.c_str(), 5), 0);
  EXPECT_EQ(reader.size(), 10);
  EXPECT_EQ(reader.Read(4, 2).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(FileReaderTest, HashesWholeFiles) {
  for (const size_t size : {size_t{0}, size_t{3}, size_t{256 << 10}, size_t{(256 << 10) + 1}}) {
    const std::string bytes(size, 'x');
    Opened(bytes);
    EXPECT_EQ(*Sha256OfFile(path_), Sha256(bytes)) << size;
  }
  EXPECT_EQ(Sha256OfFile(folder_.path()).status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ag
