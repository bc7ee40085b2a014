// Every rpc of a whole server, by libFuzzer: the first byte of an input chooses the method, the
// rest is its request, or, cut by lengths, the messages of its stream.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "server/rpc/access.h"
#include "server/server.h"

namespace ag {
namespace {

constexpr size_t kMessagesMax = 8;
constexpr auto kDeadline = std::chrono::milliseconds(200);

// The server that all inputs share; it is never ended.
class Target {
 public:
  Target() {
    InitLog("fuzz", LogOptions{.level = "off"});
    ServerOptions options;
    options.data_dir = folder_.path() + "/data";
    options.listen = "unix:" + folder_.path() + "/socket";
    server_ = *Server::Start(options);
    // gRPC 1.51 keeps 12 KB of most calls of an in-process channel; over a socket it keeps none.
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateChannel(options.listen, grpc::InsecureChannelCredentials()));
  }

  // Sends the messages, half-closes, and reads what comes until the end.
  void Call(const std::string& path, const std::vector<std::string>& messages) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    grpc::CompletionQueue queue;
    const auto call = stub_->PrepareCall(&context, path, &queue);
    call->StartCall(nullptr);
    if (!Next(queue)) return Finish(*call, queue);
    for (const std::string& message : messages) {
      const grpc::Slice slice(message);
      call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
      if (!Next(queue)) return Finish(*call, queue);
    }
    call->WritesDone(nullptr);
    if (!Next(queue)) return Finish(*call, queue);
    while (true) {
      grpc::ByteBuffer answer;
      call->Read(&answer, nullptr);
      if (!Next(queue)) return Finish(*call, queue);
    }
  }

 private:
  static bool Next(grpc::CompletionQueue& queue) {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  }
  static void Finish(grpc::GenericClientAsyncReaderWriter& call, grpc::CompletionQueue& queue) {
    grpc::Status status;
    call.Finish(&status, nullptr);
    Next(queue);
    queue.Shutdown();
    while (Next(queue)) {
    }
  }

  const TempDir folder_ = *TempDir::Make("fuzz-rpc-");
  std::unique_ptr<Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

// Cuts the bytes into messages, each behind its length of two bytes; the rest is the last one.
std::vector<std::string> MessagesOf(std::string_view bytes) {
  std::vector<std::string> messages;
  while (messages.size() + 1 < kMessagesMax && bytes.size() > 2) {
    const size_t length = static_cast<uint8_t>(bytes[0]) + 256 * static_cast<uint8_t>(bytes[1]);
    if (length == 0 || length > bytes.size() - 2) break;
    messages.emplace_back(bytes.substr(2, length));
    bytes.remove_prefix(2 + length);
  }
  messages.emplace_back(bytes);
  return messages;
}

void FuzzRpc(std::string_view bytes) {
  static auto* const kTarget = new Target();
  if (bytes.empty()) return;
  const RpcRow& rpc = Rpcs()[static_cast<uint8_t>(bytes[0]) % Rpcs().size()];
  std::string path = std::string("/") + rpc.method;  // "/autograph.v1.Optimizer/Optimize"
  path[path.rfind('.')] = '/';
  kTarget->Call(path, MessagesOf(bytes.substr(1)));
}

}  // namespace
}  // namespace ag

// The server is never ended: what gRPC holds for a thread that it just starts is no leak.
extern "C" const char* __lsan_default_suppressions() { return "leak:grpc::ThreadManager"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ag::FuzzRpc({reinterpret_cast<const char*>(data), size});
  return 0;
}
