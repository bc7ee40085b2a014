// The properties of a device from which cuDNN chooses and builds kernels: of a running device, or
// from a JSON text (deploy/devices/*.deviceprop.json), which needs neither device nor driver, so
// that a GPU's kernels can be tested anywhere. Immutable.
#pragma once

#include "device/cuda/cudnn_descriptor.h"

namespace ag::cuda {

class DeviceProperties {
 public:
  // Returns the properties in the text. kInvalidArgument: cuDNN does not accept it (it needs every
  // key that ToJson writes).
  static StatusOr<DeviceProperties> FromJson(std::string_view json);
  // Returns the properties of the device of `handle`.
  static StatusOr<DeviceProperties> OfHandle(cudnnHandle_t handle);

  StatusOr<std::string> ToJson() const;
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  explicit DeviceProperties(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

}  // namespace ag::cuda
