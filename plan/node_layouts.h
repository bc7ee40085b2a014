// The layouts in which the operators of a graph read and write, chosen before groups are formed and
// for each node alone, so that they do not depend on the grouping:
//   - a contraction takes the layout preferred for it when its pattern lists it and it suits, else
//     the first layout of that list that does;
//   - every other operator follows the first operand that is not plain, where it can and its
//     pattern lists that layout (or lists none: any), and is plain otherwise.
// Blocked layouts are chosen for f32 of rank 4 with at least one whole block of channels. An
// operator that would write something else than zeros into the padding of a broken block stays
// plain. (Devices with channels_last8 write its zeros whatever the operator is.)
//
// A tensor whose channels channels_last8 does not pad is called channels_last: so a graph of round
// channels has the same groups whichever of the two is preferred, and groups that do the same have
// one key. Where channels_last8 is preferred, what follows an operand with channels last does so in
// channels_last8.
#pragma once

#include <vector>

#include "plan/device_spec.h"

namespace ag {

struct NodeLayouts {
  // By NodeId; the layout of a node's group. Under channels_last8 tensors of whole blocks lie in
  // channels_last.
  std::vector<Layout> of;

  // The layout in which `edge` leaves its producer, plain for inputs.
  Layout Written(const Graph& graph, Edge edge) const;
  // The layout in which a node wants operand `index`. REQUIRES: that operand is not constant.
  Layout Read(const Graph& graph, NodeId node, size_t index) const;
};

// `home[op]` is the first pattern that begins with op, or null.
using HomePatterns = std::vector<const GroupPattern*>;
HomePatterns FindHomePatterns(const DeviceSpec& spec);

// Whether a unary operator makes zeros of zeros, so that padding stays what it is.
bool GivesZeroForZero(const Node& node);

// Whether channels_last8 pads a tensor that the operator reads or writes.
bool IsPadded(const Graph& graph, const Node& node);

// `preferred[id]`: the layout that node `id` prefers when it is a contraction.
NodeLayouts ChooseLayouts(const Graph& graph, const HomePatterns& home,
                          const std::vector<Layout>& preferred);

}  // namespace ag
