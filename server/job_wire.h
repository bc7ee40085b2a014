// Conversions of jobs between plain structs, protocol messages and stored bytes (serialized
// messages). Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/job.h"

namespace autograph::v1 {
class Job;
class OptimizeRequest;
class Result;
class RewriteCount;
}  // namespace autograph::v1

namespace google::protobuf {
template <class T>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace ag {

// Returns the request with defaults filled in. kInvalidArgument names the field that is out of
// range.
StatusOr<JobRequest> FromProto(const autograph::v1::OptimizeRequest& proto);

void ToProto(const Job& job, autograph::v1::Job* proto);
std::vector<RewriteTotal> FromProto(
    const google::protobuf::RepeatedPtrField<autograph::v1::RewriteCount>& proto);

std::string EncodeJobRequest(const JobRequest& request);
StatusOr<JobRequest> DecodeJobRequest(std::string_view bytes);
std::string EncodeJobResult(const JobResult& result);
StatusOr<JobResult> DecodeJobResult(std::string_view bytes);

}  // namespace ag
