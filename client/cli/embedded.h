// The embedded mode: the services of autographd over an in-process channel, and the agent and
// executor of autograph-worker, all started by this process. Opens no port. One thread at a time;
// its channel is thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/digest.h"
#include "base/status.h"

namespace grpc {
class Channel;
}

namespace ag {

class EmbeddedService {
 public:
  // Starts the services on the store in `data_dir` and, unless `device` is empty, a worker for it;
  // waits until the device serves. When another process holds the store, its last snapshot is read,
  // new rows go to a temporary store that is removed at the end, and note() says so.
  static StatusOr<std::unique_ptr<EmbeddedService>> Start(const std::string& data_dir,
                                                          const std::string& device);
  ~EmbeddedService();

  std::shared_ptr<grpc::Channel> channel() const;
  const std::string& note() const;
  // As Server::ShareBlob.
  Status ShareBlob(const Digest& digest, const std::string& path);

 private:
  struct Parts;
  explicit EmbeddedService(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Registers the roles of the children that the embedded service spawns from this program.
void RegisterEmbeddedRoles();

}  // namespace ag
