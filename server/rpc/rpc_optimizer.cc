#include <grpcpp/grpcpp.h>

#include "autograph/v1/optimizer.grpc.pb.h"
#include "base/build_facts.h"
#include "server/rpc/rpc.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

constexpr Nanos kWatchLook =
    std::chrono::milliseconds(250);  // How often a watch checks whether its client left.

class OptimizerService final : public v1::Optimizer::Service {
 public:
  explicit OptimizerService(RpcCore& core) : core_(core) {}

  grpc::Status Optimize(grpc::ServerContext* context, const v1::OptimizeRequest* request,
                        v1::Job* response) override {
    auto accepted = AcceptedRequest(*request);
    if (!accepted.ok()) return ToGrpc(accepted.status());
    if (accepted->client().empty()) accepted->set_client(context->peer());
    return Answer(core_.jobs->Accept(*std::move(accepted)), response);
  }

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::Job* response) override {
    const auto id = ParseJobName(request->name());
    if (!id.ok()) return ToGrpc(id.status());
    return Answer(core_.jobs->Get(*id), response);
  }

  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                         v1::Job* response) override {
    const auto id = ParseJobName(request->name());
    if (!id.ok()) return ToGrpc(id.status());
    return Answer(core_.jobs->Cancel(*id, {request->request_id(), request->for_all()}), response);
  }

  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    return ToGrpc(List(*request, response));
  }

  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::Job>* writer) override {
    const auto id = ParseJobName(request->name());
    if (!id.ok()) return ToGrpc(id.status());
    if (watchers_.fetch_add(1) >= core_.watchers_max) {
      watchers_.fetch_sub(1);
      return ToGrpc(
          Err(StatusCode::kResourceExhausted, "{} watches are open already", core_.watchers_max));
    }
    const grpc::Status status = Watch(*context, *id, *writer);
    watchers_.fetch_sub(1);
    return status;
  }

  grpc::Status GetCapabilities(grpc::ServerContext*, const v1::GetCapabilitiesRequest*,
                               v1::Capabilities* response) override {
    response->set_version(std::string(Version()));
    response->set_build(BuildFacts("autographd"));
    for (const DeviceOffer& offer : core_.dispatcher->Offers()) response->add_devices(offer.device);
    response->set_model_bytes_max(core_.limits.model_bytes_max);
    response->set_rules_digest(core_.rules_digest);
    response->set_epoch(core_.dispatcher->epoch());
    response->set_shared_blob_dir(core_.shared_blob_dir);
    response->set_shared_blob_proof(core_.shared_blob_proof);
    return grpc::Status::OK;
  }

 private:
  static grpc::Status Answer(const StatusOr<Job>& job, v1::Job* response) {
    if (job.ok()) ToProto(*job, response);
    return ToGrpc(job.status());
  }

  Status List(const v1::ListJobsRequest& request, v1::ListJobsResponse* response) {
    AG_LET(const Page page, PageOf(request.page_size(), request.page_token()));
    Jobs::ListOptions options;
    options.rows_max = page.rows_max;
    options.before_id = page.before;
    if (request.state() != v1::Job::STATE_UNSPECIFIED) {
      if (!v1::Job::State_IsValid(request.state())) {
        return Err(StatusCode::kInvalidArgument, "state: {}", static_cast<int>(request.state()));
      }
      options.state = v1::Job::State_Name(request.state());
    }
    AG_LET(const std::vector<Job> jobs, core_.jobs->List(options));
    size_t bytes = 0;
    for (const Job& job : jobs) {
      ToSummary(job, response->add_jobs());
      bytes += response->jobs(response->jobs_size() - 1).ByteSizeLong();
      const bool is_full = bytes > kPageBytesMax || response->jobs_size() == options.rows_max;
      if (is_full) response->set_next_page_token(fmt::format("{}", job.id));
      if (is_full) break;
    }
    return OkStatus();
  }

  grpc::Status Watch(grpc::ServerContext& context, int64_t id,
                     grpc::ServerWriter<v1::Job>& writer) {
    uint64_t version = 0;
    Nanos sent = core_.clock->Now();
    while (!context.IsCancelled()) {
      const auto job = core_.jobs->Wait(id, version, kWatchLook);
      if (!job.ok()) return ToGrpc(job.status());
      const bool terminal = IsTerminal(job->state);
      const Nanos now = core_.clock->Now();
      if (job->version > version || terminal || now - sent >= core_.tick_max) {
        v1::Job message;
        ToProto(*job, &message);
        if (!writer.Write(message)) break;
        version = job->version;
        sent = now;
      }
      if (terminal) return grpc::Status::OK;
      if (core_.stopping) return ToGrpc(Err(StatusCode::kUnavailable, "the server stops"));
    }
    return ToGrpc(Err(StatusCode::kCancelled, "the client left"));
  }

  RpcCore& core_;
  std::atomic<int> watchers_{0};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeOptimizerService(RpcCore& core) {
  return std::make_unique<OptimizerService>(core);
}

}  // namespace ag
