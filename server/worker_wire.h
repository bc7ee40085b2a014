// Workers' messages between plain structs and worker.proto, cache.proto.
#pragma once

#include "server/store/cache_db.h"
#include "server/work.h"

namespace autograph::v1 {
class CacheRecord;
class DesiredState;
class WorkerState;
}  // namespace autograph::v1

namespace ag {

WorkerReport FromProto(const autograph::v1::WorkerState& proto);
// Without the blob folder, which the service adds.
void ToProto(const Desired& desired, autograph::v1::DesiredState* proto);

void ToProto(const CacheRow& row, autograph::v1::CacheRecord* proto);
// kInvalidArgument: a time out of range, a problem that does not decode, or a key that is not the
// problem's.
StatusOr<CacheRow> FromProto(const autograph::v1::CacheRecord& proto);

}  // namespace ag
