# A libcuda.so.1 without a device, for this room's tests alone.
if(TARGET device_cuda_test)
  add_library(ag_driver_stand_in SHARED device/cuda/stand_in/driver.cc)
  set_target_properties(ag_driver_stand_in PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/stand_in)
  target_link_options(ag_driver_stand_in PRIVATE -Wl,-soname,libcuda.so.1)
  target_compile_definitions(device_cuda_test PRIVATE
                             AG_DRIVER_STAND_IN="$<TARGET_FILE:ag_driver_stand_in>")
  add_dependencies(device_cuda_test ag_driver_stand_in)
endif()
