#include "wire/json_wire.h"

#include <gtest/gtest.h>

#include "autograph/v1/optimizer.pb.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

TEST(JsonWire, NamesAreTheProtosAndEmptyFieldsArePrinted) {
  v1::PortableStep step;
  step.set_rule("merge");
  step.mutable_ratio()->set_median(1.25);
  EXPECT_EQ(ToJson(step), R"({
 "rule": "merge",
 "wanted": 0,
 "applied": 0,
 "kept": false,
 "reason": "",
 "ratio": {
  "median": 1.25,
  "low": 0,
  "high": 0
 }
})");
  v1::Result result;
  result.set_verdict(v1::Result::NO_GAIN_FOUND);
  result.set_output_bytes(int64_t{1} << 40);
  const std::string json = ToJson(result);
  EXPECT_NE(json.find(R"("verdict": "NO_GAIN_FOUND")"), std::string::npos);
  EXPECT_NE(json.find(R"("output_bytes": "1099511627776")"), std::string::npos);
  EXPECT_NE(json.find(R"("warnings": [])"), std::string::npos);
  EXPECT_EQ(json.find("over_untuned"), std::string::npos) << "it was not measured";
}

TEST(JsonWire, IsReadAgain) {
  v1::Result result, back;
  result.set_verdict(v1::Result::FASTER);
  result.mutable_input_latency()->set_median_ns(0.1);
  result.set_output_bytes(5);
  ASSERT_TRUE(FromJson(ToJson(result), &back).ok());
  EXPECT_EQ(back.DebugString(), result.DebugString());
  EXPECT_TRUE(FromJson(R"({"of a later version": 1})", &back).ok());
  for (const char* bad : {"", "[]", "nonsense", R"({"verdict": {}})"}) {
    EXPECT_EQ(FromJson(bad, &back).code(), StatusCode::kDataLoss) << bad;
  }
}

}  // namespace
}  // namespace ag
