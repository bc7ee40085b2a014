// Conversions of workers' messages between plain structs and worker.proto, cache.proto. Pure
// functions.
#pragma once

#include "server/store/group_cache.h"
#include "server/workers/work.h"

namespace autograph::v1 {
class CacheRecord;
class DesiredState;
class ItemResult;
class WorkerState;
}  // namespace autograph::v1

namespace ag {

// kInvalidArgument: a text is too long or has control characters, the spec does not parse, or there
// are too many results.
StatusOr<WorkerReport> FromProto(const autograph::v1::WorkerState& proto);
// Leaves out the blob folder, which the service adds.
void ToProto(const Desired& desired, autograph::v1::DesiredState* proto);

// Without sequence, epoch and attempt.
EntryResult EntryResultOf(const autograph::v1::ItemResult& proto);
void ToProto(const EntryResult& result, autograph::v1::ItemResult* proto);

void ToProto(const CacheRow& row, autograph::v1::CacheRecord* proto);
// Without the import, which is another server's. kInvalidArgument: a figure cannot be, a problem
// does not decode, or the key is not the problem's.
StatusOr<CacheRow> FromProto(const autograph::v1::CacheRecord& proto);

}  // namespace ag
