// The fast kernels along an axis, by indices and at places, against the operators' definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/kept_testing.h"
#include "graph/onnx/operators/operators.h"
#include "plan/fusion/group_problem.h"
#include "plan/schedule/planner.h"

namespace ag::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor Of(DType dtype, const Shape& shape, const std::function<double(int64_t)>& value) {
  std::vector<double> values;
  for (int64_t i = 0; i < NumElements(shape); ++i) values.push_back(value(i));
  return Tensor::FromDoubles({dtype, shape}, values);
}
// Whole numbers from -range to range, many of them equal.
Tensor Whole(const Shape& shape, int64_t range, DType dtype = DType::kFloat32, uint64_t seed = 1) {
  Random random(seed);
  return Of(dtype, shape, [&](int64_t) {
    return static_cast<double>(random.Below(static_cast<uint64_t>(2 * range + 1))) -
           static_cast<double>(range);
  });
}
// The same with every hundredth or so a NaN, an infinity or -0.
Tensor Special(const Shape& shape) {
  Random random(3);
  return Of(DType::kFloat32, shape, [&](int64_t) {
    const double others[] = {kNan, kInf, -kInf, -0.0};
    const uint64_t one = random.Below(100);
    return one < 4 ? others[one] : static_cast<double>(random.Below(9)) - 4;
  });
}
Tensor Integers(const Shape& shape, std::vector<double> values, DType dtype = DType::kInt64) {
  return Tensor::FromDoubles({dtype, shape}, values);
}

NodeCase Case(const char* op, std::vector<OnnxAttribute> attributes, std::vector<Tensor> operands,
              std::string outputs = "y") {
  return {.name = op,
          .node = {.op_type = op, .attributes = std::move(attributes)},
          .operands = std::move(operands),
          .outputs = std::move(outputs)};
}

TEST(KeptKernels, TopK) {
  const auto check = [](Tensor x, int64_t k, std::vector<OnnxAttribute> attributes,
                        const std::string& outputs) {
    CheckNode(Case("TopK", std::move(attributes),
                   {std::move(x), Integers({1}, {static_cast<double>(k)})}, outputs));
  };
  const OnnxAttribute first = IntOf("axis", 0), least = IntOf("largest", 0);
  check(Whole({1, 1000}, 300), 10, {}, "yy");
  check(Whole({1, 1000}, 5), 10, {}, "yy");
  check(Whole({7, 3000}, 1000), 100, {}, "yy");
  check(Whole({3, 900}, 1000), 700, {}, "yy");
  check(Whole({3, 900}, 1000), 900, {least}, "yy");
  check(Special({5, 400}), 7, {}, "yy");
  check(Special({5, 400}), 7, {least}, "yy");
  check(Special({5, 400}), 395, {least}, "yy");
  check(Whole({4000, 3}, 100), 30, {first}, "yy");
  check(Whole({2, 50, 40}, 9), 3, {IntOf("axis", 1), least}, "-y");
  check(Whole({2, 50, 40}, 9), 3, {IntOf("axis", -1)}, "y-");
  check(Whole({1}, 9), 1, {}, "yy");
  NodeCase bytes = Case("TopK", {}, {Whole({4, 9}, 9, DType::kInt32), Integers({1}, {2})}, "yy");
  bytes.is_fast = false;
  CheckNode(bytes);
}

TEST(KeptKernels, PlacesOfExtremes) {
  const OnnxAttribute last = IntOf("select_last_index", 1), flat = IntOf("keepdims", 0);
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const auto& ends : {std::vector<OnnxAttribute>{}, std::vector<OnnxAttribute>{last}}) {
      const auto check = [&](Tensor x, int64_t axis) {
        std::vector<OnnxAttribute> attributes = ends;
        attributes.push_back(IntOf("axis", axis));
        if (axis == 1) attributes.push_back(flat);
        CheckNode(Case(op, std::move(attributes), {std::move(x)}));
      };
      check(Whole({3, 40, 6625}, 3000), 2);
      check(Whole({21, 30, 30}, 9), 0);
      check(Whole({2, 21, 700}, 9), 1);
      check(Special({40, 333}), 1);
      check(Special({40, 333}), 0);
      check(Of(DType::kFloat32, {5, 130}, [](int64_t) { return kNan; }), -1);
      check(Of(DType::kFloat32, {5, 130}, [](int64_t) { return -kInf; }), -1);
      check(Whole({9, 1}, 3), 1);
      check(Whole({9, 63}, 3), 1);
      check(Whole({9, 65}, 3), 1);
    }
  }
}

TEST(KeptKernels, CumulativeSums) {
  const OnnxAttribute exclusive = IntOf("exclusive", 1), reverse = IntOf("reverse", 1);
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kInt32}) {
    for (const double axis : {0.0, 1.0, -1.0}) {
      for (const auto& ends : {std::vector<OnnxAttribute>{}, {exclusive}, {reverse, exclusive}}) {
        CheckNode(Case("CumSum", ends,
                       {Whole({3, 70, 300}, 50, dtype), Integers({}, {axis}, DType::kInt32)}));
      }
    }
  }
  CheckNode(Case("CumSum", {}, {Whole({1, 16000}, 50), Integers({}, {1})}));
  const double most = 2147483647;
  CheckNode(
      Case("CumSum", {}, {Integers({4}, {most, most, 5, -7}, DType::kInt32), Integers({}, {0})}));
}

TEST(KeptKernels, NormsOfLines) {
  for (const int64_t p : {1, 2}) {
    for (const int64_t axis : {0, 1, -1}) {
      CheckNode(Case("LpNormalization", {IntOf("p", p), IntOf("axis", axis)},
                     {RandomTensor({DType::kFloat32, {5, 70, 300}}, 4)}));
    }
    CheckNode(Case("LpNormalization", {IntOf("p", p)},
                   {Of(DType::kFloat32, {3, 65}, [](int64_t i) { return i < 65 ? 0.0 : 1.0; })}));
  }
}

TEST(KeptKernels, NormsOfNeighbours) {
  const auto check = [](int64_t size, double beta, const Shape& x, bool is_fast = true) {
    NodeCase c = Case("LRN",
                      {IntOf("size", size),
                       {.name = "beta", .type = OnnxAttributeType::kFloat, .f = float(beta)},
                       {.name = "alpha", .type = OnnxAttributeType::kFloat, .f = 0.3F},
                       {.name = "bias", .type = OnnxAttributeType::kFloat, .f = 2}},
                      {RandomTensor({DType::kFloat32, x}, 5)});
    c.is_fast = is_fast;
    CheckNode(c);
  };
  check(5, 0.75, {1, 96, 21, 21});
  check(4, 0.5, {2, 7, 5, 5});
  check(3, 1, {2, 3, 300});
  check(9, 0.75, {1, 4, 3, 3, 3});
  check(5, 0.6, {1, 8, 5, 5}, false);
}

TEST(KeptKernels, GathersAndScatters) {
  const Tensor data = RandomTensor({DType::kFloat32, {6, 50, 40}}, 1);
  for (const DType dtype : {DType::kInt64, DType::kInt32}) {
    for (const int64_t axis : {0, 1, 2}) {
      const Tensor index = Whole({5, 40, 33}, axis == 0 ? 6 : 40, dtype, 7);
      const Tensor low = Of(dtype, {5, 40, 33}, [&](int64_t i) {  // -size to size - 1.
        return std::min(index.At(i), axis == 0 ? 5.0 : 39.0);
      });
      const Tensor updates = RandomTensor({DType::kFloat32, {5, 40, 33}}, 2);
      const OnnxAttribute along = IntOf("axis", axis);
      CheckNode(Case("GatherElements", {along}, {data, low}));
      CheckNode(Case("ScatterElements", {along}, {data, low, updates}));
      NodeCase add =
          Case("ScatterElements", {along, WordOf("reduction", "add")}, {data, low, updates});
      CheckNode(add);
    }
  }
  for (const DType dtype : {DType::kBool, DType::kFloat16, DType::kInt64}) {
    const Tensor moved = Of(dtype, {9}, [](int64_t i) { return static_cast<double>(i % 2); });
    const Tensor at = Integers({4}, {8, 0, -1, -9});
    CheckNode(Case("GatherElements", {}, {moved, at}));
    CheckNode(
        Case("ScatterElements", {}, {moved, at, Of(dtype, {4}, [](int64_t) { return 1.0; })}));
  }
  // The last of equal places stays.
  CheckNode(Case("ScatterElements", {},
                 {Whole({4, 2}, 3), Integers({3, 2}, {1, 1, 1, 1, 0, 1}),
                  RandomTensor({DType::kFloat32, {3, 2}}, 3)}));
  NodeCase most = Case("ScatterElements", {WordOf("reduction", "max")},
                       {Whole({4}, 3), Integers({1}, {2}), Whole({1}, 9)});
  most.opset = 18;
  most.is_fast = false;
  CheckNode(most);
}

TEST(KeptKernels, TuplesOfIndices) {
  const Tensor data = RandomTensor({DType::kFloat32, {6, 50, 40}}, 1);
  const Tensor rows = Integers({3, 1}, {5, -6, 2});
  const Tensor pairs = Integers({2, 2, 2}, {5, 49, -6, -50, 2, 7, 2, 7});
  CheckNode(Case("GatherND", {}, {data, rows}));
  CheckNode(Case("GatherND", {}, {data, pairs}));
  CheckNode(Case("GatherND", {}, {data, Integers({2, 3}, {5, 49, 39, 0, -1, -40})}));
  CheckNode(Case("GatherND", {IntOf("batch_dims", 1)},
                 {data, Integers({6, 2, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -50})}));
  CheckNode(Case("ScatterND", {}, {data, rows, RandomTensor({DType::kFloat32, {3, 50, 40}}, 2)}));
  CheckNode(Case("ScatterND", {}, {data, pairs, RandomTensor({DType::kFloat32, {2, 2, 40}}, 2)}));
  CheckNode(Case("ScatterND", {WordOf("reduction", "add")},
                 {data, pairs, RandomTensor({DType::kFloat32, {2, 2, 40}}, 2)}));
}

TEST(KeptKernels, PartsOfMatrices) {
  for (const int64_t upper : {0, 1}) {
    for (const double k : {0.0, 1.0, -3.0, 100.0, -100.0, 9e18, -9e18}) {
      CheckNode(Case("Trilu", {IntOf("upper", upper)},
                     {RandomTensor({DType::kFloat32, {2, 7, 5}}, 1), Integers({}, {k})}));
    }
    CheckNode(Case("Trilu", {IntOf("upper", upper)}, {Whole({300, 301}, 1, DType::kInt64)}));
    CheckNode(Case("Trilu", {IntOf("upper", upper)}, {Whole({5, 5}, 1, DType::kBool)}));
  }
}

TEST(KeptKernels, SamplesOfPlanes) {
  // From beyond the borders to beyond them, with the borders and the middles among them.
  const Tensor grid = Of(DType::kFloat32, {2, 30, 31, 2}, [](int64_t i) {
    return i % 97 == 0 ? kNan : std::remainder(static_cast<double>(i) * 0.21, 3.0);
  });
  for (const char* mode : {"nearest", "bilinear"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const int64_t corners : {0, 1}) {
        CheckNode(Case("GridSample",
                       {WordOf("mode", mode), WordOf("padding_mode", padding),
                        IntOf("align_corners", corners)},
                       {RandomTensor({DType::kFloat32, {2, 3, 9, 12}}, 1), grid}));
      }
    }
  }
  NodeCase cubic = Case("GridSample", {WordOf("mode", "bicubic")},
                        {RandomTensor({DType::kFloat32, {2, 3, 9, 12}}, 1), grid});
  cubic.is_fast = false;
  CheckNode(cubic);
}

// A run ends with an error that names the index, as the reference kernel does.
TEST(KeptKernels, IndicesOutsideAreErrors) {
  struct Outside {
    const char* op;
    Shape index;
    Shape result;
    bool has_updates;
  };
  const Outside cases[] = {{"GatherElements", {2, 3}, {2, 3}, false},
                           {"GatherND", {2, 1}, {2, 3}, false},
                           {"ScatterElements", {2, 3}, {4, 3}, true},
                           {"ScatterND", {2, 1}, {4, 3}, true}};
  const auto device = *OpenCpuDevice({.cores = 2});
  for (const Outside& c : cases) {
    for (const double index : {4.0, -5.0, 1e18}) {
      OnnxNode node{.op_type = c.op, .inputs = {"x", "i"}, .outputs = {"y"}};
      GraphBuilder builder;
      const TensorType x{DType::kFloat32, {4, 3}}, i{DType::kInt64, c.index};
      const TensorType update{DType::kFloat32,
                              c.op == std::string("ScatterND") ? Shape{2, 3} : c.index};
      std::vector<Edge> edges = {builder.Input("x", x), builder.Input("i", i)};
      std::vector<Tensor> inputs = {RandomTensor(x, 1),
                                    Of(DType::kInt64, c.index, [&](int64_t) { return index; })};
      if (c.has_updates) {
        node.inputs.push_back("u");
        edges.push_back(builder.Input("u", update));
        inputs.push_back(RandomTensor(update, 2));
      }
      const TensorType result{DType::kFloat32, c.result};
      Attributes attributes{{"onnx_node", *AnonymousNode(node)}, {"opset", int64_t{17}}};
      builder.Output({builder.AddOpaque(edges, std::move(attributes), {&result, 1}), 0}, "y");
      const Graph graph = *builder.Build();
      MemoryWeights weights;
      RooflineTimes times(device->spec());
      const Plan plan = *MakePlan(graph, device->spec(), Policy(), times, {}, 1);
      EXPECT_EQ(device->Kernels(ExtractGroup(graph, plan.groups[0], Policy()))->size(), 2u);
      const auto executable = device->Build({graph, plan, weights});
      ASSERT_TRUE(executable.ok()) << c.op;
      Tensor y = Tensor::Zeros(result);
      const Status ran = (*executable)->Run(inputs, {&y, 1}).status();
      EXPECT_EQ(ran.code(), StatusCode::kOutOfRange) << c.op << " " << ToString(ran);
    }
  }
}

}  // namespace
}  // namespace ag::cpu
