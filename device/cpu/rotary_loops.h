// The inner loop of rotary embedding (plan/spec/rotary_form.h): a part of a row, whose numbers lie
// side by side. Written for each instruction set. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace ag::cpu {

struct RotaryRow {
  const float* base = nullptr;
  const float* factor = nullptr;  // Null: 1.
  const float* part = nullptr;
  const float* turn = nullptr;
  float* out = nullptr;
  int64_t count = 0;
  float sign = 1;
};

struct RotaryLoops {
  // out = base * factor + sign * part * turn, with each product rounded. Nothing overlaps.
  void (*run)(const RotaryRow& row) = nullptr;
};

// Returns the loops for an instruction set of InstructionSet().
const RotaryLoops& RotaryLoopsFor(std::string_view isa);

}  // namespace ag::cpu
