// Child processes: spawned anew from a program file (never a bare fork: gRPC and CUDA forbid it),
// in their own process group, dying with their parent, talking over one socket pair. A ChildProcess
// belongs to one thread at a time; Kill may also be called by another one before Wait has returned.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/status.h"

namespace ag {

struct SpawnOptions {
  std::string program;                   // Path; SelfExe() for our own binary.
  std::vector<std::string> args;         // Without argv[0].
  std::vector<std::string> environment;  // NAME=value, added to ours.
};

// The child's end of the socket pair is file descriptor kChildSocketFd in the child.
inline constexpr int kChildSocketFd = 3;

// A running child. Destruction kills its process group and reaps it.
class ChildProcess {
 public:
  // Starts the program with stdin from /dev/null, our stdout and stderr, default signal handling
  // and no other descriptor of ours than its socket. All children of a process are started by one
  // thread that never ends (base/spawner.h), so a child that dies with its parent does not die with
  // the thread that called Spawn. kNotFound and the other codes of FromErrno when it cannot start.
  static StatusOr<ChildProcess> Spawn(const SpawnOptions& options);
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // Our end; blocking.
  void Kill();                                  // SIGKILL to the process group.
  // Reaps the child: OK for exit 0, else a status that says the exit code or the signal's name.
  // kInternal: an exit code; kUnavailable: a signal. What the child has started and left in its
  // process group is killed. REQUIRES: the child is not reaped yet.
  Status Wait();
  // As Wait, but kDeadlineExceeded when the child still runs after `timeout`; then Wait or WaitFor
  // may be called again.
  Status WaitFor(Nanos timeout);

 private:
  ChildProcess(pid_t pid, Fd socket) : pid_(pid), reaped_(false), socket_(std::move(socket)) {}
  pid_t pid_ = -1;
  bool reaped_ = true;  // Or moved from.
  Fd socket_;
};

// The path of the running program, as it was when the program started.
std::string SelfExe();

// To be called first by a spawned child: dies with the parent (PR_SET_PDEATHSIG; exits at once when
// the parent is gone already). `parent_pid` was given on its command line.
void DieWithParent(pid_t parent_pid);

// A program may be its own child: main() calls RunChildRole first; it returns an exit code when
// argv[1] is "--child=ROLE", and -1 to go on as the ordinary program. A role that is not
// registered, or a command line that no SpawnRole wrote, is said on stderr and exits with 2. Not
// thread-safe.
using ChildMain = int (*)(int socket_fd);
void RegisterChildRole(const char* role, ChildMain run);
int RunChildRole(int argc, char** argv);

// Spawns `program` (our own binary when empty) with --child=ROLE and --parent=PID in the role;
// RunChildRole in it calls DieWithParent.
StatusOr<ChildProcess> SpawnRole(const std::string& role, std::vector<std::string> environment = {},
                                 const std::string& program = "");

}  // namespace ag
