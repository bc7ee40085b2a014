#include "device/cpu/packed_weights.h"

#include <utility>

namespace ag::cpu {

PackedWeights::Held& PackedWeights::OfProcess() {
  static auto* const kHeld = new Held();
  return *kHeld;
}

PackedWeights::Packed PackedWeights::Held::Find(const Digest& name, const Desc& wanted,
                                                const Desc& given) const {
  const MutexLock lock(mutex_);
  const auto found = forms_.find(name);
  if (found == forms_.end()) return nullptr;
  for (const Form& form : found->second) {
    if (form.wanted != wanted || form.given != given) continue;
    if (Packed packed = form.packed.lock(); packed != nullptr) return packed;
  }
  return nullptr;
}

void PackedWeights::Held::Add(const Digest& name, const Desc& wanted, const Desc& given,
                              const Packed& packed) {
  const MutexLock lock(mutex_);
  for (auto it = forms_.begin(); it != forms_.end();) {
    std::erase_if(it->second, [](const Form& form) { return form.packed.expired(); });
    it = it->second.empty() ? forms_.erase(it) : std::next(it);
  }
  forms_[name].push_back({wanted, given, packed});
}

std::vector<Desc> PackedWeights::Held::FormsOf(const Digest& name, const Desc& given) const {
  const MutexLock lock(mutex_);
  std::vector<Desc> held;
  const auto found = forms_.find(name);
  if (found == forms_.end()) return held;
  for (const Form& form : found->second) {
    if (form.given == given && !form.packed.expired()) held.push_back(form.wanted);
  }
  return held;
}

size_t PackedWeights::Held::bytes() const {
  const MutexLock lock(mutex_);
  size_t bytes = 0;
  for (const auto& [name, forms] : forms_) {
    for (const Form& form : forms) {
      if (const Packed packed = form.packed.lock(); packed != nullptr) bytes += packed->size();
    }
  }
  return bytes;
}

StatusOr<std::shared_ptr<const AlignedBuffer>> PackedWeights::Get(const Digest& name,
                                                                  const Desc& wanted,
                                                                  const Desc& given,
                                                                  const Pack& pack) {
  Packed packed = own_.Find(name, wanted, given);
  const bool is_own = packed != nullptr;
  if (!is_own) packed = OfProcess().Find(name, wanted, given);
  if (packed == nullptr) {
    AG_LET(AlignedBuffer made, pack());  // Takes long. Two threads that pack one form keep two.
    packed = std::make_shared<const AlignedBuffer>(std::move(made));
    OfProcess().Add(name, wanted, given, packed);
  }
  if (!is_own) own_.Add(name, wanted, given, packed);
  BufferList::Note(*packed);
  return packed;
}

std::vector<Desc> PackedWeights::FormsOf(const Digest& name, const Desc& given) const {
  return own_.FormsOf(name, given);
}

size_t PackedWeights::bytes() const { return own_.bytes(); }

StatusOr<std::shared_ptr<const AlignedBuffer>> PackedConstant(const GroupContext& context,
                                                              Edge edge, const Desc& wanted,
                                                              const Desc& given,
                                                              const PackTensor& pack) {
  const auto make = [&]() -> StatusOr<AlignedBuffer> {
    AG_LET(const Tensor values, context.FloatConstants()->Get(edge));
    return pack(values);
  };
  if (context.packed != nullptr) {
    const std::optional<Digest> name = context.FloatConstants()->Name(edge);
    if (name.has_value()) return context.packed->Get(*name, wanted, given, make);
  }
  AG_LET(AlignedBuffer own, make());
  return std::make_shared<const AlignedBuffer>(std::move(own));
}

}  // namespace ag::cpu
