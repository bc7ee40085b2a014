# A libcuda.so.1 without a device, for this room's tests alone.
if(TARGET device_cuda_test)
  add_library(ag_stub_driver SHARED device/cuda/stub_driver/driver.cc)
  set_target_properties(ag_stub_driver PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/stub_driver)
  target_link_options(ag_stub_driver PRIVATE -Wl,-soname,libcuda.so.1)
  target_compile_definitions(device_cuda_test PRIVATE
                             AG_STUB_DRIVER="$<TARGET_FILE:ag_stub_driver>")
  add_dependencies(device_cuda_test ag_stub_driver)
endif()
