// The network families: each function builds one network of any size into a ZooBuilder. The
// full-size members are the published ones; the tiny ones have the same structure and run in
// milliseconds. One thread at a time for one builder.
#pragma once

#include "zoo/zoo_builder.h"

namespace ag {

// Szegedy et al., CVPR 2016, as in torchvision (without the auxiliary head).
void BuildInceptionV3(ZooBuilder& b, int64_t batch);
void BuildTinyInception(ZooBuilder& b, int64_t batch);

// He et al., CVPR 2016, with the stride on the 3x3 convolution (v1.5); ResNeXt: Xie et al., CVPR
// 2017.
struct ResNetSize {
  int64_t image = 224;
  std::vector<int64_t> blocks = {3, 4, 6, 3};
  int64_t width = 64;  // Channels of the stem.
  int64_t group = 1;
  int64_t width_per_group = 64;  // Of 64 channels; 4 for ResNeXt 32x4d.
  int64_t classes = 1000;
};
void BuildResNet(ZooBuilder& b, int64_t batch, const ResNetSize& size);

// NASNet-A: Zoph et al., CVPR 2018.
struct NasNetSize {
  int64_t image = 331;
  int64_t cells = 6;      // Normal cells per stage: the "6" of 6@4032.
  int64_t filters = 168;  // Of the first stage: the last has 24 times as many, 4032.
  int64_t stem_filters = 96;
  int64_t classes = 1000;
};
void BuildNasNet(ZooBuilder& b, int64_t batch, const NasNetSize& size);

// Devlin et al., NAACL 2019, as an exporter writes it below opset 17: LayerNorm and GELU as
// primitives.
struct BertSize {
  int64_t layers = 12;
  int64_t hidden = 768;
  int64_t heads = 12;
  int64_t sequence = 128;
  int64_t vocabulary = 30522;
  int64_t positions = 512;
};
void BuildBert(ZooBuilder& b, int64_t batch, const BertSize& size);

// Dosovitskiy et al., ICLR 2021: ViT-B/16, with a class token and GELU in primitives.
struct VitSize {
  int64_t image = 224;
  int64_t patch = 16;
  int64_t layers = 12;
  int64_t hidden = 768;
  int64_t heads = 12;
  int64_t classes = 1000;
};
void BuildVit(ZooBuilder& b, int64_t batch, const VitSize& size);

// RNNTC with simple recurrent units, as in MetaFlow's benchmark (Jia et al., MLSys 2019): per step
// three products of the same x, f and r by sigmoid, c' = f c + f x1, h = r c' + r x.
struct SruSize {
  int64_t steps = 20;
  int64_t hidden = 1024;
};
void BuildSru(ZooBuilder& b, int64_t batch, const SruSize& size);

// SqueezeNet 1.1: Iandola et al., 2016.
void BuildSqueezeNet(ZooBuilder& b, int64_t batch);

void BuildTinyCnn(ZooBuilder& b, int64_t batch);

}  // namespace ag
