// Local keys of groups (see LocalKey): one hash per node, combined along a path, so that all groups
// that begin at one operator cost one pass over the operators behind it. Pure functions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "plan/fusion/group_time.h"
#include "plan/fusion/node_marks.h"
#include "plan/spec/node_layouts.h"

namespace ag {

// The parts of a group's problem besides its nodes.
struct KeyFrame {
  std::string_view pattern;
  std::string_view precision;
  int cores = 0;
  bool cold_cache = false;
};

// Returns the key of the frame alone.
LocalKey KeyOfFrame(const KeyFrame& frame);

// Returns the key of a reorder or of a copy; `frame` is KeyOfFrame's.
LocalKey KeyOfReorder(const TensorType& type, Layout from, Layout to, LocalKey frame);

// Returns by NodeId the keys of operators with the types that they read and write, without layouts.
std::vector<LocalKey> KeysOfOperators(const Graph& graph, std::span<const NodeId> operators);

class GroupKeys {
 public:
  // `operators` is that of KeysOfOperators. All arguments must outlive it.
  GroupKeys(const Graph& graph, const NodeLayouts& layouts, const std::vector<LocalKey>& operators)
      : graph_(graph), layouts_(layouts), operators_(operators) {}

  // The operators of a path so far, each of which reads the one before.
  struct Path {
    LocalKey key;
    NodeId last = -1;
    // The key also depends on which operands are the same tensor.
    absl::InlinedVector<Edge, 8> operands;

    void Clear() {
      key = {};
      last = -1;
      operands.clear();
    }
  };
  // Adds an operator that reads path->last; the first one begins the path.
  void Extend(Path* path, NodeId id) const;
  // Returns the path's record for operators that are no path alone, or some of which others read as
  // well; ascending. `inside`: the set of them.
  Path OfPiece(std::span<const NodeId> nodes, const NodeMarks& inside) const;
  // Returns the key of the group with the operators of a path with this key.
  static LocalKey KeyOf(const LocalKey& path, const LocalKey& frame);

 private:
  void AddNode(Path* path, NodeId id) const;
  void AddOutside(Path* path, Edge operand) const;

  const Graph& graph_;
  const NodeLayouts& layouts_;
  const std::vector<LocalKey>& operators_;
};

}  // namespace ag
