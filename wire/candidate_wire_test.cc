#include "wire/candidate_wire.h"

#include <gtest/gtest.h>

#include "autograph/v1/worker.pb.h"
#include "graph/text_form.h"
#include "plan/format/plan_codec.h"

namespace ag {
namespace {

TEST(CandidateWire, ComesBackEqual) {
  Candidate candidate;
  candidate.graph = *ParseGraph("input x f32[8]\noutput y = relu(x)\n", nullptr);
  candidate.plan.graph = candidate.graph.digest();
  candidate.plan.environment = "e";
  autograph::v1::Candidate proto;
  ToProto(candidate, &proto);
  const StatusOr<Candidate> again = FromProto(proto);
  ASSERT_EQ(ToString(again.status()), "OK");
  EXPECT_EQ(again->graph.digest(), candidate.graph.digest());
  EXPECT_EQ(EncodePlan(again->plan), EncodePlan(candidate.plan));
}

TEST(CandidateWire, GarbageIsAStatus) {
  Candidate candidate;
  candidate.graph = *ParseGraph("input x f32[8]\noutput y = relu(x)\n", nullptr);
  autograph::v1::Candidate good;
  ToProto(candidate, &good);
  for (const bool of_graph : {true, false}) {
    autograph::v1::Candidate bad = good;
    of_graph ? bad.set_graph("garbage") : bad.set_plan("garbage");
    EXPECT_EQ(FromProto(bad).status().code(), StatusCode::kDataLoss) << of_graph;
  }
}

}  // namespace
}  // namespace ag
