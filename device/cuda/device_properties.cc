#include "device/cuda/device_properties.h"

namespace ag::cuda {

StatusOr<DeviceProperties> DeviceProperties::FromJson(std::string_view json) {
  StatusOr<Descriptor> made =
      DescriptorBuilder(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties")
          .SetText(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json)
          .Finish();
  if (!made.ok()) {
    return Err(StatusCode::kInvalidArgument, "{} bytes of JSON: {}", json.size(),
               Message(made.status()));
  }
  return DeviceProperties(*std::move(made));
}

StatusOr<DeviceProperties> DeviceProperties::OfHandle(cudnnHandle_t handle) {
  AG_LET(Descriptor made,
         DescriptorBuilder(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties")
             .Set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle)
             .Finish());
  return DeviceProperties(std::move(made));
}

StatusOr<std::string> DeviceProperties::ToJson() const {
  return descriptor_.GetText(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

}  // namespace ag::cuda
