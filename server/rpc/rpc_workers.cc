#include <grpcpp/grpcpp.h>

#include <limits>

#include "autograph/v1/worker.grpc.pb.h"
#include "base/thread.h"
#include "server/rpc/rpc.h"
#include "server/workers/worker_wire.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

using WorkerStream = grpc::ServerReaderWriter<v1::DesiredState, v1::WorkerState>;

class WorkersService final : public v1::Workers::Service {
 public:
  explicit WorkersService(RpcCore& core) : core_(core) {}

  grpc::Status Synchronize(grpc::ServerContext* context, WorkerStream* stream) override {
    const auto caller = core_.access->Admit(*context, Rpc::kSynchronize);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto place = core_.workers->Enter(*context);
    if (!place.ok()) return ToGrpc(place.status());
    v1::WorkerState state;
    const auto has_begun = ReadNext(*stream, &state);
    if (!has_begun.ok()) return ToGrpc(has_begun.status());
    if (!*has_begun) return ToGrpc(Err(StatusCode::kInvalidArgument, "no state came"));
    const auto report = FromProto(state);
    if (!report.ok()) return ToGrpc(report.status());
    const std::string worker_id = state.worker_id();
    const uint64_t session = ++sessions_;
    if (const Status connected = core_.dispatcher->Connect(worker_id, session); !connected.ok()) {
      return ToGrpc(connected);
    }
    core_.dispatcher->Report(session, *report);
    std::atomic<bool> reading{true};
    Status refused;  // Of the reader, until it is joined.
    auto reader = StartThread([&] {
      refused = Listen(*context, *stream, *caller, **place, session, worker_id);
      reading = false;
      core_.dispatcher->WakeAll();
    });
    if (!reader.ok()) {
      core_.dispatcher->Disconnect(worker_id, session);
      return ToGrpc(reader.status());
    }
    Speak(*stream, *caller, worker_id, reading);
    // The reader waits in Read until the call ends, so end it first.
    if (reading) context->TryCancel();
    reader->join();
    core_.dispatcher->Disconnect(worker_id, session);
    return ToGrpc(refused);
  }

  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kListWorkers);
    if (!caller.ok()) return ToGrpc(caller.status());
    const Nanos now = core_.clock->Now();
    for (const WorkerView& view : core_.dispatcher->Workers()) {
      v1::WorkerSummary* summary = response->add_workers();
      summary->set_worker_id(view.state.worker_id);
      summary->set_device(view.state.device);
      summary->set_environment(view.state.environment);
      summary->set_health(static_cast<v1::WorkerState::Health>(view.state.health));
      summary->set_reason(view.state.reason);
      summary->set_attempt(view.attempt);
      summary->set_seconds_since_seen(static_cast<double>((now - view.seen).count()) / 1e9);
      summary->set_executor_restarts(view.state.executor_restarts);
      summary->set_version(view.state.version);
      summary->set_simulated(view.state.simulated);
    }
    return grpc::Status::OK;
  }

  grpc::Status AdmitWorker(grpc::ServerContext* context, const v1::AdmitWorkerRequest* request,
                           v1::AdmitWorkerResponse*) override {
    const auto caller = core_.access->Admit(*context, Rpc::kAdmitWorker);
    if (!caller.ok()) return ToGrpc(caller.status());
    return ToGrpc(core_.dispatcher->Admit(request->worker_id()));
  }

 private:
  // Takes the worker's states until it sends no more. kInvalidArgument: one that is none.
  Status Listen(grpc::ServerContext& context, WorkerStream& stream, const Caller& caller,
                Places::Place& place, uint64_t session, const std::string& worker_id) {
    v1::WorkerState next;
    while (true) {
      AG_LET(const bool goes_on, ReadNext(stream, &next));
      if (!goes_on) return OkStatus();
      place.Moved();
      // The thread that writes may stand still, when the worker does not read.
      if (!core_.access->StillMay(caller, Rpc::kSynchronize).ok()) context.TryCancel();
      AG_LET(const WorkerReport report, FromProto(next));
      if (next.worker_id() == worker_id) core_.dispatcher->Report(session, report);
    }
  }

  // Sends the desired state at once, on every change, and at least every tick_max. Ends when the
  // caller's token has gone.
  void Speak(WorkerStream& stream, const Caller& caller, const std::string& worker_id,
             const std::atomic<bool>& reading) {
    constexpr uint64_t kAlways = std::numeric_limits<uint64_t>::max();
    constexpr Nanos kLook = std::chrono::milliseconds(500);
    uint64_t revision = kAlways;
    Nanos sent = core_.clock->Now();
    while (reading && !core_.stopping && core_.access->StillMay(caller, Rpc::kSynchronize).ok()) {
      const Nanos now = core_.clock->Now();
      const uint64_t seen = now - sent >= core_.tick_max ? kAlways : revision;
      const auto to_send = core_.dispatcher->WaitToSend(worker_id, seen, kLook);
      if (to_send.revision == 0) return;  // Expired: the worker has to connect again.
      if (!to_send.changed) continue;
      revision = to_send.revision;
      v1::DesiredState message;
      ToProto(to_send.desired, &message);
      message.set_shared_blob_dir(core_.shared_blob_dir);
      message.set_shared_blob_proof(core_.shared_blob_proof);
      if (!stream.Write(message)) return;
      sent = now;
    }
  }

  RpcCore& core_;
  std::atomic<uint64_t> sessions_{0};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkersService(RpcCore& core) {
  return std::make_unique<WorkersService>(core);
}

}  // namespace ag
