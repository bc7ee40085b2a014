#include "search/region_store.h"

#include <cmath>

#include "base/fields.h"

namespace ag {

void Fields(auto& io, Is<StructureHash> auto& hash) { io(hash.a, hash.b); }
void Fields(auto& io, Is<RegionStep> auto& step) {
  io(step.rule, step.place, step.which, step.begins_round, step.gain_ns);
}
void Fields(auto& io, Is<RegionResult> auto& result) { io(result.steps, result.estimate_ns); }
void Fields(auto& io, Is<RegionEntry> auto& entry) {
  io(entry.operators, entry.estimate_ns, entry.results);
}

namespace {

constexpr uint32_t kEntryVersion = 1;

bool IsTime(double ns) { return std::isfinite(ns) && ns >= 0; }

Status CheckEntry(const RegionEntry& entry) {
  bool is_right = IsTime(entry.estimate_ns) && entry.results.size() <= kRegionResultsMax;
  for (const RegionResult& result : entry.results) {
    is_right &= IsTime(result.estimate_ns) && result.steps.size() <= kRegionStepsMax;
    for (const RegionStep& step : result.steps) is_right &= std::isfinite(step.gain_ns);
  }
  if (is_right) return OkStatus();
  return Err(StatusCode::kDataLoss, "region: it has too much, or an estimate that is no time");
}

}  // namespace

MemoryRegions::MemoryRegions(std::span<const RegionUse> uses) {
  for (const RegionUse& use : uses) {
    if (use.origin == RegionOrigin::kKnown) entries_[use.key.digest()] = use.entry;
  }
}

StatusOr<RegionEntry> MemoryRegions::Find(const RegionKey& key, int) {
  const auto it = entries_.find(key.digest());
  if (it == entries_.end()) return Err(StatusCode::kNotFound, "region {}", key.digest().Short());
  return it->second;
}

Status MemoryRegions::Put(const RegionKey& key, const RegionEntry& entry, int) {
  entries_[key.digest()] = entry;
  return OkStatus();
}

std::string EncodeRegionEntry(const RegionEntry& entry) {
  ByteWriter out;
  out.U32(kEntryVersion);
  return EncodeFields(entry, std::move(out));
}

StatusOr<RegionEntry> DecodeRegionEntry(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint32_t version, in.U32());
  if (version != kEntryVersion) {
    return Err(StatusCode::kDataLoss, "region: version {}, expected {}", version, kEntryVersion);
  }
  AG_LET(RegionEntry entry, DecodeFields<RegionEntry>(in));
  AG_TRY(CheckEntry(entry));
  return entry;
}

}  // namespace ag
