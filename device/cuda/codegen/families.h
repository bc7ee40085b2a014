// The families of generated kernels; generate.cc chooses one for a group. Private to the room. Pure
// functions.
#pragma once

#include "device/cuda/codegen/group_text.h"

namespace ag::cuda {

// The two functions of generate.h for the groups of one family. REQUIRES: `generate` gets a name
// that `variants` returned for the same group, and the group has elements to compute.
struct Family {
  StatusOr<std::vector<std::string>> (*variants)(const GroupContext& context);
  StatusOr<GeneratedGroup> (*generate)(const GroupContext& context, const std::string& variant);
};

extern const Family kChainFamily;     // Element-wise operators and batch norm.
extern const Family kMovementFamily;  // Copies, reorders, moves of elements by strides.
extern const Family kPadFamily;
extern const Family kGatherFamily;
extern const Family kReduceFamily;
extern const Family kPoolFamily;
extern const Family kResizeFamily;
extern const Family kSoftmaxFamily;
extern const Family kNormFamily;         // Layer norm and RMS norm.
extern const Family kDenseFamily;        // Matrix products with what follows them.
extern const Family kConvolutionFamily;  // Convolutions with what follows them.
extern const Family kSeparableFamily;    // Depthwise convolutions before pointwise ones.

}  // namespace ag::cuda
