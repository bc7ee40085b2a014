// Descriptors of cuDNN's backend interface: each is an opaque object with numbered, typed
// attributes that is filled, then finalized, then read. A Descriptor owns one. One thread at a
// time; no call here needs a device or a driver.
//
//   AG_LET(Descriptor relu, DescriptorBuilder(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "relu")
//                               .Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_RELU_FWD)
//                               .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
//                               .Finish());
//
// A descriptor that another one refers to must live until that one is finalized; then cuDNN holds
// what it needs of it.
#pragma once

#include <cudnn_backend.h>

#include <string>
#include <vector>

#include "base/handle.h"
#include "device/cuda/library_status.h"

namespace ag::cuda {

// The library's type that is named beside each value.
template <class T>
inline constexpr cudnnBackendAttributeType_t kAttributeType = [] {
  static_assert(sizeof(T) == 0, "no attribute of cuDNN has this type");
  return CUDNN_TYPE_INT64;
}();
#define AG_CUDNN_ATTRIBUTE(type, value) \
  template <>                           \
  inline constexpr cudnnBackendAttributeType_t kAttributeType<type> = value
AG_CUDNN_ATTRIBUTE(int64_t, CUDNN_TYPE_INT64);
AG_CUDNN_ATTRIBUTE(int32_t, CUDNN_TYPE_INT32);
AG_CUDNN_ATTRIBUTE(float, CUDNN_TYPE_FLOAT);
AG_CUDNN_ATTRIBUTE(double, CUDNN_TYPE_DOUBLE);
AG_CUDNN_ATTRIBUTE(bool, CUDNN_TYPE_BOOLEAN);
AG_CUDNN_ATTRIBUTE(char, CUDNN_TYPE_CHAR);
AG_CUDNN_ATTRIBUTE(cudnnHandle_t, CUDNN_TYPE_HANDLE);
AG_CUDNN_ATTRIBUTE(cudnnDataType_t, CUDNN_TYPE_DATA_TYPE);
AG_CUDNN_ATTRIBUTE(cudnnConvolutionMode_t, CUDNN_TYPE_CONVOLUTION_MODE);
AG_CUDNN_ATTRIBUTE(cudnnPointwiseMode_t, CUDNN_TYPE_POINTWISE_MODE);
AG_CUDNN_ATTRIBUTE(cudnnBackendHeurMode_t, CUDNN_TYPE_HEUR_MODE);
AG_CUDNN_ATTRIBUTE(cudnnBackendKnobType_t, CUDNN_TYPE_KNOB_TYPE);
AG_CUDNN_ATTRIBUTE(cudnnBackendNumericalNote_t, CUDNN_TYPE_NUMERICAL_NOTE);
AG_CUDNN_ATTRIBUTE(cudnnBackendBehaviorNote_t, CUDNN_TYPE_BEHAVIOR_NOTE);
AG_CUDNN_ATTRIBUTE(cudnnBackendDescriptor_t, CUDNN_TYPE_BACKEND_DESCRIPTOR);
#undef AG_CUDNN_ATTRIBUTE

struct DescriptorTraits {
  using Raw = cudnnBackendDescriptor_t;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw raw) { cudnnBackendDestroyDescriptor(raw); }
};

class Descriptor {
 public:
  // Returns an empty one, not finalized, which GetAttribute fills.
  static StatusOr<Descriptor> Make(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return handle_.get(); }

  template <class T>
  StatusOr<T> Get(cudnnBackendAttributeName_t name) const {
    T value{};
    AG_LET(const int64_t count, Read(name, kAttributeType<T>, 1, &value));
    if (count != 1)
      return Err(StatusCode::kInternal, "cuDNN: attribute {} is missing", static_cast<int>(name));
    return value;
  }
  // Returns all values, at most `max`.
  template <class T>
  StatusOr<std::vector<T>> GetAll(cudnnBackendAttributeName_t name, int64_t max) const {
    std::vector<T> values(max);
    AG_LET(const int64_t count, Read(name, kAttributeType<T>, max, values.data()));
    values.resize(std::min(count, max));
    return values;
  }
  StatusOr<std::string> GetText(cudnnBackendAttributeName_t name) const;
  // Returns the descriptors of an attribute, which have `type`, at most `max`. (cuDNN fills
  // descriptors that the caller made.)
  StatusOr<std::vector<Descriptor>> GetDescriptors(cudnnBackendAttributeName_t name,
                                                   cudnnBackendDescriptorType_t type,
                                                   int64_t max) const;

 private:
  friend class DescriptorBuilder;
  StatusOr<int64_t> Read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         int64_t max, void* values) const;
  UniqueHandle<DescriptorTraits> handle_;
};

// A builder of one descriptor. Finish returns the first error, within `what`.
class DescriptorBuilder {
 public:
  DescriptorBuilder(cudnnBackendDescriptorType_t type, std::string what);

  template <class T>
  DescriptorBuilder& Set(cudnnBackendAttributeName_t name, const T& value) {
    return Write(name, kAttributeType<T>, 1, &value);
  }
  template <class T>
  DescriptorBuilder& SetAll(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    return Write(name, kAttributeType<T>, values.size(), values.data());
  }
  DescriptorBuilder& Set(cudnnBackendAttributeName_t name, const Descriptor& descriptor) {
    return Set(name, descriptor.get());
  }
  DescriptorBuilder& SetText(cudnnBackendAttributeName_t name, std::string_view text) {
    return Write(name, CUDNN_TYPE_CHAR, text.size(), text.data());
  }
  DescriptorBuilder& SetPointers(cudnnBackendAttributeName_t name,
                                 const std::vector<void*>& pointers) {
    return Write(name, CUDNN_TYPE_VOID_PTR, pointers.size(), pointers.data());
  }
  StatusOr<Descriptor> Finish();  // REQUIRES: called once.

 private:
  DescriptorBuilder& Write(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                           int64_t count, const void* values);
  std::string what_;
  Status status_;
  Descriptor descriptor_;
};

}  // namespace ag::cuda
