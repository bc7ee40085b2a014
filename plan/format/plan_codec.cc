#include "plan/format/plan_codec.h"

#include "base/fields.h"

namespace ag {
namespace {

constexpr uint32_t kPlanMagic = 0x4c504741;  // "AGPL".

StatusOr<Policy> DecodePolicy(const std::string& text) {
  StatusOr<Policy> policy = ParsePolicy(text);
  if (policy.ok() && policy->Text() == text) return policy;
  return Err(StatusCode::kDataLoss, "plan: policy '{}' is not in its canonical form", text);
}

}  // namespace

void Fields(auto& io, Is<Port> auto& port) { io(port.edge.node, port.edge.output, port.layout); }

void Fields(auto& io, Is<Group> auto& group) {
  io(group.pattern, group.nodes, group.inputs, group.outputs, group.kernel, group.cores);
}

void Fields(auto& io, Is<Launch> auto& launch) { io(launch.group, launch.waits); }

void Fields(auto& io, Is<Stream> auto& stream) { io(stream.cores, stream.launches); }

void Fields(auto& io, Is<Place> auto& place) {
  io(place.port);
  io.Enum(place.kind, static_cast<int>(Place::Kind::kOutput) + 1, "kind of place");
  io(place.index, place.offset_bytes);
}

void Fields(auto& io, Is<Plan> auto& plan) {
  io(plan.graph, plan.environment);
  io.Nested(
      plan.policy, [](const Policy& policy) { return policy.Text(); }, DecodePolicy);
  io(plan.groups, plan.streams, plan.places, plan.arena_bytes);
}

void Fields(auto& io, Is<Segment> auto& segment) {
  io(segment.nodes, segment.instances, segment.plan);
}

// A plan in segments, which has no groups of its own.
struct InSegments {
  Plan plan;
};

void Fields(auto& io, Is<InSegments> auto& in) {
  io(in.plan.graph, in.plan.environment);
  io.Nested(
      in.plan.policy, [](const Policy& policy) { return policy.Text(); }, DecodePolicy);
  io(in.plan.segments);
}

// One whose runs go on beside each other.
struct InSegmentsBeside {
  InSegments in;
};

void Fields(auto& io, Is<InSegmentsBeside> auto& beside) {
  Fields(io, beside.in);
  io(beside.in.plan.beside);
}

std::string EncodePlan(const Plan& plan) {
  const bool has_segments = !plan.segments.empty();
  ByteWriter head;
  head.U32(kPlanMagic);
  const bool is_beside = has_segments && plan.beside != 1;
  head.U32(is_beside ? kBesideVersion : has_segments ? kSegmentsVersion : kPlanBytesVersion);
  if (!has_segments) return EncodeFields(plan, std::move(head));
  if (is_beside) return EncodeFields(InSegmentsBeside{{plan}}, std::move(head));
  return EncodeFields(InSegments{plan}, std::move(head));
}

StatusOr<Plan> DecodePlan(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint32_t magic, in.U32());
  AG_LET(const uint32_t version, in.U32());
  if (magic != kPlanMagic) return Err(StatusCode::kDataLoss, "not a plan: magic is {:#x}", magic);
  if (version == kPlanBytesVersion) return DecodeFields<Plan>(in);
  InSegmentsBeside decoded;
  if (version == kBesideVersion) {
    AG_LET(decoded, DecodeFields<InSegmentsBeside>(in));
  } else if (version == kSegmentsVersion) {
    AG_LET(decoded.in, DecodeFields<InSegments>(in));
  } else {
    return Err(StatusCode::kDataLoss, "plan: expected version {} to {}, got {}", kPlanBytesVersion,
               kBesideVersion, version);
  }
  if (decoded.in.plan.segments.empty()) return Err(StatusCode::kDataLoss, "plan: no segments");
  return std::move(decoded.in.plan);
}

}  // namespace ag
