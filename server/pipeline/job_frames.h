// The frames between the coordinator and the process of a job, over base/frames. The coordinator
// sends the job; the process asks, one question at a time, and at its end sends the outcome.
// Decoders take any bytes (kDataLoss). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "autograph/v1/worker.pb.h"
#include "base/fields.h"
#include "graph/onnx/sandbox/sandbox.h"
#include "server/jobs/job_runner.h"
#include "server/pipeline/pipeline.h"
#include "server/store/group_cache.h"
#include "server/workers/dispatcher.h"
#include "wire/measurement_wire.h"

namespace ag {

// A frame of the process has at most so many bytes, so that the coordinator stays small whatever
// the model: a work item is in its memory three times while it is sent on.
inline constexpr uint64_t kJobFrameBytesMax = uint64_t{16} << 20;

enum JobFrame : uint32_t {
  // From the coordinator.
  kJobStart = 1,     // A JobStart.
  kJobFlags = 2,     // JobFlags, whenever one of them changed.
  kJobReply = 3,     // The answer to a question.
  kJobDelivery = 4,  // A JobDelivery, between kJobWork and its reply.
  // From the process: questions.
  kJobEnter = 10,  // The stage; the reply is a status (EncodeStatus), as where nothing is said.
  kJobWork = 11,   // A JobWork. The reply comes when the item has ended.
  kJobKept = 12,   // What the delivery held is stored. Has no reply.
  kJobFind = 13,   // A JobFind; the reply is a JobCacheRow.
  kJobPut = 14,    // A JobCacheRow.
  kJobCount = 15,  // A JobCount.
  kJobSetChecked = 16,  // A Digest.
  kJobFindRegion = 17,  // A JobFindRegion; the reply is a JobRegion.
  kJobPutRegion = 18,   // A JobRegion.
  // From the process: notices.
  kJobProgress = 20,  // A v1::Progress.
  kJobWaits = 21,     // A text, as JobControl::on_wait.
  kJobStopWork = 22,  // The item in hand is not waited for any longer.
  kJobEnd = 23,       // A JobEnd, the last frame.
  kJobNoMemory = 24,  // The process reached its limit; the last frame.
  kJobBest = 25,      // A JobEnd of what was asked for while it runs.
};

struct JobStart {
  int64_t id = 0;
  std::string request;  // A v1::OptimizeRequest.
  DeviceOffer offer;
  PipelineOptions options;
  std::string blobs_below;    // BlobDir::Open's.
  uint64_t memory_bytes = 0;  // The limit of the process.
  std::string log_level;
  std::string trace_id;  // Of what it logs; "": none.
};
struct JobFlags {
  bool cancelled = false, stopping = false;
  uint32_t best_asked = 0;  // As JobControl::best_asked.
  bool operator==(const JobFlags&) const = default;
};
struct JobWork {
  std::string device;
  Environment environment;
  std::vector<std::string> outputs;
  std::string item;  // A v1::WorkItem.
};
struct JobDelivery {
  int entry = 0;
  std::string result;  // A v1::ItemResult.
  bool quarantined = false;
  std::string worker_id;
};
struct JobFind {
  Digest key;
  std::string problem;
  Environment environment;
};
struct JobCacheRow {
  bool found = false;
  std::string status;  // EncodeStatus; the row's own is not set.
  CacheRow row;
};
struct JobCount {
  int64_t hits = 0, misses = 0;
  std::vector<Digest> keys;
};
struct JobFindRegion {
  std::string depends_on;
  int64_t copies = 0;
};
struct JobRegion {
  bool found = false;
  RegionRow row;
};
struct JobEnd {
  std::string status;  // EncodeStatus.
  std::string result;  // A v1::Result.
  bool winner_refused = false, busy = false;
};

void Fields(auto& io, Is<DeviceOffer> auto& offer) {
  io(offer.device, offer.device_spec, offer.environment, offer.simulated, offer.onnxruntime);
}
// A duration is a signed count of nanoseconds.
inline std::string EncodeNanos(Nanos nanos) {
  ByteWriter out;
  out.I64(nanos.count());
  return out.Take();
}
inline StatusOr<Nanos> DecodeNanos(std::string_view bytes) {
  AG_LET(const int64_t count, ByteReader(bytes).I64());
  return Nanos(count);
}
void Fields(auto& io, Is<PipelineOptions> auto& options) {
  auto& limits = options.limits;
  io(limits.model_bytes_max, limits.nodes_max, limits.tensor_bytes_max, limits.total_bytes_max,
     limits.rank_max, limits.subgraph_depth_max, options.sandbox.program, options.child.program,
     options.blob_root, options.more_rules, options.search_threads);
  io.Nested(options.sandbox.time_max, EncodeNanos, DecodeNanos);
  io.Nested(options.child.time_max, EncodeNanos, DecodeNanos);
  io.Nested(options.hang_time_max, EncodeNanos, DecodeNanos);
}
void Fields(auto& io, Is<JobStart> auto& start) {
  io(start.id, start.request, start.offer, start.options, start.blobs_below, start.memory_bytes,
     start.log_level, start.trace_id);
}
void Fields(auto& io, Is<JobFlags> auto& flags) {
  io(flags.cancelled, flags.stopping, flags.best_asked);
}
void Fields(auto& io, Is<JobWork> auto& work) {
  io(work.device, work.environment, work.outputs, work.item);
}
void Fields(auto& io, Is<JobDelivery> auto& delivery) {
  io(delivery.entry, delivery.result, delivery.quarantined, delivery.worker_id);
}
void Fields(auto& io, Is<JobFind> auto& find) { io(find.key, find.problem, find.environment); }
void Fields(auto& io, Is<JobCacheRow> auto& f) {
  io(f.found, f.status, f.row.problem, f.row.environment, f.row.summary,
     f.row.measured_unix_seconds, f.row.hits, f.row.worker, f.row.import, f.row.is_checked);
  io.Nested(f.row.measurement, EncodeMeasurement, DecodeMeasurement);
}
void Fields(auto& io, Is<JobCount> auto& count) { io(count.hits, count.misses, count.keys); }
void Fields(auto& io, Is<JobFindRegion> auto& find) { io(find.depends_on, find.copies); }
void Fields(auto& io, Is<JobRegion> auto& f) {
  io(f.found, f.row.depends_on, f.row.environment, f.row.entry, f.row.copies, f.row.models,
     f.row.made_unix_seconds);
}
void Fields(auto& io, Is<JobEnd> auto& end) {
  io(end.status, end.result, end.winner_refused, end.busy);
}

// Reads a message. kDataLoss: it does not parse.
template <class T>
StatusOr<T> ParseMessage(const std::string& bytes) {
  T message;
  if (message.ParseFromString(bytes)) return message;
  return Err(StatusCode::kDataLoss, "{} does not parse", T::descriptor()->name());
}

// An outcome as a frame tells of it, and back.
inline JobEnd ToEnd(const StatusOr<JobOutcome>& outcome) {
  JobEnd end{.status = EncodeStatus(outcome.status())};
  if (!outcome.ok()) return end;
  end.result = outcome->result.SerializeAsString();
  end.winner_refused = outcome->winner_refused;
  end.busy = outcome->busy;
  return end;
}
inline StatusOr<JobOutcome> OutcomeOf(const JobEnd& end) {
  AG_TRY(DecodeStatus(end.status));
  JobOutcome outcome{.winner_refused = end.winner_refused, .busy = end.busy};
  AG_LET(outcome.result, ParseMessage<v1::Result>(end.result));
  return outcome;
}

}  // namespace ag
