#include "plan/happens_before.h"

namespace ag {

StatusOr<HappensBefore> HappensBefore::Make(size_t groups, const std::vector<Stream>& streams) {
  HappensBefore result;
  result.before_.assign(groups, IndexSet(groups));
  result.stream_of_.assign(groups, -1);
  AG_TRY(result.Index(streams));
  AG_TRY(result.Sort(streams));
  result.position_of_.assign(groups, -1);
  for (size_t i = 0; i < result.order_.size(); ++i) {
    const int group = result.order_[i];
    result.position_of_[group] = static_cast<int>(i);
    result.in_one_stream_ &= result.StreamOf(group) == result.StreamOf(result.order_[0]);
  }
  return result;
}

Status HappensBefore::Index(const std::vector<Stream>& streams) {
  const int groups = static_cast<int>(stream_of_.size());
  for (size_t s = 0; s < streams.size(); ++s) {
    for (const Launch& launch : streams[s].launches) {
      if (launch.group < 0 || launch.group >= groups) {
        return Err(StatusCode::kInvalidArgument, "stream {}: launches group {} of {}", s,
                   launch.group, groups);
      }
      if (stream_of_[launch.group] >= 0) {
        return Err(StatusCode::kInvalidArgument, "group {}: launched twice", launch.group);
      }
      stream_of_[launch.group] = static_cast<int>(s);
    }
  }
  for (const Stream& stream : streams) {
    for (const Launch& launch : stream.launches) {
      for (const int wait : launch.waits) {
        if (wait >= 0 && wait < groups && stream_of_[wait] >= 0) continue;
        return Err(StatusCode::kInvalidArgument, "group {}: waits for group {}, never launched",
                   launch.group, wait);
      }
    }
  }
  return OkStatus();
}

Status HappensBefore::Sort(const std::vector<Stream>& streams) {
  std::vector<size_t> next(streams.size());
  std::vector<bool> done(stream_of_.size());
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t s = 0; s < streams.size(); ++s) {
      const auto& launches = streams[s].launches;
      for (; next[s] < launches.size(); ++next[s], moved = true) {
        const Launch& launch = launches[next[s]];
        bool ready = true;
        for (const int wait : launch.waits) ready = ready && done[wait];
        if (!ready) break;
        IndexSet& before = before_[launch.group];
        const auto include = [&](int group) {
          before.Unite(before_[group]);
          before.Add(group);
        };
        if (next[s] > 0) include(launches[next[s] - 1].group);
        for (const int wait : launch.waits) include(wait);
        done[launch.group] = true;
        order_.push_back(launch.group);
      }
    }
  }
  for (size_t s = 0; s < streams.size(); ++s) {
    if (next[s] == streams[s].launches.size()) continue;
    return Err(StatusCode::kInvalidArgument, "stream {}: group {} waits for itself in a circle", s,
               streams[s].launches[next[s]].group);
  }
  return OkStatus();
}

}  // namespace ag
