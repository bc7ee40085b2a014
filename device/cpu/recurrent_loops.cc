#include "device/cpu/recurrent_loops.h"

#include "device/cpu/fast_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

// Adds the products of `kRows` rows from `row` on. Sums stay in registers; with few of them the
// loop over k is cut into `kParts` independent chains, since an addition takes four cycles.
template <int64_t lanes, int kGates, int kRows>
AG_INLINE void AddRows(const SliceProduct& p, int64_t row) {
  using Vector = typename Lanes<lanes>::Vector;
  constexpr int kSums = kGates * kRows;
  constexpr int kParts = kSums >= 6 ? 1 : kSums >= 3 ? 2 : 4;
  Vector sum[kParts][kRows][kGates];
  const float* in[kRows];
  const Vector* w = reinterpret_cast<const Vector*>(p.panel);
  for (int m = 0; m < kRows; ++m) {
    const float* from = p.start != nullptr ? p.start : p.out[row + m] + p.at;
    in[m] = p.in[row + m];
    for (int g = 0; g < kGates; ++g) {
      sum[0][m][g] = reinterpret_cast<const Vector*>(from)[g];
      for (int part = 1; part < kParts; ++part) sum[part][m][g] = Vector{};
    }
  }
  int64_t k = 0;
  for (; k + kParts <= p.k; k += kParts) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 8
      for (int m = 0; m < kRows; ++m) {
        const float x = in[m][k + part];
#pragma GCC unroll 4
        for (int g = 0; g < kGates; ++g) sum[part][m][g] += x * w[part * kGates + g];
      }
    }
    w += kParts * kGates;
  }
  for (; k < p.k; ++k, w += kGates) {
    for (int m = 0; m < kRows; ++m) {
      for (int g = 0; g < kGates; ++g) sum[0][m][g] += in[m][k] * w[g];
    }
  }
  for (int m = 0; m < kRows; ++m) {
    Vector* out = reinterpret_cast<Vector*>(p.out[row + m] + p.at);
    for (int g = 0; g < kGates; ++g) {
      Vector all = sum[0][m][g];
      for (int part = 1; part < kParts; ++part) all += sum[part][m][g];
      out[g] = all;
    }
  }
}

template <int64_t lanes, int kGates>
AG_INLINE void AddAllRows(const SliceProduct& p) {
  // The sums take most registers: 32 with AVX-512, else 16.
  constexpr int kMost = lanes == 16 ? (kGates == 4 ? 6 : 8) : kGates == 1 ? 8 : 12 / kGates;
  int64_t row = 0;
  for (; row + kMost <= p.rows; row += kMost) AddRows<lanes, kGates, kMost>(p, row);
  if constexpr (kMost > 4) {
    for (; row + 4 <= p.rows; row += 4) AddRows<lanes, kGates, 4>(p, row);
  }
  for (; row + 2 <= p.rows; row += 2) AddRows<lanes, kGates, 2>(p, row);
  for (; row < p.rows; ++row) AddRows<lanes, kGates, 1>(p, row);
}

template <int64_t lanes>
AG_INLINE void ProductOf(const SliceProduct& p) {
  if (p.gates == 4) return AddAllRows<lanes, 4>(p);
  if (p.gates == 3) return AddAllRows<lanes, 3>(p);
  if (p.gates == 2) return AddAllRows<lanes, 2>(p);
  AddAllRows<lanes, 1>(p);
}

AG_INLINE float FastSigmoid(float x) { return 0.5f + 0.5f * FastTanh(0.5f * x); }

template <int64_t lanes>
AG_INLINE void LstmRow(const float* gates, float* c, float* out) {
#pragma omp simd
  for (int64_t i = 0; i < lanes; ++i) {
    const float in = FastSigmoid(gates[i]);
    const float forget = FastSigmoid(gates[2 * lanes + i]);
    const float cell = forget * c[i] + in * FastTanh(gates[3 * lanes + i]);
    c[i] = cell;
    out[i] = FastSigmoid(gates[lanes + i]) * FastTanh(cell);
  }
}

template <int64_t lanes>
AG_INLINE void GruResetRow(float* gates, const float* h, float* reset) {
#pragma omp simd
  for (int64_t i = 0; i < lanes; ++i) {
    gates[i] = FastSigmoid(gates[i]);
    reset[i] = FastSigmoid(gates[lanes + i]) * h[i];
  }
}

template <int64_t lanes>
AG_INLINE void GruUpdateRow(const float* gates, const float* h, float* out) {
#pragma omp simd
  for (int64_t i = 0; i < lanes; ++i) {
    const float next = FastTanh(gates[2 * lanes + i]);
    out[i] = next + gates[i] * (h[i] - next);
  }
}

template <int64_t lanes>
AG_INLINE void LinearGruRow(const float* gates, const float* recurrent, const float* h,
                            float* out) {
#pragma omp simd
  for (int64_t i = 0; i < lanes; ++i) {
    const float z = FastSigmoid(gates[i] + recurrent[i]);
    const float r = FastSigmoid(gates[lanes + i] + recurrent[lanes + i]);
    const float next = FastTanh(gates[2 * lanes + i] + r * recurrent[2 * lanes + i]);
    out[i] = next + z * (h[i] - next);
  }
}

template <int64_t lanes>
AG_INLINE void CellsOf(const SliceCells& s) {
  for (int64_t row = 0; row < s.rows; ++row) {
    float* gates = s.gates[row] + s.gates_at;
    float* out = s.out[row] + s.at;
    if (s.step == CellStep::kLstm) {
      LstmRow<lanes>(gates, s.c[row] + s.at, out);
    } else if (s.step == CellStep::kGruReset) {
      GruResetRow<lanes>(gates, s.h[row] + s.at, s.c[row] + s.at);
    } else if (s.step == CellStep::kGruUpdate) {
      GruUpdateRow<lanes>(gates, s.h[row] + s.at, out);
    } else if (s.step == CellStep::kLinearGru) {
      LinearGruRow<lanes>(gates, s.recurrent[row] + s.gates_at, s.h[row] + s.at, out);
    } else if (s.step == CellStep::kTanh) {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) out[i] = FastTanh(gates[i]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < lanes; ++i) out[i] = gates[i] < 0 ? 0 : gates[i];
    }
  }
}

#define AG_LOOPS(name, lanes, mark)                                       \
  mark void Product##name(const SliceProduct& p) { ProductOf<lanes>(p); } \
  mark void Cells##name(const SliceCells& s) { CellsOf<lanes>(s); }       \
  constexpr RecurrentLoops kLoops##name{lanes, Product##name, Cells##name};

AG_LOOPS(Avx512, 16, AG_AVX512)
AG_LOOPS(Avx2, 8, AG_AVX2)
AG_LOOPS(Sse, 4, )

}  // namespace

const RecurrentLoops& RecurrentLoopsFor(std::string_view isa) {
  return ForInstructionSet(isa, kLoopsAvx512, kLoopsAvx2, kLoopsSse);
}

}  // namespace ag::cpu
