// Engines of cuDNN and their configurations: what a graph's candidates are made of.
#pragma once

#include "device/cuda/cudnn_candidates.h"

namespace ag::cuda {

inline constexpr int64_t kCudnnKnobsMax = CUDNN_KNOB_TYPE_COUNTS;

// An engine for the graph. An error: there is none of this number, or not for this device.
StatusOr<Descriptor> CudnnEngine(const CudnnGraph& graph, const DeviceProperties& device,
                                 int64_t index);
StatusOr<CudnnNotes> CudnnNotesOf(const Descriptor& engine);

// The last value of knob `type`; -1: the engine does not have it.
StatusOr<int64_t> LastKnobValue(const Descriptor& engine, cudnnBackendKnobType_t type);

// Completes what is known of a finalized configuration.
StatusOr<CudnnCandidate> DescribeCudnn(const CudnnGraph& graph, Descriptor config,
                                       CudnnChoice choice, const CudnnNotes& notes);

}  // namespace ag::cuda
