#include "server/rpc/rpc.h"

#include <algorithm>

#include "base/reason.h"
#include "base/text.h"

namespace ag {

Status DecodeError() {
  const grpc::Status error = TakeDecodeError();
  if (error.ok()) return OkStatus();
  const std::string& text = error.error_message();
  return Because(
      Reason::kRequestUndecodable,
      Err(StatusCode::kInvalidArgument, "{}", text.empty() ? "a message does not decode" : text));
}

StatusOr<Page> PageOf(int size, const std::string& token) {
  Page page;
  if (size < 0) return Err(StatusCode::kInvalidArgument, "page_size: {}", size);
  if (size > 0) page.rows_max = std::min(size, kPageMax);
  if (token.empty()) return page;
  const auto row = ParseInt(token);
  if (!row.ok() || *row <= 0) {
    return Err(StatusCode::kInvalidArgument, "page_token: {} is none of ours", token);
  }
  page.before = *row;
  return page;
}

}  // namespace ag
