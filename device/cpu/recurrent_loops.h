// The inner loops of LSTM, GRU and RNN. The hidden units are cut into slices of `lanes` units; the
// weights of a slice lie as a panel [k][gates][lanes], so that a product with a row of k numbers
// reads them once, in order. Written for each instruction set. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace ag::cpu {

// out[row] + at = (start, or what is there) + in[row] * panel, gates * lanes numbers for each row.
struct SliceProduct {
  int64_t rows = 0;
  int64_t k = 0;
  int64_t gates = 1;  // 1 to 4.
  const float* const* in = nullptr;
  const float* panel = nullptr;
  const float* start = nullptr;  // Null: adds to `out`.
  float* const* out = nullptr;
  int64_t at = 0;
};

enum class CellStep : uint8_t { kLstm, kGruReset, kGruUpdate, kLinearGru, kTanh, kRelu };

// One step of a slice for some rows. Gates lie in ONNX's order, `lanes` numbers each.
struct SliceCells {
  CellStep step = CellStep::kTanh;
  int64_t rows = 0;
  float* const* gates = nullptr;            // + gates_at: the sums; kGruReset leaves z there.
  const float* const* recurrent = nullptr;  // + gates_at: the sums with R of a linear GRU.
  int64_t gates_at = 0;
  const float* const* h = nullptr;  // + at: the state before.
  float* const* c = nullptr;        // + at: the cell of an LSTM; r * h of a GRU.
  float* const* out = nullptr;      // + at: the state after.
  int64_t at = 0;
};

struct RecurrentLoops {
  int64_t lanes = 1;
  void (*product)(const SliceProduct& product) = nullptr;
  void (*cells)(const SliceCells& cells) = nullptr;
};

// Returns the loops for an instruction set of InstructionSet().
const RecurrentLoops& RecurrentLoopsFor(std::string_view isa);

}  // namespace ag::cpu
