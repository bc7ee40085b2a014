#include "device/cuda/cudnn_engine.h"

#include <algorithm>
#include <set>

namespace ag::cuda {
namespace {

constexpr int64_t kCublasEngine = 0;  // Of a matrix product.
constexpr int64_t kPixelBytes = 8;    // What kernels compiled at run time read right.

StatusOr<Descriptor> ConfigOf(const Descriptor& engine, const std::vector<CudnnKnob>& knobs) {
  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnKnob& knob : knobs) {
    AG_LET(Descriptor choice,
           DescriptorBuilder(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "knob")
               .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, cudnnBackendKnobType_t(knob.type))
               .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value)
               .Finish());
    raw.push_back(choice.get());
    choices.push_back(std::move(choice));
  }
  DescriptorBuilder builder(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "configuration");
  builder.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!raw.empty()) builder.SetAll(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, raw);
  return builder.Finish();
}

}  // namespace

StatusOr<Descriptor> CudnnEngine(const CudnnGraph& graph, const DeviceProperties& device,
                                 int64_t index) {
  return DescriptorBuilder(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine")
      .Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.graph)
      .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index)
      .Set(CUDNN_ATTR_ENGINE_DEVICEPROP, device.descriptor())
      .Finish();
}

StatusOr<CudnnNotes> CudnnNotesOf(const CudnnGraph& graph, const Descriptor& engine,
                                  int64_t index) {
  CudnnNotes notes{.is_cublas = graph.is_matmul && index == kCublasEngine};
  AG_LET(const auto numerical,
         engine.GetAll<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                    CUDNN_NUMERICAL_NOTE_TYPE_COUNT));
  AG_LET(const auto behavior, engine.GetAll<cudnnBackendBehaviorNote_t>(
                                  CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT));
  const auto says = [&](cudnnBackendNumericalNote_t note) {
    return std::ranges::find(numerical, note) != numerical.end();
  };
  const auto does = [&](cudnnBackendBehaviorNote_t note) {
    return std::ranges::find(behavior, note) != behavior.end();
  };
  notes.tensor_core = says(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  notes.down_convert_inputs = says(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  notes.reduced_precision_reduction = says(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  notes.nondeterministic = says(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  notes.reorders_weights = does(CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER) ||
                           does(CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER);
  notes.compiles_at_run_time = does(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  const bool is_readable = graph.pixel_bytes > 0 && graph.pixel_bytes % kPixelBytes == 0;
  notes.misreads_image = notes.compiles_at_run_time && !graph.is_matmul && !is_readable;
  return notes;
}

StatusOr<int64_t> LastKnobValue(const Descriptor& engine, cudnnBackendKnobType_t type) {
  AG_LET(const std::vector<Descriptor> knobs,
         engine.GetDescriptors(CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR,
                               kCudnnKnobsMax));
  for (const Descriptor& knob : knobs) {
    AG_LET(const auto found, knob.Get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_INFO_TYPE));
    if (found == type) return knob.Get<int64_t>(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE);
  }
  return -1;
}

StatusOr<CudnnCandidate> DescribeCudnn(const CudnnGraph& graph, Descriptor config,
                                       CudnnChoice choice, const CudnnNotes& notes) {
  CudnnCandidate candidate{.choice = std::move(choice), .notes = notes};
  AG_LET(candidate.workspace_bytes, config.Get<int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE));
  candidate.has_copy = HoldsCopy(graph, candidate.choice, candidate.workspace_bytes);
  candidate.config = std::move(config);
  return candidate;
}

std::string RefusalOf(const CudnnNotes& notes, Precision precision, DType stored) {
  const bool is_f32 = stored == DType::kFloat32;
  if (is_f32 && notes.down_convert_inputs) return "rounds its inputs to a narrower type";
  if (is_f32 && precision == Precision::kFp32 && notes.tensor_core) return "computes in tf32";
  if (notes.reduced_precision_reduction) return "sums in less than f32";
  if (notes.nondeterministic) return "differs from run to run";
  if (notes.is_cublas) return "does not say how it computes";
  if (notes.misreads_image) return "may misread such an image";
  if (notes.reorders_weights) return "wants weights in a layout of its own";
  return "";
}

bool HoldsCopy(const CudnnGraph& graph, const CudnnChoice& choice, int64_t workspace_bytes) {
  // Partial sums have sizes like copies.
  for (const CudnnKnob& knob : choice.knobs) {
    const bool splits =
        knob.type == CUDNN_KNOB_TYPE_SPLIT_K_SLC || knob.type == CUDNN_KNOB_TYPE_SPLIT_K_BUF;
    if (splits && knob.value > 1 && graph.stored != DType::kFloat32) return false;
  }
  constexpr int64_t kSlack = 1024;  // Each part is aligned.
  std::set<int64_t> sums{0};
  for (const CudnnGraph::TensorBytes& bytes : graph.tensor_bytes) {
    std::set<int64_t> more = sums;
    for (const int64_t sum : sums) {
      more.insert(sum + bytes.exact);
      more.insert(sum + bytes.padded);
      more.insert(sum + bytes.wide);
    }
    sums = std::move(more);
  }
  return std::ranges::any_of(sums, [&](int64_t sum) {
    return sum > kSlack && workspace_bytes >= sum && workspace_bytes <= sum + kSlack;
  });
}

StatusOr<CudnnCandidate> FindCudnnCandidate(const CudnnGraph& graph, const DeviceProperties& device,
                                            Precision precision, const CudnnChoice& choice) {
  const std::string name = CudnnName(choice);
  const auto refused = [&](std::string_view why) {
    return Err(StatusCode::kInvalidArgument, "{}: {}", name, why);
  };
  const StatusOr<Descriptor> engine = CudnnEngine(graph, device, choice.engine);
  if (!engine.ok()) return refused(Message(engine.status()));
  AG_LET(const CudnnNotes notes, CudnnNotesOf(graph, *engine, choice.engine));
  const std::string why = RefusalOf(notes, precision, graph.stored);
  if (!why.empty()) return refused(why);
  StatusOr<Descriptor> config = ConfigOf(*engine, choice.knobs);
  if (!config.ok()) return refused(Message(config.status()));
  return DescribeCudnn(graph, *std::move(config), choice, notes);
}

}  // namespace ag::cuda
