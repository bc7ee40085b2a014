#include "wire/measurement_wire.h"

#include <algorithm>

#include "autograph/v1/measurement.pb.h"

namespace ag {

namespace v1 = autograph::v1;

namespace {

v1::PlanTiming::Verdict ToWire(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return v1::PlanTiming::FASTER;
    case Verdict::kSlower:
      return v1::PlanTiming::SLOWER;
    case Verdict::kSame:
      return v1::PlanTiming::SAME;
    case Verdict::kAmbiguous:
      return v1::PlanTiming::AMBIGUOUS;
  }
  AG_CHECK(false);
}

// Reads an unknown verdict as the one that promises least.
Verdict FromWire(v1::PlanTiming::Verdict wire) {
  for (const Verdict verdict : {Verdict::kFaster, Verdict::kSlower, Verdict::kSame}) {
    if (wire == ToWire(verdict)) return verdict;
  }
  return Verdict::kAmbiguous;
}

constexpr size_t kMessageBytesKept = 3000;
constexpr size_t kVersionBytesKept = 100;

}  // namespace

Status StatusFromWire(int code, const std::string& message) {
  if (code == 0) return OkStatus();
  const bool known = code > 0 && code <= 16;
  return Status(known ? static_cast<StatusCode>(code) : StatusCode::kInternal,
                message.substr(0, kMessageBytesKept));
}

void ToProto(const Latency& latency, v1::Latency* p) {
  p->set_median_ns(latency.median_ns);
  p->set_low_ns(latency.low_ns);
  p->set_high_ns(latency.high_ns);
}

Latency FromProto(const v1::Latency& p) { return {p.median_ns(), p.low_ns(), p.high_ns()}; }

void ToProto(const Ratio& ratio, v1::Ratio* p) {
  p->set_median(ratio.median);
  p->set_low(ratio.low);
  p->set_high(ratio.high);
}

Ratio FromProto(const v1::Ratio& p) { return {p.median(), p.low(), p.high()}; }

void ToProto(const Measurement& m, v1::Measurement* p) {
  ToProto(m.latency, p->mutable_latency());
  p->set_samples(m.samples);
  p->set_discarded(m.discarded);
  p->set_canary_ns(m.canary_ns);
  p->set_kernel(m.kernel);
  for (const auto& [kernel, median_ns] : m.alternatives) {
    v1::KernelTime* time = p->add_alternatives();
    time->set_kernel(kernel);
    time->set_median_ns(median_ns);
  }
  p->set_simulated(m.simulated);
  p->set_active_cores(m.active_cores);
  p->set_disturbed(m.disturbed);
}

Measurement FromProto(const v1::Measurement& p) {
  Measurement m;
  m.latency = FromProto(p.latency());
  m.samples = p.samples();
  m.discarded = p.discarded();
  m.canary_ns = p.canary_ns();
  m.kernel = p.kernel();
  for (const v1::KernelTime& time : p.alternatives()) {
    m.alternatives.emplace_back(time.kernel(), time.median_ns());
  }
  m.simulated = p.simulated();
  m.active_cores = p.active_cores();
  m.disturbed = p.disturbed();
  return m;
}

void ToProto(const PlanTiming& timing, v1::PlanTiming* p) {
  ToProto(timing.latency, p->mutable_latency());
  p->set_speedup(timing.speedup);
  p->set_speedup_low(timing.speedup_low);
  p->set_speedup_high(timing.speedup_high);
  p->set_verdict(ToWire(timing.verdict));
  p->set_blocks(timing.blocks);
  p->set_discarded(timing.discarded);
  p->set_disturbed(timing.disturbed);
}

PlanTiming FromProto(const v1::PlanTiming& p) {
  PlanTiming t;
  t.latency = FromProto(p.latency());
  t.speedup = p.speedup();
  t.speedup_low = p.speedup_low();
  t.speedup_high = p.speedup_high();
  t.verdict = FromWire(p.verdict());
  t.blocks = p.blocks();
  t.discarded = p.discarded();
  t.disturbed = p.disturbed();
  return t;
}

void ToProto(const OutputError& error, v1::OutputError* p) {
  p->set_output(error.name);
  p->set_max_abs(error.max_abs);
  p->set_max_rel(error.max_rel);
  p->set_max_elementwise(error.max_elementwise);
  p->set_nonfinite_differs(error.nonfinite_differs);
}

OutputError FromProto(const v1::OutputError& p) {
  return {p.output(), p.max_abs(), p.max_rel(), p.max_elementwise(), p.nonfinite_differs()};
}

void ToProto(const ComparedInputs& compared, v1::ComparedInputs* p) {
  p->set_inputs(compared.inputs);
  p->set_shapes(compared.shapes);
  p->set_reference_kernels(compared.reference_kernels);
  p->set_differs(compared.differs);
  p->set_left_out(compared.left_out);
}

ComparedInputs FromProto(const v1::ComparedInputs& p) {
  return {p.inputs(), p.shapes(), p.reference_kernels(), p.differs(), p.left_out()};
}

void ToProto(const FileTimes& times, v1::FileTimes* p) {
  for (const FileRunner& runner : times.runners) {
    v1::FileRunner* file = p->add_runners();
    file->set_code(static_cast<int>(runner.status.code()));
    file->set_message(Message(runner.status));
    file->set_version(runner.version);
    file->set_carried_plan(runner.carried_plan);
  }
  for (const std::vector<double>& block : times.blocks) {
    p->add_blocks()->mutable_ns()->Assign(block.begin(), block.end());
  }
  p->set_disturbed(times.disturbed);
}

FileTimes FromProto(const v1::FileTimes& p) {
  FileTimes times;
  for (const v1::FileRunner& runner : p.runners()) {
    times.runners.push_back({StatusFromWire(runner.code(), runner.message()),
                             runner.version().substr(0, kVersionBytesKept), runner.carried_plan()});
  }
  for (const v1::FileBlock& block : p.blocks()) {
    times.blocks.emplace_back(block.ns().begin(), block.ns().end());
  }
  times.disturbed = std::clamp(p.disturbed(), 0, p.blocks_size());
  return times;
}

void ToProto(const KernelChoice& choice, v1::KernelChoice* p) {
  p->set_group(choice.group);
  p->set_kernel(choice.kernel);
}

KernelChoice FromProto(const v1::KernelChoice& p) { return {p.group(), p.kernel()}; }

std::string EncodeMeasurement(const Measurement& measurement) {
  v1::Measurement proto;
  ToProto(measurement, &proto);
  return proto.SerializeAsString();
}

StatusOr<Measurement> DecodeMeasurement(std::string_view bytes) {
  v1::Measurement proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Err(StatusCode::kDataLoss, "measurement: not a Measurement message");
  }
  return FromProto(proto);
}

}  // namespace ag
