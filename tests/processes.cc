#include "tests/processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "base/process.h"

namespace ag {
namespace {

namespace fs = std::filesystem;

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// Returns true when no thread of the process runs any more.
bool IsStopped(pid_t pid) {
  std::error_code gone;
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    std::ifstream file(task.path() / "stat");  // "pid (name) state ...".
    std::string stat;
    std::getline(file, stat);
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    const std::string state = stat.substr(name_end + 2, 1);
    if (state != "T" && state != "Z") return false;
  }
  return true;
}

std::vector<std::string> MergedEnvironment(const Variables& variables) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    // A developer's own variables must not reach the programs under test.
    if (text.starts_with("AUTOGRAPH_")) continue;
    if (!variables.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : variables) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Spawns with standard output and error into files.
pid_t Spawn(std::vector<std::string> argv, const std::string& out, const std::string& err,
            const Variables& variables) {
  std::vector<std::string> environment = MergedEnvironment(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int flags = O_WRONLY | O_CREAT | O_APPEND;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), flags, 0600);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0].c_str(), &actions, nullptr, Pointers(argv).data(),
                                Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  AG_CHECK(error == 0);
  return pid;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

std::string Program(const std::string& name) {
  // Test programs and products are in the same folder of the build tree.
  const std::string self = SelfExe();
  return self.substr(0, self.rfind('/') + 1) + name;
}

CommandResult RunCommand(const std::vector<std::string>& argv, const Variables& variables) {
  const auto folder = TempDir::Make("autograph-command");
  AG_CHECK(folder.ok());
  const std::string out = folder->path() + "/out", err = folder->path() + "/err";
  const pid_t pid = Spawn(argv, out, err, variables);
  int status = 0;
  waitpid(pid, &status, 0);
  return {CodeOf(status), ReadAll(out), ReadAll(err)};
}

Background::Background(const std::vector<std::string>& argv, const std::string& log_path,
                       const Variables& variables)
    : pid_(Spawn(argv, log_path, log_path, variables)), log_path_(log_path) {}

Background::~Background() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  Wait();
}

Background::Background(Background&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), log_path_(std::move(other.log_path_)) {}

Background& Background::operator=(Background&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(log_path_, other.log_path_);
  return *this;
}

void Background::Signal(int signal) const {
  kill(pid_, signal);
  if (signal == SIGSTOP) Eventually([&] { return IsStopped(pid_); }, 10);
}

int Background::Wait() {
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return CodeOf(status);
}

bool Background::Running() {
  siginfo_t info = {};
  return pid_ > 0 && waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

std::string Background::Log() const { return ReadAll(log_path_); }

int FreePort() {
  const Fd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  AG_CHECK(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  AG_CHECK(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

std::vector<pid_t> ChildrenOf(pid_t parent, const std::string& word) {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = ReadAll(entry.path() / "stat");
    const size_t close = stat.rfind(')');  // The name in parentheses may contain anything.
    if (close == std::string::npos) continue;
    std::istringstream fields(stat.substr(close + 1));
    char state = 0;
    pid_t ppid = 0;
    fields >> state >> ppid;
    if (ppid != parent || state == 'Z') continue;
    if (ReadAll(entry.path() / "cmdline").find(word) != std::string::npos) {
      children.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return children;
}

}  // namespace ag
