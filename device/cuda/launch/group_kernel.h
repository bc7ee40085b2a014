// A group made ready to be launched, and the sources such kernels come from: cuDNN, cuBLASLt and
// our own generator compete, and a measurement chooses.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "device/cuda/codegen/group_context.h"
#include "device/cuda/launch/driver.h"
#include "graph/constants.h"

namespace ag::cuda {

// Device memory for what kernels keep (packed weights), in one place, freed with it.
class WeightMemory {
 public:
  WeightMemory(Driver& driver, StreamRef stream) : driver_(driver), stream_(stream) {}
  // Copies `bytes` to the device once: equal bytes have one address. 256-byte aligned.
  StatusOr<const std::byte*> Put(std::span<const std::byte> bytes);
  int64_t held_bytes() const { return held_bytes_; }

 private:
  Driver& driver_;
  StreamRef stream_;
  int64_t held_bytes_ = 0;
  std::map<Digest, OwnedMemory> known_;  // By what they hold.
};

// A kernel that has its weights on the device. Not thread-safe.
class GroupKernel {
 public:
  virtual ~GroupKernel() = default;

  // Sends the group's work to `stream`, which may be capturing. Pointers stand in the order of the
  // group's ports; all are valid until the stream has run it, or as long as what was captured
  // lives. `workspace` has workspace_bytes() and belongs to this launch alone until it has ended.
  struct Operands {
    std::span<const std::byte* const> inputs;
    std::span<std::byte* const> outputs;
    std::byte* workspace = nullptr;
  };
  // `is_early`: the first kernel may begin before the one before it ends; ignored by kernels that
  // cannot wait by themselves (see can_begin_early).
  virtual Status Enqueue(StreamRef stream, const Operands& operands, bool is_early) = 0;

  virtual int64_t workspace_bytes() const { return 0; }
  // Its first kernel waits by itself before its first access to what others wrote or read.
  virtual bool can_begin_early() const { return false; }
};

// One family of kernels. Not thread-safe.
class KernelSource {
 public:
  virtual ~KernelSource() = default;

  // The word that all its kernels' names begin with, before ':' ("cudnn", "cublaslt", "generated").
  virtual std::string_view name() const = 0;

  // Kernels that can run the group, best guess first, as "cudnn:...". Empty or kUnimplemented (says
  // what is missing): this source has none; other sources may.
  virtual StatusOr<std::vector<std::string>> Kernels(const GroupContext& context) = 0;

  // All of them will be made soon: what takes long may begin. Returns at once.
  virtual void Prepare(const GroupContext&) {}

  // Makes one of them. kInvalidArgument: no such kernel for this group.
  virtual StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                                      const std::string& kernel,
                                                      Constants& constants,
                                                      WeightMemory& memory) = 0;
};

}  // namespace ag::cuda
