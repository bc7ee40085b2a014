#include "base/spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include <deque>

#include "base/file.h"
#include "base/mutex.h"
#include "base/process.h"
#include "base/thread.h"

namespace ag {
namespace {

// The steps of posix_spawn in the child before the program starts.
class ChildSetup {
 public:
  ChildSetup() {
    Keep(::posix_spawn_file_actions_init(&actions_));
    Keep(::posix_spawnattr_init(&attributes_));
  }
  ~ChildSetup() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  ChildSetup(const ChildSetup&) = delete;
  ChildSetup& operator=(const ChildSetup&) = delete;

  // Moves the socket first: its number may be one that the next lines use. Closes all others:
  // libraries open descriptors without close-on-exec.
  void SetFiles(int socket) {
    Keep(::posix_spawn_file_actions_adddup2(&actions_, socket, kChildSocketFd));
    Keep(::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0));
    Keep(::posix_spawn_file_actions_addclosefrom_np(&actions_, kChildSocketFd + 1));
  }

  // The child would inherit ignored and blocked signals; it starts with the system's defaults.
  void SetGroupAndSignals() {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    Keep(::posix_spawnattr_setsigmask(&attributes_, &none));
    Keep(::posix_spawnattr_setsigdefault(&attributes_, &all));
    Keep(::posix_spawnattr_setpgroup(&attributes_, 0));
    Keep(::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }

  int error() const { return error_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  void Keep(int error) {
    if (error_ == 0) error_ = error;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int error_ = 0;  // The first error.
};

// Returns the strings in the form for exec; valid as long as `strings`.
std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

StatusOr<pid_t> SpawnHere(const SpawnRequest& request) {
  ChildSetup setup;
  setup.SetFiles(request.socket);
  setup.SetGroupAndSignals();
  if (setup.error() != 0) return FromErrno(setup.error(), "start " + request.program);
  const std::vector<char*> arguments = Pointers(request.arguments);
  const std::vector<char*> environment = Pointers(request.environment);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, request.program.c_str(), setup.actions(),
                                  setup.attributes(), arguments.data(), environment.data());
  if (error != 0) return FromErrno(error, "start " + request.program);
  return pid;
}

class Spawner {
 public:
  // Returns the process's only one. Never destroyed, because its thread runs until the process
  // ends.
  static Spawner& Instance() {
    static Spawner* const kInstance = new Spawner;
    return *kInstance;
  }

  StatusOr<pid_t> Run(const SpawnRequest& request) AG_EXCLUDES(mutex_) {
    Job job{&request};
    const MutexLock lock(mutex_);
    AG_TRY(StartThread());
    jobs_.push_back(&job);
    changed_.NotifyAll();
    while (!job.done) changed_.Wait(mutex_);
    return std::move(job.result);
  }

 private:
  struct Job {
    const SpawnRequest* request;
    StatusOr<pid_t> result = pid_t{-1};
    bool done = false;
  };

  Status StartThread() AG_REQUIRES(mutex_) {
    if (started_) return OkStatus();
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // The new thread inherits the mask.
    auto thread = ag::StartThread([this] { Loop(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    AG_TRY(thread, "for children");
    thread->detach();
    started_ = true;
    return OkStatus();
  }

  void Loop() AG_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (;;) {
      while (jobs_.empty()) changed_.Wait(mutex_);
      Job* const job = jobs_.front();
      jobs_.pop_front();
      job->result = SpawnHere(*job->request);
      job->done = true;
      changed_.NotifyAll();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<Job*> jobs_ AG_GUARDED_BY(mutex_);
  bool started_ AG_GUARDED_BY(mutex_) = false;
};

}  // namespace

StatusOr<pid_t> SpawnProgram(const SpawnRequest& request) {
  return Spawner::Instance().Run(request);
}

}  // namespace ag
