// Tokens, roles and tenants at a real server: who gets what, and what others see of it.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "autograph/v1/blobs.grpc.pb.h"
#include "autograph/v1/optimizer.grpc.pb.h"
#include "autograph/v1/worker.grpc.pb.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/testing/eventually.h"
#include "net/tokens.h"
#include "server/rpc/access.h"
#include "server/server.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

// Calls any method with one empty message and reads whatever comes.
grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       const std::string& authorization) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const size_t dot = method.rfind('.');
  const auto call = stub.PrepareCall(
      &context, "/" + method.substr(0, dot) + "/" + method.substr(dot + 1), &queue);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  next();
  const grpc::Slice nothing;
  call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
  next();
  grpc::ByteBuffer read;
  do {
    call->Read(&read, nullptr);
  } while (next());
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  return status;
}

struct AccessBench {
  TempDir dir = *TempDir::Make("access-");
  std::map<std::string, std::string> tokens;  // By name.
  std::unique_ptr<Server> server;
  std::shared_ptr<grpc::Channel> channel;

  explicit AccessBench(const std::vector<std::pair<std::string, RoleSet>>& callers) {
    for (const auto& [name, roles] : callers) Add(name, roles);
    ServerOptions options;
    options.data_dir = dir.path() + "/data";
    options.tokens = path();
    options.runners = 0;  // Jobs stay queued.
    auto started = Server::Start(options);
    AG_CHECK(started.ok());
    server = *std::move(started);
    channel = server->InProcessChannel();
  }
  std::string path() const { return dir.path() + "/tokens"; }
  void Add(const std::string& name, RoleSet roles) {
    tokens[name] = NewToken();
    AG_CHECK(AddToken(path(), {name, roles, Sha256(tokens[name])}).ok());
  }
  std::string Bearer(const std::string& name) const { return "Bearer " + tokens.at(name); }

  std::unique_ptr<grpc::ClientContext> As(const std::string& name) const {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context->AddMetadata("authorization", Bearer(name));
    return context;
  }
  grpc::Status Upload(const std::string& name, const std::string& bytes) const {
    const auto context = As(name);
    v1::UploadResponse response;
    auto writer = v1::Blobs::NewStub(channel)->Upload(context.get(), &response);
    v1::UploadRequest chunk;
    chunk.set_digest(Sha256(bytes).Hex());
    chunk.set_size_bytes(static_cast<int64_t>(bytes.size()));
    chunk.set_data(bytes);
    chunk.set_last(true);
    writer->Write(chunk);
    writer->WritesDone();
    return writer->Finish();
  }
  bool Misses(const std::string& name, const std::string& bytes) const {
    v1::FindMissingRequest request;
    request.add_digests(Sha256(bytes).Hex());
    v1::FindMissingResponse response;
    const auto status =
        v1::Blobs::NewStub(channel)->FindMissing(As(name).get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.missing_size() > 0;
  }
  grpc::Status Download(const std::string& name, const std::string& bytes) const {
    const auto context = As(name);
    v1::DownloadRequest request;
    request.set_digest(Sha256(bytes).Hex());
    auto reader = v1::Blobs::NewStub(channel)->Download(context.get(), request);
    v1::DownloadResponse chunk;
    std::string read;
    while (reader->Read(&chunk)) read += chunk.data();
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(read, status.ok() ? bytes : "");
    return status;
  }
  StatusOr<v1::Job> Optimize(const std::string& name, const std::string& model,
                             const std::string& request_id = "") const {
    v1::OptimizeRequest request;
    request.set_model_digest(Sha256(model).Hex());
    request.set_request_id(request_id);
    request.set_device("sim:small");
    request.set_client("says it is another");
    v1::Job job;
    const auto status = v1::Optimizer::NewStub(channel)->Optimize(As(name).get(), request, &job);
    if (status.ok()) return job;
    return Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  grpc::Status Get(const std::string& name, const std::string& job) const {
    v1::GetJobRequest request;
    request.set_name(job);
    v1::Job got;
    return v1::Optimizer::NewStub(channel)->GetJob(As(name).get(), request, &got);
  }
  grpc::Status Watch(const std::string& name, const std::string& job) const {
    return Watch(*As(name), job);
  }
  // Reads no token: others may be added meanwhile.
  grpc::Status Watch(grpc::ClientContext& context, const std::string& job) const {
    v1::WatchJobRequest request;
    request.set_name(job);
    auto reader = v1::Optimizer::NewStub(channel)->WatchJob(&context, request);
    v1::Job seen;
    while (reader->Read(&seen)) {
    }
    return reader->Finish();
  }
  grpc::Status Cancel(const std::string& name, const std::string& job) const {
    v1::CancelJobRequest request;
    request.set_name(job);
    request.set_for_all(true);
    v1::Job got;
    return v1::Optimizer::NewStub(channel)->CancelJob(As(name).get(), request, &got);
  }
  std::vector<std::string> List(const std::string& name) const {
    v1::ListJobsResponse response;
    const auto status = v1::Optimizer::NewStub(channel)->ListJobs(As(name).get(), {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<std::string> names;
    for (const v1::Job& job : response.jobs()) names.push_back(job.name());
    return names;
  }
};

// A worker that offers sim:small, so that jobs are accepted, and does no work.
class IdleWorker {
 public:
  explicit IdleWorker(const AccessBench& bench, const std::string& token_name)
      : context_(bench.As(token_name)),
        stub_(v1::Workers::NewStub(bench.channel)),
        stream_(stub_->Synchronize(context_.get())) {
    v1::WorkerState state;
    state.set_worker_id("idle");
    state.set_device("sim:small");
    state.set_device_spec(*ReadFile(std::string(AG_SOURCE_DIR) + "/deploy/devices/small.spec"));
    state.set_environment("device=small;policy=1");
    state.set_health(v1::WorkerState::SERVING);
    state.set_simulated(true);
    stream_->Write(state);
    reader_ = std::thread([this] {
      v1::DesiredState desired;
      while (stream_->Read(&desired)) {
      }
    });
    while (!bench.server->OffersDevice()) RealClock().SleepFor(std::chrono::milliseconds(2));
  }
  ~IdleWorker() {
    context_->TryCancel();
    reader_.join();
    stream_->Finish();
  }

 private:
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<v1::Workers::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerState, v1::DesiredState>> stream_;
  std::thread reader_;
};

// Every rpc that the server has, by reflection of the table's order, with each role alone.
TEST(AccessRpc, EachRoleAtEachRpc) {
  std::vector<std::pair<std::string, RoleSet>> callers;
  for (const Role role : AllRoles()) callers.push_back({"the-" + RoleName(role), {role}});
  const AccessBench b(callers);
  for (const RpcRow& row : Rpcs()) {
    const std::string needs = std::string(row.method) +
                              " needs a token: AUTOGRAPH_TOKEN or "
                              "--token-file of the client";
    const grpc::Status none = CallEmpty(b.channel, row.method, "");
    EXPECT_EQ(none.error_code(), grpc::StatusCode::UNAUTHENTICATED) << row.method;
    EXPECT_EQ(none.error_message(), needs);
    const grpc::Status wrong = CallEmpty(b.channel, row.method, "Bearer " + NewToken());
    EXPECT_EQ(wrong.error_code(), grpc::StatusCode::UNAUTHENTICATED) << row.method;
    EXPECT_EQ(wrong.error_message(), "the token is not known here");
    for (const Role role : AllRoles()) {
      const std::string name = "the-" + RoleName(role);
      const grpc::Status status = CallEmpty(b.channel, row.method, b.Bearer(name));
      if (row.roles.Has(role)) {
        EXPECT_NE(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << name << row.method;
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << name << row.method;
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << name << row.method;
      } else {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << name << row.method;
        EXPECT_EQ(status.error_message(), name + " lacks the role " + ToText(row.roles, " or ") +
                                              " for " + row.method + "; it has " + RoleName(role));
      }
    }
  }
}

TEST(AccessRpc, OtherWordsThanABearerAreNoToken) {
  const AccessBench b({{"alice", {Role::kRead}}});
  const char* method = "autograph.v1.Optimizer.ListJobs";
  const std::string token = b.tokens.at("alice");
  EXPECT_TRUE(CallEmpty(b.channel, method, "Bearer " + token).ok());
  for (const std::string& wrong :
       {token, "bearer " + token, "Basic " + token, std::string("Bearer "), "Bearer " + token + "0",
        "Bearer " + Sha256(token).Hex()}) {
    EXPECT_EQ(CallEmpty(b.channel, method, wrong).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
}

TEST(AccessRpc, HealthIsOpen) {
  const AccessBench b({{"alice", {Role::kRead}}});
  EXPECT_TRUE(CallEmpty(b.channel, "grpc.health.v1.Health.Check", "").ok());
}

TEST(AccessRpc, AnotherTenantsJobsAreNotThere) {
  const RoleSet user = {Role::kSubmit, Role::kRead};
  const AccessBench b(
      {{"alice", user}, {"bob", user}, {"root", {Role::kAdmin}}, {"machine", {Role::kWorker}}});
  const IdleWorker worker(b, "machine");
  const std::string model = "the model of both";
  ASSERT_TRUE(b.Upload("alice", model).ok());
  const v1::Job job = *b.Optimize("alice", model, "id");

  EXPECT_TRUE(b.Get("alice", job.name()).ok());
  EXPECT_TRUE(b.Get("root", job.name()).ok());
  const grpc::Status absent = b.Get("alice", "jobs/99");
  EXPECT_EQ(absent.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(absent.error_message(), "no job jobs/99");
  for (const grpc::Status& status :
       {b.Get("bob", job.name()), b.Cancel("bob", job.name()), b.Watch("bob", job.name())}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(status.error_message(), "no job " + job.name());
  }
  EXPECT_EQ(b.List("bob"), std::vector<std::string>());

  // Bob's equal request, under the same id, is a job of his own, once he has sent the model.
  EXPECT_EQ(ToString(b.Optimize("bob", model).status()),
            "FAILED_PRECONDITION: model " + Sha256(model).Hex() +
                " is not here; upload it and call again");
  ASSERT_TRUE(b.Upload("bob", model).ok());
  const v1::Job other = *b.Optimize("bob", model, "id");
  EXPECT_NE(other.name(), job.name());
  EXPECT_EQ(b.Optimize("bob", model, "id")->name(), other.name());
  EXPECT_EQ(b.Optimize("alice", model, "id")->name(), job.name());
  EXPECT_EQ(b.List("bob"), std::vector<std::string>{other.name()});
  EXPECT_EQ(b.List("alice"), std::vector<std::string>{job.name()});
  EXPECT_EQ(b.List("root"), (std::vector<std::string>{other.name(), job.name()}));

  EXPECT_TRUE(b.Cancel("root", other.name()).ok());
  EXPECT_TRUE(b.Cancel("alice", job.name()).ok());
}

TEST(AccessRpc, AnotherTenantsBlobsAreNotThere) {
  const RoleSet user = {Role::kSubmit, Role::kRead};
  const AccessBench b(
      {{"alice", user}, {"bob", user}, {"root", {Role::kAdmin}}, {"machine", {Role::kWorker}}});
  const std::string model = "a secret model";
  ASSERT_TRUE(b.Upload("alice", model).ok());
  EXPECT_FALSE(b.Misses("alice", model));
  EXPECT_FALSE(b.Misses("root", model));
  EXPECT_TRUE(b.Misses("bob", model));
  EXPECT_TRUE(b.Download("alice", model).ok());
  EXPECT_TRUE(b.Download("root", model).ok());
  EXPECT_TRUE(b.Download("machine", model).ok());
  const grpc::Status absent = b.Download("bob", "sent by nobody");
  EXPECT_EQ(absent.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(absent.error_message(), "no blob " + Sha256("sent by nobody").Hex());
  const grpc::Status hidden = b.Download("bob", model);
  EXPECT_EQ(hidden.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(hidden.error_message(), "no blob " + Sha256(model).Hex());

  ASSERT_TRUE(b.Upload("bob", model).ok());
  EXPECT_FALSE(b.Misses("bob", model));
  EXPECT_TRUE(b.Download("bob", model).ok());
}

TEST(AccessRpc, TheTokensAreReadAnew) {
  const RoleSet user = {Role::kSubmit, Role::kRead};
  AccessBench b({{"alice", user}, {"machine", {Role::kWorker}}});
  const IdleWorker worker(b, "machine");
  ASSERT_TRUE(b.Upload("alice", "model").ok());
  const std::string job = b.Optimize("alice", "model")->name();
  grpc::Status watched;
  const auto context = b.As("alice");
  std::thread watch([&] { watched = b.Watch(*context, job); });

  b.Add("carol", user);
  EXPECT_TRUE(
      Eventually([&] { return b.Get("carol", job).error_code() == grpc::StatusCode::NOT_FOUND; }));
  EXPECT_TRUE(b.Get("alice", job).ok());

  // What is wrong changes nothing, not even what is right in it.
  const std::string right = *ReadFile(b.path());
  ASSERT_TRUE(WriteFileAtomically(b.path(), "alice read\n").ok());
  b.tokens["dave"] = NewToken();
  RealClock().SleepFor(std::chrono::milliseconds(600));
  EXPECT_TRUE(b.Get("alice", job).ok());
  EXPECT_EQ(b.Get("dave", job).error_code(), grpc::StatusCode::UNAUTHENTICATED);

  // Without alice her calls end, those that are open as well.
  const std::string without_alice = right.substr(right.find('\n') + 1);
  ASSERT_TRUE(WriteFileAtomically(b.path(), without_alice).ok());
  EXPECT_TRUE(Eventually(
      [&] { return b.Get("alice", job).error_code() == grpc::StatusCode::UNAUTHENTICATED; }));
  watch.join();
  EXPECT_EQ(watched.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(watched.error_message(), "the token is not known here");
}

TEST(AccessRpc, AWorkerWhoseTokenGoesIsCut) {
  AccessBench b({{"alice", {Role::kRead}}, {"machine", {Role::kWorker}}});
  const IdleWorker worker(b, "machine");
  const std::string text = *ReadFile(b.path());
  ASSERT_TRUE(WriteFileAtomically(b.path(), text.substr(0, text.find('\n') + 1)).ok());
  EXPECT_TRUE(Eventually([&] { return !b.server->OffersDevice(); }));
}

TEST(AccessRpc, WrongTokensFileStopsTheStart) {
  const TempDir dir = *TempDir::Make("access-");
  ServerOptions options;
  options.data_dir = dir.path() + "/data";
  options.tokens = dir.path() + "/tokens";
  EXPECT_EQ(ToString(Server::Start(options).status()),
            "NOT_FOUND: read " + options.tokens + ": No such file or directory");
  ASSERT_TRUE(WriteFileAtomically(options.tokens, "# nobody\n").ok());
  EXPECT_EQ(ToString(Server::Start(options).status()),
            "INVALID_ARGUMENT: " + options.tokens + ": it has no token");
}

}  // namespace
}  // namespace ag
