#include "base/bytes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

namespace ag {
namespace {

using namespace std::string_literals;

TEST(Bytes, AStatusKeepsItsMark) {
  const Status fault = AsHostFault(Err(StatusCode::kInternal, "no disk"));
  EXPECT_TRUE(IsHostFault(DecodeStatus(EncodeStatus(fault))));
  EXPECT_EQ(ToString(DecodeStatus(EncodeStatus(fault))), "INTERNAL: no disk");
  EXPECT_FALSE(IsHostFault(DecodeStatus(EncodeStatus(Err(StatusCode::kInternal, "a bug")))));
  EXPECT_TRUE(IsHostFault(Within(fault, "x")));
}

TEST(BytesTest, WritesOneFormOfEachValue) {
  const struct {
    const char* name;
    std::function<void(ByteWriter&)> write;
    std::string expected;
  } cases[] = {
      {"u8", [](ByteWriter& w) { w.U8(0xfe); }, "\xfe"s},
      {"u32", [](ByteWriter& w) { w.U32(0x01020304); }, "\4\3\2\1"s},
      {"u64", [](ByteWriter& w) { w.U64(0x0102030405060708); }, "\10\7\6\5\4\3\2\1"s},
      {"i64", [](ByteWriter& w) { w.I64(-2); }, "\xfe\xff\xff\xff\xff\xff\xff\xff"s},
      {"f64", [](ByteWriter& w) { w.F64(1.0); }, "\0\0\0\0\0\0\xf0\x3f"s},
      {"minus zero", [](ByteWriter& w) { w.F64(-0.0); }, "\0\0\0\0\0\0\0\x80"s},
      {"nan", [](ByteWriter& w) { w.F64(std::nan("7")); }, "\0\0\0\0\0\0\xf8\x7f"s},
      {"minus nan", [](ByteWriter& w) { w.F64(-std::nan("")); }, "\0\0\0\0\0\0\xf8\x7f"s},
      {"string", [](ByteWriter& w) { w.String("ab"); }, "\2\0\0\0\0\0\0\0ab"s},
      {"ints", [](ByteWriter& w) { w.Ints({{1}}); }, "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"s},
      {"no ints", [](ByteWriter& w) { w.Ints({}); }, "\0\0\0\0\0\0\0\0"s},
      {"no doubles", [](ByteWriter& w) { w.Doubles({}); }, "\0\0\0\0\0\0\0\0"s},
      {"digest", [](ByteWriter& w) { w.AddDigest({}); }, std::string(32, '\0')},
  };
  for (const auto& c : cases) {
    ByteWriter writer;
    c.write(writer);
    EXPECT_EQ(writer.bytes(), c.expected) << c.name;
  }
}

TEST(BytesTest, ReadsWhatWasWritten) {
  const std::vector<double> doubles = {0.5, -0.0, std::numeric_limits<double>::infinity()};
  ByteWriter writer;
  writer.U8(255);
  writer.U32(1u << 31);
  writer.U64(~uint64_t{0});
  writer.I64(std::numeric_limits<int64_t>::min());
  writer.F64(5e-324);
  writer.String("a\0b"s);
  writer.Ints({{-1, 2}});
  writer.Doubles(doubles);
  writer.AddDigest(Sha256("x"));
  writer.U64(0);
  const std::string bytes = writer.Take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.U8().value(), 255);
  EXPECT_EQ(reader.U32().value(), 1u << 31);
  EXPECT_EQ(reader.U64().value(), ~uint64_t{0});
  EXPECT_EQ(reader.I64().value(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(reader.F64().value(), 5e-324);
  EXPECT_EQ(reader.String().value(), "a\0b"s);
  EXPECT_EQ(reader.Ints().value(), std::vector<int64_t>({-1, 2}));
  EXPECT_EQ(reader.Doubles().value(), doubles);
  EXPECT_EQ(reader.ReadDigest().value(), Sha256("x"));
  EXPECT_EQ(reader.left(), 8u);
  EXPECT_EQ(reader.Count(100).value(), 0u);
  EXPECT_EQ(ToString(reader.End()), "OK");
}

TEST(BytesTest, RefusesBadBytes) {
  const auto huge = "\xff\xff\xff\xff\xff\xff\xff\xff"s;
  const struct {
    const char* name;
    std::string bytes;
    std::function<Status(ByteReader&)> read;
    const char* expected;
  } cases[] = {
      {"u8", "", [](ByteReader& r) { return r.U8().status(); },
       "DATA_LOSS: bytes: expected 1 more, 0 are left"},
      {"u32", "abc", [](ByteReader& r) { return r.U32().status(); },
       "DATA_LOSS: bytes: expected 4 more, 3 are left"},
      {"u64", "abc", [](ByteReader& r) { return r.U64().status(); },
       "DATA_LOSS: bytes: expected 8 more, 3 are left"},
      {"i64", "abc", [](ByteReader& r) { return r.I64().status(); },
       "DATA_LOSS: bytes: expected 8 more, 3 are left"},
      {"another nan", "\1\0\0\0\0\0\xf8\x7f"s, [](ByteReader& r) { return r.F64().status(); },
       "DATA_LOSS: bytes: expected NaN as 0x7ff8000000000000, got 0x7ff8000000000001"},
      {"string", huge + "abc", [](ByteReader& r) { return r.String().status(); },
       "DATA_LOSS: bytes: expected 18446744073709551615 items of at least 1 bytes, "
       "3 bytes are left"},
      {"ints", "\2\0\0\0\0\0\0\0"s + std::string(15, 'x'),
       [](ByteReader& r) { return r.Ints().status(); },
       "DATA_LOSS: bytes: expected 2 items of at least 8 bytes, 15 bytes are left"},
      {"doubles", huge, [](ByteReader& r) { return r.Doubles().status(); },
       "DATA_LOSS: bytes: expected 18446744073709551615 items of at least 8 bytes, "
       "0 bytes are left"},
      // 2^61 items of 8 bytes are 2^64 bytes, which is 0 in 64-bit arithmetic.
      {"a product that wraps", "\0\0\0\0\0\0\0\x20"s,
       [](ByteReader& r) { return r.Ints().status(); },
       "DATA_LOSS: bytes: expected 2305843009213693952 items of at least 8 bytes, "
       "0 bytes are left"},
      {"digest", "abc", [](ByteReader& r) { return r.ReadDigest().status(); },
       "DATA_LOSS: bytes: expected 32 more, 3 are left"},
      {"end", "abc", [](ByteReader& r) { return r.End(); },
       "DATA_LOSS: bytes: expected the end, 3 are left"},
  };
  for (const auto& c : cases) {
    ByteReader reader(c.bytes);
    EXPECT_EQ(ToString(c.read(reader)), c.expected) << c.name;
  }
}

TEST(BytesTest, Base64BothWays) {
  const struct {
    std::string bytes;
    const char* text;
  } cases[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xfb\xff\xfe"s, "+//+"},
      {"\0"s, "AA=="},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Base64(c.bytes), c.text);
    EXPECT_EQ(FromBase64(c.text).value(), c.bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(FromBase64(Base64(all)).value(), all);
}

TEST(BytesTest, FromBase64Refuses) {
  const struct {
    const char* name;
    const char* text;
    const char* expected;
  } cases[] = {
      {"length", "Zm9", "INVALID_ARGUMENT: base64: 3 characters in no canonical form"},
      {"character", "Zm9 ", "INVALID_ARGUMENT: base64: 4 characters in no canonical form"},
      {"url alphabet", "Zm-v", "INVALID_ARGUMENT: base64: 4 characters in no canonical form"},
      {"padding inside", "Zg==Zg==", "INVALID_ARGUMENT: base64: 8 characters in no canonical form"},
      {"too much padding", "Z===", "INVALID_ARGUMENT: base64: 4 characters in no canonical form"},
      {"bits left over", "Zh==", "INVALID_ARGUMENT: base64: 4 characters in no canonical form"},
      {"bits left over", "Zm9=", "INVALID_ARGUMENT: base64: 4 characters in no canonical form"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ToString(FromBase64(c.text).status()), c.expected) << c.name;
  }
}

TEST(StatusBytes, ComeBackWhole) {
  for (int code = 0; code <= 16; ++code) {
    const Status status(static_cast<StatusCode>(code), "why");
    EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status) << code;
  }
}

// Every prefix is too short, and one more byte is too long.
TEST(StatusBytes, OtherLengthsAreRefused) {
  const std::string bytes = EncodeStatus(Err(StatusCode::kNotFound, "x"));
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(DecodeStatus(std::string_view(bytes).substr(0, n)).code(), StatusCode::kDataLoss)
        << n;
  }
  EXPECT_EQ(DecodeStatus(bytes + "x").code(), StatusCode::kDataLoss);
}

TEST(StatusBytes, AnUnknownCodeIsNoStatus) {
  ByteWriter out;
  out.U32(17);
  out.String("why");
  EXPECT_EQ(ToString(DecodeStatus(out.Take())), "DATA_LOSS: status: code 17");
}

}  // namespace
}  // namespace ag
