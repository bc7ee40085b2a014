// What cuDNN must know of a device to choose and build kernels for it. From a running device, or
// from the JSON text of one (deploy/devices/*.deviceprop.json): then no device and no driver is
// needed, and what there is for a GPU can be tested anywhere.
#pragma once

#include "device/cuda/cudnn_descriptor.h"

namespace ag::cuda {

class DeviceProperties {
 public:
  // kInvalidArgument: cuDNN does not take the text (it wants every key that ToJson writes).
  static StatusOr<DeviceProperties> FromJson(std::string_view json);
  // Of the device that `handle` belongs to.
  static StatusOr<DeviceProperties> OfHandle(cudnnHandle_t handle);

  StatusOr<std::string> ToJson() const;
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  explicit DeviceProperties(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

}  // namespace ag::cuda
