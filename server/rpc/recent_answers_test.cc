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

class RecentAnswersTest : public testing::Test {
 protected:
  FakeClock clock_;
  bool has_files_ = true;
  RecentAnswers answers_{clock_, [this](const v1::Job&) { return has_files_; }};
};

TEST_F(RecentAnswersTest, EndWithWhatTheyDependOn) {
  EXPECT_EQ(answers_.Find("k", {1, 1}), nullptr);
  answers_.Keep("k", {1, 1}, Answer("o"));
  ASSERT_NE(answers_.Find("k", {1, 1}), nullptr);
  EXPECT_EQ(answers_.Find("k", {1, 1})->job().result().output_digest(), "o");
  EXPECT_EQ(answers_.Find("k", {2, 1}), nullptr) << "a worker came or went";
  EXPECT_EQ(answers_.Find("k", {1, 1}), nullptr) << "it is forgotten";
  answers_.Keep("k", {2, 1}, Answer("p"));
  EXPECT_EQ(answers_.Find("k", {2, 2}), nullptr) << "another answer was remembered";
  answers_.Keep("", {1, 1}, Answer("o"));
  EXPECT_EQ(answers_.Find("", {1, 1}), nullptr);
}

TEST_F(RecentAnswersTest, AreWrittenWithTheTimeOfTheCall) {
  v1::Job job = Answer("o");
  job.set_state(v1::Job::SUCCEEDED);
  job.set_created_unix_seconds(1);
  job.set_finished_unix_seconds(2);
  job.mutable_result()->add_warnings("one");
  job.mutable_result()->add_warnings("two");
  answers_.Keep("k", {1, 1}, job);
  v1::Job response, received;
  answers_.Find("k", {1, 1})->WriteTo(7, &response);
  ASSERT_TRUE(received.ParseFromString(response.SerializeAsString()));
  job.set_created_unix_seconds(7);
  job.set_finished_unix_seconds(7);
  EXPECT_EQ(received.DebugString(), job.DebugString());
}

TEST_F(RecentAnswersTest, EndWithinASecondWithTheirFiles) {
  answers_.Keep("k", {1, 1}, Answer("o"));
  has_files_ = false;
  EXPECT_NE(answers_.Find("k", {1, 1}), nullptr) << "the files were there a moment ago";
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(answers_.Find("k", {1, 1}), nullptr);
  has_files_ = true;
  EXPECT_EQ(answers_.Find("k", {1, 1}), nullptr) << "it is forgotten";
}

TEST_F(RecentAnswersTest, AreBounded) {
  answers_.Keep("large", {1, 1}, Answer(std::string(70'000, 'o')));
  EXPECT_EQ(answers_.Find("large", {1, 1}), nullptr);
  for (int i = 0; i < 1001; ++i) answers_.Keep(std::to_string(i), {1, 1}, Answer("o"));
  EXPECT_EQ(answers_.Find("0", {1, 1}), nullptr);
  EXPECT_NE(answers_.Find("1", {1, 1}), nullptr);
  EXPECT_NE(answers_.Find("1000", {1, 1}), nullptr);
}

}  // namespace
}  // namespace ag
