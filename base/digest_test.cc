#include "base/digest.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ag {
namespace {

constexpr char kAbcDigest[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(DigestTest, Sha256OfStandardVectors) {
  const struct {
    const char* name;
    std::string bytes;
    const char* expected;
  } cases[] = {
      {"empty", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "abc", kAbcDigest},
      {"two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"a million", std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& c : cases) EXPECT_EQ(Sha256(c.bytes).Hex(), c.expected) << c.name;
}

TEST(DigestTest, HasherTakesPieces) {
  for (const size_t step : {1, 3, 63, 64, 65, 1000}) {
    const std::string bytes(1000, 'x');
    Hasher hasher;
    for (size_t at = 0; at < bytes.size(); at += step) {
      hasher.Update(std::string_view(bytes).substr(at, step));
    }
    Hasher moved = std::move(hasher);
    EXPECT_EQ(moved.Finish(), Sha256(bytes)) << step;
  }
  EXPECT_EQ(Hasher().Finish(), Sha256(""));
}

TEST(DigestTest, ThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&wrong, t] {
      for (int i = 0; i < 200; ++i) wrong[t] += Sha256("abc").Hex() == kAbcDigest ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>({0, 0, 0, 0}));
}

TEST(DigestTest, ValuesAndText) {
  EXPECT_TRUE(Digest{}.IsZero());
  EXPECT_FALSE(Sha256("").IsZero());
  EXPECT_EQ(Digest{}.Hex(), std::string(64, '0'));
  EXPECT_EQ(Sha256("abc").Short(), "ba7816bf8f01");
  EXPECT_LT(Digest{}, Sha256("abc"));
  EXPECT_EQ(ParseDigest(kAbcDigest).value(), Sha256("abc"));
  std::string upper(kAbcDigest);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ(ParseDigest(upper).value(), Sha256("abc"));
}

TEST(DigestTest, ParseRefuses) {
  const struct {
    const char* name;
    std::string text;
    const char* expected;
  } cases[] = {
      {"empty", "", "INVALID_ARGUMENT: digest: expected 64 hexadecimal digits, got 0"},
      {"short", "ab", "INVALID_ARGUMENT: digest: expected 64 hexadecimal digits, got 2"},
      {"long", std::string(65, 'a'),
       "INVALID_ARGUMENT: digest: expected 64 hexadecimal digits, got 65"},
      {"not a digit", std::string(63, 'a') + "g",
       "INVALID_ARGUMENT: digest: expected 64 hexadecimal digits, got 'g' at position 63"},
      {"a path", "../" + std::string(61, 'a'),
       "INVALID_ARGUMENT: digest: expected 64 hexadecimal digits, got '.' at position 0"},
      {"a zero byte", std::string(64, '\0'),
       "INVALID_ARGUMENT: digest: expected 64 hexadecimal digits, got '\\x00' at position 0"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ToString(ParseDigest(c.text).status()), c.expected) << c.name;
  }
}

}  // namespace
}  // namespace ag
