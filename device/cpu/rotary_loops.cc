#include "device/cpu/rotary_loops.h"

#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

template <int64_t lanes>
AG_INLINE void RotateRow(const RotaryRow& row) {
  using V = typename Lanes<lanes>::Vector;
  int64_t i = 0;
  for (; i + lanes <= row.count; i += lanes) {
    V base, factor, part, turn;
    LoadLanes<lanes>(row.base + i, &base);
    LoadLanes<lanes>(row.part + i, &part);
    LoadLanes<lanes>(row.turn + i, &turn);
    if (row.factor != nullptr) {
      LoadLanes<lanes>(row.factor + i, &factor);
      base = base * factor;
    }
    const V turned = row.sign * part * turn;
    StoreLanes<lanes>(base + turned, row.out + i);
  }
  for (; i < row.count; ++i) {
    const float base = row.factor == nullptr ? row.base[i] : row.base[i] * row.factor[i];
    row.out[i] = base + row.sign * row.part[i] * row.turn[i];
  }
}

#define AG_ROTARY(name, lanes, mark)                                      \
  mark void Rotate##name(const RotaryRow& row) { RotateRow<lanes>(row); } \
  constexpr RotaryLoops kRotary##name{Rotate##name};

AG_ROTARY(Avx512, 16, AG_AVX512)
AG_ROTARY(Avx2, 8, AG_AVX2)
AG_ROTARY(Sse, 4, )

}  // namespace

const RotaryLoops& RotaryLoopsFor(std::string_view isa) {
  return ForInstructionSet(isa, kRotaryAvx512, kRotaryAvx2, kRotarySse);
}

}  // namespace ag::cpu
