#include "device/cuda/codegen/testing/host_fibers.h"

#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

// ag_switch_fiber(from, to): saves the registers that a call must keep on this stack, stores the
// stack pointer in *from, and continues at `to`, which an earlier switch stored.
extern "C" void ag_switch_fiber(void** from, void* to);

#if defined(__x86_64__)
asm(R"(
.text
.globl ag_switch_fiber
.type ag_switch_fiber, @function
ag_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size ag_switch_fiber, .-ag_switch_fiber
)");
constexpr size_t kSavedWords = 6;
#elif defined(__aarch64__)
asm(R"(
.text
.globl ag_switch_fiber
.type ag_switch_fiber, %function
ag_switch_fiber:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size ag_switch_fiber, .-ag_switch_fiber
)");
#endif

namespace ag::cuda {
namespace {

constexpr size_t kStackBytes = 64 << 10;  // Generated kernels keep a few hundred values at most.

thread_local Fibers* starting = nullptr;  // For the first instruction of a fiber.

}  // namespace

struct Fibers::Fiber {
  alignas(64) std::array<std::byte, kStackBytes> stack;
  void* saved = nullptr;
  bool has_ended = true;
};

Fibers::Fibers() = default;
Fibers::~Fibers() = default;

void Fibers::Run(Fibers* fibers) {
  Fiber& self = *fibers->fibers_[fibers->current_];
  fibers->work_(fibers->current_);
  self.has_ended = true;
  ag_switch_fiber(&self.saved, fibers->caller_);
}

void Fibers::Start(int count, std::function<void(int)> work) {
  work_ = std::move(work);
  while (static_cast<int>(fibers_.size()) < count) fibers_.push_back(std::make_unique<Fiber>());
  for (int i = 0; i < count; ++i) {
    Fiber& fiber = *fibers_[i];
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(fiber.stack.data(), fiber.stack.size());
#endif
    fiber.has_ended = false;
    // The frame that ag_switch_fiber pops: registers, and the return address.
    void (*entry)() = [] { Run(starting); };
    auto* top = reinterpret_cast<uintptr_t*>(fiber.stack.data() + kStackBytes);
#if defined(__x86_64__)
    *--top = 0;  // The stack at a function's begin is 8 below a multiple of 16.
    *--top = reinterpret_cast<uintptr_t>(entry);
    for (size_t k = 0; k < kSavedWords; ++k) *--top = 0;
#else
    top -= 20;
    for (size_t k = 0; k < 20; ++k) top[k] = 0;
    top[11] = reinterpret_cast<uintptr_t>(entry);
#endif
    fiber.saved = top;
  }
}

void Fibers::Resume(int number) {
  current_ = number;
  starting = this;
  ag_switch_fiber(&caller_, fibers_[number]->saved);
}

bool Fibers::HasEnded(int number) const { return fibers_[number]->has_ended; }

void Fibers::Yield() {
  const int self = current_;
  ag_switch_fiber(&fibers_[self]->saved, caller_);
}

}  // namespace ag::cuda
