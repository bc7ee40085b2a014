#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "autograph/v1/store.grpc.pb.h"
#include "base/file_reader.h"
#include "base/log.h"
#include "server/rpc/rpc.h"
#include "server/store/open_store.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

class StoreService final : public v1::Store::Service {
 public:
  explicit StoreService(RpcCore& core) : core_(core) {}

  grpc::Status Backup(grpc::ServerContext* context, const v1::BackupRequest*,
                      grpc::ServerWriter<v1::BackupResponse>* writer) override {
    const auto caller = core_.access->Admit(*context, Rpc::kBackup);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto place = core_.transfers->Enter(*context);
    if (!place.ok()) return ToGrpc(place.status());
    return ToGrpc(Send(**place, *writer));
  }

 private:
  static constexpr int kBlobsOfMessage = 10'000;

  Status Send(Places::Place& place, grpc::ServerWriter<v1::BackupResponse>& writer) {
    // Beside the databases, where there is room for them or nowhere.
    AG_LET(const TempDir copies, TempDir::MakeIn(core_.data_dir, "backup-"));
    AG_TRY(core_.jobs->SaveDatabases(copies.path()), "backup");
    for (const std::string& name : FilesOfStore(copies.path())) {
      AG_TRY(SendFile(copies.path() + "/" + name, name, place, writer));
    }
    AG_LET(const auto entries, core_.blobs->Entries());
    v1::BackupResponse names;
    for (size_t i = 0; i < entries.size(); ++i) {
      names.add_blobs(entries[i].digest.Hex());
      const bool is_full = names.blobs_size() == kBlobsOfMessage || i + 1 == entries.size();
      if (!is_full) continue;
      AG_TRY(Write(names, place, writer));
      names.Clear();
    }
    LogInfo("a backup was sent, of {} blobs", entries.size());
    return OkStatus();
  }

  static Status SendFile(const std::string& path, const std::string& name, Places::Place& place,
                         grpc::ServerWriter<v1::BackupResponse>& writer) {
    AG_LET(FileReader file, FileReader::Open(path));
    int64_t begin = 0;
    do {
      v1::BackupResponse part;
      if (begin == 0) part.set_file(name);
      const int64_t size = std::min(kSentChunkBytes, file.size() - begin);
      AG_LET(const std::string_view piece, file.Read(begin, size));
      part.set_data(std::string(piece));
      AG_TRY(Write(part, place, writer));
      begin += size;
    } while (begin < file.size());
    return OkStatus();
  }

  static Status Write(const v1::BackupResponse& part, Places::Place& place,
                      grpc::ServerWriter<v1::BackupResponse>& writer) {
    if (!writer.Write(part)) return Err(StatusCode::kCancelled, "the client left");
    place.Moved();
    return OkStatus();
  }

  RpcCore& core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeStoreService(RpcCore& core) {
  return std::make_unique<StoreService>(core);
}

}  // namespace ag
