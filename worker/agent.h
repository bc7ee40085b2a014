// The agent: keeps one stream to the coordinator (Workers.Synchronize), reconciles state over it,
// and drives one executor process. It outlives executors: one that crashes, hangs or loses its
// device costs the entry in hand and is replaced. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace grpc {
class Channel;
}

namespace ag {

struct AgentOptions {
  std::string worker_id;  // Empty: host and device.
  std::string device = "cpu";
  std::string blob_cache_dir;  // For weights of a coordinator on another host, ...
  int64_t blob_cache_bytes_max = int64_t{32} << 30;  // ... at most so many bytes of them.
  std::string executor_program;                      // Empty: our own binary.
  Nanos tick{10'000'000'000};                        // A state is sent at least this often.
  bool in_process = false;  // The channel is a server's own in this process: nothing to connect.
  Nanos reconnect{200'000'000};  // Pause after a stream that ended.
  Nanos reopen{3'000'000'000};   // Pause before a device that could not be opened is tried again.
};

class Agent {
 public:
  Agent(std::shared_ptr<grpc::Channel> channel, AgentOptions options, Clock& clock);
  ~Agent();  // As Stop.

  // Leaves: finishes the entry in hand if `drain`, kills the executor, closes the stream.
  void Stop(bool drain = false);

  // Why the device does not serve; OK when it does. kUnavailable "starting" before it was opened.
  Status health() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ag
