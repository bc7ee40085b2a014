#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "base/file.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "plan/format/plan_codec.h"
#include "runtime/autograph.h"
#include "runtime/session.h"
#include "runtime/testing/testing.h"

namespace ag {
namespace {

using Handle = std::unique_ptr<ag_session, decltype(&ag_session_destroy)>;

ag_session_options Options(const char* device = "sim:small") {
  return {.size = sizeof(ag_session_options), .device = device};
}

Handle Create(const std::string& model, const ag_session_options& options) {
  ag_session* session = nullptr;
  EXPECT_EQ(ag_session_create(model.data(), model.size(), &options, &session), AG_OK)
      << ag_last_error();
  return {session, ag_session_destroy};
}

// Returns how a create ends: "code message", or "0 " when it does not fail.
std::string CreateError(const std::string& model, const ag_session_options& options) {
  auto* session = reinterpret_cast<ag_session*>(&ag_session_destroy);  // Must become NULL.
  const ag_status status = ag_session_create(model.data(), model.size(), &options, &session);
  if (status == AG_OK) {
    ag_session_destroy(session);
    return "0 ";
  }
  EXPECT_EQ(session, nullptr);
  return fmt::format("{} {}", static_cast<int>(status), ag_last_error());
}

TEST(CApi, RunsAModel) {
  const std::string model = testing::ModelFromText(kModel);
  const Handle session = Create(model, Options("cpu:1"));
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(ag_session_input_count(session.get()), 1u);
  ASSERT_EQ(ag_session_output_count(session.get()), 1u);
  const ag_tensor_info* in = ag_session_input(session.get(), 0);
  const ag_tensor_info* out = ag_session_output(session.get(), 0);
  EXPECT_EQ(std::string(in->name), "x");
  EXPECT_EQ(std::string(out->name), "y");
  EXPECT_EQ(in->dtype, AG_FLOAT32);
  EXPECT_THAT(std::vector(in->shape, in->shape + in->rank), ::testing::ElementsAre(2, 4));
  EXPECT_THAT(std::vector(out->shape, out->shape + out->rank), ::testing::ElementsAre(2, 3));
  EXPECT_EQ(in->bytes, 32u);
  EXPECT_EQ(out->bytes, 24u);
  EXPECT_EQ(ag_session_input(session.get(), 1), nullptr);
  EXPECT_EQ(ag_session_output(session.get(), 1), nullptr);
  EXPECT_EQ(ag_session_warning_count(session.get()), 0u);
  EXPECT_EQ(ag_session_warning(session.get(), 0), nullptr);
  EXPECT_EQ(ag_session_uses_carried_plan(session.get()), 0);

  const float x[2][4] = {{1, 0, 0, 0}, {0, 1, 1, 0}};
  float y[2][3] = {};
  const void* const inputs[] = {x};
  void* const outputs[] = {y};
  int64_t device_ns = -1;
  ASSERT_EQ(ag_session_run_timed(session.get(), inputs, outputs, &device_ns), AG_OK)
      << ag_last_error();
  EXPECT_GT(device_ns, 0);
  EXPECT_THAT(y[0], ::testing::ElementsAre(1.5f, 0.f, 4.f));
  EXPECT_THAT(y[1], ::testing::ElementsAre(11.5f, 12.5f, 4.f));
}

// Returns the model with a plan that was made on sim:small, as if in this environment.
std::string WithPlan(const std::string& model, const std::string& environment) {
  const auto made = *Session::Load(model, {.device = "sim:small", .plan = PlanChoice::kInput});
  Plan plan = made->plan();
  plan.environment = environment.empty() ? made->device().environment() : environment;
  const OnnxOrigin origin{.opsets = {{"", 17}}};
  return *ExportOnnx(made->graph(), origin, MemoryWeights(),
                     {.plans = {{"one", EncodePlan(plan)}}});
}

TEST(CApi, SaysWhetherTheCarriedPlanRuns) {
  const std::string model = testing::ModelFromText(kModel);
  const std::string fits = WithPlan(model, ""), other = WithPlan(model, "cores=64;cpu=another");
  const Handle first = Create(fits, Options());
  EXPECT_EQ(ag_session_uses_carried_plan(first.get()), 1);
  EXPECT_EQ(ag_session_warning_count(first.get()), 0u);

  const Handle second = Create(other, Options());
  EXPECT_EQ(ag_session_uses_carried_plan(second.get()), 0);
  ASSERT_EQ(ag_session_warning_count(second.get()), 1u);
  const std::string warning = ag_session_warning(second.get(), 0);
  EXPECT_TRUE(warning.starts_with(
      "plan one ignored: made for environment cores=64;cpu=another, this is device=sim:small;"))
      << warning;
  EXPECT_EQ(ag_session_warning(second.get(), 1), nullptr);

  const float x[8] = {1, 2, 3, 4, -1, -2, -3, -4};
  float y[2][6] = {};
  const void* const inputs[] = {x};
  for (int i = 0; i < 2; ++i) {
    void* const outputs[] = {y[i]};
    const Handle& session = i == 0 ? first : second;
    ASSERT_EQ(ag_session_run(session.get(), inputs, outputs), AG_OK) << ag_last_error();
  }
  EXPECT_THAT(y[0], ::testing::ElementsAreArray(y[1]));
}

TEST(CApi, ChoosesThePlan) {
  const std::string model = testing::ConvModel();
  const std::vector<float> x(1 << 16, 0.25f);  // More than the model reads.
  std::vector<std::vector<float>> results;
  for (const ag_plan_choice plan : {AG_PLAN_CARRIED, AG_PLAN_INPUT, AG_PLAN_UNFUSED}) {
    for (const int32_t streams : {0, 2}) {
      ag_session_options options = Options();
      options.plan = plan;
      options.streams = streams;
      const Handle session = Create(model, options);
      ASSERT_LE(ag_session_input(session.get(), 0)->bytes, x.size() * sizeof(float));
      std::vector<float> y(ag_session_output(session.get(), 0)->bytes / sizeof(float));
      const void* const inputs[] = {x.data()};
      void* const outputs[] = {y.data()};
      ASSERT_EQ(ag_session_run(session.get(), inputs, outputs), AG_OK) << ag_last_error();
      results.push_back(y);
    }
  }
  for (const auto& result : results) {
    EXPECT_THAT(result, ::testing::Pointwise(::testing::FloatNear(1e-5f), results[0]));
  }
}

TEST(CApi, BindsOpenSizes) {
  const std::string model = testing::ModelFromText(kOpenBatch);
  const int64_t sizes[] = {3, 4};
  const ag_input_shape shape = {.input = "x", .rank = 2, .shape = sizes};
  ag_session_options options = Options();
  options.shapes = &shape;
  options.shapes_count = 1;
  const Handle session = Create(model, options);
  EXPECT_EQ(ag_session_output(session.get(), 0)->shape[0], 3);
  EXPECT_EQ(ag_session_output(session.get(), 0)->bytes, 48u);
}

using ResultsHandle = std::unique_ptr<ag_results, void (*)(ag_results*)>;

TEST(CApi, RunsTensorsOfAnySizes) {
  const std::string model = testing::ModelFromText(
      "g (float[N,2] x) => (int64[2,K] at, float[N,2] r) { r = Relu(x) at = NonZero(r) }");
  const Handle session = Create(model, Options("cpu:1"));
  EXPECT_EQ(ag_session_input_is_open(session.get(), 0, 0), 1);
  EXPECT_EQ(ag_session_input_is_open(session.get(), 0, 1), 0);
  EXPECT_EQ(ag_session_output(session.get(), 0)->rank, -1);
  EXPECT_EQ(ag_session_output(session.get(), 0)->dtype, AG_INT64);
  const float x[] = {0, 0, 0, -1, 0, 7};
  const int64_t shape[] = {3, 2};
  ag_tensor input = {.dtype = AG_FLOAT32, .rank = 2, .shape = shape, .data = x};
  ag_results* made = nullptr;
  ASSERT_EQ(ag_session_run_any(session.get(), &input, 1, &made), AG_OK) << ag_last_error();
  const ResultsHandle results(made, ag_results_destroy);
  ASSERT_EQ(ag_results_count(made), 2u);
  const ag_tensor* at = ag_results_at(made, 0);
  EXPECT_EQ(at->dtype, AG_INT64);
  EXPECT_THAT(std::vector(at->shape, at->shape + at->rank), ::testing::ElementsAre(2, 1));
  EXPECT_THAT(
      std::vector(static_cast<const int64_t*>(at->data), static_cast<const int64_t*>(at->data) + 2),
      ::testing::ElementsAre(2, 1));
  EXPECT_EQ(ag_results_at(made, 2), nullptr);

  const auto error = [&](size_t count) {
    auto* none = reinterpret_cast<ag_results*>(&made);  // Must become NULL.
    EXPECT_NE(ag_session_run_any(session.get(), &input, count, &none), AG_OK);
    EXPECT_EQ(none, nullptr);
    return std::string(ag_last_error());
  };
  EXPECT_EQ(error(0), "model: expected 1 inputs, got 0");
  input.data = nullptr;
  EXPECT_EQ(error(1), "input \"x\": no aligned data for f32[3,2]");
  input = {.dtype = AG_INT64, .rank = 2, .shape = shape, .data = at->data};
  EXPECT_EQ(error(1), "input \"x\": expected f32[1,2], got i64[3,2]");
  input.rank = 33;
  EXPECT_EQ(error(1), "input \"x\": rank 33 without as many sizes");
  input = {.rank = 0};
  const int32_t unknown = 99;
  std::memcpy(&input.dtype, &unknown, sizeof(unknown));
  EXPECT_EQ(error(1), "input \"x\": element type 99 of ONNX is not supported");
}

TEST(CApi, RunsStrings) {
  const std::string model = testing::ModelFromText(
      "g (float[2] x, string[N] words) => (string[K] kept, float[2] r) { r = Relu(x)"
      "kept = StringNormalizer<case_change_action = \"UPPER\", stopwords = [\"no\"]>(words) }");
  const Handle session = Create(model, Options("cpu:1"));
  EXPECT_EQ(ag_session_input(session.get(), 1)->dtype, AG_STRING);
  const float x[] = {-1, 2};
  const char* const words[] = {"yes", "no", ""};
  const int64_t two[] = {2}, three[] = {3};
  ag_tensor inputs[] = {{.dtype = AG_FLOAT32, .rank = 1, .shape = two, .data = x},
                        {.dtype = AG_STRING, .rank = 1, .shape = three, .data = words}};
  ag_results* made = nullptr;
  ASSERT_EQ(ag_session_run_any(session.get(), inputs, 2, &made), AG_OK) << ag_last_error();
  const ResultsHandle results(made, ag_results_destroy);
  const ag_tensor* kept = ag_results_at(made, 0);
  EXPECT_EQ(kept->dtype, AG_STRING);
  ASSERT_EQ(kept->shape[0], 2);
  EXPECT_STREQ(static_cast<const char* const*>(kept->data)[0], "YES");
  EXPECT_STREQ(static_cast<const char* const*>(kept->data)[1], "");
  inputs[1].data = nullptr;
  EXPECT_NE(ag_session_run_any(session.get(), inputs, 2, &made), AG_OK);
  EXPECT_STREQ(ag_last_error(), "input \"words\": string 0 is NULL");
}

// Takes a sequence and gives it with one tensor more, and with one less.
const std::string& ModelOfSequences() {
  static const std::string model = testing::SequenceModelFromText(
      "g (float[N] parts, float[2] more) => (float[M] all, float[2] sum, float[N] parts2)"
      "{ all = SequenceInsert(parts, more) zero = Constant<value_int = 0>()"
      "  first = SequenceAt(parts, zero) sum = Add(first, more)"
      "  parts2 = SequenceErase(parts, zero) }",
      {"parts", "all", "parts2"});
  return model;
}

TEST(CApi, RunsSequences) {
  const std::string& model = ModelOfSequences();
  const Handle session = Create(model, Options("cpu:1"));
  EXPECT_EQ(ag_session_input_kind(session.get(), 0), AG_SEQUENCE);
  EXPECT_EQ(ag_session_input_kind(session.get(), 1), AG_TENSOR);
  EXPECT_EQ(ag_session_output_kind(session.get(), 0), AG_SEQUENCE);
  EXPECT_EQ(ag_session_output_kind(session.get(), 1), AG_TENSOR);
  EXPECT_EQ(ag_session_output_kind(session.get(), 9), AG_TENSOR);
  const ag_tensor_info* parts = ag_session_input(session.get(), 0);
  EXPECT_EQ(parts->rank, -1);
  EXPECT_EQ(parts->bytes, 0u);
  EXPECT_EQ(parts->dtype, AG_FLOAT32);

  const float numbers[] = {1, 2, 3, 4, 5};
  const int64_t two[] = {2}, three[] = {3};
  const ag_tensor given[] = {{AG_FLOAT32, 1, two, numbers}, {AG_FLOAT32, 1, three, numbers + 2}};
  const ag_value values[] = {{0, 2, given}, {0, 1, given}};
  ag_results* made = nullptr;
  ASSERT_EQ(ag_session_run_values(session.get(), values, 2, &made), AG_OK) << ag_last_error();
  const ResultsHandle results(made, ag_results_destroy);
  ASSERT_EQ(ag_results_count(made), 3u);
  const ag_value* all = ag_results_value(made, 0);
  ASSERT_EQ(all->count, 3u);
  EXPECT_EQ(all->is_none, 0);
  EXPECT_EQ(all->tensors[1].shape[0], 3);
  EXPECT_EQ(static_cast<const float*>(all->tensors[1].data)[2], 5);
  EXPECT_EQ(ag_results_at(made, 0), nullptr) << "no tensor";
  EXPECT_EQ(static_cast<const float*>(ag_results_at(made, 1)->data)[1], 4);
  EXPECT_EQ(ag_results_value(made, 2)->count, 1u);
  EXPECT_EQ(ag_results_value(made, 3), nullptr);
}

TEST(CApi, NamesTheValueThatIsWrong) {
  const Handle session = Create(ModelOfSequences(), Options("cpu:1"));
  const int64_t two[] = {2};
  const double data[2] = {};
  const ag_tensor good = {AG_FLOAT32, 1, two, data}, other = {AG_FLOAT64, 1, two, data};
  const ag_value fine = {0, 1, &good}, none = {1, 0, nullptr}, wrong = {0, 1, &other},
                 empty = {0, 0, nullptr}, no_tensors = {0, 2, nullptr};
  const struct {
    ag_value first, second;
    const char* error;
  } kCases[] = {
      {none, fine, "input \"parts\": a sequence of f32 is given as none"},
      {wrong, fine, "input \"parts\": expected a sequence of f32, got one with f64[2]"},
      {no_tensors, fine, "input \"parts\": 2 tensors at NULL"},
      {fine, empty, "input \"more\": expected f32[2], got 0 tensors"},
      {fine, none, "input \"more\": f32[2] is given as none"},
  };
  for (const auto& c : kCases) {
    const ag_value values[] = {c.first, c.second};
    ag_results* made = nullptr;
    EXPECT_EQ(ag_session_run_values(session.get(), values, 2, &made), AG_INVALID_ARGUMENT);
    EXPECT_STREQ(ag_last_error(), c.error);
    EXPECT_EQ(made, nullptr);
  }
  const ag_tensor tensors[] = {good, good};
  ag_results* made = nullptr;
  EXPECT_EQ(ag_session_run_any(session.get(), tensors, 2, &made), AG_INVALID_ARGUMENT);
  EXPECT_STREQ(ag_last_error(),
               "input \"parts\" is a sequence of f32: ag_session_run_values takes it");
}

TEST(CApi, RunsOptionals) {
  const std::string model = testing::WithOptionals(
      testing::ModelFromText("g (float[2] maybe) => (float[2] same, bool has)"
                             "{ same = Identity(maybe) has = OptionalHasElement(maybe) }"),
      {"maybe", "same"});
  const Handle session = Create(model, Options("cpu:1"));
  EXPECT_EQ(ag_session_input_kind(session.get(), 0), AG_OPTIONAL);
  EXPECT_EQ(ag_session_output_kind(session.get(), 0), AG_OPTIONAL);
  const int64_t two[] = {2};
  const float data[] = {1, 2};
  const ag_tensor tensor = {AG_FLOAT32, 1, two, data};
  for (const bool has : {true, false}) {
    const ag_value value = has ? ag_value{0, 1, &tensor} : ag_value{1, 0, nullptr};
    ag_results* made = nullptr;
    ASSERT_EQ(ag_session_run_values(session.get(), &value, 1, &made), AG_OK) << ag_last_error();
    const ResultsHandle results(made, ag_results_destroy);
    EXPECT_EQ(ag_results_value(made, 0)->is_none, has ? 0 : 1);
    EXPECT_EQ(ag_results_value(made, 0)->count, has ? 1u : 0u);
    EXPECT_EQ(*static_cast<const bool*>(ag_results_at(made, 1)->data), has);
  }
}

TEST(CApi, NamesTheOptionThatIsWrong) {
  const std::string model = testing::ModelFromText(kModel);
  const int64_t good[] = {2, 4}, negative[] = {2, -4};
  const ag_input_shape x = {"x", 2, good}, nameless = {nullptr, 2, good}, below = {"x", -1, good},
                       above = {"x", 99, good}, sizeless = {"x", 2, nullptr},
                       minus = {"x", 2, negative}, other = {"z", 2, good};
  const ag_input_shape twice[] = {x, x};
  const auto with = [](auto change) {
    ag_session_options options = Options();
    change(options);
    return options;
  };
  const auto shaped = [&](const ag_input_shape* shapes, size_t count) {
    return with([&](ag_session_options& o) { o.shapes = shapes, o.shapes_count = count; });
  };
  const std::string size = std::to_string(sizeof(ag_session_options));
  const struct {
    const char* name;
    ag_session_options options;
    std::string error;
  } kCases[] = {
      {"right", Options(), "0 "},
      {"size forgotten", with([](auto& o) { o.size = 0; }),
       "3 options.size: expected " + size + ", got 0; set it to sizeof(ag_session_options)"},
      {"size of the first version",
       with([](auto& o) { o.size = offsetof(ag_session_options, tune); }), "0 "},
      {"size of later", with([](auto& o) { o.size = 4096; }),
       "3 options.size: expected " + size + ", got 4096; set it to sizeof(ag_session_options)"},
      {"plan", with([](auto& o) { o.plan = static_cast<ag_plan_choice>(3); }),
       "3 options.plan: no choice has the number 3"},
      {"streams", with([](auto& o) { o.streams = -1; }), "3 options.streams: -1 is negative"},
      {"shapes NULL", shaped(nullptr, 2), "3 options.shapes: NULL, but 2 of them"},
      {"shape right", shaped(&x, 1), "0 "},
      {"no name", shaped(&nameless, 1), "3 options.shapes: a shape without the input's name"},
      {"rank", shaped(&below, 1), "3 options.shapes: input \"x\": rank -1, expected 0..32"},
      {"rank", shaped(&above, 1), "3 options.shapes: input \"x\": rank 99, expected 0..32"},
      {"sizes", shaped(&sizeless, 1), "3 options.shapes: input \"x\": rank 2 and no sizes"},
      {"negative", shaped(&minus, 1), "3 options.shapes: input \"x\": size -4 in [2,-4]"},
      {"twice", shaped(twice, 2), "3 options.shapes: input \"x\" is there twice"},
      {"stranger", shaped(&other, 1), "3 --shape names \"z\", the inputs are \"x\""},
      {"device", Options("tpu"), ""},
      {"spec", Options("sim:none"), ""},
      {"no spec", Options("sim:tpu"),
       "5 sim:tpu: no such device spec; did you mean 'cpu'?; built-in are cpu, h200, "
       "rtx2080ti, small, stcp920"},
  };
  for (const auto& c : kCases) {
    const std::string error = CreateError(model, c.options);
    if (c.error.empty()) {
      EXPECT_FALSE(error.starts_with("0 ")) << c.name;
    } else {
      EXPECT_EQ(error, c.error) << c.name;
    }
  }
}

TEST(CApi, SaysWhyAModelDoesNotLoad) {
  const struct {
    const char* name;
    std::string model, error;
  } kCases[] = {
      {"empty", "", "3 the model is empty"},
      {"not ONNX", "garbage", "3 not ONNX: this is text"},
      {"cut short", testing::ConvModel().substr(0, 300), ""},
      {"no kernel",
       testing::ModelFromText("g (float[2,4] x) => (float[2,4] y) { y = RandomNormalLike(x) }"),
       "12 operator RandomNormalLike: optimize keeps it as it is, but nothing here can run it: "
       "random numbers without a seed: give the node the attribute seed"},
      {"no kernels",
       testing::ModelFromText("g (float[2,4] x) => (float[2,4] y, float[2,4] z, int32[2,1] k) { "
                              "y = RandomNormalLike(x) z = RandomNormalLike(y) "
                              "k = Multinomial(z) }"),
       "12 2 obstacles: (1) operator RandomNormalLike: optimize keeps it as it is, but "
       "nothing here can run it: random numbers without a seed: give the node the attribute seed "
       "(and 1 more like it); "
       "(2) operator Multinomial: optimize keeps it as it is, but nothing here can run "
       "it: random numbers without a seed: give the node the attribute seed"},
  };
  for (const auto& c : kCases) {
    const std::string error = CreateError(c.model, Options());
    if (c.error.empty()) {
      EXPECT_TRUE(error.starts_with("3 ")) << error;
    } else {
      EXPECT_EQ(error, c.error) << c.name;
    }
  }
}

TEST(CApi, LoadsFiles) {
  const TempDir folder = *TempDir::Make("c-api-test");
  const std::string good = folder.path() + "/good.onnx", bad = folder.path() + "/bad.onnx";
  ASSERT_TRUE(WriteFileAtomically(good, testing::ModelFromText(kModel)).ok());
  ASSERT_TRUE(WriteFileAtomically(bad, "garbage").ok());
  const std::string missing = folder.path() + "/missing.onnx";
  const struct {
    std::string path;
    ag_status status;
    std::string error;
  } kCases[] = {
      {good, AG_OK, ""},
      {missing, AG_NOT_FOUND, "read " + missing + ": No such file or directory"},
      {folder.path(), AG_FAILED_PRECONDITION, "read " + folder.path() + ": not a regular file"},
      {bad, AG_INVALID_ARGUMENT, bad + ": not ONNX: this is text"},
  };
  const ag_session_options options = Options();
  for (const auto& c : kCases) {
    ag_session* session = nullptr;
    EXPECT_EQ(ag_session_create_from_file(c.path.c_str(), &options, &session), c.status) << c.path;
    EXPECT_EQ(session != nullptr, c.status == AG_OK);
    if (c.status != AG_OK) {
      EXPECT_EQ(std::string(ag_last_error()), c.error);
    }
    ag_session_destroy(session);
  }
}

TEST(CApi, BearsNull) {
  const std::string model = testing::ModelFromText(kModel);
  const Handle made = Create(model, Options());
  ag_session* const session = made.get();
  float x[8] = {}, y[6] = {};
  const void* const inputs[] = {x};
  void* const outputs[] = {y};
  const void* const no_input[] = {nullptr};
  void* const no_output[] = {nullptr};
  const void* const odd_input[] = {reinterpret_cast<const char*>(x) + 1};
  void* const odd_output[] = {reinterpret_cast<char*>(y) + 2};
  ag_session* out = nullptr;
  const struct {
    std::function<ag_status()> call;
    std::string error;
  } kCases[] = {
      {[&] { return ag_session_create(nullptr, 5, nullptr, &out); }, "onnx is NULL"},
      {[&] { return ag_session_create(model.data(), 5, nullptr, nullptr); }, "out is NULL"},
      {[&] { return ag_session_create_from_file(nullptr, nullptr, &out); }, "path is NULL"},
      {[&] { return ag_session_create_from_file("x", nullptr, nullptr); }, "out is NULL"},
      {[&] { return ag_session_run(nullptr, inputs, outputs); }, "session is NULL"},
      {[&] { return ag_session_run(session, nullptr, outputs); }, "inputs is NULL"},
      {[&] { return ag_session_run(session, inputs, nullptr); }, "outputs is NULL"},
      {[&] { return ag_session_run(session, no_input, outputs); },
       "input \"x\": expected 32 bytes of f32[2,4], got NULL"},
      {[&] { return ag_session_run(session, inputs, no_output); },
       "output \"y\": expected 24 bytes of f32[2,3], got NULL"},
      {[&] { return ag_session_run(session, odd_input, outputs); },
       "input \"x\": f32[2,4] must be aligned to 4 bytes"},
      {[&] { return ag_session_run(session, inputs, odd_output); },
       "output \"y\": f32[2,3] must be aligned to 4 bytes"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(c.call(), AG_INVALID_ARGUMENT) << c.error;
    EXPECT_EQ(std::string(ag_last_error()), c.error);
  }
  EXPECT_EQ(ag_session_run_timed(session, inputs, outputs, nullptr), AG_OK);
  ag_session_destroy(nullptr);
  EXPECT_EQ(ag_session_input_count(nullptr), 0u);
  EXPECT_EQ(ag_session_output_count(nullptr), 0u);
  EXPECT_EQ(ag_session_input(nullptr, 0), nullptr);
  EXPECT_EQ(ag_session_output(nullptr, 0), nullptr);
  EXPECT_EQ(ag_session_warning_count(nullptr), 0u);
  EXPECT_EQ(ag_session_warning(nullptr, 0), nullptr);
  EXPECT_EQ(ag_session_uses_carried_plan(nullptr), 0);
  EXPECT_EQ(ag_session_input_is_open(nullptr, 0, 0), 0);
  ag_results* results = nullptr;
  EXPECT_EQ(ag_session_run_any(nullptr, nullptr, 0, &results), AG_INVALID_ARGUMENT);
  EXPECT_EQ(ag_session_run_any(session, nullptr, 1, &results), AG_INVALID_ARGUMENT);
  EXPECT_EQ(ag_session_run_any(session, nullptr, 0, nullptr), AG_INVALID_ARGUMENT);
  EXPECT_EQ(ag_session_run_values(nullptr, nullptr, 0, &results), AG_INVALID_ARGUMENT);
  EXPECT_EQ(ag_session_run_values(session, nullptr, 1, &results), AG_INVALID_ARGUMENT);
  EXPECT_EQ(ag_session_run_values(session, nullptr, 0, nullptr), AG_INVALID_ARGUMENT);
  EXPECT_EQ(ag_session_input_kind(nullptr, 0), AG_TENSOR);
  EXPECT_EQ(ag_session_output_kind(nullptr, 0), AG_TENSOR);
  EXPECT_EQ(ag_results_value(nullptr, 0), nullptr);
  EXPECT_EQ(ag_results_count(nullptr), 0u);
  EXPECT_EQ(ag_results_at(nullptr, 0), nullptr);
  ag_results_destroy(nullptr);
}

// More bytes than an import accepts, so none of them is read.
TEST(CApi, RefusesModelsBeyondAllLimits) {
  const std::string model = testing::ModelFromText(kModel);
  ag_session* session = nullptr;
  const size_t bytes = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ag_session_create(model.data(), bytes, nullptr, &session), AG_RESOURCE_EXHAUSTED);
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(std::string(ag_last_error()),
            "the model has 9223372036854775807 bytes, the limit is 34359738368");
}

TEST(CApi, TheMessageBelongsToTheThread) {
  EXPECT_EQ(ag_session_run(nullptr, nullptr, nullptr), AG_INVALID_ARGUMENT);
  std::string other = "?";
  std::thread([&] { other = ag_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_EQ(std::string(ag_last_error()), "session is NULL");
}

TEST(CApi, KnowsItsVersion) { EXPECT_EQ(std::string(ag_version()).substr(0, 2), "0."); }

// The library exports exactly what the header declares, and nothing of its C++.
TEST(CApi, TheLibraryShowsTheHeaderOnly) {
  FILE* const nm = popen("nm -D --defined-only " AG_BINARY_DIR "/libautograph.so", "r");
  ASSERT_NE(nm, nullptr);
  std::vector<std::string> shown;
  char address[64], kind[8], name[256];
  while (fscanf(nm, "%63s %7s %255s", address, kind, name) == 3) shown.emplace_back(name);
  ASSERT_EQ(pclose(nm), 0);
  const std::string header = *ReadFile(AG_SOURCE_DIR "/runtime/autograph.h");
  std::vector<std::string> declared;
  for (size_t at = header.find("AG_API "); at != std::string::npos;
       at = header.find("AG_API ", at + 1)) {
    const size_t end = header.find('(', at);
    const size_t begin = header.find_last_of(" *", end) + 1;
    if (header.compare(begin, 3, "ag_") == 0) declared.push_back(header.substr(begin, end - begin));
  }
  EXPECT_EQ(declared.size(), 23u);
  EXPECT_THAT(shown, ::testing::UnorderedElementsAreArray(declared));
}

}  // namespace
}  // namespace ag
