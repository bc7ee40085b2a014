// GraphTurbo's instances (Zhao et al., OSDI 2023) on a device with buffers: what each step of the
// method is expected to gain, beside the paper (docs/instances.md).
//   build/instances [--device SPEC] [--batch N] [--precision P] [MODEL...]
// (sim:stcp920, the paper's batch or 8 a cluster, fp16; resnet50, bert, vit.) MODEL is a model
// of the zoo, or an ONNX file with its own batch. N: the batch of one cluster. Prints sub-graphs
// and factors, the order of instances, peaks, tensors by level and estimated times. All times are
// estimates from the rates of the spec.
#include <cstdio>

#include "base/blobs.h"
#include "base/command_line.h"
#include "base/file.h"
#include "device/open_device.h"
#include "graph/batch/samples.h"
#include "graph/onnx/import/import.h"
#include "plan/instances/timeline.h"
#include "plan/spec/node_layouts.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

struct Options {
  std::string device = "sim:stcp920";
  std::string precision = "fp16";
  int64_t batch = 0;  // 0: the paper's.
  std::vector<std::string> models;
};

// What the paper says of a model: batch a cluster (Table 2), tensors in memory (Table 3).
struct Published {
  std::string_view model;
  int64_t batch;
  int tensors;
};
constexpr Published kPublished[] = {{"resnet50", 16, 1}, {"bert", 8, 1}, {"vit", 8, 24}};
constexpr int64_t kOtherBatch = 8;
// Gains of Figure 15, each over the step before.
constexpr double kPaperGains[] = {0, 3.67, 2.20, 1.72};

std::string Mebibytes(int64_t bytes) {
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20));
}

class Report {
 public:
  Report(const DeviceSpec& spec, const Options& options) : spec_(spec), options_(options) {}

  Status Run(const std::string& model) {
    AG_LET(const Graph graph, Load(model));
    AG_LET(const Samples samples, FindSamples(graph, 1));
    samples_ = static_cast<double>(samples.batch * spec_.clusters);
    AG_LET(buffers_, BuffersOf(spec_));
    const LayeredGraph layered = FormLayers(graph, options_.precision);
    const std::vector<SubGraph> subs = FormSubGraphs(layered, buffers_.global_bytes);
    const InstanceGraph instances = MakeInstances(layered, subs);
    fmt::print("{}: batch {} a cluster, {} clusters, {}; {} layers\n", model, samples.batch,
               spec_.clusters, options_.precision, layered.layers.size());
    PrintSubGraphs(layered, subs, instances);
    PrintSteps(layered, subs, instances);
    return OkStatus();
  }

 private:
  StatusOr<Graph> Load(const std::string& model) {
    MemoryWeights weights;
    const auto paper = std::ranges::find(kPublished, model, &Published::model);
    published_ = paper == std::end(kPublished) ? nullptr : paper;
    if (!model.ends_with(".onnx")) {
      int64_t batch = published_ != nullptr ? published_->batch : kOtherBatch;
      if (options_.batch > 0) batch = options_.batch;
      AG_LET(const Graph graph, BuildZooModel(model, {.batch = batch}, &weights));
      return CleanUp(graph, BuiltInRules());
    }
    AG_LET(const auto file, MappedFile::Open(model));
    AG_LET(const TempDir folder, TempDir::Make("instances"));
    AG_LET(const std::shared_ptr<BlobDir> blobs, BlobDir::Open(folder.path()));
    AG_LET(const ImportedModel imported, ImportOnnx(file->bytes(), {}, *blobs));
    return CleanUp(imported.graph, BuiltInRules());
  }

  void PrintSubGraphs(const LayeredGraph& layered, const std::vector<SubGraph>& subs,
                      const InstanceGraph& instances) {
    fmt::print(
        "  sub-graph     factor  layers  operators  contractions  peak of an instance  "
        "redistributed  copied\n");
    const Layout images = ImageLayout();
    const int cores = spec_.cores / spec_.clusters;
    for (size_t i = 0; i < subs.size(); ++i) {
      size_t operators = 0, contractions = 0;
      for (const int layer : subs[i].layers) {
        operators += layered.layers[layer].nodes.size();
        contractions += layered.layers[layer].matrix_flops > 0 ? 1 : 0;
      }
      const CoreBindings bindings = BindCores(layered, subs[i], cores, images);
      global_.insert(bindings.global.begin(), bindings.global.end());
      const int64_t peak = PeakBytes(layered, subs[i].layers) / subs[i].split.factor;
      fmt::print("  {:<13} {:>6} {:>7} {:>10} {:>13} {:>20} {:>14} {:>7}\n", Letter(i),
                 subs[i].split.factor, subs[i].layers.size(), operators, contractions,
                 Mebibytes(peak), bindings.redistributions, bindings.copies);
    }
    fmt::print("  {} instances; {} of {} edges between them are kept\n", instances.instances.size(),
               instances.fine_edges, instances.coarse_edges);
  }

  static std::string Letter(size_t i) {
    return std::string(1, static_cast<char>('a' + i % 26)) + std::string(i / 26, '\'');
  }

  // The layout that the spec's convolutions prefer.
  Layout ImageLayout() const {
    const GroupPattern* home = FindHomePatterns(spec_)[static_cast<size_t>(OpKind::kConv)];
    return home == nullptr || home->layouts.empty() ? Layout::kPlain : home->layouts[0];
  }

  void PrintSteps(const LayeredGraph& layered, const std::vector<SubGraph>& subs,
                  const InstanceGraph& instances) {
    const std::vector<SubGraph> apart = LayersApart(layered);
    const InstanceGraph one_by_one = MakeInstances(layered, apart);
    Walk base = WalkOf(layered, apart, one_by_one, BreadthFirstOrder(one_by_one));
    PutIntoMemory(base);
    const std::vector<int> breadth = BreadthFirstOrder(instances);
    const std::vector<int> depth = DepthFirstOrder(instances);
    Walk broad = WalkOf(layered, subs, instances, breadth);
    Walk deep = WalkOf(layered, subs, instances, depth);
    const bool deeper = PeakBytes(deep) <= PeakBytes(broad);
    fmt::print("  breadth first: peak {}\n  depth first:   peak {}  {}\n  kept: {} first\n",
               Mebibytes(PeakBytes(broad)), Mebibytes(PeakBytes(deep)),
               FormatOrder(instances, depth), deeper ? "depth" : "breadth");
    PutIntoBuffers(global_, buffers_, broad);
    PutIntoBuffers(global_, buffers_, deep);
    fmt::print(
        "  step                         local  global  memory  spilled      {:>10}  "
        "samples/s   gain  paper\n",
        "us");
    const Walk& kept = deeper ? deep : broad;
    PrintStep(0, "layer by layer in memory", layered, base, {.across_layers = false});
    PrintStep(1, "kept in buffers", layered, broad, {.across_layers = false});
    PrintStep(2, "+ order of instances", layered, kept, {.across_layers = false});
    PrintStep(3, "+ across layers", layered, kept, {.across_layers = true});
    if (published_ != nullptr) {
      fmt::print("  tensors in memory: {} (paper: {})\n", CountLevels(layered, kept).memory,
                 published_->tensors);
    }
    std::fflush(stdout);
  }

  void PrintStep(int step, const char* name, const LayeredGraph& layered, const Walk& walk,
                 const TimelineOptions& options) {
    const LevelCounts counts = CountLevels(layered, walk);
    const double ns = TimelineNs(layered, walk, spec_, options);
    fmt::print("  {:<28} {:>5} {:>7} {:>7}  {:>11}  {:>10.1f} {:>10.0f}", name, counts.local,
               counts.global, counts.memory, Mebibytes(counts.memory_bytes), ns / 1e3,
               samples_ / ns * 1e9);
    if (step > 0) fmt::print("  {:>5.2f}  {:>5.2f}", before_ns_ / ns, kPaperGains[step]);
    fmt::print("\n");
    before_ns_ = ns;
  }

  // A sub-graph for each layer, whole.
  static std::vector<SubGraph> LayersApart(const LayeredGraph& layered) {
    std::vector<SubGraph> subs(layered.layers.size());
    for (int i = 0; i < static_cast<int>(subs.size()); ++i) subs[i].layers = {i};
    return subs;
  }

  const DeviceSpec& spec_;
  const Options& options_;
  const Published* published_ = nullptr;
  ClusterBuffers buffers_;
  std::set<Edge> global_;
  double samples_ = 0;  // Of all clusters, each run.
  double before_ns_ = 0;
};

Status RunAll(const Options& options) {
  AG_LET(const auto device, OpenDevice(options.device));
  AG_TRY(CheckOffers(device->spec(), options.precision));
  for (const std::string& model : options.models) {
    AG_TRY(Report(device->spec(), options).Run(model), "{}", model);
  }
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("Instances of sub-graphs on a device with buffers, by estimate", "instances");
  ag::ShowDefaults(app);
  app.add_option("--device", options.device, "Device with buffers");
  app.add_option("--batch", options.batch, "Batch of one cluster; 0: the paper's, else 8");
  app.add_option("--precision", options.precision, "Precision");
  app.add_option("MODEL", options.models, "Models of the zoo or ONNX files");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (options.models.empty()) options.models = {"resnet50", "bert", "vit"};
  if (const ag::Status status = ag::RunAll(options); !status.ok()) {
    fmt::print(stderr, "{}\n", ag::Message(status));
    return 1;
  }
}
