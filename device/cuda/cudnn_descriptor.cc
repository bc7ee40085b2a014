#include "device/cuda/cudnn_descriptor.h"

#include <algorithm>

namespace ag::cuda {

StatusOr<Descriptor> Descriptor::Make(cudnnBackendDescriptorType_t type) {
  Descriptor made;
  AG_TRY(FromCudnn(cudnnBackendCreateDescriptor(type, made.handle_.out()),
                   "make a descriptor of type {}", static_cast<int>(type)));
  return made;
}

StatusOr<int64_t> Descriptor::Read(cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t max,
                                   void* values) const {
  int64_t count = 0;
  AG_TRY(FromCudnn(cudnnBackendGetAttribute(get(), name, type, max, &count, values),
                   "read attribute {}", static_cast<int>(name)));
  return count;
}

StatusOr<std::string> Descriptor::GetText(cudnnBackendAttributeName_t name) const {
  AG_LET(const int64_t size, Read(name, CUDNN_TYPE_CHAR, 0, nullptr));
  std::string text(size, '\0');
  AG_LET(const int64_t written, Read(name, CUDNN_TYPE_CHAR, size, text.data()));
  text.resize(std::min(size, written));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

StatusOr<std::vector<Descriptor>> Descriptor::GetDescriptors(cudnnBackendAttributeName_t name,
                                                             cudnnBackendDescriptorType_t type,
                                                             int64_t max) const {
  std::vector<Descriptor> owners;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < max; ++i) {
    AG_LET(Descriptor made, Make(type));
    raw.push_back(made.get());
    owners.push_back(std::move(made));
  }
  AG_LET(const int64_t count, Read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, max, raw.data()));
  owners.resize(std::min(count, max));
  return owners;
}

DescriptorBuilder::DescriptorBuilder(cudnnBackendDescriptorType_t type, std::string what)
    : what_(std::move(what)) {
  StatusOr<Descriptor> made = Descriptor::Make(type);
  status_ = made.status();
  if (made.ok()) descriptor_ = *std::move(made);
}

DescriptorBuilder& DescriptorBuilder::Write(cudnnBackendAttributeName_t name,
                                            cudnnBackendAttributeType_t type, int64_t count,
                                            const void* values) {
  if (!status_.ok()) return *this;
  status_ = FromCudnn(cudnnBackendSetAttribute(descriptor_.get(), name, type, count, values),
                      "set attribute {}", static_cast<int>(name));
  return *this;
}

StatusOr<Descriptor> DescriptorBuilder::Finish() {
  if (status_.ok()) status_ = FromCudnn(cudnnBackendFinalize(descriptor_.get()), "finalize");
  AG_TRY(status_, "{}", what_);
  return std::move(descriptor_);
}

}  // namespace ag::cuda
