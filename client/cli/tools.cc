#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/blobs.h"
#include "base/build_facts.h"
#include "base/file.h"
#include "base/measuring_lock_flag.h"
#include "base/signals.h"
#include "client/cli/embedded.h"
#include "client/cli/verbs.h"
#include "device/open_device.h"
#include "graph/onnx/sandbox/sandbox.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

int ListZoo(Context& context) {
  Json list = Json::array();
  for (const ZooEntry& entry : Zoo()) {
    list.push_back(
        {{"name", entry.name}, {"description", entry.description}, {"tiny", entry.tiny}});
    if (!context.flags().json)
      context.Print(fmt::format("{:<16} {}", entry.name, entry.description));
  }
  if (context.flags().json) context.Print(list.dump(2));
  return kExitOk;
}

struct Finding {
  std::string what;
  Status status;
};

Status CheckSandbox(const std::string& folder) {
  AG_LET(const std::string model, ZooModelOnnx("tiny_cnn"));
  const std::string path = folder + "/model.onnx";
  AG_TRY(WriteFileAtomically(path, model));
  AG_LET(const std::shared_ptr<BlobDir> blobs, BlobDir::Open(folder + "/blobs"));
  return ImportInSandbox(path, {}, *blobs).status();
}

// Looks at the store, or at the folder in which the first command would make it.
Finding LookAtStore(const std::string& store) {
  std::filesystem::path there = std::filesystem::absolute(store);
  while (!FileExists(there) && there.has_relative_path()) there = there.parent_path();
  const bool is_made = FileExists(store);
  Finding finding{fmt::format("store {}{}", store, is_made ? "" : ", not made yet"), OkStatus()};
  if (::access(there.c_str(), R_OK | W_OK | X_OK) != 0) {
    finding.status = Within(FromErrno(errno, there.string()), "another one: --data");
  }
  return finding;
}

// The whole service in `folder`: the files that its parts keep elsewhere lie there as well.
Finding CheckEmbedded(const std::string& folder, const std::string& device) {
  const auto service = EmbeddedService::Start(folder + "/store", device);
  return {"embedded service and executor", service.status()};
}

void AddServer(Context& context, std::vector<Finding>& findings) {
  const auto client = context.Connect("");
  findings.push_back({"server " + context.flags().server, client.status()});
  if (!client.ok()) return;
  const auto workers = (*client)->ListWorkers();
  findings.push_back({fmt::format("workers of it: {}", workers.ok() ? workers->workers_size() : 0),
                      workers.status()});
}

}  // namespace

StatusOr<int> RunZoo(Context& context, const ZooFlags& flags) {
  if (flags.list) return ListZoo(context);
  if (flags.name.empty() || flags.output.empty()) {
    return context.FailUsage(
        Err(StatusCode::kInvalidArgument, "zoo needs a name and -o FILE, or --list"));
  }
  AG_TRY(CheckWritable(flags.output));
  AG_LET(const auto model, ZooModelOnnx(flags.name, {.batch = flags.batch, .seed = flags.seed}));
  AG_TRY(WriteFileAtomically(flags.output, model));
  const std::string digest = Sha256(model).Hex();
  context.Print(
      context.flags().json
          ? Json{{"file", flags.output}, {"bytes", model.size()}, {"sha256", digest}}.dump()
          : fmt::format("{}: {:.1f} MB, sha256 {}", flags.output,
                        static_cast<double>(model.size()) / 1e6, digest));
  return kExitOk;
}

StatusOr<int> RunDoctor(Context& context, const ModelFlags& flags) {
  CatchStopSignals();  // The folder is removed, and children are ended, whatever happens.
  AG_LET(const TempDir folder, TempDir::Make("autograph-doctor"));
  NameMeasuringLock(folder.path() + "/measuring.lock");
  AG_CHECK(::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1) == 0);
  std::vector<Finding> findings;
  const auto device = OpenDevice(flags.device);
  findings.push_back({fmt::format("device {}", flags.device), device.status()});
  if (device.ok()) findings.back().what += "  " + (*device)->environment();
  findings.push_back({"sandbox imports a model", CheckSandbox(folder.path())});
  if (context.flags().server.empty()) {
    findings.push_back(LookAtStore(context.flags().data_dir));
    findings.push_back(CheckEmbedded(folder.path(), flags.device));
  } else {
    AddServer(context, findings);
  }
  if (StopSignal() != 0) return Err(StatusCode::kCancelled, "interrupted");
  bool healthy = true;
  Json list = Json::array();
  for (const Finding& finding : findings) {
    healthy &= finding.status.ok();
    list.push_back({{"check", finding.what},
                    {"ok", finding.status.ok()},
                    {"message", Message(finding.status)}});
    if (context.flags().json) continue;
    context.Print(fmt::format("{:<5} {}", finding.status.ok() ? "ok" : "FAIL", finding.what));
    if (!finding.status.ok()) context.Print("      " + Message(finding.status));
  }
  if (context.flags().json) {
    context.Print(
        Json{{"version", BuildFacts("autograph")}, {"healthy", healthy}, {"checks", list}}.dump(2));
  }
  return healthy ? kExitOk : kExitUnavailable;
}

}  // namespace ag
