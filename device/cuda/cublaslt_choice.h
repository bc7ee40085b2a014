// The kernels of cuBLASLt as names that mean the same in every process: the layout of the right
// side, the algorithm's number and its settings,
// "cublaslt:tn/66,tile=20,stages=24,split=4,reduce=2". The words stand for cuBLASLt's numbers
// (cublasLtMatmulAlgoConfigAttributes_t); a missing one is the default. Numbers are valid for one
// version of the library, which is part of the environment. Pure functions; nothing here needs a
// device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag::cuda {

// The layout of the right side B of D = A B in memory.
enum class MatmulForm : uint8_t {
  kRows,     // "nn": row by row, as the graph has it.
  kColumns,  // "tn": column by column; for constants, which are packed so.
};

struct CublasLtChoice {
  MatmulForm form = MatmulForm::kRows;
  int32_t id = 0;
  uint32_t tile = 0;
  uint32_t stages = 0;
  int32_t split = 1;    // Parts of the sum; -1: as the algorithm divides it.
  uint32_t reduce = 0;  // How the parts are added (cublasLtReductionScheme_t).
  uint32_t swizzle = 0;
  uint32_t custom = 0;
  uint16_t inner = 0;
  uint16_t cluster = 0;
  bool operator==(const CublasLtChoice&) const = default;
};

std::string CublasLtName(const CublasLtChoice& choice);
// Returns the choice of a name. kInvalidArgument: not a name that CublasLtName writes.
StatusOr<CublasLtChoice> ParseCublasLtName(std::string_view name);

}  // namespace ag::cuda
