#include "graph/onnx/file_kind.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/onnx/testing/onnx_testing.h"

namespace ag {
namespace {

using namespace std::string_literals;

TEST(FileKind, FilesAreNamed) {
  const struct {
    std::string bytes;
    const char* kind;
  } kCases[] = {
      {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"s, "a PNG picture"},
      {"\xff\xd8\xff\xe0\0\x10JFIF"s, "a JPEG picture"},
      {"GIF89a\1\0\1\0"s, "a GIF picture"},
      {"RIFF\x24\0\0\0WEBPVP8 "s, "a WebP picture"},
      {"BM\x36\0\0\0\0\0\0\0"s, "a BMP picture"},
      {"PK\3\4\24\0", "a zip archive (PyTorch keeps models in them: export it with torch.onnx)"},
      {"\x20\0\0\0TFL3\x14\0"s, "a TensorFlow Lite model"},
      {"\x40\0\0\0\0\0\0\0{\"w\":{}}"s, "a safetensors file"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
       "a Git LFS pointer: fetch the file itself (git lfs pull)"},
      {"{\"a\": 1}\n", "JSON"},
      {"\n  {\n  \"a\": 1}\n", "JSON"},
      {"\xef\xbb\xbf{}", "JSON"},
      {"[1, 2]", "JSON"},
      {"[section]\nname=1\n", "text"},
      {"{a brace} and words", "text"},
      {"<!DOCTYPE html><html>", "a web page"},
      {"<?xml version=\"1.0\"?>", "XML"},
      {"this is no model", "text"},
      {"Gr\xc3\xbc\xc3\x9f Gott\n", "text"},
      {" \n", "blank text"},
      {"", ""},
      {"\x07not a model", ""},
      {"\x08\x07\x12\x04"s, ""},
  };
  for (const auto& c : kCases) EXPECT_EQ(KindOfFile(c.bytes), c.kind) << c.bytes;
}

TEST(FileKind, AModelIsNone) { EXPECT_EQ(KindOfFile(testing::ConvModel()), ""); }

}  // namespace
}  // namespace ag
