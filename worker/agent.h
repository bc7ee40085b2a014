// The agent of a worker: it keeps one stream to the coordinator (Workers.Synchronize), reconciles
// state over it, and drives one executor process. An executor that crashes, hangs or loses its
// device costs only the entry in hand; the agent replaces it. Thread-safe, but one thread at a time
// calls Stop.
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
  std::string worker_id;  // Empty: "<host>/<device>".
  std::string device = "cpu";
  std::string blob_cache_dir;  // For weights of a coordinator on another host,
  int64_t blob_cache_bytes_max = int64_t{32} << 30;  // at most this many bytes of them.
  std::string executor_program;                      // Empty: this program.
  Nanos tick{10'000'000'000};                        // A state is sent at least this often.
  bool in_process = false;                // The server is in this process: nothing to connect.
  Nanos reconnect{200'000'000};           // Pause after a stream ended.
  Nanos reopen{3'000'000'000};            // Pause before the next try to open a device.
  Nanos acknowledge_max{10'000'000'000};  // How long Stop waits for results to be taken.
};

class Agent {
 public:
  Agent(std::shared_ptr<grpc::Channel> channel, AgentOptions options, Clock& clock);
  ~Agent();  // Calls Stop.

  // Leaves the coordinator: if `drain`, finishes the item in hand and waits at most
  // AgentOptions::acknowledge_max until its results are acknowledged; then kills the executor and
  // closes the stream.
  void Stop(bool drain = false);

  // Returns OK when the device serves, kFailedPrecondition while it is opened for the first time,
  // else kUnavailable with the reason.
  Status health() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ag
