// Groups with f16 or bf16 tensors, computed in f32: what a group reads from outside is widened, its
// kernels are those of the same group in f32, and what it writes is rounded to nearest even. The
// caller's memory holds the 16-bit values; the arena holds them as f32 (FloatPorts), so that only
// the rounding is left inside a plan. Groups of the caller's memory alone that only move bytes need
// none of it, and reference kernels know the types themselves.
#pragma once

#include <memory>

#include "device/cpu/kernel.h"
#include "device/cpu/retyped_graph.h"

namespace ag::cpu {

// Whether the group has a 16-bit value and a wide graph is there.
bool CanWiden(const GroupContext& context);

// The same group of the wide graph, with the types to which it rounds.
class Widened {
 public:
  explicit Widened(const GroupContext& context);  // REQUIRES: a wide graph is there.
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;

  const GroupContext& context() const { return context_; }

 private:
  std::vector<DType> rounding_;
  GroupContext context_;
};

// Returns a kernel that makes what `kernel` reads and writes fit the ports of the group: values in
// f32 when it `is_wide`, a kernel of Widened, else those of the graph.
std::unique_ptr<Kernel> WithConversions(const GroupContext& context, std::unique_ptr<Kernel> kernel,
                                        bool is_wide);

}  // namespace ag::cpu
