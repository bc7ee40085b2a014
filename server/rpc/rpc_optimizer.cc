#include <grpcpp/grpcpp.h>

#include <set>

#include "autograph/v1/optimizer.grpc.pb.h"
#include "base/build_facts.h"
#include "base/reason.h"
#include "base/trace.h"
#include "server/rpc/recent_answers.h"
#include "server/rpc/rpc.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

constexpr Nanos kWatchLook =
    std::chrono::milliseconds(250);  // How often a watch checks whether its client left.

class OptimizerService final : public v1::Optimizer::Service {
 public:
  explicit OptimizerService(RpcCore& core)
      : core_(core), recent_(*core.clock, [this](const v1::Job& job) { return HasFiles(job); }) {}

  grpc::Status Optimize(grpc::ServerContext* context, const v1::OptimizeRequest* request,
                        v1::Job* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kOptimize);
    if (!caller.ok()) return ToGrpc(caller.status());
    const std::string& tenant = caller->tenant.name;
    const std::string key = RecentAnswers::KeyOf(*request, tenant);
    const RecentAnswers::Revision revision = {core_.dispatcher->offers_revision(),
                                              core_.cache->answers_revision()};
    if (const auto known = key.empty() ? nullptr : recent_.Find(key, revision); known != nullptr) {
      known->WriteTo(static_cast<double>(core_.clock->UnixSeconds()), response);
      return Counted(*request, known->job());
    }
    auto accepted = AcceptedRequest(*request);
    if (!accepted.ok()) return ToGrpc(accepted.status());
    // A tenant takes one turn, whatever it says of its clients.
    if (!tenant.empty()) accepted->set_client(tenant);
    if (accepted->client().empty()) accepted->set_client(context->peer());
    accepted->set_traceparent(TraceOf(*context).ToString());
    const auto job = core_.jobs->Accept(*std::move(accepted), caller->tenant);
    if (job.ok() && job->id == 0) {
      ToProto(*job, response);
      recent_.Keep(key, revision, *response);
      return Counted(*request, *response);
    }
    const grpc::Status status = Answer(job, response);
    return status.ok() ? Counted(*request, *response) : status;
  }

  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::Job* response) override {
    return Answer(Admitted(*context, Rpc::kGetJob, request->name()), response);
  }

  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::Job* response) override {
    const auto found = Admitted(*context, Rpc::kCancelJob, request->name());
    if (!found.ok()) return ToGrpc(found.status());
    return Answer(core_.jobs->Cancel(found->id, {request->request_id(), request->for_all()}),
                  response);
  }

  grpc::Status PublishBest(grpc::ServerContext* context, const v1::PublishBestRequest* request,
                           v1::Job* response) override {
    const auto found = Admitted(*context, Rpc::kPublishBest, request->name());
    return Answer(found.ok() ? core_.jobs->PublishBest(found->id) : found, response);
  }

  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kListJobs);
    if (!caller.ok()) return ToGrpc(caller.status());
    return ToGrpc(List(caller->tenant, *request, response));
  }

  grpc::Status DeleteModel(grpc::ServerContext* context, const v1::DeleteModelRequest* request,
                           v1::DeleteModelResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kDeleteModel);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto model = ParseDigest(request->model_digest());
    if (!model.ok()) return ToGrpc(Within(model.status(), "model_digest"));
    const auto removed = core_.jobs->DeleteModel(*model, caller->tenant);
    if (!removed.ok()) return ToGrpc(removed.status());
    response->set_jobs(removed->jobs);
    response->set_answers(removed->answers);
    response->set_blobs(removed->blobs);
    response->set_bytes(removed->bytes);
    return grpc::Status::OK;
  }

  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::Job>* writer) override {
    const auto caller = core_.access->Admit(*context, Rpc::kWatchJob);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto id = ParseJobName(request->name());
    if (!id.ok()) return ToGrpc(id.status());
    const auto found = Find(*id, *caller);
    if (!found.ok()) return ToGrpc(found.status());
    const auto place = core_.watches->Enter(*context);
    if (!place.ok()) return ToGrpc(place.status());
    return Watch(*context, *caller, *id, **place, *writer);
  }

  grpc::Status GetCapabilities(grpc::ServerContext* context, const v1::GetCapabilitiesRequest*,
                               v1::Capabilities* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kGetCapabilities);
    if (!caller.ok()) return ToGrpc(caller.status());
    response->set_version(std::string(Version()));
    response->set_build(BuildFacts("autographd"));
    std::set<std::string> devices;
    for (const DeviceOffer& offer : core_.dispatcher->Offers()) devices.insert(offer.device);
    for (const std::string& device : devices) response->add_devices(device);
    response->set_model_bytes_max(core_.limits.model_bytes_max);
    response->set_rules_digest(core_.rules_digest);
    response->set_epoch(core_.dispatcher->epoch());
    response->set_shared_blob_dir(core_.shared_blob_dir);
    response->set_shared_blob_proof(core_.shared_blob_proof);
    return grpc::Status::OK;
  }

 private:
  // The trace of the call, or a new one.
  static Trace TraceOf(const grpc::ServerContext& context) {
    const auto found = context.client_metadata().find("traceparent");
    if (found == context.client_metadata().end()) return NewTrace();
    return NextSpan(ParseTrace({found->second.data(), found->second.size()}));
  }

  // Counts a whole answer that the cache gave.
  grpc::Status Counted(const v1::OptimizeRequest& request, const v1::Job& job) {
    if (job.result().cache().model_hit() && !request.validate_only()) ++core_.answers_given;
    return grpc::Status::OK;
  }

  bool HasFiles(const v1::Job& answer) const {
    for (const std::string* hex :
         {&answer.result().output_digest(), &answer.result().report_digest()}) {
      const auto digest = ParseDigest(*hex);
      if (!hex->empty() && (!digest.ok() || !core_.blobs->Has(*digest))) return false;
    }
    return true;
  }

  static grpc::Status Answer(const StatusOr<Job>& job, v1::Job* response) {
    if (job.ok()) ToProto(*job, response);
    return ToGrpc(job.status());
  }

  // Returns the job of a call about one.
  StatusOr<Job> Admitted(const grpc::ServerContext& context, Rpc rpc, const std::string& name) {
    AG_LET(const Caller caller, core_.access->Admit(context, rpc));
    AG_LET(const int64_t id, ParseJobName(name));
    return Find(id, caller);
  }

  // Another tenant's job is as one that there is none of.
  StatusOr<Job> Find(int64_t id, const Caller& caller) {
    AG_LET(Job job, core_.jobs->Get(id));
    if (!caller.tenant.Sees(job.tenant)) return NoJob(id);
    return job;
  }

  Status List(const Tenant& tenant, const v1::ListJobsRequest& request,
              v1::ListJobsResponse* response) {
    AG_LET(const Page page, PageOf(request.page_size(), request.page_token()));
    Jobs::ListOptions options;
    options.rows_max = page.rows_max;
    options.before_id = page.before;
    if (!tenant.sees_all) options.tenant = tenant.name;
    if (request.state() != v1::Job::STATE_UNSPECIFIED) {
      if (!v1::Job::State_IsValid(request.state())) {
        return Err(StatusCode::kInvalidArgument, "state: {}", static_cast<int>(request.state()));
      }
      options.state = v1::Job::State_Name(request.state());
    }
    options.device = request.device();
    options.created_since = request.created_since_unix_seconds();
    if (!request.model_digest().empty()) {
      AG_LET(const Digest model, ParseDigest(request.model_digest()));
      options.model_digest = model.Hex();
    }
    AG_LET(const Jobs::Listed listed, core_.jobs->List(options));
    int64_t next = listed.next_before_id;
    size_t bytes = 0;
    for (const Job& job : listed.jobs) {
      ToSummary(job, response->add_jobs());
      bytes += response->jobs(response->jobs_size() - 1).ByteSizeLong();
      if (bytes <= kPageBytesMax || job.id == listed.jobs.back().id) continue;
      next = job.id;
      break;
    }
    if (next > 0) response->set_next_page_token(fmt::format("{}", next));
    return OkStatus();
  }

  grpc::Status Watch(grpc::ServerContext& context, const Caller& caller, int64_t id,
                     Places::Place& place, grpc::ServerWriter<v1::Job>& writer) {
    uint64_t version = 0;
    Nanos sent = core_.clock->Now();
    while (!context.IsCancelled()) {
      place.Moved();  // It stands still while a message is not taken.
      const auto job = core_.jobs->Wait(id, version, kWatchLook);
      if (!job.ok()) return ToGrpc(job.status());
      const Status may = core_.access->StillMay(caller, Rpc::kWatchJob);
      if (!may.ok()) return ToGrpc(may);
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
      if (core_.stopping) return ToGrpc(Stopping());
    }
    return ToGrpc(Err(StatusCode::kCancelled, "the client left"));
  }

  RpcCore& core_;
  RecentAnswers recent_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeOptimizerService(RpcCore& core) {
  return std::make_unique<OptimizerService>(core);
}

}  // namespace ag
