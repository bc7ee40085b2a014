// Weights in the forms that kernels need, shared by the executables of a process that live at the
// same time: the candidates of a search, and several sessions of a model, pack the same weights to
// the same few forms. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/digest.h"
#include "base/mutex.h"
#include "device/cpu/aligned.h"
#include "device/cpu/onednn.h"

namespace ag::cpu {

class PackedWeights {
 public:
  // Returns the constant called `name` (Constants::Name) in the form `wanted`, made from the form
  // `given`. Shares a copy that another holder in the process has, whatever its device, else calls
  // `pack`. The copy is freed with its last holder.
  using Pack = std::function<StatusOr<AlignedBuffer>()>;
  StatusOr<std::shared_ptr<const AlignedBuffer>> Get(const Digest& name, const Desc& wanted,
                                                     const Desc& given, const Pack& pack);

  // Returns the forms in which this device holds the constant, made from the form `given`, now; the
  // oldest first. What other devices hold is no reason to choose another kernel.
  std::vector<Desc> FormsOf(const Digest& name, const Desc& given) const;

  // Returns the bytes that this device holds now.
  size_t bytes() const;

 private:
  using Packed = std::shared_ptr<const AlignedBuffer>;

  // Copies that live, by constant.
  class Held {
   public:
    Packed Find(const Digest& name, const Desc& wanted, const Desc& given) const;
    void Add(const Digest& name, const Desc& wanted, const Desc& given, const Packed& packed);
    std::vector<Desc> FormsOf(const Digest& name, const Desc& given) const;
    size_t bytes() const;

   private:
    struct Form {
      Desc wanted, given;
      std::weak_ptr<const AlignedBuffer> packed;
    };
    mutable Mutex mutex_;
    std::map<Digest, std::vector<Form>> forms_ AG_GUARDED_BY(mutex_);
  };
  static Held& OfProcess();

  Held own_;
};

// Returns the group's constant `edge` in the form `wanted`, which `pack` makes of its values
// (GroupContext::FloatConstants) in the form `given`. Shared by GroupContext::packed, where there
// is one.
using PackTensor = std::function<StatusOr<AlignedBuffer>(const Tensor& values)>;
StatusOr<std::shared_ptr<const AlignedBuffer>> PackedConstant(const GroupContext& context,
                                                              Edge edge, const Desc& wanted,
                                                              const Desc& given,
                                                              const PackTensor& pack);

}  // namespace ag::cpu
