#include "net/error_details.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "autograph/v1/error.pb.h"
#include "base/reason.h"

namespace ag {
namespace {

TEST(ErrorDetails, ComeBackWhole) {
  const Status sent = RetryAfter(
      std::chrono::milliseconds(1500),
      Because(Reason::kTooManyTransfers, Err(StatusCode::kResourceExhausted, "8 are open")));
  const Status got = FromGrpc(ToGrpc(sent));
  EXPECT_EQ(ToString(got), "RESOURCE_EXHAUSTED: 8 are open");
  EXPECT_EQ(ReasonOf(got), "TOO_MANY_TRANSFERS");
  EXPECT_EQ(RetryPauseOf(got), std::chrono::milliseconds(1500));
  EXPECT_TRUE(ToGrpc(OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

// The types as every gRPC library knows them.
TEST(ErrorDetails, AreThoseOfGoogleRpc) {
  autograph::v1::ErrorStatus error;
  ASSERT_TRUE(error.ParseFromString(ToGrpc(Err(StatusCode::kNotFound, "x")).error_details()));
  EXPECT_EQ(error.code(), 5);
  EXPECT_EQ(error.message(), "x");
  ASSERT_EQ(error.details_size(), 1) << "nothing is gained by calling again";
  EXPECT_EQ(error.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  autograph::v1::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(error.details(0).value()));
  EXPECT_EQ(info.reason(), "NOT_FOUND");
  EXPECT_EQ(info.domain(), "autograph");
}

TEST(ErrorDetails, AServerWithoutThemIsUnderstood) {
  EXPECT_EQ(ReasonOf(FromGrpc({grpc::StatusCode::UNAVAILABLE, "gone"})), "UNAVAILABLE");
  EXPECT_EQ(ReasonOf(FromGrpc({grpc::StatusCode::INTERNAL, "x", "\xff\xff"})), "INTERNAL");
}

TEST(ErrorDetails, ALongMessageFitsIntoAHeader) {
  const grpc::Status status = ToGrpc(Err(StatusCode::kInternal, "{}", std::string(100'000, 'x')));
  EXPECT_LE(status.error_message().size() + status.error_details().size(), 4500u);
}

}  // namespace
}  // namespace ag
