#include "client/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "client/cli/job_text.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

constexpr int kBarCells = 10;
constexpr int kColumnsDefault = 80;
constexpr int kColumnsMin = 20;
constexpr Nanos kRedraw{1'000'000'000};

bool HasEnded(const v1::Job& job) { return job.state() >= v1::Job::SUCCEEDED; }

std::string StageText(const v1::Job& job) {
  std::string text = StateText(job.state());
  if (job.progress().stage().empty() || HasEnded(job)) return text;
  if (job.progress().round() > 0) text += fmt::format(", round {}", job.progress().round());
  return text + ": " + job.progress().stage();
}

std::string WaitText(const v1::Progress& p) {
  return p.waits_for().empty() ? "" : "waits for " + p.waits_for();
}

std::string BestText(const v1::Progress& p) {
  return p.best_speedup() > 1 ? fmt::format("best {:.3f}x", p.best_speedup()) : "";
}

// Says over what it is. A job that has ended has a verdict, over what the user runs today.
std::string WholeBestText(const v1::Job& job) {
  const std::string best = HasEnded(job) ? "" : BestText(job.progress());
  return best + (best.empty() ? "" : " over our plan of the input");
}

std::string ClockText(double seconds) {
  const auto whole = static_cast<int64_t>(std::max(0.0, seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string TimeText(const v1::Job& job, double seconds) {
  const double elapsed = job.progress().elapsed_seconds();
  const double budget = job.request().budget().time_seconds();
  if (elapsed <= 0) return "";
  if (budget <= 0) return ClockText(elapsed + seconds);
  return fmt::format("{} of {}", ClockText(elapsed + seconds), ClockText(budget));
}

std::string GraphCounts(const v1::Progress& p) {
  if (p.graphs() == 0 && p.groups_measured() == 0 && p.candidates() == 0) return "";
  return fmt::format("{} graphs, {} groups, {} plans", p.graphs(), p.groups_measured(),
                     p.candidates());
}

std::string BarText(double fraction) {
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarCells);
  return fmt::format("[{}{}]", std::string(filled, '#'), std::string(kBarCells - filled, ' '));
}

// Joins the pieces that are not empty.
std::string Joined(const std::vector<std::string>& pieces) {
  std::string line;
  for (const std::string& piece : pieces) {
    if (!line.empty() && !piece.empty()) line += "  ";
    line += piece;
  }
  return line;
}

// Returns the columns of the terminal without the last one, since a terminal may begin a new line
// when that is filled.
int Columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return std::max(kColumnsMin, known ? size.ws_col : kColumnsDefault) - 1;
}

}  // namespace

std::string ProgressLine(const v1::Job& job) {
  const v1::Progress& p = job.progress();
  return Joined(
      {StageText(job), WholeBestText(job), TimeText(job, 0), WaitText(p), GraphCounts(p)});
}

std::string FitProgress(const v1::Job& job, double seconds, int columns) {
  const v1::Progress& p = job.progress();
  const std::string bar = BarText(p.fraction()), stage = StageText(job), best = BestText(p),
                    time = TimeText(job, seconds), wait = WaitText(p);
  const std::string& doing = wait.empty() ? stage : wait;
  for (const auto& pieces : std::initializer_list<std::vector<std::string>>{
           {bar, stage, WholeBestText(job), time, wait, GraphCounts(p)},
           {bar, stage, best, time, wait, GraphCounts(p)},
           {bar, stage, best, time, wait},
           {stage, best, time, wait},
           {doing, best, time},
           {doing, time}}) {
    std::string line = Joined(pieces);
    if (line.size() <= static_cast<size_t>(columns)) return line;
  }
  return doing.substr(0, static_cast<size_t>(columns));
}

void ProgressPrinter::Show(const v1::Job& job) {
  SaySizes(job.progress().chosen_sizes());
  if (!context_.terminal()) return Print(job);
  MutexLock lock(mutex_);
  const double fraction = job_.has_value() ? job_->progress().fraction() : 0;
  job_ = job;
  if (fraction > job.progress().fraction()) job_->mutable_progress()->set_fraction(fraction);
  shown_ = RealClock().Now();
  DrawJob();
  if (!thread_.joinable()) thread_ = std::thread([this] { KeepDrawing(); });
}

void ProgressPrinter::SaySizes(const std::string& chosen) {
  MutexLock lock(mutex_);
  if (chosen.empty() || std::exchange(said_sizes_, true)) return;
  if (drawn_) std::fputs("\r\033[K", stderr);
  context_.Note(chosen);
}

void ProgressPrinter::Print(const v1::Job& job) {
  const std::string stage = StageText(job);
  const bool begins = printed_.insert(stage).second;
  const bool waits =
      !job.progress().waits_for().empty() && printed_.insert(stage + " waits").second;
  if (begins || waits) context_.Note(ProgressLine(job));
}

void ProgressPrinter::ShowBytes(const std::string& what, int64_t done, int64_t total) {
  if (!context_.terminal()) return;
  const double fraction = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
  MutexLock lock(mutex_);
  Draw(fmt::format("{} {} {} of {} MiB", BarText(fraction), what, done >> 20, total >> 20));
}

void ProgressPrinter::DrawJob() {
  const double seconds = std::chrono::duration<double>(RealClock().Now() - shown_).count();
  Draw(FitProgress(*job_, seconds, Columns()));
}

void ProgressPrinter::Draw(const std::string& line) {
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressPrinter::KeepDrawing() {
  MutexLock lock(mutex_);
  while (!done_) {
    ended_.WaitFor(mutex_, kRedraw);
    if (!done_) DrawJob();
  }
}

void ProgressPrinter::Clear() {
  {
    MutexLock lock(mutex_);
    done_ = true;
    ended_.NotifyAll();
    if (drawn_) std::fputs("\r\033[K", stderr);
    drawn_ = false;
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace ag
