#include "worker/executor_role.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(ExecutorRole, MessagesComeBackWhole) {
  const StatusOr<OpenRequest> open =
      DecodeFields<OpenRequest>(EncodeFields(OpenRequest{"sim:small", "/blobs"}));
  ASSERT_EQ(ToString(open.status()), "OK");
  EXPECT_EQ(open->device, "sim:small");
  EXPECT_EQ(open->blob_dir, "/blobs");

  const StatusOr<DeviceFacts> facts =
      DecodeFields<DeviceFacts>(EncodeFields(DeviceFacts{"name a\n", "cpu=b", true}));
  ASSERT_EQ(ToString(facts.status()), "OK");
  EXPECT_EQ(facts->spec, "name a\n");
  EXPECT_EQ(facts->environment, "cpu=b");
  EXPECT_TRUE(facts->simulated);
}

// Every prefix is too short, and one more byte is too long.
TEST(ExecutorRole, OtherLengthsAreRefused) {
  const struct {
    const char* name;
    std::string bytes;
    Status (*decode)(std::string_view);
  } kCases[] = {
      {"open", EncodeFields(OpenRequest{"cpu", "/b"}),
       [](std::string_view b) { return DecodeFields<OpenRequest>(b).status(); }},
      {"facts", EncodeFields(DeviceFacts{"s", "e", false}),
       [](std::string_view b) { return DecodeFields<DeviceFacts>(b).status(); }},
  };
  for (const auto& c : kCases) {
    for (size_t n = 0; n < c.bytes.size(); ++n) {
      EXPECT_EQ(c.decode(std::string_view(c.bytes).substr(0, n)).code(), StatusCode::kDataLoss)
          << c.name << " " << n;
    }
    EXPECT_EQ(c.decode(c.bytes + "x").code(), StatusCode::kDataLoss) << c.name;
  }
}

}  // namespace
}  // namespace ag
