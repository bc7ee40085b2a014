#include "device/cuda/cudnn_candidates.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "device/cuda/cudnn_engine.h"

namespace ag::cuda {
namespace {

constexpr int64_t kConfigsMax = 128;

constexpr int64_t kLongSum = 2048;

// The menu knows the tiles of the engine with this many kernel configurations.
constexpr int64_t kMenuConfigLast = 41;

StatusOr<std::vector<CudnnKnob>> KnobsOf(const Descriptor& config) {
  AG_LET(const std::vector<Descriptor> choices,
         config.GetDescriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                               CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kCudnnKnobsMax));
  std::vector<CudnnKnob> knobs;
  for (const Descriptor& choice : choices) {
    AG_LET(const auto type, choice.Get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE));
    AG_LET(const auto value, choice.Get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
    knobs.push_back({static_cast<int>(type), value});
  }
  std::ranges::sort(knobs);
  return knobs;
}

StatusOr<CudnnCandidate> FromHeuristic(const CudnnGraph& graph, Descriptor config) {
  AG_LET(const std::vector<Descriptor> engines,
         config.GetDescriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1));
  if (engines.empty()) return Err(StatusCode::kInternal, "cuDNN: a configuration has no engine");
  CudnnChoice choice;
  AG_LET(choice.engine, engines[0].Get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  AG_LET(choice.knobs, KnobsOf(config));
  AG_LET(const CudnnNotes notes, CudnnNotesOf(graph, engines[0], choice.engine));
  return DescribeCudnn(graph, std::move(config), std::move(choice), notes);
}

StatusOr<std::vector<Descriptor>> Heuristics(const CudnnGraph& graph,
                                             const DeviceProperties& device,
                                             cudnnBackendHeurMode_t mode) {
  AG_LET(const Descriptor heuristics,
         DescriptorBuilder(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics")
             .Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph)
             .Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode)
             .Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device.descriptor())
             .Finish());
  return heuristics.GetDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kConfigsMax);
}

// Returns the engine that the menu is for; -1: this graph has none here.
StatusOr<int64_t> MenuEngine(const CudnnGraph& graph, const DeviceProperties& device) {
  AG_LET(const auto count, graph.graph.Get<int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT));
  for (int64_t i = 0; i < count; ++i) {
    const StatusOr<Descriptor> engine = CudnnEngine(graph, device, i);
    if (!engine.ok()) continue;  // Not for this graph or device.
    AG_LET(const CudnnNotes notes, CudnnNotesOf(graph, *engine, i));
    if (!notes.compiles_at_run_time || !notes.tensor_core) continue;
    AG_LET(const int64_t configs, LastKnobValue(*engine, CUDNN_KNOB_TYPE_KERNEL_CFG));
    AG_LET(const int64_t splits, LastKnobValue(*engine, CUDNN_KNOB_TYPE_SPLIT_K_SLC));
    if (configs == kMenuConfigLast && splits > 1) return i;
  }
  return -1;
}

int64_t TilesOf64(const ProductShape& p) { return p.batch * ((p.m + 63) / 64) * ((p.n + 63) / 64); }

// Marks copies. Engines that copy and split sums also have other sizes, so an engine counts as
// copying when each of its candidates has a workspace at least as large as the smallest copy.
void MarkCopies(std::vector<CudnnCandidate>* found) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const CudnnCandidate& candidate : *found) {
    if (candidate.has_copy) smallest = std::min(smallest, candidate.workspace_bytes);
  }
  std::map<int64_t, int64_t> least;  // Workspace, by engine.
  for (const CudnnCandidate& candidate : *found) {
    const auto [at, is_new] = least.try_emplace(candidate.choice.engine, candidate.workspace_bytes);
    at->second = std::min(at->second, candidate.workspace_bytes);
  }
  for (CudnnCandidate& candidate : *found) {
    const bool compiles = candidate.notes.compiles_at_run_time;  // These never copy.
    if (!compiles && least[candidate.choice.engine] >= smallest) candidate.has_copy = true;
  }
}

// Returns the allowed candidates of modes A and B, or of the fallback where these have none.
StatusOr<std::vector<CudnnCandidate>> FromHeuristics(const CudnnGraph& graph,
                                                     const DeviceProperties& device,
                                                     Precision precision) {
  std::vector<CudnnCandidate> found;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    if (mode == CUDNN_HEUR_MODE_FALLBACK && !found.empty()) break;
    StatusOr<std::vector<Descriptor>> configs = Heuristics(graph, device, mode);
    if (configs.status().code() == StatusCode::kUnimplemented) continue;
    AG_TRY(configs);
    for (Descriptor& config : *configs) {
      AG_LET(CudnnCandidate candidate, FromHeuristic(graph, std::move(config)));
      if (RefusalOf(candidate.notes, precision, graph.stored).empty()) {
        found.push_back(std::move(candidate));
      }
    }
  }
  MarkCopies(&found);
  return found;
}

bool IsReady(const CudnnCandidate& candidate) {
  return candidate.notes.tensor_core && !candidate.notes.compiles_at_run_time &&
         !candidate.has_copy;
}
bool HasReady(const std::vector<CudnnCandidate>& found) {
  return std::ranges::any_of(found, IsReady);
}

// Returns how many of the menu are worth their compilation of 0.2 to 1 s each, beside the found
// ones: most where nothing else is on tensor cores and without a copy, none where much is, unless
// the product has so few tiles that splitting a long sum fills the device.
size_t MenuSize(const std::vector<CudnnCandidate>& found, bool wants_split) {
  const bool all_compile = std::ranges::all_of(
      found, [](const CudnnCandidate& c) { return c.notes.compiles_at_run_time; });
  if (all_compile) return 3;
  const auto ready = std::ranges::count_if(found, IsReady);
  if (ready == 0 || (ready >= 8 && wants_split)) return 2;
  return ready < 8 ? 1 : 0;
}

// Returns the other tiles of engines that compute on plain units without a copy; the heuristics
// offer one tile each.
StatusOr<std::vector<CudnnCandidate>> OtherTiles(const CudnnGraph& graph,
                                                 const DeviceProperties& device,
                                                 Precision precision,
                                                 const std::vector<CudnnCandidate>& found) {
  std::vector<CudnnCandidate> more;
  for (const CudnnCandidate& given : found) {
    const auto tile =
        std::ranges::find(given.choice.knobs, int{CUDNN_KNOB_TYPE_TILE_SIZE}, &CudnnKnob::type);
    const bool is_plain = !given.notes.tensor_core && !given.notes.compiles_at_run_time;
    if (!is_plain || given.has_copy || tile == given.choice.knobs.end()) continue;
    AG_LET(const Descriptor engine, CudnnEngine(graph, device, given.choice.engine));
    AG_LET(const int64_t last, LastKnobValue(engine, CUDNN_KNOB_TYPE_TILE_SIZE));
    for (int64_t size = 0; size <= last; ++size) {
      CudnnChoice choice = given.choice;
      choice.knobs[tile - given.choice.knobs.begin()].value = size;
      StatusOr<CudnnCandidate> candidate = FindCudnnCandidate(graph, device, precision, choice);
      if (candidate.status().code() == StatusCode::kInvalidArgument) continue;  // Not accepted.
      AG_TRY(candidate);
      more.push_back(*std::move(candidate));
    }
  }
  return more;
}

struct MenuOptions {
  int sms = 0;
  size_t max = 0;
};

// Returns the menu's choices that the engine accepts.
StatusOr<std::vector<CudnnCandidate>> FromMenu(const CudnnGraph& graph,
                                               const DeviceProperties& device, Precision precision,
                                               const MenuOptions& options) {
  std::vector<CudnnCandidate> found;
  if (options.max == 0) return found;
  AG_LET(const int64_t engine, MenuEngine(graph, device));
  if (engine < 0) return found;
  const size_t tries = 4 * options.max;  // A split leaves too short a sum for some.
  for (const CudnnChoice& choice : CudnnMenu(engine, graph.product, options.sms, tries)) {
    if (found.size() == options.max) break;
    StatusOr<CudnnCandidate> candidate = FindCudnnCandidate(graph, device, precision, choice);
    if (candidate.status().code() == StatusCode::kInvalidArgument) continue;  // Not accepted.
    AG_TRY(candidate);
    found.push_back(*std::move(candidate));
  }
  return found;
}

}  // namespace

StatusOr<std::vector<CudnnCandidate>> CudnnCandidates(const CudnnGraph& graph,
                                                      const DeviceProperties& device,
                                                      Precision precision, const Chip& chip) {
  AG_LET(std::vector<CudnnCandidate> found, FromHeuristics(graph, device, precision));
  const bool is_small = TilesOf64(graph.product) * 2 <= chip.sms;
  const size_t menu_max = MenuSize(found, is_small && graph.product.k >= kLongSum);
  AG_LET(std::vector<CudnnCandidate> menu,
         FromMenu(graph, device, precision, {.sms = chip.sms, .max = menu_max}));
  // The heuristics offer large tiles of the run-time engines.
  const auto at = is_small && !HasReady(found) ? found.begin() : found.end();
  found.insert(at, std::make_move_iterator(menu.begin()), std::make_move_iterator(menu.end()));
  if (!HasReady(found)) {
    AG_LET(std::vector<CudnnCandidate> tiles, OtherTiles(graph, device, precision, found));
    std::ranges::move(tiles, std::back_inserter(found));
  }
  std::set<std::string> known;
  std::erase_if(found, [&](const CudnnCandidate& candidate) {
    return !known.insert(CudnnName(candidate.choice)).second;
  });
  std::ranges::stable_sort(found, {}, [](const CudnnCandidate& c) { return c.has_copy; });
  return found;
}

}  // namespace ag::cuda
