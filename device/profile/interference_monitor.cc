#include "device/profile/interference_monitor.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace ag {
namespace {

constexpr Nanos kLook{20'000'000};

// The numbers in `line` from its word `first` on.
std::vector<int64_t> Numbers(std::string_view line, size_t first) {
  std::vector<int64_t> numbers;
  size_t word = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = line.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(line.find(' ', begin), line.size());
    int64_t number = 0;
    std::from_chars(line.data() + begin, line.data() + end, number);
    if (word++ >= first) numbers.push_back(number);
    at = end;
  }
  return numbers;
}

Nanos FromTicks(int64_t ticks) {
  static const int64_t per_second = std::max<int64_t>(1, ::sysconf(_SC_CLK_TCK));
  return Nanos(ticks * (1'000'000'000 / per_second));
}

Nanos Used(const timeval& time) { return Nanos(time.tv_sec * 1'000'000'000 + time.tv_usec * 1000); }

// User and system time of the process, in ticks. Its name may hold spaces and parentheses.
int64_t TicksOf(pid_t pid) {
  const StatusOr<std::string> text = ReadFile(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = text.ok() ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return 0;
  constexpr size_t kUserTime = 11, kSystemTime = 12;  // Words after the name; proc(5).
  const std::vector<int64_t> words = Numbers(std::string_view(*text).substr(name_end + 1), 0);
  return words.size() > kSystemTime ? words[kUserTime] + words[kSystemTime] : 0;
}

}  // namespace

int64_t BusyTicks(std::string_view proc_stat, const std::function<bool(int)>& is_ours) {
  int64_t ticks = 0;
  for (const std::string_view line : Split(proc_stat, '\n')) {
    int core = 0;
    const bool is_core =
        line.starts_with("cpu") &&
        std::from_chars(line.data() + 3, line.data() + line.size(), core).ec == std::errc();
    if (!is_core || !is_ours(core)) continue;
    // user nice system idle iowait irq softirq steal; what guests use is in user as well.
    const std::vector<int64_t> words = Numbers(line, 1);
    for (size_t i = 0; i < std::min<size_t>(words.size(), 8); ++i) {
      const bool is_idle = i == 3 || i == 4;
      if (!is_idle) ticks += words[i];
    }
  }
  return ticks;
}

ProcessorTimes ReadProcessorTimes(std::span<const pid_t> helpers) {
  ProcessorTimes times{.at = RealClock().Now()};
  const StatusOr<std::string> text = ReadFile("/proc/stat");
  cpu_set_t ours;
  if (!text.ok() || ::sched_getaffinity(0, sizeof(ours), &ours) != 0) return times;
  times.busy = FromTicks(
      BusyTicks(*text, [&](int core) { return core < CPU_SETSIZE && CPU_ISSET(core, &ours); }));
  rusage usage{};
  AG_CHECK(::getrusage(RUSAGE_SELF, &usage) == 0);
  times.own = Used(usage.ru_utime) + Used(usage.ru_stime) + FromTicks(TicksOf(::getppid()));
  for (const pid_t helper : helpers) times.own += FromTicks(TicksOf(helper));
  return times;
}

double ProcessorMonitor::BusyCores() {
  if (!readings_.empty() && clock_.Now() - readings_.back().at < kReadEvery) return busy_cores_;
  readings_.push_back(read_());
  const ProcessorTimes& now = readings_.back();
  while (readings_.size() > 2 && now.at - readings_[1].at >= kWindow) readings_.pop_front();
  const ProcessorTimes& then = readings_.front();
  // What the first readings say is no longer than the steps they are counted in.
  if (now.at - then.at < kWindow / 2) return busy_cores_ = 0;
  const auto others = static_cast<double>(((now.busy - then.busy) - (now.own - then.own)).count());
  return busy_cores_ = std::max(0.0, others / static_cast<double>((now.at - then.at).count()));
}

void QuietWait::Wait(Nanos until) {
  const Nanos begin = clock_.Now();
  credit_ = std::min(kCreditMax, credit_ + (begin - last_) / kEarnedIn);
  const Nanos end = std::min(until, begin + credit_);
  while (load_.BusyCores() > kForeignCoresMax && clock_.Now() + kLook <= end) {
    clock_.SleepFor(kLook);
  }
  last_ = clock_.Now();
  credit_ -= last_ - begin;
}

}  // namespace ag
