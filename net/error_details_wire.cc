#include "net/error_details.h"

#include <grpcpp/support/status.h>

#include "autograph/v1/error.pb.h"
#include "base/reason.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

// The message stands in the status and in its details; a header has 8 KiB.
constexpr size_t kMessageBytes = 2000;
constexpr char kInfoType[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kRetryType[] = "type.googleapis.com/google.rpc.RetryInfo";

void Add(const char* type, const google::protobuf::Message& detail, v1::ErrorStatus* error) {
  v1::ErrorDetail* added = error->add_details();
  added->set_type_url(type);
  added->set_value(detail.SerializeAsString());
}

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorStatus error;
  error.set_code(static_cast<int>(status.code()));
  error.set_message(Message(status).substr(0, kMessageBytes));
  v1::ErrorInfo info;
  info.set_reason(ReasonOf(status));
  info.set_domain("autograph");
  Add(kInfoType, info, &error);
  if (const auto pause = RetryPauseOf(status)) {
    constexpr int64_t kNsOfSecond = 1'000'000'000;
    v1::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(pause->count() / kNsOfSecond);
    retry.mutable_retry_delay()->set_nanos(static_cast<int>(pause->count() % kNsOfSecond));
    Add(kRetryType, retry, &error);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), error.message(),
                      error.SerializeAsString());
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return OkStatus();
  Status own(static_cast<StatusCode>(status.error_code()), status.error_message());
  v1::ErrorStatus error;
  if (!error.ParseFromString(status.error_details())) return own;
  std::string reason;
  std::optional<Nanos> pause;
  for (const v1::ErrorDetail& detail : error.details()) {
    v1::ErrorInfo info;
    v1::RetryInfo retry;
    if (detail.type_url() == kInfoType && info.ParseFromString(detail.value())) {
      reason = info.reason();
    }
    if (detail.type_url() == kRetryType && retry.ParseFromString(detail.value())) {
      pause =
          std::chrono::seconds(retry.retry_delay().seconds()) + Nanos{retry.retry_delay().nanos()};
    }
  }
  return WithReason(reason, pause, std::move(own));
}

}  // namespace ag
