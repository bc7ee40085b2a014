#include "server/rpc/access.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "autograph/v1/blobs.pb.h"
#include "autograph/v1/cache.pb.h"
#include "autograph/v1/optimizer.pb.h"
#include "autograph/v1/store.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/file.h"

namespace ag {
namespace {

// Every rpc of every service of proto/ is in the table, and nothing else.
TEST(Access, TheTableHasTheRpcsOfTheProtos) {
  namespace v1 = autograph::v1;
  std::multiset<std::string> protos, table;
  int services = 0;
  for (const google::protobuf::Descriptor* message :
       {v1::Job::descriptor(), v1::UploadRequest::descriptor(), v1::CacheRecord::descriptor(),
        v1::WorkerState::descriptor(), v1::BackupRequest::descriptor()}) {
    const google::protobuf::FileDescriptor& file = *message->file();
    services += file.service_count();
    for (int s = 0; s < file.service_count(); ++s) {
      for (int m = 0; m < file.service(s)->method_count(); ++m) {
        protos.insert(file.service(s)->method(m)->full_name());
      }
    }
  }
  for (const RpcRow& row : Rpcs()) {
    table.insert(row.method);
    EXPECT_FALSE(row.roles.IsEmpty()) << row.method;
  }
  EXPECT_EQ(table, protos);
  // A proto file with a service that is not looked at above is found by its line.
  int lines = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(AG_SOURCE_DIR) + "/proto/autograph/v1")) {
    const std::string text = "\n" + *ReadFile(entry.path());
    for (size_t at = 0; (at = text.find("\nservice ", at)) != std::string::npos; ++at) ++lines;
  }
  EXPECT_EQ(services, lines);
}

TEST(Access, TheTableIsInTheOrderOfTheEnum) {
  for (size_t i = 0; i < Rpcs().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(Rpcs()[i].rpc), i) << Rpcs()[i].method;
  }
}

// docs/security.md shows the same table.
TEST(Access, ThePageHasTheTable) {
  const std::string page = *ReadFile(std::string(AG_SOURCE_DIR) + "/docs/security.md");
  for (const RpcRow& row : Rpcs()) {
    const std::string method = std::string(row.method).substr(std::string("autograph.v1.").size());
    std::string line = "| `" + method + "` |";
    for (const Role role : AllRoles()) line += row.roles.Has(role) ? " yes |" : " |";
    EXPECT_NE(page.find(line + "\n"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace ag
