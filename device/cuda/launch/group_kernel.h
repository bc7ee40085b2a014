// Kernels of groups, ready to launch, and their sources: cuDNN, cuBLASLt and our own generator
// compete, and a measurement chooses. One thread at a time.
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
#include "graph/passes/constants.h"

namespace ag::cuda {

// Device memory for data that kernels keep (packed weights), in one place, freed with this object.
class WeightMemory {
 public:
  WeightMemory(Driver& driver, StreamRef stream) : driver_(driver), stream_(stream) {}
  // Copies `bytes` to the device once and returns the address, 256-byte aligned; equal bytes have
  // one address.
  StatusOr<const std::byte*> Put(std::span<const std::byte> bytes);
  int64_t held_bytes() const { return held_bytes_; }

 private:
  Driver& driver_;
  StreamRef stream_;
  int64_t held_bytes_ = 0;
  std::map<Digest, OwnedMemory> known_;  // By contents.
};

// A kernel that has its weights on the device.
class GroupKernel {
 public:
  virtual ~GroupKernel() = default;

  // Sends the group's work to `stream`, which may be capturing. Pointers are in the order of the
  // group's ports; they stay valid until the stream has run the work, or while the capture lives.
  // `workspace` has workspace_bytes() and belongs to this launch alone until it has ended.
  struct Operands {
    std::span<const std::byte* const> inputs;
    std::span<std::byte* const> outputs;
    std::byte* workspace = nullptr;
  };
  // `is_early`: the first kernel may begin before the one before it ends; ignored by kernels that
  // cannot wait by themselves (see can_begin_early).
  virtual Status Enqueue(StreamRef stream, const Operands& operands, bool is_early) = 0;

  virtual int64_t workspace_bytes() const { return 0; }
  // True when its first kernel waits by itself before its first access to memory that others read
  // or write.
  virtual bool can_begin_early() const { return false; }
};

// A source of kernels of one family.
class KernelSource {
 public:
  virtual ~KernelSource() = default;

  // Returns the word before ':' in the names of all its kernels ("cudnn", "cublaslt", "generated").
  virtual std::string_view name() const = 0;

  // Returns the kernels that can run the group, best guess first, as "cudnn:...". Empty, or
  // kUnimplemented with what is missing: this source has none; other sources may.
  virtual StatusOr<std::vector<std::string>> Kernels(const GroupContext& context) = 0;

  // Begins long preparations of the group's kernels, which will soon be made. Returns at once.
  virtual void Prepare(const GroupContext&) {}

  // Makes one of them. kInvalidArgument: no such kernel for this group.
  virtual StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                                      const std::string& kernel,
                                                      Constants& constants,
                                                      WeightMemory& memory) = 0;
};

}  // namespace ag::cuda
