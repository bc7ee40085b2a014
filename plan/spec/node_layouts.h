// The layouts in which operators read and write. They are chosen per node before groups are formed,
// so they do not depend on the grouping:
//   - a contraction takes its preferred layout when its pattern lists it and it fits, else the
//     first layout of that list that fits;
//   - every other operator takes the layout of its first operand that is not plain, when it can
//     work in it and its pattern lists it (or lists none: any); otherwise it is plain.
// Blocked layouts are chosen for f32 of rank 4 with at least one whole block of channels. An
// operator that would write nonzero values into the padding of an incomplete block stays plain.
// (Devices with channels_last8 write the zeros of the padding for every operator.)
//
// A transpose that moves an image's channels to the end or back changes no byte where the image
// lies in channels_last. It is such a view where its pattern lists that layout and the image is not
// plain, or all that reads it can work so.
//
// A tensor that channels_last8 would not pad is called channels_last. So a graph with whole blocks
// of channels has the same groups under both preferences, and equal groups have one key. Under a
// preference for channels_last8, an operator that follows an operand with channels last takes
// channels_last8. Immutable; pure functions.
#pragma once

#include <vector>

#include "plan/spec/device_spec.h"

namespace ag {

struct NodeLayouts {
  // By NodeId: the layout of the node's group. Under channels_last8, tensors of whole blocks are in
  // channels_last.
  std::vector<Layout> of;

  // Returns the layout in which the producer of `edge` writes it; plain for inputs.
  Layout Written(const Graph& graph, Edge edge) const;
  // Returns the layout in which a node reads operand `index`. REQUIRES: the operand is not
  // constant.
  Layout Read(const Graph& graph, NodeId node, size_t index) const;
  // Whether that is the layout in which the operand is written.
  bool ReadsAsWritten(const Graph& graph, NodeId node, size_t index) const;
};

// home[op] is the first pattern that begins with op, or null.
using HomePatterns = std::vector<const GroupPattern*>;
HomePatterns FindHomePatterns(const DeviceSpec& spec);

// Which way a transpose moves the channels of images: from [N, C, H, W] to [N, H, W, C], or back.
// Both have the same bytes where the first one lies in channels_last.
enum class ChannelMove : uint8_t { kNone, kToBack, kToFront };
ChannelMove ChannelMoveOf(const Node& node);

// Returns true when the unary operator maps zero to zero, so that padding stays zero.
bool GivesZeroForZero(const Node& node);

// Returns true when channels_last8 pads a tensor that the operator reads or writes.
bool IsPadded(const Graph& graph, const Node& node);

// Returns the layouts. preferred[id] is the layout that contractions prefer at node `id`.
NodeLayouts ChooseLayouts(const Graph& graph, const HomePatterns& home,
                          const std::vector<Layout>& preferred);

}  // namespace ag
