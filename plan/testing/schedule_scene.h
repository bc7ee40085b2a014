// A small graph whose every operator is a group in plain layout, to be scheduled by hand. One
// thread at a time.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/schedule/schedule_problem.h"

namespace ag {

class ScheduleScene {
 public:
  // `text`: a graph in which each operator stands once. An error ends the program.
  ScheduleScene(std::string_view text, DeviceSpec spec);

  // A number for each operator by its name, "Exp".
  using ByOperator = std::initializer_list<std::pair<std::string_view, double>>;

  // Returns the problem with these times. `cores`: how many each operator takes (Contention); none:
  // as many as the spec says. It refers to this scene.
  ScheduleProblem Problem(ByOperator ns, int streams, ByOperator cores = {}) const;

  // Returns for each stream its launches and their waits, such as "Exp Add<Neg,Relu Abs".
  std::vector<std::string> Text(const std::vector<Stream>& streams) const;

  std::string NameOf(int group) const;
  int GroupOf(std::string_view name) const;

 private:
  std::vector<double> ValuesOf(ByOperator values) const;

  Graph graph_;
  DeviceSpec spec_;
  std::vector<Group> groups_;
};

}  // namespace ag
