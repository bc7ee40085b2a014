#include "server/rpc/access.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/log.h"
#include "base/reason.h"

namespace ag {
namespace {

constexpr Role kSubmit = Role::kSubmit, kRead = Role::kRead, kAdmin = Role::kAdmin,
               kWorker = Role::kWorker;

constexpr std::array kRpcs = {
    RpcRow{Rpc::kFindMissing, "autograph.v1.Blobs.FindMissing", {kSubmit, kAdmin}},
    RpcRow{Rpc::kUpload, "autograph.v1.Blobs.Upload", {kSubmit, kAdmin}},
    RpcRow{Rpc::kDownload, "autograph.v1.Blobs.Download", {kRead, kAdmin, kWorker}},
    RpcRow{Rpc::kGetStats, "autograph.v1.Cache.GetStats", {kRead, kAdmin}},
    RpcRow{Rpc::kListMeasurements, "autograph.v1.Cache.ListMeasurements", {kAdmin}},
    RpcRow{Rpc::kListGraphs, "autograph.v1.Cache.ListGraphs", {kRead, kAdmin}},
    RpcRow{Rpc::kListRegions, "autograph.v1.Cache.ListRegions", {kAdmin}},
    RpcRow{Rpc::kExport, "autograph.v1.Cache.Export", {kAdmin}},
    RpcRow{Rpc::kImport, "autograph.v1.Cache.Import", {kAdmin}},
    RpcRow{Rpc::kForget, "autograph.v1.Cache.Forget", {kAdmin}},
    RpcRow{Rpc::kDeleteModel, "autograph.v1.Optimizer.DeleteModel", {kSubmit, kAdmin}},
    RpcRow{Rpc::kOptimize, "autograph.v1.Optimizer.Optimize", {kSubmit, kAdmin}},
    RpcRow{Rpc::kGetJob, "autograph.v1.Optimizer.GetJob", {kRead, kAdmin}},
    RpcRow{Rpc::kListJobs, "autograph.v1.Optimizer.ListJobs", {kRead, kAdmin}},
    RpcRow{Rpc::kWatchJob, "autograph.v1.Optimizer.WatchJob", {kRead, kAdmin}},
    RpcRow{Rpc::kCancelJob, "autograph.v1.Optimizer.CancelJob", {kSubmit, kAdmin}},
    RpcRow{Rpc::kPublishBest, "autograph.v1.Optimizer.PublishBest", {kSubmit, kAdmin}},
    RpcRow{Rpc::kGetCapabilities,
           "autograph.v1.Optimizer.GetCapabilities",
           {kSubmit, kRead, kAdmin, kWorker}},
    RpcRow{Rpc::kSynchronize, "autograph.v1.Workers.Synchronize", {kWorker}},
    RpcRow{Rpc::kListWorkers, "autograph.v1.Workers.ListWorkers", {kRead, kAdmin}},
    RpcRow{Rpc::kAdmitWorker, "autograph.v1.Workers.AdmitWorker", {kAdmin}},
    RpcRow{Rpc::kBackup, "autograph.v1.Store.Backup", {kAdmin}},
};

const RpcRow& RowOf(Rpc rpc) { return kRpcs[static_cast<size_t>(rpc)]; }

// Returns the bearer token of the call; "": it has none.
std::string_view TokenOf(const grpc::ServerContext& context) {
  constexpr std::string_view kBearer = "Bearer ";
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return "";
  const std::string_view value(found->second.data(), found->second.size());
  return value.starts_with(kBearer) ? value.substr(kBearer.size()) : "";
}

}  // namespace

std::span<const RpcRow> Rpcs() { return kRpcs; }

StatusOr<std::unique_ptr<Access>> Access::Open(const std::string& tokens_path) {
  std::unique_ptr<Access> access(new Access);
  access->path_ = tokens_path;
  if (tokens_path.empty()) return access;
  MutexLock lock(access->mutex_);
  access->stamp_ = StampOf(tokens_path);
  AG_LET(access->rows_, ReadTokens(tokens_path));
  return access;
}

StatusOr<Caller> Access::Admit(const grpc::ServerContext& context, Rpc rpc) const {
  if (!HasTokens()) return Caller();
  const std::string_view token = TokenOf(context);
  if (token.empty()) {
    return Because(
        Reason::kTokenMissing,
        Err(StatusCode::kUnauthenticated,
            "{} needs a token: AUTOGRAPH_TOKEN or --token-file of the client", RowOf(rpc).method));
  }
  MutexLock lock(mutex_);
  return Check(FindToken(rows_, token), rpc);
}

Status Access::StillMay(const Caller& caller, Rpc rpc) const {
  if (!HasTokens()) return OkStatus();
  MutexLock lock(mutex_);
  const auto found = std::ranges::find(rows_, caller.token, &TokenRow::token);
  return Check(found == rows_.end() ? nullptr : &*found, rpc).status();
}

StatusOr<Caller> Access::Check(const TokenRow* row, Rpc rpc) const {
  if (row == nullptr) {
    return Because(Reason::kTokenUnknown,
                   Err(StatusCode::kUnauthenticated, "the token is not known here"));
  }
  if (!row->roles.Meets(RowOf(rpc).roles)) {
    return Because(
        Reason::kRoleMissing,
        Err(StatusCode::kPermissionDenied, "{} lacks the role {} for {}; it has {}", row->name,
            ToText(RowOf(rpc).roles, " or "), RowOf(rpc).method, ToText(row->roles, ", ")));
  }
  Caller caller;
  caller.tenant.name = row->name;
  caller.tenant.sees_all = row->roles.Meets({kAdmin, kWorker});
  caller.token = row->token;
  return caller;
}

std::optional<double> Access::QuotaOf(const std::string& tenant) const {
  MutexLock lock(mutex_);
  for (const TokenRow& row : rows_) {
    if (row.name == tenant && row.device_seconds.has_value()) return row.device_seconds;
  }
  return std::nullopt;
}

void Access::Reload() {
  if (!HasTokens()) return;
  const FileStamp stamp = StampOf(path_);
  {
    MutexLock lock(mutex_);
    if (stamp == stamp_) return;
    stamp_ = stamp;
  }
  StatusOr<std::vector<TokenRow>> rows = ReadTokens(path_);
  if (!rows.ok()) return LogWarn("the tokens stay as they were: {}", Message(rows.status()));
  LogInfo("{}: {} tokens", path_, rows->size());
  MutexLock lock(mutex_);
  rows_ = *std::move(rows);
}

}  // namespace ag
