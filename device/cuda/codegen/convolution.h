// The parts that the kernels of convolutions share. Private to the room. One thread at a time for
// one GroupText.
#pragma once

#include "device/cuda/codegen/product.h"
#include "device/cuda/codegen/window.h"

namespace ag::cuda {

struct Convolution {
  TensorArgument x, w;  // The weights' axes: output channels, channels of a group, spatial axes.
  Edge bias;
  std::vector<WindowAxis> windows;
  int64_t images = 1, groups = 1;
  int64_t channels_in = 1, channels_out = 1;  // Of one group.
  int64_t positions = 1, taps = 1;
  int64_t padding = 0;  // Channels behind a pixel's own that the kernel may compute, too.
  // Of one group, the channels that a sum runs over: with the input's padding where the weights
  // have as many zeros.
  int64_t channels_summed = 1;
  bool is_last = false;  // The output has its channels last.
  bool allows_tf32 = false;
  std::string index;  // "int", or "long long" where a tensor is too large for it.

  bool is_depthwise() const { return channels_in == 1 && channels_out == 1; }
  ProductEnd End(Epilogue* epilogue) const {
    return {epilogue, Epilogue::View::kConvolution, bias};
  }
};

// Reads the group and names its operands in the kernel that is being written. Where the output has
// its channels last, constant weights have output channels last in memory, or with `by_depth` the
// channels of a group last, padded where the input is; elsewhere they keep their order. Weights of
// a depthwise convolution have `padding` more channels.
StatusOr<Convolution> ConvolutionOf(GroupText* group, bool by_depth);

// Returns true when the group is a depthwise convolution followed by a pointwise one
// (separable.cc).
bool IsSeparable(const GroupContext& context);

// Declares first_<i>, the begin of the window of position `position` along each spatial axis.
void DeclareWindow(const Convolution& c, const std::string& position, Text* text);

// Returns the weights' offset of (output channel, channel in group, tap): each times its stride, a
// tap as the sum of its axes' k<i>.
std::string WeightOffset(const Convolution& c, const std::string& out, const std::string& in,
                         const std::vector<std::string>& taps);

// The kernels: the names to try, best guess first, and the text of a name.
std::vector<std::string> DepthwiseVariants(const Convolution& c, const Epilogue& epilogue);
Status Depthwise(GroupText* group, const Convolution& c, Epilogue* epilogue,
                 const std::string& variant);
std::vector<std::string> ConvolutionTiles(const Convolution& c, const Chip& chip);
Status TiledConvolution(GroupText* group, const Convolution& c, Epilogue* epilogue,
                        const std::string& variant);

}  // namespace ag::cuda
