// The embedded mode: the same services as autographd's over an in-process channel, and the same
// agent and spawned executor as autograph-worker's, all in this process. No port is opened.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace grpc {
class Channel;
}

namespace ag {

class EmbeddedService {
 public:
  // Starts the services on the store in `data_dir` and, unless `device` is empty, a worker for it;
  // waits until the device serves. When another process holds the store, its last snapshot is read
  // and what is new goes to a temporary one that is gone at the end; note() says so.
  static StatusOr<std::unique_ptr<EmbeddedService>> Start(const std::string& data_dir,
                                                          const std::string& device);
  ~EmbeddedService();

  std::shared_ptr<grpc::Channel> channel() const;
  const std::string& note() const;

 private:
  struct Parts;
  explicit EmbeddedService(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Registers the roles of the children that the embedded service spawns from our own binary.
void RegisterEmbeddedRoles();

}  // namespace ag
