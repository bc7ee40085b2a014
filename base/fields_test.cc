#include "base/fields.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace ag {
namespace {

enum class Colour : uint8_t { kRed, kBlue };

struct Inner {
  int number = 0;
  Colour colour = Colour::kRed;
  bool operator==(const Inner&) const = default;
};
void Fields(auto& io, Is<Inner> auto& inner) {
  io(inner.number);
  io.Enum(inner.colour, 2, "colour");
}

struct Outer {
  bool flag = false;
  uint32_t u32 = 0;
  uint64_t u64 = 0;
  int64_t i64 = 0;
  std::string text;
  Digest digest;
  std::vector<Inner> list;
  std::map<std::string, std::vector<int64_t>> map;
  std::pair<std::string, int64_t> pair;
  std::string reversed;
  bool operator==(const Outer&) const = default;
};

std::string Reverse(const std::string& text) { return {text.rbegin(), text.rend()}; }

void Fields(auto& io, Is<Outer> auto& o) {
  io(o.flag, o.u32, o.u64, o.i64, o.text, o.digest, o.list, o.map, o.pair);
  io.Nested(o.reversed, Reverse, [](const std::string& text) -> StatusOr<std::string> {
    if (text == "wrong") return Err(StatusCode::kDataLoss, "nested: wrong");
    return Reverse(text);
  });
}

const Outer kWhole = {.flag = true,
                      .u32 = 1u << 31,
                      .u64 = ~uint64_t{0},
                      .i64 = -5,
                      .text = "a",
                      .digest = Sha256("x"),
                      .list = {{7, Colour::kBlue}, {8, Colour::kRed}},
                      .map = {{"k", {1, -2}}, {"l", {}}},
                      .pair = {"p", 3},
                      .reversed = "abc"};

TEST(Fields, ComeBack) {
  const StatusOr<Outer> read = DecodeFields<Outer>(EncodeFields(kWhole));
  ASSERT_EQ(ToString(read.status()), "OK");
  EXPECT_EQ(*read, kWhole);
}

TEST(Fields, HaveTheBytesOfTheWriter) {
  ByteWriter out;
  out.U32(7);
  out.U8(1);
  EXPECT_EQ(EncodeFields(Inner{7, Colour::kBlue}), out.bytes());
}

// Every prefix is too short, and one more byte is too long.
TEST(Fields, OtherLengthsAreRefused) {
  const std::string bytes = EncodeFields(kWhole);
  for (size_t n = 0; n < bytes.size(); ++n) {
    const std::string_view prefix = std::string_view(bytes).substr(0, n);
    EXPECT_EQ(DecodeFields<Outer>(prefix).status().code(), StatusCode::kDataLoss) << n;
  }
  EXPECT_EQ(DecodeFields<Outer>(bytes + "x").status().code(), StatusCode::kDataLoss);
}

TEST(Fields, WrongValuesAreRefused) {
  ByteWriter colour, number;
  colour.U32(7);
  colour.U8(2);
  EXPECT_EQ(ToString(DecodeFields<Inner>(colour.bytes()).status()),
            "DATA_LOSS: no colour has number 2");
  number.U32(1u << 31);
  number.U8(0);
  EXPECT_EQ(ToString(DecodeFields<Inner>(number.bytes()).status()),
            "DATA_LOSS: number 2147483648 is out of range");
  Outer outer = kWhole;
  outer.reversed = "gnorw";
  EXPECT_EQ(ToString(DecodeFields<Outer>(EncodeFields(outer)).status()),
            "DATA_LOSS: nested: wrong");
}

// A count beyond the rest of the bytes ends at once, without memory for the items.
TEST(Fields, AWrongCountIsRefused) {
  ByteWriter out;
  out.U64(uint64_t{1} << 60);
  EXPECT_EQ(DecodeFields<std::vector<std::string>>(out.bytes()).status().code(),
            StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ag
