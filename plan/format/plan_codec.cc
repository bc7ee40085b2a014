#include "plan/format/plan_codec.h"

#include "base/bytes.h"

namespace ag {
namespace {

constexpr uint32_t kPlanMagic = 0x4c504741;  // "AGPL".

void WritePort(const Port& port, ByteWriter* out) {
  out->U32(static_cast<uint32_t>(port.edge.node));
  out->U32(static_cast<uint32_t>(port.edge.output));
  out->U8(static_cast<uint8_t>(port.layout));
}

void WritePorts(const std::vector<Port>& ports, ByteWriter* out) {
  out->U64(ports.size());
  for (const Port& port : ports) WritePort(port, out);
}

void WriteNumbers(const std::vector<int>& numbers, ByteWriter* out) {
  out->U64(numbers.size());
  for (const int number : numbers) out->U32(static_cast<uint32_t>(number));
}

void WriteGroup(const Group& group, ByteWriter* out) {
  out->String(group.pattern);
  WriteNumbers(group.nodes, out);
  WritePorts(group.inputs, out);
  WritePorts(group.outputs, out);
  out->String(group.kernel);
  out->U32(static_cast<uint32_t>(group.cores));
}

void WriteStream(const Stream& stream, ByteWriter* out) {
  out->U32(static_cast<uint32_t>(stream.cores));
  out->U64(stream.launches.size());
  for (const Launch& launch : stream.launches) {
    out->U32(static_cast<uint32_t>(launch.group));
    WriteNumbers(launch.waits, out);
  }
}

void WritePlace(const Place& place, ByteWriter* out) {
  WritePort(place.port, out);
  out->U8(static_cast<uint8_t>(place.kind));
  out->U32(static_cast<uint32_t>(place.index));
  out->I64(place.offset_bytes);
}

// Reads a number of nodes, groups, cores or an index: never negative, and an int.
StatusOr<int> ReadNumber(ByteReader* in) {
  AG_LET(const uint32_t value, in->U32());
  if (value > static_cast<uint32_t>(INT32_MAX)) {
    return Err(StatusCode::kDataLoss, "plan: number {} is out of range", value);
  }
  return static_cast<int>(value);
}

StatusOr<std::vector<int>> ReadNumbers(ByteReader* in) {
  AG_LET(const uint64_t count, in->Count(4));
  std::vector<int> numbers;
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(const int number, ReadNumber(in));
    numbers.push_back(number);
  }
  return numbers;
}

StatusOr<Port> ReadPort(ByteReader* in) {
  Port port;
  AG_LET(port.edge.node, ReadNumber(in));
  AG_LET(port.edge.output, ReadNumber(in));
  AG_LET(const uint8_t layout, in->U8());
  if (layout >= kLayoutCount) return Err(StatusCode::kDataLoss, "plan: no layout {}", layout);
  port.layout = static_cast<Layout>(layout);
  return port;
}

StatusOr<std::vector<Port>> ReadPorts(ByteReader* in) {
  AG_LET(const uint64_t count, in->Count(9));
  std::vector<Port> ports;
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(const Port port, ReadPort(in));
    ports.push_back(port);
  }
  return ports;
}

StatusOr<Group> ReadGroup(ByteReader* in) {
  Group group;
  AG_LET(group.pattern, in->String());
  AG_LET(group.nodes, ReadNumbers(in));
  AG_LET(group.inputs, ReadPorts(in));
  AG_LET(group.outputs, ReadPorts(in));
  AG_LET(group.kernel, in->String());
  AG_LET(group.cores, ReadNumber(in));
  return group;
}

StatusOr<Stream> ReadStream(ByteReader* in) {
  Stream stream;
  AG_LET(stream.cores, ReadNumber(in));
  AG_LET(const uint64_t count, in->Count(12));
  for (uint64_t i = 0; i < count; ++i) {
    Launch launch;
    AG_LET(launch.group, ReadNumber(in));
    AG_LET(launch.waits, ReadNumbers(in));
    stream.launches.push_back(std::move(launch));
  }
  return stream;
}

StatusOr<Place> ReadPlace(ByteReader* in) {
  Place place;
  AG_LET(place.port, ReadPort(in));
  AG_LET(const uint8_t kind, in->U8());
  if (kind > static_cast<uint8_t>(Place::Kind::kOutput)) {
    return Err(StatusCode::kDataLoss, "plan: no kind of place {}", kind);
  }
  place.kind = static_cast<Place::Kind>(kind);
  AG_LET(place.index, ReadNumber(in));
  AG_LET(place.offset_bytes, in->I64());
  return place;
}

Status ReadHeader(ByteReader* in) {
  AG_LET(const uint32_t magic, in->U32());
  AG_LET(const uint32_t version, in->U32());
  if (magic != kPlanMagic) return Err(StatusCode::kDataLoss, "not a plan: magic is {:#x}", magic);
  if (version == kPlanBytesVersion) return OkStatus();
  return Err(StatusCode::kDataLoss, "plan: expected version {}, got {}", kPlanBytesVersion,
             version);
}

StatusOr<Policy> ReadPolicy(ByteReader* in) {
  AG_LET(const std::string text, in->String());
  StatusOr<Policy> policy = ParsePolicy(text);
  if (policy.ok() && policy->Text() == text) return policy;
  return Err(StatusCode::kDataLoss, "plan: policy '{}' is not in its canonical form", text);
}

// Reads a counted list of items of at least `item_bytes` bytes each.
template <class T>
Status ReadList(ByteReader* in, size_t item_bytes, StatusOr<T> (*read)(ByteReader*),
                std::vector<T>* items) {
  AG_LET(const uint64_t count, in->Count(item_bytes));
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(T item, read(in));
    items->push_back(std::move(item));
  }
  return OkStatus();
}

StatusOr<Plan> Decode(ByteReader* in) {
  AG_TRY(ReadHeader(in));
  Plan plan;
  AG_LET(plan.graph, in->ReadDigest());
  AG_LET(plan.environment, in->String());
  AG_LET(plan.policy, ReadPolicy(in));
  AG_TRY(ReadList(in, 44, ReadGroup, &plan.groups));
  AG_TRY(ReadList(in, 12, ReadStream, &plan.streams));
  AG_TRY(ReadList(in, 22, ReadPlace, &plan.places));
  AG_LET(plan.arena_bytes, in->I64());
  AG_TRY(in->End());
  return plan;
}

}  // namespace

std::string EncodePlan(const Plan& plan) {
  ByteWriter out;
  out.U32(kPlanMagic);
  out.U32(kPlanBytesVersion);
  out.AddDigest(plan.graph);
  out.String(plan.environment);
  out.String(plan.policy.Text());
  out.U64(plan.groups.size());
  for (const Group& group : plan.groups) WriteGroup(group, &out);
  out.U64(plan.streams.size());
  for (const Stream& stream : plan.streams) WriteStream(stream, &out);
  out.U64(plan.places.size());
  for (const Place& place : plan.places) WritePlace(place, &out);
  out.I64(plan.arena_bytes);
  return out.Take();
}

StatusOr<Plan> DecodePlan(std::string_view bytes) {
  ByteReader in(bytes);
  return Decode(&in);
}

}  // namespace ag
