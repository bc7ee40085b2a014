#include "proto/decode_bounds.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <string>
#include <utility>

namespace ag {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// A smaller message cannot become large: 32,000 entries of a few hundred bytes.
constexpr size_t kSmallBytes = size_t{64} << 10;
constexpr int64_t kFieldBytes = 32;  // A string, a pointer to it, or a field that is not known.
constexpr int kDepthMax = 100;       // As protobuf's own.

thread_local grpc::Status error_of_thread;

// What a client takes is not bounded: it chooses its coordinator.
bool IsRequest(const Descriptor* type) {
  const google::protobuf::FileDescriptor* const file = type->file();
  for (int i = 0; i < file->service_count(); ++i) {
    for (int k = 0; k < file->service(i)->method_count(); ++k) {
      if (file->service(i)->method(k)->input_type() == type) return true;
    }
  }
  return false;
}

int64_t BytesOfEmpty(const Descriptor* type) {
  return static_cast<int64_t>(
      MessageFactory::generated_factory()->GetPrototype(type)->SpaceUsedLong());
}

// Takes what the message needs off `left`; stops below 0. What does not decode is left to the
// parser.
class Counter {
 public:
  explicit Counter(CodedInputStream& in) : in_(in) {}

  bool IsBounded(const Descriptor* type) {
    Count(type, kDepthMax);
    return left_ >= 0;
  }

 private:
  // False: it ends here.
  bool Count(const Descriptor* type, int depth) {
    if (depth == 0) return false;
    while (const uint32_t tag = in_.ReadTag()) {
      left_ -= kFieldBytes;
      if (left_ < 0 || !CountField(type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag)),
                                   tag, depth)) {
        return false;
      }
    }
    return true;
  }

  bool CountField(const FieldDescriptor* field, uint32_t tag, int depth) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      return WireFormatLite::SkipField(&in_, tag);
    }
    int size = 0;
    if (!in_.ReadVarintSizeAsInt(&size)) return false;
    if (field != nullptr && field->message_type() != nullptr) {
      left_ -= BytesOfEmpty(field->message_type());
      const CodedInputStream::Limit limit = in_.PushLimit(size);
      const bool goes_on = Count(field->message_type(), depth - 1);
      in_.PopLimit(limit);
      return goes_on;
    }
    // A byte of a packed list may be a number of eight.
    if (field != nullptr && field->is_packable()) left_ -= int64_t{8} * size;
    return in_.Skip(size);
  }

  CodedInputStream& in_;
  int64_t left_ = kDecodedBytesMax;
};

bool IsBounded(grpc::ByteBuffer* buffer, const Descriptor* type) {
  if (buffer == nullptr || !buffer->Valid() || buffer->Length() <= kSmallBytes ||
      !IsRequest(type)) {
    return true;
  }
  grpc::ProtoBufferReader reader(buffer);
  CodedInputStream in(&reader);
  return Counter(in).IsBounded(type);
}

}  // namespace

grpc::Status BoundedMessage::Serialize(const google::protobuf::MessageLite& message,
                                       grpc::ByteBuffer* buffer, bool* own_buffer) {
  return grpc::GenericSerialize<grpc::ProtoBufferWriter, google::protobuf::MessageLite>(
      message, buffer, own_buffer);
}

grpc::Status BoundedMessage::Deserialize(grpc::ByteBuffer* buffer,
                                         google::protobuf::MessageLite* message) {
  if (const Descriptor* const type = static_cast<Message*>(message)->GetDescriptor();
      !IsBounded(buffer, type)) {
    buffer->Clear();  // As the parser does: nobody else gives the bytes back.
    error_of_thread = {grpc::StatusCode::INVALID_ARGUMENT,
                       type->name() + ": its lists are too long: they take more than " +
                           std::to_string(kDecodedBytesMax) + " bytes"};
    return error_of_thread;
  }
  error_of_thread =
      grpc::GenericDeserialize<grpc::ProtoBufferReader, google::protobuf::MessageLite>(buffer,
                                                                                       message);
  return error_of_thread;
}

grpc::Status TakeDecodeError() { return std::exchange(error_of_thread, grpc::Status::OK); }

}  // namespace ag
