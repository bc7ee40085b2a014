#include "plan/schedule/device_shares.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace ag {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class ShareScheduler {
 public:
  explicit ShareScheduler(const ScheduleProblem& problem)
      : problem_(problem),
        remaining_ns_(RemainingNs(problem)),
        builder_(problem.groups.size(), problem.streams),
        free_ns_(problem.streams),
        end_ns_(problem.groups.size()) {
    for (const std::vector<int>& before : problem.before) missing_.push_back(before.size());
    for (const int g : problem.order) {
      if (missing_[g] == 0) ready_.push_back(g);
    }
  }

  std::vector<Stream> Run() {
    while (!ready_.empty() || !running_.empty()) {
      BeginReady();
      now_ = NextTime();
      EndGroups();
    }
    return builder_.Take(StreamCores(problem_.spec, problem_.streams));
  }

 private:
  // Returns when g could begin on the stream. REQUIRES: g is ready.
  double BeginOn(int g, int stream) const {
    double begin = free_ns_[stream];
    for (const int b : problem_.before[g]) {
      const bool is_here = builder_.StreamOf(b) == stream;
      begin = std::max(begin, end_ns_[b] + (is_here ? 0 : problem_.spec.event_ns));
    }
    return begin;
  }

  bool Reads(int g, int stream) const {
    const auto& launches = builder_.streams()[stream].launches;
    return !launches.empty() &&
           std::ranges::binary_search(problem_.before[g], launches.back().group);
  }

  // Returns the best stream on which g can begin now; -1: there is none.
  int FindStream(int g) const {
    int chosen = -1;
    for (int s = 0; s < problem_.streams; ++s) {
      if (BeginOn(g, s) > now_) continue;
      const auto rank = [&](int stream) { return std::tuple(Reads(g, stream), free_ns_[stream]); };
      if (chosen < 0 || rank(s) > rank(chosen)) chosen = s;
    }
    return chosen;
  }

  void BeginReady() {
    std::ranges::sort(ready_, {}, [&](int g) { return std::tuple(-remaining_ns_[g], g); });
    std::erase_if(ready_, [&](int g) {
      const int cores_wanted = cores_taken_ + problem_.shares[g];
      if (!running_.empty() && cores_wanted > problem_.spec.cores) return false;
      const int stream = FindStream(g);
      if (stream < 0) return false;
      Begin(g, stream);
      return true;
    });
  }

  void Begin(int g, int stream) {
    running_.push_back(g);
    cores_taken_ += problem_.shares[g];
    const double speed = SpeedUnderContention(static_cast<int>(running_.size()), cores_taken_,
                                              problem_.spec.cores, problem_.overlap);
    end_ns_[g] = now_ + problem_.ns[g] / speed;
    free_ns_[stream] = end_ns_[g];
    builder_.Launch(g, stream, problem_.before[g]);
  }

  // Returns when a group ends, or a wait of a ready group on a free stream.
  double NextTime() const {
    double next = kNever;
    for (const int g : running_) next = std::min(next, end_ns_[g]);
    for (const int g : ready_) {
      for (int s = 0; s < problem_.streams; ++s) {
        const double begin = BeginOn(g, s);
        if (begin > now_) next = std::min(next, begin);
      }
    }
    return next;
  }

  void EndGroups() {
    std::erase_if(running_, [&](int g) {
      if (end_ns_[g] > now_) return false;
      cores_taken_ -= problem_.shares[g];
      for (const int f : problem_.after[g]) {
        if (--missing_[f] == 0) ready_.push_back(f);
      }
      return true;
    });
  }

  const ScheduleProblem& problem_;
  const std::vector<double> remaining_ns_;
  StreamsBuilder builder_;
  std::vector<double> free_ns_;  // The end of each stream.
  std::vector<double> end_ns_;   // Of each group that has begun.
  std::vector<size_t> missing_;  // The predecessors of each group that have not ended.
  std::vector<int> ready_, running_;
  int cores_taken_ = 0;
  double now_ = 0;
};

}  // namespace

std::vector<Stream> DeviceShares(const ScheduleProblem& problem) {
  return ShareScheduler(problem).Run();
}

}  // namespace ag
