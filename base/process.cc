#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/spawner.h"
#include "base/text.h"

namespace ag {
namespace {

constexpr std::string_view kChildFlag = "--child=";
constexpr std::string_view kParentFlag = "--parent=";

// Returns the hint for a message about a child that `signal` ended. The kernel ends a process that
// has used up its processor time by SIGXCPU or SIGKILL; others send SIGKILL too, so the time that
// the child used decides.
std::string LimitText(int signal, const rusage& used) {
  rlimit limit{};
  if (signal != SIGXCPU && signal != SIGKILL) return "";
  if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  const auto seconds = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  if (seconds + 2 < limit.rlim_cur) return "";  // Both parts are rounded down.
  return fmt::format(" (a process may use {} s of processor time here: ulimit -t)", limit.rlim_cur);
}

Status ExitStatus(pid_t pid, const siginfo_t& info, const rusage& used) {
  if (info.si_code == CLD_EXITED) {
    if (info.si_status == 0) return OkStatus();
    return Err(StatusCode::kInternal, "child {}: exit code {}", pid, info.si_status);
  }
  const char* const name = ::sigabbrev_np(info.si_status);
  if (name == nullptr) {
    return Err(StatusCode::kUnavailable, "child {}: killed by signal {}", pid, info.si_status);
  }
  return Err(StatusCode::kUnavailable, "child {}: killed by SIG{}{}", pid, name,
             LimitText(info.si_status, used));
}

Status WaitError(pid_t pid, int error) {
  return FromErrno(error, fmt::format("child {}: wait", pid));
}

// Fills `info` and `used` when the child has ended, and reaps it unless `flags` has WNOWAIT;
// returns an errno value. With WNOHANG info.si_pid stays 0 while the child runs. The C library's
// waitid does not give the times.
int WaitId(pid_t pid, int flags, siginfo_t& info, rusage& used) {
  while (::syscall(SYS_waitid, P_PID, pid, &info, WEXITED | flags, &used) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Waits at most `timeout` for the child's end (Nanos::max(): no limit) and returns whether it came.
// Does not reap. Polls, because system-call filters of some container runtimes refuse pidfd_open.
StatusOr<bool> HasEnded(pid_t pid, Nanos timeout) {
  const int hang = timeout == Nanos::max() ? 0 : WNOHANG;
  const Nanos start = RealClock().Now();
  for (Nanos pause{100'000};; pause = std::min(2 * pause, Nanos{10'000'000})) {
    siginfo_t info{};
    rusage used{};
    if (const int error = WaitId(pid, WNOWAIT | hang, info, used)) return WaitError(pid, error);
    if (info.si_pid != 0) return true;
    const Nanos left = timeout - (RealClock().Now() - start);
    if (left <= Nanos{0}) return false;
    RealClock().SleepFor(std::min(pause, left));
  }
}

// Returns our environment; variables in `added` replace those of the same name.
std::vector<std::string> MergedEnvironment(const std::vector<std::string>& added) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> merged;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& other) {
      return name_of(other) == name_of(*entry);
    });
    if (!replaced) merged.emplace_back(*entry);
  }
  merged.insert(merged.end(), added.begin(), added.end());
  return merged;
}

}  // namespace

StatusOr<ChildProcess> ChildProcess::Spawn(const SpawnOptions& options) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return FromErrno(errno, "start " + options.program);
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  std::vector<std::string> arguments = {options.program};
  arguments.insert(arguments.end(), options.args.begin(), options.args.end());
  AG_LET(const pid_t pid, SpawnProgram({.program = options.program,
                                        .arguments = std::move(arguments),
                                        .environment = MergedEnvironment(options.environment),
                                        .socket = theirs.get()}));
  return ChildProcess(pid, std::move(ours));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      reaped_(std::exchange(other.reaped_, true)),
      socket_(std::move(other.socket_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  ChildProcess taken(std::move(other));  // Its destructor kills what this one held.
  std::swap(pid_, taken.pid_);
  std::swap(reaped_, taken.reaped_);
  std::swap(socket_, taken.socket_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (reaped_) return;
  Kill();
  (void)WaitFor(Nanos::max());  // The caller dropped the child: nobody needs its exit status.
}

void ChildProcess::Kill() {
  if (!reaped_) ::kill(-pid_, SIGKILL);
}

Status ChildProcess::Wait() { return WaitFor(Nanos::max()); }

Status ChildProcess::WaitFor(Nanos timeout) {
  AG_CHECK(!reaped_);
  AG_LET(const bool ended, HasEnded(pid_, timeout));
  if (!ended) {
    return Err(StatusCode::kDeadlineExceeded, "child {}: still running after {} ms", pid_,
               timeout / std::chrono::milliseconds{1});
  }
  // Until the child is reaped, no other process group can get its number.
  ::kill(-pid_, SIGKILL);
  siginfo_t info{};
  rusage used{};
  if (const int error = WaitId(pid_, 0, info, used)) return WaitError(pid_, error);
  reaped_ = true;
  return ExitStatus(pid_, info, used);
}

std::string SelfExe() {
  std::error_code error;
  const std::string path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return error ? "/proc/self/exe" : path;
}

void DieWithParent(pid_t parent_pid) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the call above; then nobody waits for the exit code.
  if (::getppid() != parent_pid) ::_exit(1);
}

namespace {

// Written by main before threads start, only read later.
std::map<std::string, ChildMain, std::less<>>& Roles() {
  static auto* const kRoles = new std::map<std::string, ChildMain, std::less<>>;
  return *kRoles;
}

int RefuseRole(std::string_view why) {
  fmt::print(stderr, "{}\n", why);
  return 2;
}

}  // namespace

void RegisterChildRole(const char* role, ChildMain run) { Roles()[role] = run; }

int RunChildRole(int argc, char** argv) {
  if (argc < 2 || !std::string_view(argv[1]).starts_with(kChildFlag)) return -1;
  const std::string_view role = std::string_view(argv[1]).substr(kChildFlag.size());
  const auto found = Roles().find(role);
  if (found == Roles().end()) {
    return RefuseRole(fmt::format("--child: this program has no role '{}'", role));
  }
  const std::string_view parent = argc > 2 ? argv[2] : "";
  const StatusOr<int64_t> parent_pid =
      ParseInt(parent.starts_with(kParentFlag) ? parent.substr(kParentFlag.size()) : "");
  // The socket came as an inheritable descriptor; grandchildren must not get it.
  if (!parent_pid.ok() || ::fcntl(kChildSocketFd, F_SETFD, FD_CLOEXEC) != 0) {
    return RefuseRole(
        "--child is how AutoGraph starts its own processes, not an option for people");
  }
  DieWithParent(static_cast<pid_t>(*parent_pid));
  ::prctl(PR_SET_NAME, std::string(role).c_str());  // The name in ps and top.
  return found->second(kChildSocketFd) & 0xff;      // As exit(3) reduces it; never -1.
}

StatusOr<ChildProcess> SpawnRole(const std::string& role, std::vector<std::string> environment,
                                 const std::string& program) {
  // The link, not SelfExe(): it starts this same file also after an upgrade has replaced it.
  return ChildProcess::Spawn({.program = program.empty() ? "/proc/self/exe" : program,
                              .args = {fmt::format("{}{}", kChildFlag, role),
                                       fmt::format("{}{}", kParentFlag, ::getpid())},
                              .environment = std::move(environment)});
}

}  // namespace ag
