// What stops an import. The import goes on past an obstacle with the nodes that do not read from
// it, so that the user learns of all of them at once. One thread at a time.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/onnx/wire.h"

namespace ag {

class Obstacles {
 public:
  // Ends at `kinds_max` different obstacles, from 1.
  explicit Obstacles(int kinds_max) : kinds_max_(kinds_max) {}

  // Notes the error of the node or input `noun`, which would have defined `names`. Equal errors of
  // several nodes are one obstacle.
  void Add(const std::string& noun, const Status& status, std::span<const std::string> names);
  // Notes that a node which reads from an obstacle defines nothing either.
  void Block(std::span<const std::string> names) { missing_.insert(names.begin(), names.end()); }
  bool Defines(const std::string& name) const { return missing_.contains(name); }
  // Whether nothing is learned from going on: as many obstacles as are kept, or an error that is
  // not about a node or input (a limit, a full disk).
  bool Ends() const { return !fatal_.ok() || static_cast<int>(kinds_.size()) >= kinds_max_; }

  // Returns OK when there is none, the error when there is one, else the first one's code and
  // "2 obstacles: (1) node 0 (Foo): ...; (2) ...". An error that is not about a node or input comes
  // alone.
  Status All() const;

 private:
  struct Kind {
    Status status;
    std::string what;  // The operator and the error's message.
    int more = 0;      // Further nodes or inputs with this error.
  };
  int kinds_max_;
  std::vector<Kind> kinds_;
  std::set<std::string> missing_;
  Status fatal_;
};

}  // namespace ag
