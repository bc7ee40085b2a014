// Child processes: started from a program file (never by a bare fork, which gRPC and CUDA forbid),
// each in its own process group. A child dies with its parent and talks over one socket pair. A
// ChildProcess belongs to one thread at a time; another thread may call Kill before Wait has
// returned.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/status.h"

namespace ag {

struct SpawnOptions {
  std::string program;                   // A path; SelfExe() for the running program.
  std::vector<std::string> args;         // Without argv[0].
  std::vector<std::string> environment;  // NAME=value, added to the parent's.
};

// The file descriptor of the child's end of the socket pair, in the child.
inline constexpr int kChildSocketFd = 3;

// A running child. The destructor kills its process group and reaps it.
class ChildProcess {
 public:
  // Starts the program with stdin from /dev/null, the parent's stdout and stderr, default signal
  // handling, and no other descriptor than its socket. One thread that never ends starts all
  // children (base/spawner.h): a child that dies with its parent then survives the thread that
  // called Spawn. kNotFound and the other codes of FromErrno: it cannot start.
  static StatusOr<ChildProcess> Spawn(const SpawnOptions& options);
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // The parent's end; blocking.
  void Kill();                                  // Sends SIGKILL to the process group.
  // Waits for the child's end and reaps it. Kills the processes that the child left in its process
  // group. OK: exit code 0; kInternal: another exit code; kUnavailable: a signal, which the message
  // names. REQUIRES: the child is not reaped yet.
  Status Wait();
  // As Wait; kDeadlineExceeded when the child still runs after `timeout`. Wait or WaitFor may be
  // called again then.
  Status WaitFor(Nanos timeout);

 private:
  ChildProcess(pid_t pid, Fd socket) : pid_(pid), reaped_(false), socket_(std::move(socket)) {}
  pid_t pid_ = -1;
  bool reaped_ = true;  // True also after a move.
  Fd socket_;
};

// Returns the path of the running program, as it was at the program's start.
std::string SelfExe();

// Makes this child die with its parent (PR_SET_PDEATHSIG); exits at once when the parent is gone
// already. `parent_pid` comes from the child's command line. REQUIRES: the child's first call.
void DieWithParent(pid_t parent_pid);

// Roles: a program may be its own child. RunChildRole runs the role and returns its exit code when
// argv[1] is "--child=ROLE"; it returns -1 for an ordinary start. After an unregistered role or a
// command line that SpawnRole did not write, it returns 2 with a message on stderr. REQUIRES: main
// calls RunChildRole first. Not thread-safe.
using ChildMain = int (*)(int socket_fd);
void RegisterChildRole(const char* role, ChildMain run);
int RunChildRole(int argc, char** argv);

// Spawns `program` ("": the running one) as the child with --child=ROLE and --parent=PID.
// RunChildRole in the child calls DieWithParent.
StatusOr<ChildProcess> SpawnRole(const std::string& role, std::vector<std::string> environment = {},
                                 const std::string& program = "");

}  // namespace ag
