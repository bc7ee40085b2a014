// Every kernel of operators in ONNX's own form against the operator's definition.
#include "device/cpu/kept.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/thread.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/kept_testing.h"
#include "graph/reference/evaluate.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_problem.h"
#include "plan/schedule/planner.h"

namespace ag::cpu {
namespace {

struct KeptGraph {
  Graph graph;
  MemoryWeights weights;
  std::vector<Tensor> inputs;
};

// A graph of the one node. Its types are those of its definition.
void MakeKeptGraph(const NodeCase& c, KeptGraph* made) {
  OnnxNode node = c.node;
  GraphBuilder builder;
  std::vector<const Tensor*> all;
  std::vector<Edge> edges;
  for (const Tensor& tensor : c.operands) {
    const bool omitted = tensor.bytes().empty();
    node.inputs.push_back(omitted ? "" : "x");
    all.push_back(omitted ? nullptr : &tensor);
    if (omitted) continue;
    const int place = static_cast<int>(all.size()) - 1 - c.first_input;
    const bool is_input = place >= 0 && place < c.inputs;
    if (is_input) made->inputs.push_back(tensor);
    edges.push_back(is_input ? builder.Input(fmt::format("x{}", all.size()), tensor.type())
                             : builder.Constant(tensor.type(), made->weights.Put(tensor)));
  }
  for (const char letter : c.outputs) node.outputs.push_back(letter == '-' ? "" : "y");
  const auto results = RunOperator({.node = node, .opset = c.opset, .inputs = all});
  ASSERT_TRUE(results.ok()) << c.name << ": " << ToString(results.status());
  std::vector<TensorType> types;
  for (size_t i = 0; i < results->size(); ++i) {
    if (c.outputs[i] != '-') types.push_back((*results)[i].type());
  }
  Attributes attributes{
      {"onnx_node", *AnonymousNode(node)}, {"domain", node.domain}, {"opset", c.opset}};
  const NodeId id = builder.AddOpaque(edges, std::move(attributes), types);
  for (size_t i = 0; i < types.size(); ++i) {
    builder.Output({id, static_cast<int32_t>(i)}, fmt::format("y{}", i));
  }
  made->graph = *builder.Build();
}

void CheckNodeOn(const NodeCase& c, int cores) {
  KeptGraph made;
  MakeKeptGraph(c, &made);
  const auto device = *OpenCpuDevice({.cores = cores});
  RooflineTimes times(device->spec());
  const Plan plan = *MakePlan(made.graph, device->spec(), Policy(), times, {}, 1);
  ASSERT_EQ(plan.groups.size(), 1u) << c.name;
  const auto names = device->Kernels(ExtractGroup(made.graph, plan.groups[0], Policy()));
  ASSERT_TRUE(names.ok()) << c.name << ": " << ToString(names.status());
  EXPECT_EQ(names->size() > 1, c.is_fast) << c.name;
  EXPECT_EQ(std::ranges::count(*names, "reference"), 1) << c.name;
  EXPECT_TRUE(c.kernel.empty() || std::ranges::count(*names, c.kernel) == 1) << c.name;
  const auto expected = *Evaluate(made.graph, made.inputs, made.weights);
  for (const std::string& name : *names) {
    Plan chosen = plan;
    chosen.groups[0].kernel = name;
    const auto executable = device->Build({made.graph, chosen, made.weights});
    ASSERT_TRUE(executable.ok()) << c.name << " " << name << ": " << ToString(executable.status());
    std::vector<Tensor> outputs;
    for (const Tensor& tensor : expected) outputs.push_back(Tensor::Zeros(tensor.type()));
    for (int run = 0; run < 2; ++run) {  // The second one finds what the first one left.
      ASSERT_TRUE((*executable)->Run(made.inputs, outputs).ok()) << c.name << " " << name;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!IsFloat(expected[i].type().dtype)) {
        EXPECT_EQ(outputs[i].ToDoubles(), expected[i].ToDoubles()) << c.name << " " << name;
        continue;
      }
      const OutputError error = CompareTensors("y", expected[i], outputs[i]);
      EXPECT_TRUE(IsEquivalent(error, 1e-5)) << c.name << " " << name << " output " << i;
    }
  }
}

}  // namespace

void CheckNode(const NodeCase& c) {
  for (int cores = 1; cores <= std::min(4, UsableCores()); ++cores) CheckNodeOn(c, cores);
}

namespace {

struct KeptCase {
  const char* name;
  const char* op;
  std::vector<OnnxAttribute> attributes;
  // Of all operands; {} is an omitted one. The first one is an input, the others are constants.
  std::vector<Shape> operands;
  std::string outputs;  // A letter for each of ONNX's results: 'y', or '-' for an omitted one.
  bool is_fast = true;
  std::vector<int32_t> lengths = {};  // Operand 4 of recurrent operators, where that has a shape.
  std::string kernel = {};            // One of its kernels; "": any.
};

// Returns numbers of which products with many others do not grow: errors would grow with them.
Tensor Scaled(Tensor tensor) {
  const std::span<float> values = tensor.Mutable<float>();
  const auto count = static_cast<float>(tensor.type().shape.back());
  for (float& value : values) value /= std::sqrt(count);
  return tensor;
}

void CheckKept(const KeptCase& c) {
  NodeCase node{.name = c.name,
                .node = {.op_type = c.op, .attributes = c.attributes},
                .outputs = c.outputs,
                .is_fast = c.is_fast,
                .kernel = c.kernel};
  for (size_t i = 0; i < c.operands.size(); ++i) {
    node.operands.emplace_back();
    if (c.operands[i].empty()) continue;
    const bool is_lengths = i == 4 && !c.lengths.empty();
    const TensorType type{is_lengths ? DType::kInt32 : DType::kFloat32, c.operands[i]};
    node.operands.back() =
        is_lengths
            ? Tensor::FromDoubles(type, std::vector<double>(c.lengths.begin(), c.lengths.end()))
            : Scaled(RandomTensor(type, 7 + i));
  }
  CheckNode(node);
}

TEST(KeptKernels, Recurrent) {
  const OnnxAttribute both = WordOf("direction", "bidirectional");
  const OnnxAttribute back = WordOf("direction", "reverse");
  const KeptCase cases[] = {
      {"lstm", "LSTM", {}, {{5, 3, 4}, {1, 32, 4}, {1, 32, 8}, {1, 64}}, "yyy"},
      {"lstm without a bias", "LSTM", {}, {{5, 3, 4}, {1, 32, 4}, {1, 32, 8}}, "y"},
      {"lstm back", "LSTM", {back}, {{5, 3, 4}, {1, 32, 4}, {1, 32, 8}, {1, 64}}, "yy-"},
      {"lstm both", "LSTM", {both}, {{5, 1, 4}, {2, 32, 4}, {2, 32, 8}, {2, 64}}, "yyy"},
      {"lstm both, two sequences", "LSTM", {both}, {{5, 2, 4}, {2, 32, 4}, {2, 32, 8}}, "y"},
      {"lstm from states",
       "LSTM",
       {},
       {{5, 3, 4}, {1, 32, 4}, {1, 32, 8}, {1, 64}, {}, {1, 3, 8}, {1, 3, 8}},
       "yyy"},
      {"lstm, last state only", "LSTM", {}, {{5, 3, 4}, {1, 32, 4}, {1, 32, 8}, {1, 64}}, "-y-"},
      {"lstm by batch", "LSTM", {IntOf("layout", 1)}, {{1, 5, 4}, {1, 32, 4}, {1, 32, 8}}, "yy"},
      {"lstm coupled",
       "LSTM",
       {IntOf("input_forget", 1)},
       {{5, 1, 4}, {1, 32, 4}, {1, 32, 8}},
       "y",
       false},
      {"gru", "GRU", {}, {{6, 2, 4}, {1, 24, 4}, {1, 24, 8}, {1, 48}}, "yy"},
      {"gru both", "GRU", {both}, {{6, 1, 4}, {2, 24, 4}, {2, 24, 8}, {2, 48}}, "yy"},
      {"gru linear",
       "GRU",
       {IntOf("linear_before_reset", 1)},
       {{6, 2, 4}, {1, 24, 4}, {1, 24, 8}, {1, 48}, {}, {1, 2, 8}},
       "yy"},
      {"rnn", "RNN", {}, {{6, 2, 4}, {1, 8, 4}, {1, 8, 8}, {1, 16}}, "yy"},
      {"lstm, odd sizes", "LSTM", {both}, {{7, 9, 5}, {2, 76, 5}, {2, 76, 19}, {2, 152}}, "yyy"},
      {"lstm, two chunks", "LSTM", {back}, {{131, 1, 3}, {1, 148, 3}, {1, 148, 37}}, "yyy"},
      {"lstm, many sequences", "LSTM", {}, {{2, 150, 3}, {1, 36, 3}, {1, 36, 9}, {1, 72}}, "yyy"},
      {"lstm by batch, both ways",
       "LSTM",
       {both, IntOf("layout", 1)},
       {{3, 5, 4}, {2, 32, 4}, {2, 32, 8}, {2, 64}, {}, {3, 2, 8}, {3, 2, 8}},
       "yyy"},
      {"lstm of lengths",
       "LSTM",
       {both},
       {{5, 4, 4}, {2, 32, 4}, {2, 32, 8}, {2, 64}, {4}, {2, 4, 8}, {2, 4, 8}},
       "yyy",
       true,
       {5, 0, 3, 1}},
      {"lstm of one state",
       "LSTM",
       {},
       {{5, 3, 4}, {1, 32, 4}, {1, 32, 8}, {}, {}, {}, {1, 3, 8}},
       "yyy"},
      {"lstm clipped",
       "LSTM",
       {{.name = "clip", .type = OnnxAttributeType::kFloat, .f = 0.2F}},
       {{5, 3, 4}, {1, 32, 4}, {1, 32, 8}},
       "y",
       false},
      {"lstm with peepholes",
       "LSTM",
       {},
       {{5, 3, 4}, {1, 32, 4}, {1, 32, 8}, {}, {}, {}, {}, {1, 24}},
       "y",
       false},
      {"lstm, wide", "LSTM", {}, {{3, 2, 7}, {1, 600, 7}, {1, 600, 150}, {1, 1200}}, "yyy"},
      {"gru, odd sizes", "GRU", {both}, {{7, 9, 5}, {2, 57, 5}, {2, 57, 19}, {2, 114}}, "yy"},
      {"gru, wide", "GRU", {back}, {{3, 2, 7}, {1, 450, 7}, {1, 450, 150}, {1, 900}}, "yy"},
      {"gru of lengths",
       "GRU",
       {both},
       {{5, 3, 4}, {2, 24, 4}, {2, 24, 8}, {2, 48}, {3}},
       "yy",
       true,
       {2, 5, 4}},
      {"gru linear, wide, of lengths",
       "GRU",
       {both, IntOf("linear_before_reset", 1)},
       {{5, 3, 4}, {2, 450, 4}, {2, 450, 150}, {2, 900}, {3}, {2, 3, 150}},
       "yy",
       true,
       {2, 5, 4}},
      {"rnn, odd sizes", "RNN", {both}, {{7, 9, 5}, {2, 19, 5}, {2, 19, 19}, {2, 38}}, "yy"},
      {"rnn of relu",
       "RNN",
       {{.name = "activations", .type = OnnxAttributeType::kStrings, .strings = {"Relu"}}},
       {{6, 2, 4}, {1, 230, 4}, {1, 230, 230}, {1, 460}},
       "yy"},
      {"rnn of another function",
       "RNN",
       {{.name = "activations", .type = OnnxAttributeType::kStrings, .strings = {"Softsign"}}},
       {{6, 2, 4}, {1, 8, 4}, {1, 8, 8}, {1, 16}},
       "yy",
       false},
  };
  for (const KeptCase& c : cases) CheckKept(c);
}

// A model may state sizes that do not go together; the kernels must not believe them.
TEST(KeptKernels, SizesThatDoNotFitAreRefused) {
  const struct {
    const char* op;
    std::vector<Shape> operands;
    Shape result;
  } cases[] = {
      {"LSTM", {{2, 1, 3}, {1, 12, 3}, {1, 16, 4}}, {2, 1, 1, 4}},
      {"LSTM", {{2, 1, 3}, {1, 16, 3}, {1, 16, 4}, {1, 16}}, {2, 1, 1, 4}},
      {"GRU", {{2, 1, 3}, {1, 12, 3}, {1, 12, 5}}, {2, 1, 1, 4}},
      {"RNN", {{2, 1, 3}, {1, 4, 3}, {1, 4, 4}}, {1, 1, 1, 4}},
      {"ConvTranspose", {{1, 3, 4, 4}, {3, 3, 2, 2}}, {1, 3, 4, 5}},
      {"ConvTranspose", {{1, 3, 4, 4}, {2, 3, 2, 2}}, {1, 3, 5, 5}},
      {"ConvTranspose", {{1, 3, 4, 4}, {3, 3, 2, 2}, {9}}, {1, 3, 5, 5}},
  };
  for (const auto& c : cases) {
    OnnxNode node{.op_type = c.op, .outputs = {"y"}};
    GraphBuilder builder;
    MemoryWeights weights;
    std::vector<Edge> edges;
    for (const Shape& shape : c.operands) {
      const TensorType type{DType::kFloat32, shape};
      node.inputs.push_back("x");
      edges.push_back(edges.empty() ? builder.Input("x", type)
                                    : builder.Constant(type, weights.Put(RandomTensor(type, 3))));
    }
    const TensorType result{DType::kFloat32, c.result};
    Attributes attributes{{"onnx_node", *AnonymousNode(node)}, {"opset", int64_t{17}}};
    builder.Output({builder.AddOpaque(edges, std::move(attributes), {&result, 1}), 0}, "y");
    const Graph graph = *builder.Build();
    const auto device = *OpenCpuDevice({.cores = 1});
    RooflineTimes times(device->spec());
    const Plan plan = *MakePlan(graph, device->spec(), Policy(), times, {}, 1);
    const auto names = device->Kernels(ExtractGroup(graph, plan.groups[0], Policy()));
    EXPECT_EQ(*names, std::vector<std::string>{"reference"}) << c.op;
    const auto executable = device->Build({graph, plan, weights});
    ASSERT_TRUE(executable.ok()) << c.op;
    const Tensor x = RandomTensor({DType::kFloat32, c.operands[0]}, 1);
    Tensor y = Tensor::Zeros(result);
    EXPECT_EQ((*executable)->Run({&x, 1}, {&y, 1}).status().code(), StatusCode::kInvalidArgument)
        << c.op;
  }
}

TEST(KeptKernels, ConvTranspose) {
  const char* const op = "ConvTranspose";
  const OnnxAttribute by_two = IntsOf("strides", {2, 2});
  const KeptCase cases[] = {
      {"plain", op, {}, {{1, 3, 5, 6}, {3, 4, 3, 3}, {4}}, "y"},
      {"doubling", op, {by_two}, {{2, 3, 5, 6}, {3, 4, 2, 2}}, "y"},
      {"padded", op, {by_two, IntsOf("pads", {1, 1, 1, 1})}, {{1, 3, 5, 6}, {3, 4, 4, 4}}, "y"},
      {"more at the end",
       op,
       {by_two, IntsOf("pads", {1, 1, 1, 1}), IntsOf("output_padding", {1, 1})},
       {{1, 3, 5, 6}, {3, 4, 3, 3}, {4}},
       "y"},
      {"by groups", op, {IntOf("group", 2)}, {{1, 4, 5, 6}, {4, 3, 3, 3}, {6}}, "y"},
      {"dilated", op, {IntsOf("dilations", {2, 2})}, {{1, 3, 5, 6}, {3, 4, 3, 3}}, "y"},
      {"one axis", op, {IntsOf("strides", {3})}, {{1, 3, 5}, {3, 4, 3}}, "y"},
      {"three axes", op, {}, {{1, 2, 3, 4, 5}, {2, 3, 2, 2, 2}}, "y"},
      {"same", op, {by_two, WordOf("auto_pad", "SAME_UPPER")}, {{1, 3, 5, 6}, {3, 4, 3, 3}}, "y"},
      {"same, lower",
       op,
       {by_two, WordOf("auto_pad", "SAME_LOWER")},
       {{1, 3, 5, 6}, {3, 4, 4, 3}},
       "y"},
      {"of a size",
       op,
       {by_two, IntsOf("output_shape", {10, 13})},
       {{1, 3, 5, 6}, {3, 4, 3, 3}},
       "y"},
      {"depthwise",
       op,
       {by_two, IntsOf("pads", {1, 1, 1, 1}), IntOf("group", 5)},
       {{2, 5, 17, 19}, {5, 1, 4, 4}, {5}},
       "y"},
      {"depthwise, two of each",
       op,
       {by_two, IntOf("group", 3)},
       {{1, 3, 4, 5}, {3, 2, 3, 3}},
       "y"},
      {"wide rows", op, {by_two}, {{1, 5, 9, 37}, {5, 7, 2, 2}, {7}}, "y"},
      {"wide rows, padded",
       op,
       {by_two, IntsOf("pads", {1, 1, 1, 1})},
       {{2, 7, 33, 35}, {7, 5, 4, 4}, {5}},
       "y"},
      {"many rows", op, {by_two, IntsOf("pads", {1, 0, 1, 1})}, {{1, 3, 90, 5}, {3, 2, 4, 3}}, "y"},
      {"many channels", op, {by_two}, {{1, 17, 5, 7}, {17, 77, 3, 3}, {77}}, "y"},
      {"groups of many", op, {IntOf("group", 3)}, {{1, 12, 9, 9}, {12, 50, 3, 3}, {150}}, "y"},
      {"strides of three and one",
       op,
       {IntsOf("strides", {3, 1}), IntsOf("dilations", {1, 3})},
       {{1, 4, 9, 10}, {4, 6, 2, 3}},
       "y"},
      {"gaps between", op, {IntsOf("strides", {3, 4})}, {{1, 4, 9, 10}, {4, 6, 2, 2}, {6}}, "y"},
      {"one pixel", op, {}, {{1, 9, 1, 1}, {9, 6, 4, 4}, {6}}, "y"},
      {"three axes by two",
       op,
       {IntsOf("strides", {2, 2, 2}), IntsOf("pads", {1, 0, 1, 1, 0, 1})},
       {{1, 4, 9, 4, 5}, {4, 3, 4, 2, 3}, {3}},
       "y"},
      {"long", op, {IntsOf("strides", {8}), IntsOf("pads", {4, 4})}, {{1, 6, 50}, {6, 5, 16}}, "y"},
  };
  for (const KeptCase& c : cases) CheckKept(c);
}

TEST(KeptKernels, ThreeAxes) {
  const OnnxAttribute two = IntsOf("kernel_shape", {2, 2, 2}),
                      three = IntsOf("kernel_shape", {3, 3, 2});
  const OnnxAttribute by_two = IntsOf("strides", {2, 2, 2}), ceil = IntOf("ceil_mode", 1);
  const OnnxAttribute pads = IntsOf("pads", {1, 0, 1, 1, 1, 0}),
                      all = IntOf("count_include_pad", 1);
  const OnnxAttribute same = WordOf("auto_pad", "SAME_UPPER");
  const Shape x{2, 3, 5, 6, 7};
  const KeptCase cases[] = {
      {"conv", "Conv", {}, {x, {4, 3, 3, 3, 3}, {4}}, "y"},
      {"conv, padded", "Conv", {pads, by_two}, {x, {4, 3, 3, 2, 3}}, "y"},
      {"conv, same", "Conv", {same, by_two}, {x, {4, 3, 3, 2, 3}}, "y"},
      {"conv by channel", "Conv", {IntOf("group", 3)}, {x, {6, 1, 3, 3, 3}, {6}}, "y"},
      {"conv, dilated", "Conv", {IntsOf("dilations", {2, 1, 3})}, {x, {4, 3, 2, 2, 2}}, "y"},
      {"max", "MaxPool", {two, by_two}, {x}, "y"},
      {"max, padded", "MaxPool", {three, pads, ceil, by_two}, {x}, "y"},
      {"max, dilated", "MaxPool", {two, IntsOf("dilations", {2, 3, 1})}, {x}, "y"},
      {"max with indices", "MaxPool", {two, by_two}, {x}, "yy", false},
      {"mean", "AveragePool", {two, by_two}, {x}, "y"},
      {"mean, padded", "AveragePool", {three, pads, by_two}, {x}, "y"},
      {"mean over the padding", "AveragePool", {three, pads, ceil, by_two, all}, {x}, "y"},
      {"mean, same", "AveragePool", {three, same, by_two}, {x}, "y"},
  };
  for (const KeptCase& c : cases) CheckKept(c);
}

TEST(KeptKernels, ThreeAxesByWinogradsTiles) {
  const OnnxAttribute same = WordOf("auto_pad", "SAME_UPPER");
  const OnnxAttribute frames = IntsOf("pads", {2, 1, 0, 1, 0, 2});
  const KeptCase cases[] = {
      {"whole", "Conv", {}, {{1, 16, 6, 9, 10}, {32, 16, 3, 3, 3}, {32}}, "y"},
      {"padded", "Conv", {same}, {{2, 16, 3, 14, 13}, {16, 16, 3, 3, 3}, {16}}, "y"},
      {"without bias, by chunks", "Conv", {same}, {{1, 32, 2, 41, 33}, {48, 32, 3, 3, 3}}, "y"},
      {"uneven", "Conv", {frames}, {{1, 16, 2, 11, 9}, {20, 16, 3, 3, 3}, {20}}, "y"},
      {"two taps", "Conv", {same}, {{1, 16, 5, 8, 8}, {16, 16, 2, 3, 3}, {16}}, "y"},
      {"one tap",
       "Conv",
       {IntsOf("pads", {0, 1, 1, 0, 1, 1})},
       {{1, 16, 5, 8, 8}, {16, 16, 1, 3, 3}},
       "y"},
      {"one frame", "Conv", {same}, {{1, 24, 1, 16, 16}, {16, 24, 3, 3, 3}, {16}}, "y"},
  };
  for (KeptCase c : cases) {
    c.kernel = "winograd_tiles";
    CheckKept(c);
  }
  CheckKept({"a frame of zeros alone",
             "Conv",
             {IntsOf("pads", {1, 1, 1, 1, 1, 1})},
             {{1, 16, 2, 8, 8}, {16, 16, 1, 3, 3}},
             "y"});
}

TEST(KeptKernels, Norms) {
  const auto norm = [](const char* name, const char* op, Shape x, int64_t scales, int64_t groups,
                       int64_t opset) {
    NodeCase c{name, {.op_type = op}, {}, "y", true, opset};
    if (groups > 0) c.node.attributes.push_back(IntOf("num_groups", groups));
    c.operands = {RandomTensor({DType::kFloat32, std::move(x)}, 1),
                  RandomTensor({DType::kFloat32, {scales}}, 2),
                  RandomTensor({DType::kFloat32, {scales}}, 3)};
    CheckNode(c);
  };
  norm("instances", "InstanceNormalization", {2, 5, 7, 9}, 5, 0, 17);
  norm("instances, one axis", "InstanceNormalization", {1, 3, 9001}, 3, 0, 17);
  norm("instances, three axes", "InstanceNormalization", {2, 3, 3, 4, 5}, 3, 0, 17);
  norm("groups", "GroupNormalization", {2, 6, 5, 7}, 6, 3, 21);
  norm("groups with a scale each", "GroupNormalization", {2, 6, 5, 7}, 3, 3, 18);
  norm("one group", "GroupNormalization", {1, 6, 35}, 6, 1, 21);
}

// The fast kernels know f32 only; they run between conversions.
TEST(KeptKernels, SixteenBitsTakeTheFastKernels) {
  const auto device = *OpenCpuDevice({.cores = 2});
  RooflineTimes times(device->spec());
  const KeptCase cases[] = {
      {"3-D", "Conv", {}, {{1, 3, 4, 5, 6}, {4, 3, 2, 2, 2}, {4}}, "y"},
      {"3-D", "MaxPool", {IntsOf("kernel_shape", {2, 2, 2})}, {{1, 3, 4, 5, 6}}, "y"},
      {"", "ConvTranspose", {}, {{1, 3, 5, 6}, {3, 4, 3, 3}, {4}}, "y"},
      {"", "InstanceNormalization", {}, {{2, 3, 5, 6}, {3}, {3}}, "y"},
      {"", "LSTM", {IntOf("hidden_size", 4)}, {{5, 2, 3}, {1, 16, 3}, {1, 16, 4}, {1, 32}}, "y"}};
  for (const KeptCase& c : cases) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      NodeCase node{.name = c.op,
                    .node = {.op_type = c.op, .attributes = c.attributes},
                    .outputs = c.outputs};
      for (const Shape& shape : c.operands) {
        node.operands.push_back(RandomTensor({dtype, shape}, 7 + node.operands.size()));
      }
      KeptGraph made;
      MakeKeptGraph(node, &made);
      const Plan plan = *MakePlan(made.graph, device->spec(), Policy(), times, {}, 1);
      const auto names = *device->Kernels(ExtractGroup(made.graph, plan.groups[0], Policy()));
      EXPECT_EQ(std::ranges::count(names, "reference"), 0) << c.op;
      const auto executable = device->Build({made.graph, plan, made.weights});
      ASSERT_TRUE(executable.ok()) << c.op << ToString(executable.status());
      const auto expected = *Evaluate(made.graph, made.inputs, made.weights);
      std::vector<Tensor> outputs{Tensor::Zeros(expected[0].type())};
      ASSERT_TRUE((*executable)->Run(made.inputs, outputs).ok()) << c.op;
      const OutputError error = CompareTensors("y", expected[0], outputs[0]);
      EXPECT_TRUE(IsEquivalent(error, dtype == DType::kFloat16 ? 2e-3 : 2e-2))
          << c.op << " " << DTypeName(dtype) << " " << error.max_rel;
    }
  }
}

TEST(KeptKernels, OnlyTheReferenceForTheRest) {
  CheckKept({"a norm", "MeanVarianceNormalization", {}, {{2, 3, 2, 2}}, "y", false});
}

}  // namespace
}  // namespace ag::cpu
