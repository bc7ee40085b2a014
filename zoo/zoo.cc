#include "zoo/zoo.h"

#include <algorithm>

#include "graph/onnx/export/export.h"
#include "graph/onnx/origin.h"
#include "zoo/networks.h"

namespace ag {
namespace {

struct Row {
  ZooEntry entry;
  void (*build)(ZooBuilder& b, int64_t batch);
};

const std::vector<Row>& Rows() {
  static const auto& rows = *new std::vector<Row>{
      {{"inception_v3", "Inception-v3, 299x299 (Szegedy et al., CVPR 2016)"}, BuildInceptionV3},
      {{"resnet50", "ResNet-50 v1.5, 224x224 (He et al., CVPR 2016)"},
       [](ZooBuilder& b, int64_t n) { BuildResNet(b, n, {}); }},
      {{"resnext50", "ResNeXt-50 32x4d, 224x224 (Xie et al., CVPR 2017)"},
       [](ZooBuilder& b, int64_t n) { BuildResNet(b, n, {.group = 32, .width_per_group = 4}); }},
      {{"nasnet_a", "NASNet-A 6@4032, 331x331 (Zoph et al., CVPR 2018)"},
       [](ZooBuilder& b, int64_t n) { BuildNasNet(b, n, {}); }},
      {{"nasnet_mobile", "NASNet-A 4@1056, 224x224 (Zoph et al., CVPR 2018)"},
       [](ZooBuilder& b, int64_t n) {
         BuildNasNet(b, n, {.image = 224, .cells = 4, .filters = 44, .stem_filters = 32});
       }},
      {{"rnntc_sru", "RNNTC, 20 simple recurrent units of 1024 (MetaFlow's benchmark, MLSys 2019)"},
       [](ZooBuilder& b, int64_t n) { BuildSru(b, n, {}); }},
      {{"bert", "BERT-base, 128 tokens (Devlin et al., NAACL 2019)"},
       [](ZooBuilder& b, int64_t n) { BuildBert(b, n, {}); }},
      {{"squeezenet", "SqueezeNet 1.1, 224x224 (Iandola et al., 2016)"}, BuildSqueezeNet},
      {{"vit", "ViT-B/16, 224x224 (Dosovitskiy et al., ICLR 2021)"},
       [](ZooBuilder& b, int64_t n) { BuildVit(b, n, {}); }},
      {{"tiny_cnn", "Three convolutions and a classifier, 16x16", true}, BuildTinyCnn},
      {{"tiny_inception", "Two Inception blocks, 15x15", true}, BuildTinyInception},
      {{"tiny_resnet", "Two bottleneck blocks, 16x16", true},
       [](ZooBuilder& b, int64_t n) {
         BuildResNet(b, n, {.image = 16, .blocks = {1, 1}, .width = 8, .classes = 10});
       }},
      {{"tiny_bert", "Two layers of 16, 8 tokens", true},
       [](ZooBuilder& b, int64_t n) {
         BuildBert(b, n,
                   {.layers = 2,
                    .hidden = 16,
                    .heads = 2,
                    .sequence = 8,
                    .vocabulary = 50,
                    .positions = 16});
       }},
      {{"tiny_vit", "Two blocks of 16, four patches", true},
       [](ZooBuilder& b, int64_t n) {
         BuildVit(b, n,
                  {.image = 8, .patch = 4, .layers = 2, .hidden = 16, .heads = 2, .classes = 10});
       }},
      {{"tiny_sru", "Three simple recurrent units of 16", true},
       [](ZooBuilder& b, int64_t n) { BuildSru(b, n, {.steps = 3, .hidden = 16}); }},
      {{"tiny_nasnet", "NASNet-A 1@96, 19x19", true},
       [](ZooBuilder& b, int64_t n) {
         BuildNasNet(b, n,
                     {.image = 19, .cells = 1, .filters = 8, .stem_filters = 4, .classes = 10});
       }},
  };
  return rows;
}

// Returns how many characters two names share at the same places, which is enough to find a typo.
size_t Likeness(std::string_view a, std::string_view b) {
  size_t same = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) same += a[i] == b[i] ? 1 : 0;
  return same;
}

StatusOr<const Row*> FindRow(std::string_view name) {
  const Row* best = &Rows()[0];
  for (const Row& row : Rows()) {
    if (row.entry.name == name) return &row;
    if (Likeness(name, row.entry.name) > Likeness(name, best->entry.name)) best = &row;
  }
  return Err(StatusCode::kNotFound, "no zoo model is called '{}'; did you mean '{}'?", name,
             best->entry.name);
}

}  // namespace

const std::vector<ZooEntry>& Zoo() {
  static const auto& entries = *new std::vector<ZooEntry>([] {
    std::vector<ZooEntry> result;
    for (const Row& row : Rows()) result.push_back(row.entry);
    return result;
  }());
  return entries;
}

StatusOr<Graph> BuildZooModel(std::string_view name, const ZooOptions& options,
                              MemoryWeights* weights) {
  AG_LET(const Row* row, FindRow(name));
  if (options.batch < 1) {
    return Err(StatusCode::kInvalidArgument, "batch {} is below 1", options.batch);
  }
  ZooBuilder builder(options.seed, weights);
  row->build(builder, options.batch);
  return builder.Build();
}

StatusOr<std::string> ZooModelOnnx(std::string_view name, const ZooOptions& options) {
  MemoryWeights weights;
  AG_LET(const Graph graph, BuildZooModel(name, options, &weights));
  OnnxOrigin origin;
  origin.opsets = {{"", 17}};
  origin.producer_name = "autograph-zoo";
  origin.graph_name = name;
  return ExportOnnx(graph, origin, weights);
}

}  // namespace ag
