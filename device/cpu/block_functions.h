// The loops of the functions of graph/functions.def and of GELU. Their polynomials are compiled
// with -ffp-contract=fast: one instruction for a product and a sum where there is one. Pure
// functions.
#pragma once

#include "device/cpu/block_ops.h"

namespace ag::cpu {

// Returns the loop of an operator of graph/functions.def; null: it is none.
template <class T>
BlockFn<T> FunctionBlock(OpKind op);

// Returns the loop of GELU, by erf or by tanh.
template <class T>
BlockFn<T> GeluBlock(bool by_tanh);

}  // namespace ag::cpu
