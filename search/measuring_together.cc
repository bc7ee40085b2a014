#include "search/measuring_together.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace ag {

void MeasuringTogether::Begin() {
  while (is_taken_ || IsAsked()) changed_.Wait(mutex_);
  ++searching_;
}

void MeasuringTogether::End() {
  if (--searching_ == 0) changed_.NotifyAll();
}

void MeasuringTogether::Enter() {
  const MutexLock lock(mutex_);
  Begin();
}

void MeasuringTogether::Pause() {
  const MutexLock lock(mutex_);
  if (!IsAsked()) return;
  End();
  Begin();
}

void MeasuringTogether::Leave() {
  const MutexLock lock(mutex_);
  End();
}

void MeasuringTogether::RunAlone(const std::function<void()>& run) {
  {
    const MutexLock lock(mutex_);
    ++alone_;
    End();
    while (is_taken_ || searching_ > 0) changed_.Wait(mutex_);
    is_taken_ = true;
  }
  run();
  const MutexLock lock(mutex_);
  is_taken_ = false;
  --alone_;
  ++searching_;
  changed_.NotifyAll();
}

std::vector<StatusOr<Measurement>> MeasuringTogether::Measure(
    int place, const std::vector<GroupProblem>& problems) {
  Request request;
  for (const GroupProblem& problem : problems) {
    request.groups.emplace_back(EncodeGroupProblem(problem), &problem);
  }
  {
    const MutexLock lock(mutex_);
    const auto is_known = [&](const Named& group)
                              AG_REQUIRES(mutex_) { return known_.contains(group.first); };
    if (std::ranges::all_of(request.groups, is_known)) {
      for (const auto& [bytes, problem] : request.groups) {
        request.answers.push_back(known_.at(bytes));
      }
      return std::move(request.answers);
    }
    waiting_.emplace(place, std::move(request));
    End();
  }
  Answers answers;
  while (!WaitForAnswers(place, &answers)) {
    const std::vector<Named> groups = NewGroups();
    Answer(groups, MeasureInBatches(groups));
  }
  return answers;
}

// Returns true with the answers, and false when it is on this thread to measure.
bool MeasuringTogether::WaitForAnswers(int place, Answers* answers) {
  const MutexLock lock(mutex_);
  while (true) {
    const auto it = answered_.find(place);
    if (it != answered_.end()) {
      *answers = std::move(it->second);
      answered_.erase(it);
      return true;
    }
    if (searching_ == 0 && !is_taken_) {
      is_taken_ = true;
      return false;
    }
    changed_.Wait(mutex_);
  }
}

// Returns each group that is waited for and not known, once.
std::vector<MeasuringTogether::Named> MeasuringTogether::NewGroups() {
  const MutexLock lock(mutex_);
  std::vector<Named> groups;
  absl::flat_hash_set<std::string> seen;
  for (const auto& [place, request] : waiting_) {
    for (const Named& group : request.groups) {
      if (known_.contains(group.first) || !seen.insert(group.first).second) continue;
      groups.push_back(group);
    }
  }
  return groups;
}

// After an answer kCancelled no more is asked for.
MeasuringTogether::Answers MeasuringTogether::MeasureInBatches(
    const std::vector<Named>& groups) const {
  Answers answers;
  while (answers.size() < groups.size()) {
    const bool is_cut =
        !answers.empty() && answers.back().status().code() == StatusCode::kCancelled;
    if (is_cut) {
      answers.resize(groups.size(), answers.back());
      break;
    }
    std::vector<GroupProblem> batch;
    for (size_t i = answers.size(); i < groups.size() && batch.size() < kGroupBatchMax; ++i) {
      batch.push_back(*groups[i].second);
    }
    Answers some = measure_(batch);
    AG_CHECK(some.size() == batch.size());
    std::ranges::move(some, std::back_inserter(answers));
  }
  return answers;
}

// Answers all that wait, who search from here on.
void MeasuringTogether::Answer(const std::vector<Named>& groups, const Answers& answers) {
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < groups.size(); ++i) known_.emplace(groups[i].first, answers[i]);
  for (auto& [place, request] : waiting_) {
    Answers& its = answered_[place];
    for (const auto& [bytes, problem] : request.groups) its.push_back(known_.at(bytes));
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (answers[i].status().code() == StatusCode::kCancelled) known_.erase(groups[i].first);
  }
  searching_ += static_cast<int>(waiting_.size());
  waiting_.clear();
  is_taken_ = false;
  changed_.NotifyAll();
}

}  // namespace ag
