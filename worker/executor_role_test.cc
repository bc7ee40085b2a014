#include "worker/executor_role.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace ag {
namespace {

TEST(ExecutorRole, MessagesComeBackWhole) {
  const StatusOr<OpenRequest> open = DecodeOpen(EncodeOpen({"sim:small", "/blobs"}));
  ASSERT_EQ(ToString(open.status()), "OK");
  EXPECT_EQ(open->device, "sim:small");
  EXPECT_EQ(open->blob_dir, "/blobs");

  const StatusOr<DeviceFacts> facts = DecodeFacts(EncodeFacts({"name a\n", "cpu=b", true}));
  ASSERT_EQ(ToString(facts.status()), "OK");
  EXPECT_EQ(facts->spec, "name a\n");
  EXPECT_EQ(facts->environment, "cpu=b");
  EXPECT_TRUE(facts->simulated);

  for (int code = 0; code <= 16; ++code) {
    const Status status(static_cast<StatusCode>(code), "why");
    EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status) << code;
  }
}

// Every prefix is too short, and one more byte is too long.
TEST(ExecutorRole, OtherLengthsAreRefused) {
  const struct {
    const char* name;
    std::string bytes;
    Status (*decode)(std::string_view);
  } kCases[] = {
      {"open", EncodeOpen({"cpu", "/b"}),
       [](std::string_view b) { return DecodeOpen(b).status(); }},
      {"facts", EncodeFacts({"s", "e", false}),
       [](std::string_view b) { return DecodeFacts(b).status(); }},
      {"status", EncodeStatus(Err(StatusCode::kNotFound, "x")), DecodeStatus},
  };
  for (const auto& c : kCases) {
    for (size_t n = 0; n < c.bytes.size(); ++n) {
      EXPECT_EQ(c.decode(std::string_view(c.bytes).substr(0, n)).code(), StatusCode::kDataLoss)
          << c.name << " " << n;
    }
    EXPECT_EQ(c.decode(c.bytes + "x").code(), StatusCode::kDataLoss) << c.name;
  }
}

TEST(ExecutorRole, AnUnknownCodeIsNoStatus) {
  ByteWriter out;
  out.U32(17);
  out.String("why");
  EXPECT_EQ(ToString(DecodeStatus(out.Take())), "DATA_LOSS: status: code 17");
}

}  // namespace
}  // namespace ag
