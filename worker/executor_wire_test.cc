#include "worker/executor_wire.h"

#include <gtest/gtest.h>

#include "autograph/v1/worker.pb.h"
#include "device/sim/sim_device.h"
#include "plan/fusion/pair_problem.h"
#include "wire/candidate_wire.h"
#include "worker/execute.h"
#include "worker/testing/testing.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

class ExecutorWireTest : public ::testing::Test {
 protected:
  void Open(std::string_view lines) {
    auto device = OpenSimDevice(testing::SmallSpec(lines));
    AG_CHECK(device.ok());
    Use(*std::move(device));
  }

  void Use(std::unique_ptr<Device> device) {
    executor_ = std::make_unique<Executor>(std::move(device), testing::Share(weights_), clock_,
                                           ProfileOptions(), [](int) {});
  }

  v1::Candidate Planned(std::string_view text) {
    v1::Candidate candidate;
    ToProto(testing::Planned(text, executor_->device().spec(), weights_.get()), &candidate);
    return candidate;
  }

  v1::WorkItem Groups(const std::vector<std::string_view>& graphs) {
    v1::WorkItem item;
    for (const std::string_view text : graphs) {
      item.mutable_groups()->add_problems(testing::Problem(text, executor_->device().spec()));
    }
    return item;
  }

  Status Run(v1::WorkItem item) {
    item.set_attempt("e1.1");
    return RunBytes(item.SerializeAsString());
  }

  // Keeps the results; the call number `emit_fails_` fails.
  Status RunBytes(const std::string& bytes) {
    results_.clear();
    return RunWorkItem(*executor_, bytes, [this](const std::string& emitted) {
      if (--emit_fails_ == 0) return Err(StatusCode::kUnavailable, "the peer is gone");
      AG_CHECK(results_.emplace_back().ParseFromString(emitted));
      return OkStatus();
    });
  }

  // Returns "index code message" of each.
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const v1::ItemResult& r : results_) {
      texts.push_back(fmt::format("{} {} {}", r.index(), r.code(), r.message()));
    }
    return texts;
  }

  const std::shared_ptr<MemoryWeights> weights_ = std::make_shared<MemoryWeights>();
  FakeClock clock_;
  std::unique_ptr<Executor> executor_;
  std::vector<v1::ItemResult> results_;
  int emit_fails_ = 0;
};

using Lines = std::vector<std::string>;

TEST_F(ExecutorWireTest, AGroupBatchGivesAResultEach) {
  Open("");
  v1::WorkItem item = Groups({testing::kLayer, testing::kWideSoftmax});
  item.mutable_groups()->add_problems("x");
  EXPECT_EQ(ToString(Run(item)), "OK");
  ASSERT_EQ(results_.size(), 4u);
  EXPECT_EQ(Texts()[0], "0 0 ");
  EXPECT_EQ(Texts()[1], "1 0 ");
  EXPECT_EQ(results_[2].index(), 2);
  EXPECT_NE(results_[2].code(), 0);
  EXPECT_FALSE(results_[2].has_measurement());
  EXPECT_EQ(Texts()[3], "-1 0 ");
  const v1::Measurement& record = results_[0].measurement();
  EXPECT_GT(record.latency().median_ns(), 0);
  EXPECT_LE(record.latency().low_ns(), record.latency().median_ns());
  EXPECT_GE(record.latency().high_ns(), record.latency().median_ns());
  EXPECT_GE(record.samples(), 7);
  EXPECT_EQ(record.canary_ns(), 100'000);
  EXPECT_TRUE(record.simulated());
  ASSERT_EQ(record.alternatives_size(), 1);
  EXPECT_NE(record.alternatives(0).kernel(), record.kernel());
  EXPECT_GE(record.alternatives(0).median_ns(), record.latency().median_ns());
  for (const v1::ItemResult& result : results_) EXPECT_EQ(result.attempt(), "e1.1");
}

TEST_F(ExecutorWireTest, KernelsThatTheDeviceHasAreKnown) {
  Open("");
  ASSERT_EQ(ToString(Run(Groups({testing::kLayer}))), "OK");
  const v1::Measurement measured = results_[0].measurement();
  v1::WorkItem item;
  item.set_attempt("e1.2");
  const std::string problem = testing::Problem(testing::kLayer, executor_->device().spec());
  const auto add = [&](const std::string& bytes, const std::vector<std::string>& kernels) {
    v1::GroupKernelNames* group = item.mutable_kernel_check()->add_groups();
    group->set_problem(bytes);
    group->mutable_kernels()->Assign(kernels.begin(), kernels.end());
  };
  add(problem, {measured.kernel(), measured.alternatives(0).kernel()});
  add(problem, {measured.kernel(), "no-such-kernel"});
  add("x", {"k"});
  results_.clear();
  EXPECT_EQ(ToString(Run(item)), "OK");
  ASSERT_EQ(results_.size(), 4u);
  EXPECT_EQ(Texts()[0], "0 0 ");
  EXPECT_EQ(Texts()[1], "1 5 dense: no kernel no-such-kernel");
  EXPECT_NE(results_[2].code(), 0);
  EXPECT_EQ(Texts()[3], "-1 0 ");
}

// Each group needs all cores of "small", so by its spec both are half as fast together.
TEST_F(ExecutorWireTest, PairsStandAmongGroups) {
  for (const auto& [lines, share] :
       {std::pair("", 0.5), std::pair("overlap 1.5", 0.75), std::pair("overlap 2", 1.0)}) {
    Open(lines);
    v1::WorkItem item = Groups({testing::kLayer, testing::kWideSoftmax});
    ASSERT_EQ(ToString(Run(item)), "OK");
    PairProblem pair;
    double alone_ns[2];
    for (int i = 0; i < 2; ++i) {
      pair.groups[i] = *DecodeGroupProblem(item.groups().problems(0));
      pair.kernels[i] = results_[0].measurement().kernel();
      alone_ns[i] = results_[0].measurement().latency().median_ns();
    }
    item.mutable_groups()->add_problems(EncodePairProblem(MakePair(pair)));
    PairProblem wrong = pair;
    wrong.kernels[0] = "none";
    item.mutable_groups()->add_problems(EncodePairProblem(wrong));
    ASSERT_EQ(ToString(Run(item)), "OK");
    EXPECT_EQ(Texts()[2], "2 0 ");
    EXPECT_EQ(Texts()[3], "3 3 small: no kernel none");
    const v1::Measurement& record = results_[2].measurement();
    EXPECT_NEAR(record.latency().median_ns(), alone_ns[0] / share, 2);
    EXPECT_EQ(record.kernel(), "");
    EXPECT_GE(record.samples(), 7);
    EXPECT_TRUE(record.simulated());
  }
}

TEST_F(ExecutorWireTest, APlanSetGivesATimingEach) {
  Open("");
  v1::WorkItem item;
  *item.mutable_plans()->add_candidates() = Planned(testing::kLayer);
  *item.mutable_plans()->add_candidates() = Planned(testing::kLayer);
  item.mutable_plans()->add_candidates()->set_graph("garbage");
  EXPECT_EQ(ToString(Run(item)), "OK");
  ASSERT_EQ(results_.size(), 4u);
  EXPECT_EQ(results_[1].timing().verdict(), v1::PlanTiming::SAME);
  EXPECT_EQ(results_[1].timing().speedup(), 1);
  EXPECT_GT(results_[1].timing().blocks(), 0);
  EXPECT_GT(results_[1].timing().latency().median_ns(), 0);
  EXPECT_NE(results_[2].code(), 0);
  EXPECT_EQ(Texts()[3], "-1 0 ");
}

TEST_F(ExecutorWireTest, APlanSetsPolicySaysWhetherItIsCold) {
  Use(*OpenSimDevice(testing::CachedSpec()));
  v1::WorkItem item;
  *item.mutable_plans()->add_candidates() = Planned(testing::kLayer);
  EXPECT_EQ(ToString(Run(item)), "OK");
  const double warm_ns = results_[0].timing().latency().median_ns();
  item.mutable_plans()->set_policy(Policy{.cold_cache = true}.Text());
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_GT(results_[0].timing().latency().median_ns(), warm_ns);
  item.mutable_plans()->set_policy("cold_cache=maybe");
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 3 policy: cold_cache: expected 0 or 1, got 'maybe'"});
}

TEST_F(ExecutorWireTest, ASetWithoutInputEndsAtOnce) {
  Open("");
  v1::WorkItem item;
  item.mutable_plans();
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 3 final comparison: no plans"});
}

TEST_F(ExecutorWireTest, ACheckGivesAnErrorPerOutput) {
  Open("");
  v1::WorkItem item;
  *item.mutable_check()->mutable_reference() = Planned(testing::kLayer);
  *item.mutable_check()->mutable_candidate() = Planned(testing::kLayer);
  item.mutable_check()->add_seeds(1);
  item.mutable_check()->set_reference_kernels(true);
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 0 "});
  ASSERT_EQ(results_[0].errors_size(), 1);
  EXPECT_EQ(results_[0].errors(0).output(), "y");
  EXPECT_EQ(results_[0].errors(0).max_rel(), 0);
  ASSERT_EQ(results_[0].compared_size(), 1) << "usual data of the seed";
  EXPECT_TRUE(results_[0].compared(0).reference_kernels());
}

TEST_F(ExecutorWireTest, ACheckNamesWhatItComparedOn) {
  Open("");
  v1::WorkItem item;
  *item.mutable_check()->mutable_reference() = Planned(testing::kLayer);
  *item.mutable_check()->mutable_candidate() = Planned(testing::kLayer);
  item.mutable_check()->add_inputs()->set_kind("full");
  item.mutable_check()->add_inputs()->set_kind("tiny");
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 0 "});
  ASSERT_EQ(results_[0].compared_size(), 2);
  EXPECT_EQ(results_[0].compared(0).inputs(), "full");
  EXPECT_EQ(results_[0].compared(1).inputs(), "tiny");
  item.mutable_check()->add_inputs()->set_kind("odd");
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 12 inputs of a kind that this worker does not know: odd"});
}

TEST_F(ExecutorWireTest, ADifferenceIsShownByItsValues) {
  Open("");
  v1::WorkItem item;
  v1::Check& check = *item.mutable_show()->mutable_check();
  *check.mutable_reference() = Planned("input x f32[4,16]; output y = relu(x)");
  *check.mutable_candidate() = Planned("input x f32[4,16]; output y = tanh(x)");
  check.add_seeds(3);
  check.set_tolerance(1e-3);
  item.mutable_show()->set_bytes_max(3 * 4 * 16 * 4);
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), (Lines{"0 0 ", "-1 0 "}));
  const v1::ShownValues shown = results_[0].shown();
  EXPECT_TRUE(shown.differs());
  EXPECT_FALSE(shown.on_device_only());
  EXPECT_EQ(shown.compared(), "usual");
  EXPECT_EQ(shown.seed(), 3u);
  EXPECT_EQ(shown.value_bytes(), 3 * 4 * 16 * 4);
  ASSERT_EQ(shown.inputs_size() + shown.expected_size() + shown.actual_size(), 3);
  const Tensor input = Tensor::FromBytes({DType::kFloat32, {4, 16}}, shown.inputs(0));
  const Tensor expected = Tensor::FromBytes(input.type(), shown.expected(0));
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(expected.At(i), std::max(input.At(i), 0.0));
  EXPECT_EQ(shown.errors(0).output(), "y");
  EXPECT_GT(shown.errors(0).max_rel(), 0.1);

  item.mutable_show()->set_bytes_max(3 * 4 * 16 * 4 - 1);
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(results_[0].shown().value_bytes(), 3 * 4 * 16 * 4);
  EXPECT_EQ(results_[0].shown().inputs_size(), 0);

  *check.mutable_candidate() = check.reference();
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_FALSE(results_[0].shown().differs());
  check.clear_seeds();
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 3 show: no inputs"});
}

TEST_F(ExecutorWireTest, ARefinementGivesKernels) {
  Open("");
  v1::WorkItem item;
  *item.mutable_refine()->mutable_candidate() = Planned(testing::kLayer);
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), (Lines{"0 0 ", "-1 0 "}));
  EXPECT_EQ(results_[0].kernels_size(), 0);
  item.mutable_refine()->add_rivals()->set_group(9);
  EXPECT_EQ(ToString(Run(item)), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 3 rival kernel : of group 9, the plan has 1"});
}

TEST_F(ExecutorWireTest, OtherItemsHaveOneResult) {
  Open("");
  v1::WorkItem qualify;
  qualify.mutable_qualify();
  EXPECT_EQ(ToString(Run(qualify)), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 0 "});
  EXPECT_EQ(ToString(Run(v1::WorkItem())), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 12 work item: of a kind that this worker does not know"});
}

// Whatever bytes arrive, the answer is a result and not a crash.
TEST_F(ExecutorWireTest, CutBytesAreResults) {
  Open("");
  v1::WorkItem item = Groups({testing::kWideSoftmax});
  item.set_attempt("e1.1");
  const std::string bytes = item.SerializeAsString();
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(ToString(RunBytes(bytes.substr(0, n))), "OK") << n;
    ASSERT_FALSE(results_.empty()) << n;
    EXPECT_EQ(results_.back().index(), -1) << n;
  }
  EXPECT_EQ(ToString(RunBytes("\xff\xff\xff")), "OK");
  EXPECT_EQ(Texts(), Lines{"-1 15 work item: not a WorkItem message"});
}

TEST_F(ExecutorWireTest, ALostDeviceIsNoResult) {
  Open("fault sticky Softmax");
  const std::string lost = "UNAVAILABLE: small: sticky error, open the device anew";
  EXPECT_EQ(ToString(Run(Groups({testing::kLayer, testing::kWideSoftmax, testing::kLayer}))), lost);
  EXPECT_EQ(Texts(), Lines{"0 0 "});

  Open("fault sticky Softmax");
  v1::WorkItem plans, check;
  *plans.mutable_plans()->add_candidates() = Planned(testing::kLayer);
  *plans.mutable_plans()->add_candidates() = Planned(testing::kWideSoftmax);
  EXPECT_EQ(ToString(Run(plans)), lost);
  EXPECT_EQ(Texts(), Lines());

  Open("fault sticky Softmax");
  *check.mutable_check()->mutable_reference() = Planned(testing::kLayer);
  *check.mutable_check()->mutable_candidate() = Planned(testing::kWideSoftmax);
  check.mutable_check()->add_seeds(1);
  EXPECT_EQ(ToString(Run(check)),
            "UNAVAILABLE: usual inputs: candidate: small: sticky error, open the device "
            "anew");
  EXPECT_EQ(Texts(), Lines());
}

TEST_F(ExecutorWireTest, AnAgentThatIsGoneEndsTheItem) {
  Open("");
  for (int n = 1; n <= 3; ++n) {
    emit_fails_ = n;
    EXPECT_EQ(ToString(Run(Groups({testing::kWideSoftmax, testing::kLayer}))),
              "UNAVAILABLE: the peer is gone")
        << n;
    EXPECT_EQ(results_.size(), static_cast<size_t>(n - 1));
  }
}

}  // namespace
}  // namespace ag
