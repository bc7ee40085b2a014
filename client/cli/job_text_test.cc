#include "client/cli/job_text.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

namespace v1 = autograph::v1;

void Set(v1::Latency* latency, double median) {
  latency->set_median_ns(median * 1e6);
  latency->set_low_ns((median - 0.5) * 1e6);
  latency->set_high_ns((median + 0.5) * 1e6);
}

v1::Ratio Ratio(double median) {
  v1::Ratio ratio;
  ratio.set_median(median);
  ratio.set_low(median - 0.1);
  ratio.set_high(median + 0.1);
  return ratio;
}

void Count(v1::ModelFacts* facts, int64_t bytes,
           const std::vector<std::pair<std::string, int>>& operators) {
  facts->set_file_bytes(bytes);
  facts->set_parameters(1235496);
  for (const auto& [op_type, count] : operators) {
    v1::OperatorCount* row = facts->add_operators();
    row->set_op_type(op_type);
    row->set_count(count);
  }
}

v1::Job Done() {
  v1::Job job;
  job.set_name("jobs/7");
  job.set_state(v1::Job::SUCCEEDED);
  job.mutable_request()->set_model_name("m.onnx");
  job.mutable_request()->set_model_digest("abc");
  job.mutable_request()->mutable_policy()->set_precision("fp32");
  v1::Result& r = *job.mutable_result();
  r.set_tolerance(0.001);
  r.set_verdict(v1::Result::FASTER);
  r.set_search(v1::Result::COMPLETE);
  r.set_output(v1::Result::REWRITTEN);
  r.set_carries_plan(true);
  r.set_baseline("ONNX Runtime 1.23.2");
  r.set_output_runtime("AutoGraph");
  r.set_device("cpu");
  r.set_environment("cores=2");
  Set(r.mutable_unfused_latency(), 4);
  Set(r.mutable_input_latency(), 3);
  Set(r.mutable_output_latency(), 2);
  r.set_speedup(1.5);
  r.set_speedup_low(1.4);
  r.set_speedup_high(1.6);
  *r.mutable_over_onnxruntime() = Ratio(1.5);
  *r.mutable_over_untuned() = Ratio(1.4);
  *r.mutable_over_tuned_input() = Ratio(1.2);
  Count(r.mutable_input_facts(), 1000000, {{"Conv", 26}, {"Relu", 26}});
  Count(r.mutable_output_facts(), 1020000, {{"Conv", 24}, {"Relu", 26}});
  for (const double error : {1e-6, 2e-5}) {
    v1::OutputError* e = r.add_errors();
    e->set_output("y");
    e->set_max_abs(error);
    e->set_max_rel(error / 10);
  }
  v1::RewriteCount* rewrite = r.add_rewrites();
  rewrite->set_rule("merge-convs");
  rewrite->set_count(3);
  rewrite->set_gain_ns(0.25e6);
  r.set_groups(10);
  r.set_streams(2);
  r.set_stop_reason(v1::Result::EXHAUSTED);
  r.set_rounds(4);
  r.set_graphs(300);
  r.set_candidates(20);
  r.set_seconds(12.34);
  r.mutable_cache()->set_hits(5);
  r.mutable_cache()->set_misses(6);
  r.set_output_digest("def");
  r.set_output_bytes(1020000);
  return job;
}

constexpr char kTable[] =
    "FASTER: 33 % less time than ONNX Runtime 1.23.2, 1.500x (1.400 to 1.600), "
    R"(same answers within 0.001, file 2.0 % larger
  model        m.onnx  jobs/7
  today        3.000 ms  (2.500 to 3.500)  ONNX Runtime 1.23.2
  output       2.000 ms  (1.500 to 2.500)  AutoGraph
  over         1.500x  (1.400 to 1.600)  ONNX Runtime 1.23.2 on the input
  over         1.400x  (1.300 to 1.500)  our untuned session on the input
  over         1.200x  (1.100 to 1.300)  the input with the best plan for it
               (medians of pairs taken side by side; today and output are medians of all runs)
  operators    52 -> 50  (Conv 26 -> 24)
  parameters   1235496 -> 1235496
  file         1.000 -> 1.020 MB
  written is   a rewritten model with its plan
  device       cpu  cores=2
  policy       fp32, tolerance 0.001
  errors       max abs 2e-05, max rel 2e-06
  rewrites     merge-convs x3  250.000 us by estimate, not measured
  plan         10 groups on 2 streams
)"
    "  search       COMPLETE (stopped: exhausted: nothing was left to try); 4 rounds, 300 graphs, "
    R"(20 measured whole, 0 groups failed
  cache        5 hits, 6 misses
  time         12.3 s
)";

TEST(JobText, TheTableSaysItAll) { EXPECT_EQ(ResultTable(Done()), kTable); }

// The line that each field changes.
TEST(JobText, TheTableFollowsTheResult) {
  const struct {
    const char* name;
    std::function<void(v1::Result&)> change;
    std::string line;
  } kCases[] = {
      {"not faster",
       [](v1::Result& r) {
         r.set_verdict(v1::Result::NO_GAIN_FOUND);
         r.set_speedup(0.99);
         r.set_speedup_high(1.01);
         r.set_output(v1::Result::PLAN_ADDED);
       },
       "NO GAIN FOUND over ONNX Runtime 1.23.2: 0.990x, at most 1.010x; 300 graphs scored, 20 "
       "plans "
       "measured, same answers within 0.001\n"},
      {"not measured", [](v1::Result& r) { r.set_verdict(v1::Result::NOT_MEASURED); },
       "NOT MEASURED: no runtime timed both files; the warnings say why\n"},
      {"nothing to compare",
       [](v1::Result& r) {
         r.set_verdict(v1::Result::NO_GAIN_FOUND);
         r.set_output(v1::Result::INPUT);
         for (const auto set : {&v1::Result::set_speedup, &v1::Result::set_speedup_low,
                                &v1::Result::set_speedup_high}) {
           (r.*set)(1);
         }
       },
       "NO GAIN FOUND over ONNX Runtime 1.23.2: the file is unchanged and runs as before; 300 "
       "graphs scored, 20 plans measured\n"},
      {"short times", [](v1::Result& r) { r.mutable_output_latency()->set_median_ns(900); },
       "  today        3000.000 us  (2500.000 to 3500.000)  ONNX Runtime 1.23.2\n"
       "  output       0.900 us  "},
      {"without a plan", [](v1::Result& r) { r.set_carries_plan(false); },
       "  written is   a rewritten model without a plan\n"},
      {"fastest elsewhere", [](v1::Result& r) { r.set_output_in_onnxruntime(true); },
       "  over         1.400x  (1.300 to 1.500)  our session: the output over the input, "
       "untuned\n"},
      {"plan added", [](v1::Result& r) { r.set_output(v1::Result::PLAN_ADDED); },
       "  written is   the input's own bytes with a plan behind them\n"},
      {"sizes kept open",
       [](v1::Result& r) {
         r.add_kept_open("x:0 (batch)");
         r.add_kept_open("x:2");
         r.set_measured_at("x=1x3x224x224");
       },
       "  kept open    x:0 (batch), x:2; measured at x=1x3x224x224\n"},
      {"a second shape set",
       [](v1::Result& r) {
         v1::ShapeSetResult* set = r.add_shape_sets();
         set->set_shapes("x=8x3x224x224");
         set->set_verdict(v1::Result::FASTER);
         *set->mutable_speedup() = Ratio(1.3);
       },
       "  also for     x=8x3x224x224  FASTER 1.300x  (1.200 to 1.400)\n"},
      {"simulated", [](v1::Result& r) { r.set_simulated(true); },
       "file 2.0 % larger (simulated device: an estimate)\n"},
      {"tried elsewhere",
       [](v1::Result& r) {
         v1::PortableStep* step = r.add_portable();
         step->set_rule("clean-up");
         step->set_wanted(1);
         step->set_applied(1);
         step->set_kept(true);
         step->set_reason("FASTER");
         *step->mutable_ratio() = Ratio(1.3);
       },
       "  kept         clean-up x1 of 1: FASTER 1.300x  (1.200 to 1.400)\n"},
      {"instances", [](v1::Result& r) { r.set_instances(8); },
       "  plan         10 groups on 2 streams, 8 times on equal parts of the batch\n"},
      {"one stream", [](v1::Result& r) { r.set_streams(1); },
       "  plan         10 groups on 1 stream\n"},
      {"two rewrites",
       [](v1::Result& r) {
         r.add_rewrites()->set_rule("b");
         r.mutable_rewrites(1)->set_count(1);
       },
       "  rewrites     merge-convs x3  250.000 us by estimate, not measured\n"
       "               b x1\n"},
      {"a measured gain",
       [](v1::Result& r) { *r.mutable_rewrites(0)->mutable_gain() = Ratio(1.2); },
       "  rewrites     merge-convs x3  gains 1.200x  (1.100 to 1.300)\n"},
      {"a gain with what hangs on it",
       [](v1::Result& r) {
         *r.mutable_rewrites(0)->mutable_gain() = Ratio(1.2);
         r.mutable_rewrites(0)->add_also_left_out("b");
         r.mutable_rewrites(0)->add_also_left_out("c");
       },
       "  rewrites     merge-convs x3  gains 1.200x  (1.100 to 1.300) with b, c, which lack "
       "places without it\n"},
      {"from the cache", [](v1::Result& r) { r.mutable_cache()->set_model_hit(true); },
       "  cache        the whole answer; nothing was measured\n"},
      {"warned", [](v1::Result& r) { r.add_warnings("mind the gap"); },
       "file 2.0 % larger\n  warning      mind the gap\n"},
  };
  for (const auto& c : kCases) {
    v1::Job job = Done();
    c.change(*job.mutable_result());
    const std::string table = ResultTable(job);
    EXPECT_NE(table.find(c.line), std::string::npos) << c.name << "\n" << table;
  }
}

TEST(JobText, TheFileIsRunWhereItIsFastest) {
  v1::Result r = Done().result();
  EXPECT_EQ(HowToRun(r, "out/m.onnx"),
            "autograph run out/m.onnx; to serve it: autograph.Session(\"out/m.onnx\") in Python, "
            "runtime/autograph.h in C and C++ (docs/runtime.md)");
  *r.mutable_over_onnxruntime() = Ratio(0.25);
  r.mutable_over_onnxruntime()->set_high(1.01);
  EXPECT_TRUE(HowToRun(r, "m.onnx").starts_with("autograph run m.onnx;"));
  r.mutable_over_onnxruntime()->set_high(0.3);
  EXPECT_EQ(HowToRun(r, "m.onnx"),
            "in ONNX Runtime, as today's model: our session takes 4.00 times as long");
  r.set_output_in_onnxruntime(true);
  EXPECT_EQ(HowToRun(r, "m.onnx"), "in ONNX Runtime, as today's model");
  r.clear_output_runtime();
  r.clear_output_in_onnxruntime();
  EXPECT_EQ(HowToRun(r, "m.onnx"), "as today's model");
}

TEST(JobText, AVerdictHasASpeedupWhereItWasMeasured) {
  v1::Result r = Done().result();
  EXPECT_EQ(VerdictText(r), "FASTER 1.500x");
  r.set_verdict(v1::Result::NOT_MEASURED);
  EXPECT_EQ(VerdictText(r), "NOT_MEASURED");
}

TEST(JobText, TheTableSaysWhatWasCompared) {
  v1::Job job = Done();
  const auto line = [&] {
    const std::string table = ResultTable(job);
    const size_t at = table.find("  compared ");
    return at == std::string::npos ? "" : table.substr(at, table.find('\n', at) - at);
  };
  EXPECT_EQ(line(), "");
  job.mutable_result()->add_compared_inputs()->set_inputs("usual");
  EXPECT_EQ(line(), "  compared     on 1 set of inputs");
  job.mutable_result()->add_compared_inputs()->set_inputs("mine");
  job.mutable_request()->add_inputs()->set_name("mine");
  job.mutable_result()->add_compared_inputs()->set_left_out("no time was left");
  EXPECT_EQ(line(),
            "  compared     on 2 sets of inputs, 1 of them your own; 1 left out (see the report)");
}

TEST(JobText, TheTableSaysThePolicy) {
  v1::Job job = Done();
  v1::Policy& policy = *job.mutable_request()->mutable_policy();
  policy.set_cold_cache(true);
  EXPECT_NE(ResultTable(job).find(
                "  policy       fp32, tolerance 0.001, caches evicted before every run\n"),
            std::string::npos);
  policy.set_nonfinite_strict(true);
  EXPECT_NE(ResultTable(job).find(", caches evicted before every run, Inf and NaN kept exactly\n"),
            std::string::npos);
}

}  // namespace
}  // namespace ag
