// The choice of the output when rules are wrong, with a worker that computes everything on the
// reference kernels and invents times.
#include "server/pipeline/publish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "base/random.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_time.h"
#include "plan/testing/testing.h"
#include "rules/match/rule_clean_up.h"
#include "search/rewrite_walk.h"
#include "server/store/open_store.h"
#include "wire/candidate_wire.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

std::vector<Tensor> InputsOf(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.type({id, 0}), seed * 100 + inputs.size()));
  }
  return inputs;
}

class ReferenceWorker : public WorkRunner {
 public:
  explicit ReferenceWorker(std::shared_ptr<BlobDir> blobs) : blobs_(std::move(blobs)) {}

  Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
             const std::function<bool()>&) override {
    const v1::WorkItem& work = *request.work;
    for (int entry = 0; entry < EntryCount(work); ++entry) {
      Delivery delivery;
      delivery.entry = entry;
      EntryResult& result = delivery.result;
      if (work.has_groups()) result.measurement = Measured(work.groups().problems(entry));
      if (work.has_check()) result.errors = Checked(work.check());
      if (work.has_files()) result.file_times = Timed(work.files());
      if (work.has_files() && sets >= late_from) {
        result.status = Err(StatusCode::kDeadlineExceeded, "30.0 s, not 10.0 s");
      }
      if (work.has_show()) result.shown = Shown(work.show());
      on_result(delivery);
    }
    return OkStatus();
  }
  std::vector<Tensor> Run(const Graph& graph, const std::vector<Tensor>& inputs) const {
    return *Evaluate(graph, inputs, BlobWeights(blobs_));
  }

  Digest model;
  int checks = 0;
  int sets = 0;           // Of files that were timed.
  bool runs = true;       // Files do.
  int late_from = 99;     // The first set that cannot be timed in time.
  double last_takes = 1;  // See Timed.
  int wrong = 0;          // So many first checks find a difference.

 private:
  static Measurement Measured(const std::string& bytes) {
    const double ns = RooflineNs(*DecodeGroupProblem(bytes), SmallSpec());
    Measurement measurement;
    measurement.latency = {ns, ns, ns};
    measurement.samples = 9;
    return measurement;
  }

  std::vector<OutputError> Compared(const v1::Check& check, uint64_t seed,
                                    v1::ShownValues* values) const {
    const Graph reference = FromProto(check.reference())->graph;
    const std::vector<Tensor> inputs = InputsOf(reference, seed);
    const std::vector<Tensor> expected = Run(reference, inputs);
    const std::vector<Tensor> actual = Run(FromProto(check.candidate())->graph, inputs);
    std::vector<OutputError> errors;
    for (size_t i = 0; i < expected.size(); ++i) {
      errors.push_back(CompareOutput(reference, i, expected[i], actual[i]));
      values->add_expected(std::string(expected[i].bytes()));
    }
    for (const Tensor& input : inputs) values->add_inputs(std::string(input.bytes()));
    return errors;
  }

  std::vector<OutputError> Checked(const v1::Check& check) {
    std::vector<OutputError> largest;
    for (const uint64_t seed : check.seeds()) {
      v1::ShownValues unused;
      const std::vector<OutputError> errors = Compared(check, seed, &unused);
      largest.resize(errors.size());
      for (size_t i = 0; i < errors.size(); ++i) largest[i] = Larger(errors[i], largest[i]);
    }
    if (++checks <= wrong) largest[0].max_rel = 0.5;
    return largest;
  }

  std::optional<v1::ShownValues> Shown(const v1::Show& show) const {
    for (const uint64_t seed : show.check().seeds()) {
      v1::ShownValues values;
      bool differs = false;
      for (const OutputError& error : Compared(show.check(), seed, &values)) {
        differs |= !IsEquivalent(error, show.check().tolerance());
        ToProto(error, values.add_errors());
      }
      values.set_differs(true);
      values.set_compared("usual");
      values.set_seed(seed);
      if (differs) return values;
    }
    return std::nullopt;
  }

  // Every file but the model carries a plan and is faster. The last file takes `last_takes` times
  // as long as it should.
  FileTimes Timed(const v1::FileSet& set) {
    ++sets;
    FileTimes times;
    std::vector<double> block(2 * static_cast<size_t>(set.files_size()));
    for (const v1::FileToTime& file : set.files()) {
      const bool is_model = file.digest() == model.Hex();
      const size_t f = times.runners.size();
      times.runners.push_back({.version = "1", .carried_plan = !is_model});
      if (!runs) times.runners.back().status = Err(StatusCode::kUnavailable, "it fails");
      block[f] = block[block.size() - 1 - f] = is_model ? 300 : 200;
    }
    if (!runs) return times;
    for (const size_t run : {block.size() / 2 - 1, block.size() / 2}) block[run] *= last_takes;
    times.blocks.assign(9, block);
    return times;
  }

  const std::shared_ptr<BlobDir> blobs_;
};

constexpr char kGoodRule[] =
    "good [rounding]: matmul(matmul(x, v), w) => matmul(x, matmul(v, w)) if const(v), const(w)\n";
constexpr char kBadRules[] =
    "bad [exact]: tanh(matmul(x, w)) => tanh(x)\n"
    "worse [exact]: exp(matmul(x, w)) => exp(x)\n";
constexpr char kBadCleanUp[] = "bad [rounding, clean-up]: tanh(matmul(x, w)) => tanh(x)\n";

constexpr char kBranches[] =
    "input x f32[16,16]\n"
    "input u f32[16,16]\n"
    "input v f32[16,16]\n"
    "output y = matmul(tanh(matmul(x, const f32[16,16] seed 1)), const f32[16,16] seed 2)\n"
    "output z = matmul(matmul(u, const f32[16,16] seed 3), const f32[16,16] seed 4)\n"
    "output t = exp(matmul(v, const f32[16,16] seed 5))\n";

class PublishTest : public ::testing::Test {
 protected:
  PublishTest() {
    measurer_.emplace(worker_, *store_.cache, clock_,
                      PoolMeasurer::Options{.device = "sim:small", .environment = "e"});
  }

  void UseText(std::string_view text) {
    MemoryWeights weights;
    const Graph graph = *ParseGraph(text, &weights);
    OnnxOrigin origin;
    origin.opsets = {{"", 17}};
    Use(*ExportOnnx(graph, origin, weights));
  }
  void Use(const std::string& bytes, const ShapesByInput& shapes = {}) {
    request_.setting.import.shapes = shapes;
    model_ = *ImportOnnx(bytes, request_.setting.import, *blobs_);
    worker_.model = *blobs_->Put(bytes);
    OutputSetting& setting = request_.setting;
    setting.model = &model_;
    setting.model_digest = worker_.model;
    setting.runnable = model_.graph;
    setting.spec = SmallSpec();
    setting.environment = "e";
    setting.blob_root = folder_.path() + "/blobs";
  }

  // Returns a plan that takes the named rules in turn, each at its first place.
  FoundPlan PlanOf(const std::vector<std::string>& rules) {
    RewriteWalk walk(request_.setting.input, rules_);
    FoundPlan found;
    for (const std::string& name : rules) {
      const std::vector<Rewrite> places = FindRewrites(walk.graph(), rules_);
      const auto is_it = [&](const Rewrite& place) { return place.rule->name == name; };
      const auto place = std::ranges::find_if(places, is_it);
      if (place == places.end()) {
        ADD_FAILURE() << name << " has no place in\n" << FormatGraph(walk.graph());
        return found;
      }
      found.steps.push_back({*place, found.steps.empty()});
      found.rewrites.push_back({name, 1, 100});
      walk.GoTo(*walk.After(*place));
    }
    found.graph = walk.graph();
    found.plan = *UnfusedPlan(request_.setting, found.graph);
    return found;
  }
  // Begins with the rules of the text and a winner; the model is in use already.
  void Begin(const std::string& rules, const std::vector<std::string>& winner) {
    rules_ = *RuleSet::Parse(rules, "test.rules");
    OutputSetting& setting = request_.setting;
    setting.input = *CleanUp(setting.runnable, rules_);
    setting.unfused_plan = *UnfusedPlan(setting, setting.input);
    static_cast<FoundPlan&>(found_) = PlanOf(winner);
    found_.input_plan = setting.unfused_plan;
    request_.found = &found_;
    request_.rules = &rules_;
    request_.job = &job_;
  }
  Published Choose() {
    StatusOr<Published> published = ChooseOutput(request_, *measurer_, *blobs_);
    EXPECT_TRUE(published.ok()) << published.status();
    return published.ok() ? *std::move(published) : Published();
  }

  static std::vector<std::string> Rules(const Published& published) {
    std::vector<std::string> rules;
    for (const AppliedRewrite& rewrite : published.rewrites) {
      rules.push_back(fmt::format("{} x{}", rewrite.rule, rewrite.count));
    }
    return rules;
  }
  static std::vector<std::string> Wrong(const Published& published) {
    std::vector<std::string> rules;
    for (const v1::WrongRewrite& wrong : published.wrong) rules.push_back(wrong.rule());
    return rules;
  }
  std::string File(const v1::CounterExample& example, const std::string& name) {
    for (const v1::NamedBlob& file : example.files()) {
      if (file.name() != name) continue;
      return std::string((*blobs_->Get(*ParseDigest(file.digest())))->bytes());
    }
    return "";
  }
  // The published file, read anew, computes what the model does.
  void ExpectRight(const Published& published) {
    ASSERT_TRUE(published.file.rewritten);
    const auto file = *blobs_->Get(published.file.digest);
    const Graph graph = ImportOnnx(file->bytes(), request_.setting.import, *blobs_)->graph;
    const std::vector<Tensor> inputs = InputsOf(graph, 77);
    const std::vector<Tensor> a = worker_.Run(model_.graph, inputs), b = worker_.Run(graph, inputs);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_TRUE(IsEquivalent(CompareTensors("", a[i], b[i]), 1e-5));
    }
  }
  // Its files show the difference.
  void ExpectShows(const v1::CounterExample& example) {
    ASSERT_EQ(example.left_out(), "");
    std::vector<Tensor> inputs;
    for (int i = 0;; ++i) {
      const std::string bytes = File(example, fmt::format("test_data_set_0/input_{}.pb", i));
      if (bytes.empty()) break;
      inputs.push_back(*ParseTensorProto(bytes));
    }
    const Tensor expected = *ParseTensorProto(File(example, "test_data_set_0/output_0.pb"));
    const auto result = [&](const std::string& name) {
      return worker_.Run(ImportOnnx(File(example, name), {}, *blobs_)->graph, inputs).at(0);
    };
    EXPECT_TRUE(IsEquivalent(CompareTensors("", expected, result("before.onnx")), 1e-5));
    EXPECT_FALSE(IsEquivalent(CompareTensors("", expected, result("after.onnx")), 1e-3));
  }

  const TempDir folder_ = *TempDir::Make("publish-test-");
  const std::shared_ptr<BlobDir> blobs_ = *BlobDir::Open(folder_.path() + "/blobs");
  FakeClock clock_;
  const Store store_ = *OpenStore({.folder = folder_.path()}, clock_);
  ReferenceWorker worker_{blobs_};
  std::optional<PoolMeasurer> measurer_;
  RuleSet rules_;
  ImportedModel model_;
  SearchResult found_;
  v1::OptimizeRequest job_;
  PublishRequest request_;
};

TEST_F(PublishTest, RightRewritesArePublished) {
  UseText(kBranches);
  Begin(kGoodRule, {"good"});
  std::vector<std::string> stages;
  request_.on_stage = [&](const std::string& stage) { stages.push_back(stage); };
  const Published published = Choose();
  EXPECT_THAT(Rules(published), ElementsAre("good x1"));
  EXPECT_THAT(published.warnings, IsEmpty());
  EXPECT_THAT(published.wrong, IsEmpty());
  EXPECT_EQ(worker_.checks, 1);
  EXPECT_THAT(stages, ElementsAre("timing the winner", "comparing results of the winner"));
  ExpectRight(published);
}

TEST_F(PublishTest, AWrongRewriteIsLeftOutAndTheRightOnesStay) {
  UseText(kBranches);
  Begin(std::string(kGoodRule) + kBadRules, {"bad", "good"});
  const Published published = Choose();
  EXPECT_THAT(Rules(published), ElementsAre("good x1"));
  ExpectRight(published);
  ASSERT_THAT(Wrong(published), ElementsAre("bad"));
  const v1::WrongRewrite& wrong = published.wrong[0];
  EXPECT_FALSE(wrong.clean_up());
  EXPECT_EQ(wrong.error().output(), "y");
  EXPECT_GT(wrong.error().max_rel(), 1e-3);
  EXPECT_EQ(wrong.tolerance(), 1e-3);
  EXPECT_EQ(wrong.shapes(), "");
  EXPECT_FALSE(wrong.counter_example().whole_model());
  EXPECT_EQ(wrong.counter_example().inputs(), "usual");
  EXPECT_EQ(wrong.counter_example().seed(), 1u);
  ExpectShows(wrong.counter_example());
  ASSERT_EQ(published.warnings.size(), 2u);
  EXPECT_THAT(published.warnings[0], HasSubstr("the winner is not published: output y differs"));
  EXPECT_THAT(published.warnings[1],
              MatchesRegex("rewrite bad at .* gives other results .output y: .*, allowed 0.001.: "
                           "left out"));
  EXPECT_TRUE(published.winner_refused);
}

TEST_F(PublishTest, TwoWrongRulesAreLeftOut) {
  UseText(kBranches);
  Begin(std::string(kGoodRule) + kBadRules, {"worse", "good", "bad"});
  const Published published = Choose();
  EXPECT_THAT(Rules(published), ElementsAre("good x1"));
  EXPECT_THAT(Wrong(published), UnorderedElementsAre("bad", "worse"));
  for (const v1::WrongRewrite& wrong : published.wrong) ExpectShows(wrong.counter_example());
  ExpectRight(published);
}

TEST_F(PublishTest, AWrongRuleOfTheCleanUpIsLeftOut) {
  UseText(kBranches);
  Begin(std::string(kGoodRule) + kBadCleanUp, {"good"});
  const Published published = Choose();
  EXPECT_THAT(Rules(published), ElementsAre("good x1"));
  ASSERT_THAT(Wrong(published), ElementsAre("bad"));
  EXPECT_TRUE(published.wrong[0].clean_up());
  EXPECT_EQ(published.wrong[0].place(), "");
  ExpectShows(published.wrong[0].counter_example());
  ExpectRight(published);
  EXPECT_THAT(published.warnings, Contains(HasSubstr("clean-up rule bad gives other results")));
}

// Nothing is left of the winner; the runner-up has a rewrite besides the wrong one.
TEST_F(PublishTest, ARunnerUpIsTriedWithoutWhatIsKnownToBeWrong) {
  UseText(kBranches);
  Begin(std::string(kGoodRule) + kBadRules, {"bad"});
  found_.runners_up = {PlanOf({"good", "bad"})};
  const Published published = Choose();
  EXPECT_THAT(Rules(published), ElementsAre("good x1"));
  EXPECT_THAT(Wrong(published), ElementsAre("bad"));
  ExpectRight(published);
}

TEST_F(PublishTest, WithNothingLeftTheInputIsTaken) {
  UseText(kBranches);
  Begin(std::string(kGoodRule) + kBadRules, {"bad"});
  const Published published = Choose();
  EXPECT_THAT(Wrong(published), ElementsAre("bad"));
  EXPECT_FALSE(published.file.rewritten);
  EXPECT_TRUE(published.file.carries_plan);
}

TEST_F(PublishTest, WhatCannotBeRepeatedIsNoRewritesFault) {
  UseText(kBranches);
  Begin(kGoodRule, {"good"});
  worker_.wrong = 1;
  const Published published = Choose();
  EXPECT_THAT(published.wrong, IsEmpty());
  EXPECT_FALSE(published.file.rewritten);
  ASSERT_EQ(published.warnings.size(), 2u);
  EXPECT_EQ(published.warnings[1],
            "its rewrites, repeated one by one, give the results of the model: its plan is at "
            "fault, or a kernel in it");
}

TEST_F(PublishTest, WithoutTimeNothingIsLookedFor) {
  UseText(kBranches);
  Begin(std::string(kGoodRule) + kBadRules, {"bad", "good"});
  request_.time_left = [this] { return Nanos(worker_.checks > 0 ? 0 : 1'000'000'000); };
  const Published published = Choose();
  EXPECT_EQ(worker_.checks, 2);  // The winner and the input with its plan.
  EXPECT_THAT(published.wrong, IsEmpty());
  ASSERT_GE(published.warnings.size(), 2u);
  EXPECT_EQ(published.warnings[1],
            "which of its rewrites is wrong was not found: the time was over");
}

TEST_F(PublishTest, WhatWasNotTimedBesideTheTunedInputIsSaid) {
  UseText(kBranches);
  Begin(kGoodRule, {"good"});
  request_.time_left = [this] { return Nanos(worker_.sets > 0 ? 0 : 1'000'000'000); };
  const Published published = Choose();
  EXPECT_TRUE(published.file.rewritten);
  EXPECT_FALSE(published.over_tuned_input.has_value());
  EXPECT_THAT(published.warnings, ElementsAre(HasSubstr("the time was over before the file was")));
}

// A large model: each set of its files takes most of the time.
TEST_F(PublishTest, WhatCannotBeTimedInTimeIsNotPublished) {
  UseText(kBranches);
  Begin("", {});
  worker_.late_from = 1;
  const Published published = Choose();
  EXPECT_TRUE(published.file.digest.IsZero());
  EXPECT_EQ(published.baseline.verdict, v1::Result::NOT_MEASURED);
  EXPECT_THAT(published.baseline.notes, Contains("the budget is too short: 30.0 s, not 10.0 s"));
  EXPECT_THAT(published.warnings,
              ElementsAre("the input with its plan is not published: it is not timed: the budget "
                          "is too short: 30.0 s, not 10.0 s"));
  EXPECT_EQ(worker_.checks, 0);
}

TEST_F(PublishTest, WithoutTimeTheInputIsNotTimedAgain) {
  UseText(kBranches);
  Begin("", {});
  worker_.last_takes = 1.25;  // The plan is refused.
  worker_.late_from = 2;
  const Published published = Choose();
  EXPECT_TRUE(published.file.digest.IsZero());
  EXPECT_EQ(published.baseline.verdict, v1::Result::NO_GAIN_FOUND);
  EXPECT_EQ(published.baseline.baseline, "AutoGraph, untuned");
  EXPECT_EQ(published.baseline.speedup.high, 1);
  EXPECT_THAT(published.baseline.notes,
              Contains("our session on the input alone: the budget is spent"));
}

// What was measured of the input stands, however late it came.
TEST_F(PublishTest, TheTimeMayEndWhileTheInputIsTimed) {
  UseText(kBranches);
  Begin("", {});
  worker_.last_takes = 1.25;  // The plan is refused after its second set.
  request_.time_left = [this] { return Nanos(worker_.sets > 2 ? 0 : 1'000'000'000); };
  const Published published = Choose();
  EXPECT_TRUE(published.file.digest.IsZero());
  EXPECT_EQ(worker_.sets, 3);
  EXPECT_EQ(published.baseline.verdict, v1::Result::NO_GAIN_FOUND);
  EXPECT_TRUE(published.baseline.fresh_session.has_value());
  EXPECT_THAT(published.baseline.notes, IsEmpty());
}

TEST_F(PublishTest, WithoutTimeWhatDidNotRunIsNotRunAgain) {
  UseText(kBranches);
  Begin("", {});
  worker_.runs = false;
  request_.time_left = [this] { return Nanos(worker_.sets > 0 ? 0 : 1'000'000'000); };
  const Published published = Choose();
  EXPECT_TRUE(published.file.digest.IsZero());
  EXPECT_EQ(published.baseline.verdict, v1::Result::NOT_MEASURED);
  EXPECT_THAT(published.baseline.notes, Contains(HasSubstr("our session on the input: it fails")));
  EXPECT_EQ(worker_.sets, 1);
}

TEST_F(PublishTest, TheInputsOwnBytesAreTimedTwiceToo) {
  UseText(kBranches);
  Begin("", {});
  job_.set_keep_bytes(true);
  worker_.last_takes = 1.25;
  const Published published = Choose();
  EXPECT_TRUE(published.file.digest.IsZero());
  EXPECT_EQ(worker_.sets, 2);  // Started anew, once.
  EXPECT_THAT(published.warnings,
              ElementsAre("the input's own bytes: another fresh session takes another time: 0.800x "
                          "(0.800 to 0.800)"));
}

TEST_F(PublishTest, WhyNothingWasMeasuredIsSaid) {
  UseText(kBranches);
  Begin("", {});
  request_.setting.runnable = *ParseGraph("input x f32[2]\noutput y = relu(x)\n");  // Cut.
  Published published = Choose();
  EXPECT_EQ(published.baseline.verdict, v1::Result::NOT_MEASURED);
  EXPECT_THAT(published.baseline.notes,
              ElementsAre("ONNX Runtime: there is none beside the worker"));
  job_.set_onnxruntime(v1::OptimizeRequest::OFF);
  published = Choose();
  EXPECT_THAT(published.baseline.notes, ElementsAre("ONNX Runtime: the request leaves it out"));
}

// --- Open sizes

std::string RowsModel(const std::string& first_branch) {
  const auto weights = [](const std::string& name, uint64_t seed) {
    std::string text = "float[16,16] " + name + " = {";
    Random random(seed);
    for (int i = 0; i < 16 * 16; ++i) {
      text += fmt::format("{}{:.4f}", i > 0 ? ", " : "", 0.4 * random.Unit() - 0.2);
    }
    return text + "}";
  };
  return testing::ModelFromText(
      "net (float[rows,16] x, float[rows,16] u) => (float[rows,16] y, float[rows,16] z) <" +
          weights("k1", 1) + ", " + weights("k2", 2) + ", " + weights("k3", 3) + ", " +
          weights("k4", 4) + "> {" + first_branch + R"(
            c = MatMul (u, k1)
            z = MatMul (c, k2)
          })",
      13);
}

TEST_F(PublishTest, AFileWithOpenSizesIsTriedWithoutTheWrongRewrite) {
  Use(RowsModel(R"(
            a = MatMul (x, k3)
            b = Tanh (a)
            y = MatMul (b, k4))"),
      {{"u", {24, 16}}, {"x", {24, 16}}});
  Begin(std::string(kGoodRule) + kBadRules, {"bad", "good"});
  const Published published = Choose();
  EXPECT_THAT(Rules(published), ElementsAre("good x1"));
  EXPECT_THAT(Wrong(published), ElementsAre("bad"));
  EXPECT_THAT(published.file.kept_open, UnorderedElementsAre("u:0 (rows)", "x:0 (rows)"));
  ExpectShows(published.wrong.at(0).counter_example());
  ExpectRight(published);
}

// For one row the weights are 1: the rule is right there and wrong at all other sizes.
TEST_F(PublishTest, AMistakeAtOtherSizesIsFoundThere) {
  Use(RowsModel(R"(
            a = MatMul (x, k3)
            s = Softmax <axis = 0> (x)
            b = Mul (s, a)
            y = MatMul (b, k4))"),
      {{"u", {1, 16}}, {"x", {1, 16}}});
  Begin(
      std::string(kGoodRule) + "bad [exact]: mul(softmax(x; axis=0), z) => z if same_shape(x, z)\n",
      {"good", "bad"});
  const Published published = Choose();
  EXPECT_THAT(Rules(published), ElementsAre("good x1"));
  ASSERT_THAT(Wrong(published), ElementsAre("bad"));
  EXPECT_THAT(published.wrong[0].shapes(), HasSubstr("x="));
  EXPECT_THAT(published.file.kept_open, UnorderedElementsAre("u:0 (rows)", "x:0 (rows)"));
  ExpectShows(published.wrong[0].counter_example());
  ExpectRight(published);
}

}  // namespace
}  // namespace ag
