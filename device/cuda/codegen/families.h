// The families of generated kernels; generate.cc says which one a group goes to. Private to the
// room.
#pragma once

#include "device/cuda/codegen/group_text.h"

namespace ag::cuda {

// What generate.h promises, for the groups of one family. `generate` gets a name that `variants`
// returned for the same group, which has elements to compute.
struct Family {
  StatusOr<std::vector<std::string>> (*variants)(const GroupContext& context);
  StatusOr<GeneratedGroup> (*generate)(const GroupContext& context, const std::string& variant);
};

extern const Family kChainFamily;     // Element-wise operators and batch norm.
extern const Family kMovementFamily;  // Copies, reorders, and what moves elements by strides.
extern const Family kPadFamily;
extern const Family kGatherFamily;
extern const Family kReduceFamily;
extern const Family kPoolFamily;
extern const Family kResizeFamily;
extern const Family kSoftmaxFamily;
extern const Family kNormFamily;         // Layer norm and RMS norm.
extern const Family kDenseFamily;        // Matrix products and what follows them.
extern const Family kConvolutionFamily;  // Convolutions and what follows them.
extern const Family kSeparableFamily;    // Depthwise convolutions before pointwise ones.

}  // namespace ag::cuda
