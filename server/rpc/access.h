// Who may call what: the one table of rpcs and roles, and the tokens that the server knows
// (docs/security.md). Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/mutex.h"
#include "base/status.h"
#include "net/file_stamp.h"
#include "net/tokens.h"
#include "server/jobs/tenant.h"

namespace grpc {
class ServerContext;
}

namespace ag {

// The rpcs of our services. Those of health and reflection are open.
enum class Rpc {
  kFindMissing,
  kUpload,
  kDownload,
  kGetStats,
  kListMeasurements,
  kListGraphs,
  kListRegions,
  kExport,
  kImport,
  kForget,
  kDeleteModel,
  kOptimize,
  kGetJob,
  kListJobs,
  kWatchJob,
  kCancelJob,
  kPublishBest,
  kGetCapabilities,
  kSynchronize,
  kListWorkers,
  kAdmitWorker,
  kBackup,
};

struct RpcRow {
  Rpc rpc;
  const char* method;  // "autograph.v1.Optimizer.Optimize"
  RoleSet roles;       // One of them is enough.
};
std::span<const RpcRow> Rpcs();  // In the order of the enum.

// Who makes a call.
struct Caller {
  Tenant tenant;
  Digest token;  // SHA-256 of the token; zero where there are no tokens.
};

class Access {
 public:
  // Reads the tokens file; "": there are no tokens, and everybody may do everything. Errors as
  // ReadTokens.
  static StatusOr<std::unique_ptr<Access>> Open(const std::string& tokens_path);

  // Returns the caller of `rpc`. kUnauthenticated: no token, or one that is not in the file;
  // kPermissionDenied: none of the roles of the rpc.
  StatusOr<Caller> Admit(const grpc::ServerContext& context, Rpc rpc) const;
  // The same for a call that is open: its token may have gone from the file.
  Status StillMay(const Caller& caller, Rpc rpc) const;

  // Returns the device seconds of a day that the file gives the tenant; none: it says nothing.
  std::optional<double> QuotaOf(const std::string& tenant) const;

  // Reads the file anew when it has changed. One that is wrong leaves the tokens as they were, with
  // a warning.
  void Reload();
  bool HasTokens() const { return !path_.empty(); }

 private:
  Access() = default;
  StatusOr<Caller> Check(const TokenRow* row, Rpc rpc) const;

  std::string path_;  // "": no tokens.
  mutable Mutex mutex_;
  std::vector<TokenRow> rows_ AG_GUARDED_BY(mutex_);
  FileStamp stamp_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
