// The kernels that cuDNN has for a graph, as names that mean the same in every process: an engine
// and its knobs, "cudnn:e41/2=5,13=1,25=1" (cudnnBackendKnobType_t=value, ascending; engines and
// knobs are numbered by pattern and version of cuDNN, which is part of the environment). Pure
// functions.
//
// Candidates come from cuDNN's heuristics (modes A and B; the fallback list when these give
// nothing) and from a menu of our own: the heuristics never offer the small tiles and the split
// sums of the engines that compile at run time, nor all tiles of those on plain units (strict
// fp32). These are refused:
//   - inputs rounded to a narrower type (DOWN_CONVERT_INPUTS) for f32 operands;
//   - tensor cores (TENSOR_CORE) for f32 operands under fp32, which means no TF32;
//   - sums in less than f32 (REDUCED_PRECISION_REDUCTION);
//   - results that differ from run to run (NONDETERMINISTIC);
//   - weights in a layout of its own (the int8 reorderings);
//   - engine 0 of a matrix product, which is cuBLAS: without a note it computes f32 in TF32 and
//     drops the slope of a leaky ReLU (seen with 9.14 on an H200);
//   - engines that compile at run time for a plain image: with a result in channels last they are
//     wrong (seen with 9.14 and 9.19 on an H200); and for pixels that are no multiple of 8 bytes,
//     which nothing has shown to be right.
// A workspace as large as whole packed tensors is a hidden copy: such candidates come last. Notes
// do not tell which engines allocate or cannot be captured; capturing their nodes shows it.
//
// Nothing here needs a device. Engines that compile at run time are listed only where libcuda.so.1
// can be loaded.
#pragma once

#include <compare>

#include "device/cuda/cudnn_graph.h"
#include "device/cuda/device_properties.h"

namespace ag::cuda {

struct CudnnKnob {
  int type = 0;  // cudnnBackendKnobType_t.
  int64_t value = 0;
  auto operator<=>(const CudnnKnob&) const = default;
};

// The contents of a kernel's name.
struct CudnnChoice {
  int64_t engine = 0;
  std::vector<CudnnKnob> knobs;  // By type, ascending. Others have the engine's defaults.
  bool operator==(const CudnnChoice&) const = default;
};
std::string CudnnName(const CudnnChoice& choice);
// Returns the choice of a name. kInvalidArgument: not a name that CudnnName writes.
StatusOr<CudnnChoice> ParseCudnnName(std::string_view name);

// The notes of an engine; numerical first.
struct CudnnNotes {
  bool tensor_core = false;
  bool down_convert_inputs = false;
  bool reduced_precision_reduction = false;
  bool nondeterministic = false;
  bool reorders_weights = false;
  bool compiles_at_run_time = false;
  // What cuDNN does not note.
  bool is_cublas = false;       // The engine hands a matrix product to cuBLAS.
  bool misreads_image = false;  // It compiles at run time and may misread the image.
};

struct CudnnCandidate {
  CudnnChoice choice;
  CudnnNotes notes;
  int64_t workspace_bytes = 0;
  bool has_copy = false;  // The workspace holds a packed copy of whole tensors.
  Descriptor config;      // The finalized engine configuration.
};

// Returns why a kernel with these notes may not compute for this precision and stored type; "": it
// may.
std::string RefusalOf(const CudnnNotes& notes, Precision precision, DType stored);

// Returns true when a workspace has the size of packed copies of some of the tensors.
bool HoldsCopy(const CudnnGraph& graph, const CudnnChoice& choice, int64_t workspace_bytes);

// Returns the candidates for `graph`, best guess first. Empty: cuDNN has none that is allowed.
StatusOr<std::vector<CudnnCandidate>> CudnnCandidates(const CudnnGraph& graph,
                                                      const DeviceProperties& device,
                                                      Precision precision, const Chip& chip);

// Returns the candidate of a choice. kInvalidArgument: the engine, a knob or its value does not
// exist for this graph, or the rules refuse it.
StatusOr<CudnnCandidate> FindCudnnCandidate(const CudnnGraph& graph, const DeviceProperties& device,
                                            Precision precision, const CudnnChoice& choice);

// Returns the menu: choices for an engine with the two knobs KERNEL_CFG and SPLIT_K_SLC, for a
// product of this shape on `sms` multiprocessors, best guess first, at most `max`.
std::vector<CudnnChoice> CudnnMenu(int64_t engine, const ProductShape& product, int sms,
                                   size_t max);

}  // namespace ag::cuda
