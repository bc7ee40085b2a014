#include "wire/candidate_wire.h"

#include "autograph/v1/worker.pb.h"
#include "graph/codec.h"
#include "plan/format/plan_codec.h"

namespace ag {

void ToProto(const Candidate& candidate, autograph::v1::Candidate* proto) {
  proto->set_graph(EncodeGraph(candidate.graph));
  proto->set_plan(EncodePlan(candidate.plan));
}

StatusOr<Candidate> FromProto(const autograph::v1::Candidate& proto) {
  Candidate candidate;
  AG_LET(candidate.graph, DecodeGraph(proto.graph()));
  AG_LET(candidate.plan, DecodePlan(proto.plan()));
  return candidate;
}

}  // namespace ag
