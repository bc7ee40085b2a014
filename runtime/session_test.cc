#include "runtime/session.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/blobs.h"
#include "base/file.h"
#include "device/open_device.h"
#include "device/sim/sim_device.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/reference/evaluate.h"
#include "plan/equivalence.h"
#include "plan/format/plan_codec.h"
#include "plan/fusion/group_time.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "runtime/testing/testing.h"

namespace ag {
namespace {

// Two layers; the model leaves the size of the batch open.
struct Imported {
  std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  ImportedModel model;
};

Imported Import(const std::string& bytes, const std::map<std::string, Shape>& shapes = {}) {
  Imported imported;
  auto model = ImportOnnx(bytes, {.shapes = shapes}, *imported.blobs);
  AG_CHECK(model.ok());
  imported.model = *std::move(model);
  return imported;
}

std::vector<Tensor> Inputs(const Session& session) {
  std::vector<Tensor> inputs;
  for (const TensorInfo& info : session.inputs()) {
    inputs.push_back(RandomTensor(info.type, 7 + inputs.size()));
  }
  return inputs;
}

// Checks that the session's outputs are those of the reference kernels on the imported model.
void ExpectRunsRight(Session& session, const std::string& bytes, const std::string& name,
                     const std::map<std::string, Shape>& shapes = {}, double tolerance = 1e-5) {
  const Imported imported = Import(bytes, shapes);
  const std::vector<Tensor> inputs = Inputs(session);
  const auto outputs = session.Run(inputs);
  ASSERT_EQ(ToString(outputs.status()), "OK") << name;
  const auto expected = *Evaluate(imported.model.graph, inputs, BlobWeights(imported.blobs));
  ASSERT_EQ(outputs->size(), expected.size()) << name;
  for (size_t i = 0; i < expected.size(); ++i) {
    const OutputError error = CompareTensors("output", expected[i], (*outputs)[i]);
    EXPECT_TRUE(IsEquivalent(error, tolerance)) << name << ": " << error.max_rel;
  }
}

// Returns a plan of one stream for the imported model, as a coordinator would put into it.
Plan PlanFor(const ImportedModel& model, Device& device, const Policy& policy = {}) {
  RooflineTimes times(device.spec());
  auto plan = MakePlan(model.graph, device.spec(), policy, times, {}, 1);
  AG_CHECK(plan.ok());
  plan->environment = device.environment();
  return *std::move(plan);
}

std::string WithPlans(const Imported& imported, const std::vector<std::string>& plans) {
  ExportOptions options;
  for (const std::string& plan : plans) options.plans.emplace_back(Sha256(plan).Hex(), plan);
  auto bytes =
      ExportOnnx(imported.model.graph, imported.model.origin, BlobWeights(imported.blobs), options);
  AG_CHECK(bytes.ok());
  return *std::move(bytes);
}

TEST(Session, RunsAModelWithoutPlan) {
  const std::string model = testing::ModelFromText(kModel);
  for (const char* device : {"cpu", "cpu:1", "sim:small"}) {
    const auto session = Session::Load(model, {.device = device});
    ASSERT_EQ(ToString(session.status()), "OK") << device;
    EXPECT_FALSE((*session)->uses_carried_plan());
    EXPECT_EQ((*session)->warnings(), std::vector<std::string>());
    ASSERT_EQ((*session)->inputs().size(), 1u);
    EXPECT_EQ((*session)->inputs()[0].name, "x");
    EXPECT_EQ((*session)->inputs()[0].type.ToString(), "f32[2,4]");
    EXPECT_EQ((*session)->outputs()[0].name, "y");
    EXPECT_EQ((*session)->outputs()[0].type.ToString(), "f32[2,3]");
    ExpectRunsRight(**session, model, device);
  }
}

TEST(Session, RunsEveryChoiceAlike) {
  const std::string model = testing::ConvModel();
  const auto device = *OpenDevice("sim:small");
  const struct {
    const char* name;
    PlanChoice plan;
    int streams;
    size_t streams_max;
  } kCases[] = {
      {"input", PlanChoice::kInput, 0, 1},
      {"unfused", PlanChoice::kUnfused, 0, 1},
      {"one stream", PlanChoice::kCarried, 1, 1},
      {"two streams", PlanChoice::kCarried, 2, 2},
  };
  size_t unfused_groups = 0, input_groups = 0;
  for (const auto& c : kCases) {
    const auto session = Session::Load(model, {.plan = c.plan, .streams = c.streams}, *device);
    ASSERT_EQ(ToString(session.status()), "OK") << c.name;
    EXPECT_LE((*session)->plan().streams.size(), c.streams_max) << c.name;
    (c.plan == PlanChoice::kUnfused ? unfused_groups : input_groups) =
        (*session)->plan().groups.size();
    ExpectRunsRight(**session, model, c.name);
  }
  EXPECT_GT(unfused_groups, input_groups);
}

TEST(Session, UsesThePlanThatItCarries) {
  for (const char* name : {"cpu:1", "sim:small"}) {
    const auto device = *OpenDevice(name);
    const Imported imported = Import(testing::ModelFromText(kModel));
    const std::string plan = EncodePlan(PlanFor(imported.model, *device));
    const std::string model = WithPlans(imported, {plan});
    const auto session = Session::Load(model, {}, *device);
    ASSERT_EQ(ToString(session.status()), "OK") << name;
    EXPECT_TRUE((*session)->uses_carried_plan()) << name;
    EXPECT_EQ((*session)->warnings(), std::vector<std::string>()) << name;
    EXPECT_EQ(EncodePlan((*session)->plan()), plan) << name;
    ExpectRunsRight(**session, model, name);

    const auto given =
        Session::Load(WithPlans(imported, {"another"}), {.plan_bytes = plan}, *device);
    EXPECT_TRUE((*given)->uses_carried_plan()) << name;
    EXPECT_EQ((*given)->warnings(), std::vector<std::string>()) << "the model's own comes after it";

    const auto input = Session::Load(model, {.plan = PlanChoice::kInput}, *device);
    EXPECT_FALSE((*input)->uses_carried_plan()) << "it was not asked for";
  }
}

// A file of opset 13 has swish expanded; its plan may be for the graph with swish whole.
TEST(Session, UsesAPlanOfTheModelCleanedUp) {
  const auto device = *OpenDevice("sim:small");
  Imported imported = Import(testing::ModelFromText(
      "g (float[2,4] x) => (float[2,3] y) <float[4,3] w = {1,-2,3,4,5,-6,7,8,9,-1,2,3}>"
      " { p = MatMul(x, w) q = Sigmoid(p) y = Mul(p, q) }"));
  const Graph raw = imported.model.graph;
  imported.model.graph = *CleanUp(raw, BuiltInRules());
  ASSERT_LT(imported.model.graph.size(), raw.size());
  const std::string plan = EncodePlan(PlanFor(imported.model, *device));
  const std::string model = WithPlans(imported, {plan});
  EXPECT_EQ(Import(model).model.graph.digest(), raw.digest()) << "taken apart again";
  const auto session = Session::Load(model, {}, *device);
  ASSERT_EQ(ToString(session.status()), "OK");
  EXPECT_EQ((*session)->warnings(), std::vector<std::string>());
  EXPECT_TRUE((*session)->uses_carried_plan());
  EXPECT_EQ((*session)->plan().graph, imported.model.graph.digest());
  ExpectRunsRight(**session, model, "swish");
}

// With any fault in a plan, the model still runs right and a warning says why.
TEST(Session, IgnoresAPlanThatDoesNotFit) {
  const auto device = *OpenDevice("sim:small");
  const Imported imported = Import(testing::ModelFromText(kModel));
  const Plan good = PlanFor(imported.model, *device);
  const std::string graph = imported.model.graph.digest().Short();
  const auto changed = [&](const std::function<void(Plan&)>& change) {
    Plan plan = good;
    change(plan);
    return EncodePlan(plan);
  };
  std::string version = EncodePlan(good);
  version[4] = 4;  // After the magic.
  const struct {
    const char* name;
    std::string plan, why;
  } kCases[] = {
      {"garbage", "garbage!", "not a plan: magic is 0x62726167"},
      {"empty", "", ""},
      {"cut", EncodePlan(good).substr(0, EncodePlan(good).size() - 1), ""},
      {"version", version, "plan: expected version 1 to 3, got 4"},
      {"environment", changed([](Plan& p) { p.environment = "cpu=other"; }),
       "made for environment cpu=other, this is " + device->environment()},
      {"control bytes", changed([](Plan& p) { p.environment = "\x1b[31m\r\nx"; }),
       "made for environment \\x1b[31m\\x0d x, this is " + device->environment()},
      {"never measured", changed([](Plan& p) { p.environment.clear(); }),
       "made for environment , this is " + device->environment()},
      {"graph", changed([](Plan& p) { p.graph = Sha256("x"); }),
       "made for graph " + Sha256("x").Short() + ", this is " + graph},
      {"kernel", changed([](Plan& p) { p.groups[0].kernel = "gone"; }), "small: no kernel gone"},
      {"groups", changed([](Plan& p) { p.groups.clear(); }), ""},
      {"streams", changed([](Plan& p) { p.streams.clear(); }), ""},
  };
  for (const auto& c : kCases) {
    const std::string model = WithPlans(imported, {c.plan});
    const auto session = Session::Load(model, {}, *device);
    ASSERT_EQ(ToString(session.status()), "OK") << c.name;
    EXPECT_FALSE((*session)->uses_carried_plan()) << c.name;
    ASSERT_EQ((*session)->warnings().size(), 1u) << c.name;
    const std::string warning = (*session)->warnings()[0];
    const std::string begin = "plan " + Sha256(c.plan).Hex().substr(0, 12) + " ignored: ";
    if (c.why.empty()) {
      EXPECT_TRUE(warning.starts_with(begin) && warning.size() > begin.size()) << warning;
    } else {
      EXPECT_EQ(warning, begin + c.why) << c.name;
    }
    ExpectRunsRight(**session, model, c.name);
  }
}

TEST(Session, IgnoresAPrecisionThatTheDeviceLacks) {
  const auto device = *OpenDevice("cpu:1");
  const Imported imported = Import(testing::ModelFromText(kModel));
  Plan plan = PlanFor(imported.model, *device);
  plan.policy.precision = "tf32";
  const std::string model = WithPlans(imported, {EncodePlan(plan)});
  const auto session = Session::Load(model, {}, *device);
  ASSERT_EQ(ToString(session.status()), "OK");
  ASSERT_EQ((*session)->warnings().size(), 1u);
  EXPECT_TRUE((*session)->warnings()[0].find("cpu: precision tf32; it offers fp32") !=
              std::string::npos);
  ExpectRunsRight(**session, model, "tf32");
}

TEST(Session, RunsACarriedPlanInBf16WhereTheProcessorHasIt) {
  const auto device = *OpenDevice("cpu:1");
  const Imported imported = Import(testing::ConvModel());
  const bool is_offered = device->spec().Offers("bf16");
  Plan plan = PlanFor(imported.model, *device, {.precision = is_offered ? "bf16" : "fp32"});
  plan.policy.precision = "bf16";
  const std::string model = WithPlans(imported, {EncodePlan(plan)});
  const auto session = Session::Load(model, {}, *device);
  ASSERT_EQ(ToString(session.status()), "OK");
  EXPECT_EQ((*session)->uses_carried_plan(), is_offered);
  EXPECT_EQ((*session)->warnings().size(), is_offered ? 0u : 1u);
  ExpectRunsRight(**session, model, "bf16", {}, DefaultTolerance(is_offered ? "bf16" : "fp32"));
}

TEST(Session, TakesTheFirstPlanThatFits) {
  const auto small = *OpenDevice("sim:small"), cpu = *OpenDevice("sim:cpu");
  const Imported imported = Import(testing::ModelFromText(kModel));
  const std::string model = WithPlans(imported, {EncodePlan(PlanFor(imported.model, *small)),
                                                 EncodePlan(PlanFor(imported.model, *cpu))});
  for (Device* device : {small.get(), cpu.get()}) {
    const auto session = Session::Load(model, {}, *device);
    ASSERT_EQ(ToString(session.status()), "OK");
    EXPECT_TRUE((*session)->uses_carried_plan());
    EXPECT_EQ((*session)->plan().environment, device->environment());
  }
}

// A plan is valid only for the shapes that it was made with.
TEST(Session, OtherShapesHaveNoPlan) {
  const auto device = *OpenDevice("sim:small");
  const std::string open = testing::ModelFromText(kOpenBatch);
  const std::map<std::string, Shape> two = {{"x", {2, 4}}}, five = {{"x", {5, 4}}};
  const Imported imported = Import(open, two);
  const auto plan = EncodePlan(PlanFor(imported.model, *device));
  const auto fits = Session::Load(WithPlans(imported, {plan}), {}, *device);
  ASSERT_EQ(ToString(fits.status()), "OK");
  EXPECT_TRUE((*fits)->uses_carried_plan());

  const auto other = Session::Load(open, {.shapes = five}, *device);
  ASSERT_EQ(ToString(other.status()), "OK");
  EXPECT_EQ((*other)->inputs()[0].type.ToString(), "f32[5,4]");
  ExpectRunsRight(**other, open, "five", five);
}

// Each set of sizes is loaded at its first run; more of them than are kept.
TEST(Session, RunsOtherSizesThatTheModelLeavesOpen) {
  const std::string bytes = testing::ModelFromText(
      "g (float[N,4] x, float[4] s) => (float[N,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}>"
      "{ a = Mul(x, s) y = MatMul(a, w) }");
  auto session = Session::Load(bytes, {.device = "cpu:1", .shapes = {{"x", {2, 4}}}});
  ASSERT_EQ(ToString(session.status()), "OK");
  EXPECT_EQ((*session)->inputs()[0].open_axes, std::vector<size_t>{0});
  EXPECT_TRUE((*session)->inputs()[1].open_axes.empty());
  for (int64_t round = 0; round < 2; ++round) {
    for (int64_t rows = 1; rows < 12; ++rows) {
      const std::vector<Tensor> inputs = {RandomTensor({DType::kFloat32, {rows, 4}}, 1),
                                          RandomTensor({DType::kFloat32, {4}}, 2)};
      const auto outputs = (*session)->Run(inputs);
      ASSERT_EQ(ToString(outputs.status()), "OK") << rows;
      const Imported imported = Import(bytes, {{"x", {rows, 4}}});
      const auto expected = *Evaluate(imported.model.graph, inputs, BlobWeights(imported.blobs));
      ASSERT_EQ((*outputs)[0].type(), expected[0].type());
      EXPECT_TRUE(IsEquivalent(CompareTensors("y", expected[0], (*outputs)[0]), 1e-5)) << rows;
    }
  }
  EXPECT_EQ(ToString((*session)
                         ->Run({Tensor::Zeros({DType::kFloat32, {3, 5}}),
                                Tensor::Zeros({DType::kFloat32, {4}})})
                         .status()),
            "INVALID_ARGUMENT: input \"x\": expected f32[2,4], got f32[3,5]");
}

TEST(Session, RunsNodesWhoseSizesDependOnValuesBehindItsPlan) {
  const std::string bytes = testing::ModelFromText(
      "g (float[N,2] x) => (int64[2,K] at, float[N,2] r) { r = Relu(x) at = NonZero(r) }");
  auto session = Session::Load(bytes, {.device = "cpu:1", .shapes = {{"x", {2, 2}}}});
  ASSERT_EQ(ToString(session.status()), "OK");
  EXPECT_TRUE((*session)->is_dynamic());
  ASSERT_EQ((*session)->outputs().size(), 2u);
  EXPECT_EQ((*session)->outputs()[0].type.dtype, DType::kInt64);
  EXPECT_FALSE((*session)->outputs()[0].has_shape);
  for (const int64_t rows : {2, 3}) {
    Tensor x = Tensor::Zeros({DType::kFloat32, {rows, 2}});
    x.Put(2 * rows - 1, 5);
    const auto outputs = (*session)->Run({x});
    ASSERT_EQ(ToString(outputs.status()), "OK");
    EXPECT_EQ((*outputs)[0].ToDoubles(), (std::vector<double>{static_cast<double>(rows - 1), 1}));
    EXPECT_EQ((*outputs)[1].ToDoubles(), x.ToDoubles());
  }
  EXPECT_EQ((*session)->RunInPlace({}, {}).status().code(), StatusCode::kFailedPrecondition);

  // What times the session times the nodes behind the plan too.
  Executable& whole = (*session)->executable();
  const std::vector<Tensor> inputs = {Tensor::Zeros({DType::kFloat32, {2, 2}})};
  std::vector<Tensor> none = (*session)->NewOutputs();
  EXPECT_TRUE(none.empty());
  const auto ns = whole.Time({inputs, none, 3});
  ASSERT_EQ(ToString(ns.status()), "OK");
  EXPECT_GT(*ns, 0);
  EXPECT_EQ(whole.Time({inputs, none, 1, Caches::kEvicted}).status().code(),
            StatusCode::kUnimplemented);
  std::vector<Tensor> some = {inputs[0]};
  EXPECT_EQ(whole.Run(inputs, some).status().code(), StatusCode::kFailedPrecondition);
}

TEST(Session, TakesAndGivesSequences) {
  const std::string model = testing::SequenceModelFromText(
      "g (float[N,2] x, float[K] parts) => (float[M] all, float[N,2] r)"
      "{ r = Relu(x) all = SequenceInsert(parts, r) }",
      {"parts", "all"});
  auto session = Session::Load(model, {.device = "cpu:1", .shapes = {{"x", {1, 2}}}});
  ASSERT_EQ(ToString(session.status()), "OK");
  EXPECT_EQ((*session)->inputs()[1].kind, OnnxKind::kSequence);
  EXPECT_EQ((*session)->outputs()[0].kind, OnnxKind::kSequence);
  const Tensor one = Tensor::FromFloats({1}, std::vector<float>{7});
  for (const int64_t rows : {1, 3}) {  // Sizes of tensors stay open beside it.
    Tensor x = Tensor::Zeros({DType::kFloat32, {rows, 2}});
    x.Put(1, -5);
    const auto outputs = (*session)->RunValues({x, ModelValue(OnnxKind::kSequence, {one, one})});
    ASSERT_EQ(ToString(outputs.status()), "OK");
    ASSERT_EQ((*outputs)[0].items.size(), 3u);
    EXPECT_EQ((*outputs)[0].items[2].tensor.type().shape, (Shape{rows, 2}));
    EXPECT_EQ((*outputs)[1].tensor.At(1), 0);
  }
  EXPECT_EQ(ToString((*session)->Run({one, one}).status()),
            "INVALID_ARGUMENT: input \"parts\" is a sequence of f32: only a run of values has it");
  EXPECT_EQ(ToString((*session)->RunValues({one, one}).status()),
            "INVALID_ARGUMENT: input \"x\": expected f32[1,2], got f32[1]");
  // What times models gives a tensor for each input.
  std::vector<Tensor> none;
  const std::vector<Tensor> inputs = {Tensor::Zeros({DType::kFloat32, {1, 2}}), one};
  EXPECT_EQ(ToString((*session)->executable().Run(inputs, none).status()), "OK");
}

// Large products behind the plan run on the device, with the weights of the dynamic part or
// without.
TEST(Session, RunsLargeNodesBehindItsPlanOnTheDevice) {
  std::vector<double> numbers;
  for (int i = 0; i < 64 * 64; ++i) numbers.push_back((i * 37 % 101 - 50) / 64.0);
  const std::string bytes = testing::ModelFromText(
      fmt::format("g (float[600,64] x, float[600] mask) => (float[K,64] y, float[K,K] z)"
                  "<float[64,64] w = {{{}}}> {{"
                  "at = NonZero(mask) last = Constant<value_ints = [-1]>() rows = Reshape(at, last)"
                  "part = Gather(x, rows) p = MatMul(part, w) y = Relu(p)"
                  "turned = Transpose(part) z = MatMul(part, turned) }}",
                  fmt::join(numbers, ",")));
  auto session = Session::Load(bytes, {.device = "cpu:2"});
  ASSERT_EQ(ToString(session.status()), "OK");
  ASSERT_TRUE((*session)->is_dynamic());
  const Imported imported = Import(bytes, {});
  for (const int64_t missing : {0, 50, 0, 600}) {
    const Tensor x = RandomTensor({DType::kFloat32, {600, 64}}, 1);
    Tensor mask = Tensor::Zeros({DType::kFloat32, {600}});
    for (int64_t i = missing; i < 600; ++i) mask.Put(i, 1);
    const auto outputs = (*session)->Run({x, mask});
    ASSERT_EQ(ToString(outputs.status()), "OK");
    const auto expected = *EvaluateModel(imported.model.graph, imported.model.origin, {x, mask},
                                         BlobWeights(imported.blobs));
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ((*outputs)[i].type(), expected[i].tensor.type());
      if ((*outputs)[i].bytes().empty()) continue;
      EXPECT_TRUE(IsEquivalent(CompareTensors("y", expected[i].tensor, (*outputs)[i]), 1e-4));
    }
  }
}

TEST(Session, RefusesWhatItCannotLoad) {
  const struct {
    const char* name;
    std::string bytes;
    SessionOptions options;
    std::string status;
  } kCases[] = {
      {"device",
       testing::ModelFromText(kModel),
       {.device = "sim:tpu"},
       "NOT_FOUND: sim:tpu: no such device spec; did you mean 'cpu'?; built-in are cpu, h200, "
       "rtx2080ti, small, stcp920"},
      {"not a model",
       "garbage",
       {.device = "sim:small"},
       "INVALID_ARGUMENT: not ONNX: this is text"},
      {"empty", "", {.device = "sim:small"}, "INVALID_ARGUMENT: the model is empty"},
  };
  for (const auto& c : kCases) {
    const Status status = Session::Load(c.bytes, c.options).status();
    EXPECT_FALSE(status.ok()) << c.name;
    EXPECT_EQ(ToString(status), c.status) << c.name;
  }
}

TEST(Session, NamesTheInputThatDoesNotFit) {
  const auto session = Session::Load(testing::ModelFromText(kModel), {.device = "sim:small"});
  ASSERT_EQ(ToString(session.status()), "OK");
  const Tensor right = Tensor::Zeros({DType::kFloat32, {2, 4}});
  const struct {
    const char* name;
    std::vector<Tensor> inputs;
    std::string status;
  } kCases[] = {
      {"none", {}, "INVALID_ARGUMENT: model: expected 1 inputs, got 0"},
      {"two", {right, right}, "INVALID_ARGUMENT: model: expected 1 inputs, got 2"},
      {"dtype",
       {Tensor::Zeros({DType::kFloat64, {2, 4}})},
       "INVALID_ARGUMENT: input \"x\": expected f32[2,4], got f64[2,4]"},
      {"shape",
       {Tensor::Zeros({DType::kFloat32, {4, 2}})},
       "INVALID_ARGUMENT: input \"x\": expected f32[2,4], got f32[4,2]"},
      {"rank",
       {Tensor::Zeros({DType::kFloat32, {8}})},
       "INVALID_ARGUMENT: input \"x\": expected f32[2,4], got f32[8]"},
      {"right", {right}, "OK"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString((*session)->Run(c.inputs).status()), c.status) << c.name;
  }
}

TEST(Session, ADeviceThatFailsIsSaid) {
  const auto shipped = *OpenDevice("sim:small");
  const auto device = *OpenSimDevice(FormatDeviceSpec(shipped->spec()) + "fault sticky Relu\n");
  const auto session = Session::Load(testing::ModelFromText(kModel), {}, *device);
  ASSERT_EQ(ToString(session.status()), "OK");
  EXPECT_EQ(ToString((*session)->Run(Inputs(**session)).status()),
            "UNAVAILABLE: small: sticky error, open the device anew");
}

// A home folder of the test, so that no test writes into the user's.
class TunedSession : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* old = std::getenv("XDG_CACHE_HOME")) old_ = old;
    ::setenv("XDG_CACHE_HOME", home_.path().c_str(), 1);
  }
  void TearDown() override {
    if (old_) {
      ::setenv("XDG_CACHE_HOME", old_->c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
  }
  std::vector<std::string> Kept() const {
    const auto names = ListDir(Folder());
    return names.ok() ? *names : std::vector<std::string>();
  }
  std::string Folder() const { return home_.path() + "/autograph/tuned-plans"; }
  Plan Load(const SessionOptions& options) {
    auto session = Session::Load(model_, options, *device_);
    AG_CHECK(session.ok());
    ExpectRunsRight(**session, model_, "tuned");
    return (*session)->plan();
  }

  const TempDir home_ = *TempDir::Make("tuned-session-test");
  std::optional<std::string> old_;
  const std::string model_ = testing::ModelFromText(kModel);
  const std::unique_ptr<Device> device_ = *OpenDevice("sim:small");
};

TEST_F(TunedSession, KeepsItsPlanInTheUsersCache) {
  const Plan plan = Load({.tune = true});
  ASSERT_EQ(Kept().size(), 1u);
  EXPECT_EQ(*ReadFile(Folder() + "/" + Kept()[0]), EncodePlan(plan));
}

TEST_F(TunedSession, KeepsNothingWhenToldSo) {
  Load({.tune = true, .tuned_plans = ""});
  EXPECT_TRUE(Kept().empty());
}

TEST_F(TunedSession, AnUntunedOneNeitherLooksNorKeeps) {
  Load({});
  EXPECT_TRUE(Kept().empty());
  Load({.tune = true});
  EXPECT_EQ(Load({}).environment, "") << "by estimate";
}

TEST_F(TunedSession, APlanThatCanNoLongerBeBuiltIsMadeAnew) {
  const Plan tuned = Load({.tune = true});
  const std::string path = Folder() + "/" + Kept().at(0);
  Plan outdated = tuned;
  for (Group& group : outdated.groups) {
    if (!group.kernel.empty()) group.kernel = "of an older release";
  }
  ASSERT_EQ(ToString(WriteFileAtomically(path, EncodePlan(outdated))), "OK");
  EXPECT_EQ(EncodePlan(Load({.tune = true})), EncodePlan(tuned));
  EXPECT_EQ(*ReadFile(path), EncodePlan(tuned));
}

TEST_F(TunedSession, AHomeThatCannotBeWrittenToIsNoError) {
  ::setenv("XDG_CACHE_HOME", "/dev/null", 1);
  EXPECT_EQ(Load({.tune = true}).environment, device_->environment());
  const auto named =
      Session::Load(model_, {.tune = true, .tuned_plans = "/dev/null/plans"}, *device_);
  EXPECT_EQ(named.status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ag
