// Conversion of a candidate to and from its message: the canonical bytes of graph and plan. Pure
// functions.
#pragma once

#include "base/status.h"
#include "plan/candidate.h"

namespace autograph::v1 {
class Candidate;
}  // namespace autograph::v1

namespace ag {

void ToProto(const Candidate& candidate, autograph::v1::Candidate* proto);

// Fails where DecodeGraph or DecodePlan does. Whether the plan fits the graph is for the device.
StatusOr<Candidate> FromProto(const autograph::v1::Candidate& proto);

}  // namespace ag
