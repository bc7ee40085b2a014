#include "plan/testing/schedule_scene.h"

#include "plan/fusion/grouping.h"
#include "plan/testing/testing.h"

namespace ag {

ScheduleScene::ScheduleScene(std::string_view text, DeviceSpec spec)
    : graph_(GraphOf(text)), spec_(std::move(spec)) {
  RooflineTimes times(spec_);
  groups_ = *FormGroups(graph_, spec_, {}, times, {.grouped = false, .layout = Layout::kPlain});
}

std::string ScheduleScene::NameOf(int group) const {
  return std::string(Info(graph_.node(groups_[group].nodes.at(0)).op).name);
}

int ScheduleScene::GroupOf(std::string_view name) const {
  int found = -1;
  for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
    if (NameOf(g) == name) found = g;
  }
  AG_CHECK(found >= 0);
  return found;
}

std::vector<double> ScheduleScene::ValuesOf(ByOperator values) const {
  AG_CHECK(values.size() == groups_.size());
  std::vector<double> by_group(groups_.size());
  for (const auto& [name, value] : values) by_group[GroupOf(name)] = value;
  return by_group;
}

ScheduleProblem ScheduleScene::Problem(ByOperator ns, int streams, ByOperator cores) const {
  Contention contention;
  if (cores.size() > 0) {
    for (const double value : ValuesOf(cores)) {
      contention.active_cores.push_back(static_cast<int>(value));
    }
  }
  return MakeScheduleProblem(graph_, groups_, ValuesOf(ns), spec_, /*policy=*/{}, streams,
                             contention);
}

std::vector<std::string> ScheduleScene::Text(const std::vector<Stream>& streams) const {
  std::vector<std::string> lines;
  for (const Stream& stream : streams) {
    std::string& line = lines.emplace_back();
    for (const Launch& launch : stream.launches) {
      if (!line.empty()) line += ' ';
      line += NameOf(launch.group);
      for (const int wait : launch.waits) {
        line += wait == launch.waits.front() ? '<' : ',';
        line += NameOf(wait);
      }
    }
  }
  return lines;
}

}  // namespace ag
