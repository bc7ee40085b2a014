// The functions of the CUDA driver that cuDNN looks up before it compiles a kernel. Only the first
// four are called: cuInit reports no device; modules are accepted and ignored.
extern "C" {

using Code = int;  // CUresult.
constexpr Code kSuccess = 0;
constexpr Code kNoDevice = 100;

Code cuInit(unsigned) { return kNoDevice; }
Code cuDeviceGetCount(int* count) {
  *count = 0;
  return kSuccess;
}
Code cuLibraryLoadData(void** library, ...) {
  static int loaded;
  *library = &loaded;
  return kSuccess;
}
Code cuLibraryGetKernel(void** kernel, ...) {
  static int found;
  *kernel = &found;
  return kSuccess;
}

#define AG_NO_DEVICE(name) \
  Code name() { return kNoDevice; }
AG_NO_DEVICE(cuCtxGetCurrent)
AG_NO_DEVICE(cuCtxGetLimit)
AG_NO_DEVICE(cuCtxPopCurrent)
AG_NO_DEVICE(cuCtxPushCurrent)
AG_NO_DEVICE(cuDeviceGet)
AG_NO_DEVICE(cuDriverGetVersion)
AG_NO_DEVICE(cuGetErrorName)
AG_NO_DEVICE(cuGetErrorString)
AG_NO_DEVICE(cuKernelGetAttribute)
AG_NO_DEVICE(cuKernelSetAttribute)
AG_NO_DEVICE(cuLaunchCooperativeKernel)
AG_NO_DEVICE(cuLaunchKernel)
AG_NO_DEVICE(cuLaunchKernelEx)
AG_NO_DEVICE(cuLibraryLoadFromFile)
AG_NO_DEVICE(cuLibraryUnload)
AG_NO_DEVICE(cuLinkAddData)
AG_NO_DEVICE(cuLinkComplete)
AG_NO_DEVICE(cuLinkCreate)
AG_NO_DEVICE(cuLinkDestroy)
AG_NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
AG_NO_DEVICE(cuStreamGetCtx)

}  // extern "C"
