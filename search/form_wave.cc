#include "search/form_wave.h"

namespace ag {

// One search of a form, with its own counts and times.
struct FormWave::Attempt {
  // `is_alone`: no other one runs.
  Attempt(FormWave* its_wave, int its_place, const Task& its_task, Amount its_limit, bool alone)
      : wave(its_wave),
        place(its_place),
        task(its_task),
        limit(its_limit),
        is_alone(alone),
        request(Request()),
        run(request, wave->cells_.run.clock()),
        times(wave->cells_.times,
              [this](const std::vector<GroupProblem>& problems) {
                return wave->measuring_.Measure(place, problems);
              },
              {.groups_max = limit.groups, .stop = [this] { return run.Over(); }}),
        asked_before(times.asked()) {
    run.EndAt(wave->cells_.run.search_end());
  }

  SearchRequest Request() {
    SearchRequest its = wave->cells_.request;
    its.input = task.graph;
    its.options.limits.graphs_total_max = limit.graphs;
    its.cancelled = [this] { return wave->IsCancelled(*this); };
    if (!its.on_progress) return its;
    its.on_progress = [this](const SearchProgress& progress) { wave->Report(*this, progress); };
    return its;
  }
  Amount Used() const { return {run.counts.graphs, times.asked() - asked_before}; }
  bool IsCut() const { return run.WasOver() || times.Stopped(); }

  FormWave* const wave;
  const int place;
  const Task& task;
  const Amount limit;
  const bool is_alone;
  const SearchRequest request;
  SearchRun run;
  LearnedTimes times;
  const int asked_before;
  ThreadPool one_thread{1};
  bool is_too_much = false;  // The forms before it leave less than it takes.
  FormFound found;
};

FormWave::FormWave(const SearchSetting& cells, std::span<OneRule> one_rules)
    : cells_(cells), one_rules_(one_rules), measuring_(cells.times.measurer()) {}

FormWave::~FormWave() = default;

std::vector<FormFound> FormWave::Run(const std::vector<Task>& tasks) {
  const Amount all = {cells_.request.options.limits.graphs_total_max - cells_.run.counts.graphs,
                      cells_.times.LeftToAsk()};
  const auto count = static_cast<int>(tasks.size());
  {
    const MutexLock lock(mutex_);
    used_.resize(tasks.size());
  }
  for (int place = 0; place < count; ++place) {
    attempts_.push_back(std::make_unique<Attempt>(this, place, tasks[place], all, count == 1));
  }
  cells_.pool.Each(count,
                   [&](int place, int thread) { Search(*attempts_[place], one_rules_[thread]); });
  return Accept();
}

void FormWave::Search(Attempt& attempt, OneRule& one_rule) {
  ThreadPool& pool = attempt.is_alone ? cells_.pool : attempt.one_thread;
  const SearchSetting setting = {attempt.request, cells_.rules, attempt.times, cells_.pairs,
                                 attempt.run,     pool,         cells_.layout};
  measuring_.Enter();
  attempt.found = SearchForm(setting, one_rule, attempt.task.known);
  measuring_.Leave();
}

// Whether the attempt must end: all are cancelled, or it is too much.
bool FormWave::IsCancelled(Attempt& attempt) {
  measuring_.Pause();
  if (IsLookDue(attempt)) {
    measuring_.RunAlone([this] { is_cancelled_ = cells_.run.Cancelled(); });
  }
  return attempt.is_too_much || is_cancelled_;
}

// Notes what the attempt took so far; what each takes only grows, so too much stays too much.
bool FormWave::IsLookDue(Attempt& attempt) {
  const Amount used = attempt.Used();
  const MutexLock lock(mutex_);
  used_[attempt.place] = used;
  Amount left = attempt.limit;
  for (int place = 0; place < attempt.place && !attempt.is_alone; ++place) {
    left.graphs -= used_[place].graphs;
    left.groups -= used_[place].groups;
  }
  attempt.is_too_much = attempt.is_too_much || !Fits(used, attempt.limit, left);
  const bool is_only_one = attempt.is_alone || cells_.pool.threads() == 1;
  return is_only_one || asks_++ % kAsksPerLook == 0;
}

// Whether a search that used so much within `limit` would have been the same within `left`: a limit
// that it does not reach does not matter.
bool FormWave::Fits(Amount used, Amount limit, Amount left) {
  return (left.graphs == limit.graphs || used.graphs < left.graphs) &&
         (left.groups == limit.groups || used.groups < left.groups);
}

void FormWave::Report(const Attempt& attempt, SearchProgress progress) {
  const MutexLock lock(mutex_);
  used_[attempt.place].graphs = progress.graphs;
  progress.graphs = cells_.run.counts.graphs;
  for (const Amount& used : used_) progress.graphs += used.graphs;
  cells_.request.on_progress(progress);
}

// Takes the forms in order; searches those again that took too much. All begin with the times of
// the wave's begin, so what was learned is taken at the end.
std::vector<FormFound> FormWave::Accept() {
  SearchRun& run = cells_.run;
  std::vector<FormFound> found(attempts_.size());
  Amount left = attempts_[0]->limit;
  size_t count = 0;
  for (bool is_cut = false; count < attempts_.size() && left.graphs > 0 && !is_cut; ++count) {
    std::unique_ptr<Attempt>& attempt = attempts_[count];
    if (attempt->is_too_much || !Fits(attempt->Used(), attempt->limit, left)) {
      attempt = std::make_unique<Attempt>(this, attempt->place, attempt->task, left, true);
      Search(*attempt, one_rules_[0]);
    }
    const Amount used = attempt->Used();
    left = {left.graphs - used.graphs, left.groups - used.groups};
    found[count] = std::move(attempt->found);
    is_cut = attempt->IsCut();
  }
  for (size_t place = 0; place < count; ++place) {
    const Attempt& attempt = *attempts_[place];
    run.counts.graphs += attempt.run.counts.graphs;
    for (const std::string& warning : attempt.run.warnings()) run.Warn(warning);
    cells_.times.TakeFrom(attempt.times);
  }
  return found;
}

}  // namespace ag
