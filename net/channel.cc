#include "net/channel.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "net/file_stamp.h"
#include "net/loopback.h"
#include "net/tokens.h"

namespace ag {
namespace {

namespace ge = grpc::experimental;

// A token that does not change, or one in a file. A file that cannot be read any more leaves the
// last token.
class TokenSource {
 public:
  explicit TokenSource(std::string token) : token_(std::move(token)) {}
  static StatusOr<std::shared_ptr<TokenSource>> OfFile(const std::string& path) {
    const FileStamp stamp = StampOf(path);
    AG_LET(std::string token, ReadTokenFile(path));
    auto source = std::make_shared<TokenSource>(std::move(token));
    source->path_ = path;
    MutexLock lock(source->mutex_);
    source->stamp_ = stamp;
    return source;
  }

  std::string Get() {
    MutexLock lock(mutex_);
    if (path_.empty()) return token_;
    const FileStamp stamp = StampOf(path_);
    if (stamp == stamp_) return token_;
    stamp_ = stamp;
    StatusOr<std::string> token = ReadTokenFile(path_);
    if (token.ok()) {
      token_ = *std::move(token);
    } else {
      LogWarn("the token stays as it was: {}", Message(token.status()));
    }
    return token_;
  }

 private:
  std::string path_;  // "": the token does not change.
  Mutex mutex_;
  std::string token_ AG_GUARDED_BY(mutex_);
  FileStamp stamp_ AG_GUARDED_BY(mutex_);
};

// Not gRPC's call credentials, which want TLS also on loopback.
class TokenAdder final : public ge::Interceptor {
 public:
  explicit TokenAdder(TokenSource& source) : source_(source) {}

  void Intercept(ge::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            ge::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", "Bearer " + source_.Get());
    }
    methods->Proceed();
  }

 private:
  TokenSource& source_;
};

class TokenAdders final : public ge::ClientInterceptorFactoryInterface {
 public:
  explicit TokenAdders(std::shared_ptr<TokenSource> source) : source_(std::move(source)) {}
  ge::Interceptor* CreateClientInterceptor(ge::ClientRpcInfo*) override {
    return new TokenAdder(*source_);
  }

 private:
  const std::shared_ptr<TokenSource> source_;
};

StatusOr<std::shared_ptr<TokenSource>> SourceOf(const ChannelOptions& options) {
  if (options.token.empty()) return TokenSource::OfFile(options.token_file);
  AG_TRY(CheckTokenText(options.token));
  return std::make_shared<TokenSource>(options.token);
}

}  // namespace

StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& address,
                                                     const ChannelOptions& options,
                                                     const grpc::ChannelArguments& arguments) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  const bool is_plain = options.tls.IsEmpty();
  if (!is_plain) {
    AG_LET(credentials, TlsChannelCredentials(options.tls));
  }
  std::vector<std::unique_ptr<ge::ClientInterceptorFactoryInterface>> adders;
  if (!options.token.empty() || !options.token_file.empty()) {
    if (is_plain && !options.insecure && !IsLoopback(address)) {
      return Err(StatusCode::kInvalidArgument,
                 "the token would go to {} in plain text: name the certificate that signed the "
                 "server's (--tls-ca), or allow it (--insecure)",
                 address);
    }
    AG_LET(std::shared_ptr<TokenSource> source, SourceOf(options));
    adders.push_back(std::make_unique<TokenAdders>(std::move(source)));
  }
  return ge::CreateCustomChannelWithInterceptors(address, credentials, arguments,
                                                 std::move(adders));
}

}  // namespace ag
