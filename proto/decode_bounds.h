// A bound on what a message of a client or a worker may become in memory. Two bytes on the wire are
// an empty entry of a list, which takes a hundred in memory or more, so that a message of 4 MiB
// could take half a gigabyte before any of our code sees it. The generated headers include this one
// (cmake/room.cmake): whoever receives a request of our services counts first. Thread-safe.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/impl/serialization_traits.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

namespace ag {

// The entries of a message's lists and its fields, in bytes of memory, beside the bytes of the
// message itself.
inline constexpr int64_t kDecodedBytesMax = int64_t{8} << 20;

// INVALID_ARGUMENT: the message would take more than kDecodedBytesMax. INTERNAL without a text: it
// does not decode.
struct BoundedMessage {
  static grpc::Status Serialize(const google::protobuf::MessageLite& message,
                                grpc::ByteBuffer* buffer, bool* own_buffer);
  static grpc::Status Deserialize(grpc::ByteBuffer* buffer, google::protobuf::MessageLite* message);
};

// A stream's Read returns false for a message that does not decode, as at the end of the stream.
// This returns why the last message that this thread took did not decode, and forgets it; OK: it
// did.
grpc::Status TakeDecodeError();

}  // namespace ag

#define AG_BOUNDED(type) \
  template <>            \
  class grpc::SerializationTraits<type, void> : public ag::BoundedMessage {}

namespace autograph::v1 {
class BackupRequest;
class CacheRecord;
class DownloadRequest;
class ExportCacheRequest;
class UploadRequest;
class WatchJobRequest;
class WorkerState;
}  // namespace autograph::v1

// As which the generated code takes requests of unary calls.
AG_BOUNDED(google::protobuf::MessageLite);
// Those of streams, and for them; a test compares.
AG_BOUNDED(autograph::v1::BackupRequest);
AG_BOUNDED(autograph::v1::CacheRecord);
AG_BOUNDED(autograph::v1::DownloadRequest);
AG_BOUNDED(autograph::v1::ExportCacheRequest);
AG_BOUNDED(autograph::v1::UploadRequest);
AG_BOUNDED(autograph::v1::WatchJobRequest);
AG_BOUNDED(autograph::v1::WorkerState);

#undef AG_BOUNDED
