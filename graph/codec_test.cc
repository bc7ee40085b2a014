#include "graph/codec.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "graph/testing/random_graph.h"
#include "graph/text_form.h"

namespace ag {
namespace {

TEST(CodecTest, ReadsBackWhatItWrites) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const Graph g = RandomGraph(seed, nullptr, {.opaque = true});
    const std::string bytes = EncodeGraph(g);
    const StatusOr<Graph> again = DecodeGraph(bytes);
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << ToString(again.status());
    EXPECT_TRUE(EncodeGraph(*again) == bytes);
    EXPECT_EQ(again->digest(), g.digest());
    EXPECT_EQ(FormatGraph(*again), FormatGraph(g));
  }
}

TEST(CodecTest, DoesNotForgetInlineBytesAndNames) {
  const Graph g = ParseGraph(
                      "input \"x:0\" f32[2]\n"
                      "output \"y 0\" = add(\"x:0\", const f32[2] {1, 2})")
                      .value();
  const Graph again = DecodeGraph(EncodeGraph(g)).value();
  EXPECT_EQ(again.input_name(0), "x:0");
  EXPECT_EQ(again.outputs()[0].name, "y 0");
  EXPECT_EQ(again.node(1).constant->inline_bytes.size(), 8u);
}

// Expects an error, or a graph with exactly these bytes.
void ExpectHarmless(const std::string& bytes, uint64_t seed) {
  const StatusOr<Graph> graph = DecodeGraph(bytes);
  if (graph.ok()) {
    EXPECT_TRUE(EncodeGraph(*graph) == bytes) << "seed " << seed;
    return;
  }
  const StatusCode code = graph.status().code();
  EXPECT_TRUE(code == StatusCode::kDataLoss || code == StatusCode::kInvalidArgument)
      << "seed " << seed << ": " << ToString(graph.status());
}

std::string Mutated(std::string bytes, Random* random) {
  static constexpr unsigned char kNasty[] = {0, 1, 2, 0x7f, 0x80, 0xff};
  const uint64_t changes = random->Between(1, 4);
  for (uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    char& byte = bytes[random->Below(bytes.size())];
    if (random->Below(2) == 0) {
      byte = static_cast<char>(kNasty[random->Below(std::size(kNasty))]);
    } else {
      byte = static_cast<char>(byte ^ (1 << random->Below(8)));
    }
  }
  switch (random->Below(6)) {
    case 0:
      bytes.resize(random->Below(bytes.size() + 1));
      break;
    case 1:
      bytes += "more";
      break;
    case 2: {  // Repeats a piece at another place.
      const size_t from = random->Below(bytes.size()), to = random->Below(bytes.size());
      bytes.insert(to, bytes.substr(from, random->Below(40)));
      break;
    }
    default:
      break;
  }
  return bytes;
}

TEST(CodecTest, HostileBytesAreHarmless) {
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    Random random(seed);
    const Graph g = RandomGraph(seed % 40, nullptr, {.opaque = true});
    ExpectHarmless(Mutated(EncodeGraph(g), &random), seed);
  }
}

TEST(CodecTest, EveryTruncationIsRefused) {
  const std::string bytes = EncodeGraph(RandomGraph(7, nullptr));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeGraph(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
}

TEST(CodecTest, SaysWhatIsWrong) {
  const std::string bytes =
      EncodeGraph(ParseGraph("input x f32[2]\noutput \"y\" = relu(x)").value());
  const auto message = [](const std::string& b) { return ToString(DecodeGraph(b).status()); };
  EXPECT_EQ(message("GIF89a.."), "DATA_LOSS: graph bytes: not a graph: magic is 0x38464947");
  EXPECT_EQ(message(bytes + "x").substr(0, 23), "DATA_LOSS: graph bytes:");
  std::string version = bytes;
  version[4] = 9;
  EXPECT_EQ(message(version), "DATA_LOSS: graph bytes: version: expected 1, got 9");
  std::string unknown = bytes;
  unknown.replace(unknown.find("relu"), 4, "rulu");
  EXPECT_EQ(message(unknown),
            "DATA_LOSS: graph bytes: node 1: no operator is called 'rulu'; did"
            " you mean 'relu'?");
}

}  // namespace
}  // namespace ag
