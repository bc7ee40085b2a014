// Engines of cuDNN and their configurations, the parts of a graph's candidates. Pure functions.
#pragma once

#include "device/cuda/cudnn_candidates.h"

namespace ag::cuda {

inline constexpr int64_t kCudnnKnobsMax = CUDNN_KNOB_TYPE_COUNTS;

// Returns an engine for the graph, or an error when this number does not exist or is not for this
// device.
StatusOr<Descriptor> CudnnEngine(const CudnnGraph& graph, const DeviceProperties& device,
                                 int64_t index);
// Returns the notes of engine number `index` of the graph.
StatusOr<CudnnNotes> CudnnNotesOf(const CudnnGraph& graph, const Descriptor& engine, int64_t index);

// Returns the last value of knob `type`; -1: the engine does not have it.
StatusOr<int64_t> LastKnobValue(const Descriptor& engine, cudnnBackendKnobType_t type);

// Returns the candidate of a finalized configuration.
StatusOr<CudnnCandidate> DescribeCudnn(const CudnnGraph& graph, Descriptor config,
                                       CudnnChoice choice, const CudnnNotes& notes);

}  // namespace ag::cuda
