#include "server/workers/check_result.h"

#include "plan/check_figures.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

Status CheckTimes(const v1::FileSet& set, const FileTimes& times) {
  AG_TRY(CheckFileTimes(times, static_cast<size_t>(set.files_size())));
  const auto blocks = static_cast<int64_t>(times.blocks.size());
  if (set.blocks_max() == 0 || blocks <= set.blocks_max()) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "file times: {} blocks, at most {} were asked for",
             blocks, set.blocks_max());
}

Status CheckKernels(const v1::Refine& refine, const std::vector<KernelChoice>& kernels) {
  if (static_cast<int64_t>(kernels.size()) <= refine.rivals_size()) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{} kernels of {} rivals", kernels.size(),
             refine.rivals_size());
}

Status CheckShown(const v1::Show& show, const std::optional<v1::ShownValues>& shown,
                  const std::vector<std::string>& outputs) {
  if (!shown) return OkStatus();
  std::vector<OutputError> errors;
  for (const v1::OutputError& error : shown->errors()) errors.push_back(FromProto(error));
  AG_TRY(CheckOutputErrors(errors, outputs));
  uint64_t bytes = 0;
  for (const auto* values : {&shown->inputs(), &shown->expected(), &shown->actual()}) {
    for (const std::string& value : *values) bytes += value.size();
  }
  if (shown->value_bytes() >= 0 && bytes <= static_cast<uint64_t>(show.bytes_max())) {
    return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument, "{} bytes of values of {}, at most {} were asked for",
             bytes, shown->value_bytes(), show.bytes_max());
}

}  // namespace

Status CheckResult(const ItemRequest& item, const EntryResult& result) {
  if (!result.status.ok()) return OkStatus();
  const v1::WorkItem& work = *item.work;
  switch (work.item_case()) {
    case v1::WorkItem::kGroups:
      return CheckMeasurement(result.measurement);
    case v1::WorkItem::kPlans:
      return CheckPlanTiming(result.timing);
    case v1::WorkItem::kCheck:
      return CheckOutputErrors(result.errors, item.outputs);
    case v1::WorkItem::kFiles:
      if (work.files().compare_seeds() > 0) return CheckOutputErrors(result.errors, item.outputs);
      return CheckTimes(work.files(), result.file_times);
    case v1::WorkItem::kRefine:
      return CheckKernels(work.refine(), result.kernels);
    case v1::WorkItem::kShow:
      return CheckShown(work.show(), result.shown, item.outputs);
    case v1::WorkItem::kKernelCheck:
    case v1::WorkItem::kQualify:
    case v1::WorkItem::ITEM_NOT_SET:
      break;
  }
  return OkStatus();
}

}  // namespace ag
