#include "server/rpc/recent_answers.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

namespace v1 = autograph::v1;

v1::Job Answer(const std::string& output) {
  v1::Job job;
  job.mutable_result()->set_output_digest(output);
  return job;
}

TEST(RecentAnswers, AreThoseOfTheSameBytesAndTenant) {
  v1::OptimizeRequest request;
  request.set_model_digest("m");
  const std::string key = RecentAnswers::KeyOf(request, "alice");
  EXPECT_NE(key, RecentAnswers::KeyOf(request, "bob"));
  request.set_client("any");
  EXPECT_EQ(RecentAnswers::KeyOf(request, "alice"), key) << "whoever asks";
  request.set_seed(2);
  EXPECT_NE(RecentAnswers::KeyOf(request, "alice"), key);
  for (const auto& change : {+[](v1::OptimizeRequest& r) { r.set_request_id("id"); },
                             +[](v1::OptimizeRequest& r) { r.set_skip_model_cache(true); },
                             +[](v1::OptimizeRequest& r) { r.set_validate_only(true); }}) {
    v1::OptimizeRequest other = request;
    change(other);
    EXPECT_EQ(RecentAnswers::KeyOf(other, "alice"), "");
  }
}

TEST(RecentAnswers, EndWithWhatTheyDependOn) {
  RecentAnswers answers;
  EXPECT_EQ(answers.Find("k", {1, 1}), nullptr);
  answers.Keep("k", {1, 1}, Answer("o"));
  ASSERT_NE(answers.Find("k", {1, 1}), nullptr);
  EXPECT_EQ(answers.Find("k", {1, 1})->result().output_digest(), "o");
  EXPECT_EQ(answers.Find("k", {2, 1}), nullptr) << "a worker came or went";
  EXPECT_EQ(answers.Find("k", {1, 1}), nullptr) << "it is forgotten";
  answers.Keep("k", {2, 1}, Answer("p"));
  EXPECT_EQ(answers.Find("k", {2, 2}), nullptr) << "another answer was remembered";
  answers.Keep("", {1, 1}, Answer("o"));
  EXPECT_EQ(answers.Find("", {1, 1}), nullptr);
}

TEST(RecentAnswers, AreBounded) {
  RecentAnswers answers;
  answers.Keep("large", {1, 1}, Answer(std::string(70'000, 'o')));
  EXPECT_EQ(answers.Find("large", {1, 1}), nullptr);
  for (int i = 0; i < 1001; ++i) answers.Keep(std::to_string(i), {1, 1}, Answer("o"));
  EXPECT_EQ(answers.Find("0", {1, 1}), nullptr);
  EXPECT_NE(answers.Find("1", {1, 1}), nullptr);
  EXPECT_NE(answers.Find("1000", {1, 1}), nullptr);
}

}  // namespace
}  // namespace ag
