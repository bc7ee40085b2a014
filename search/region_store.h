// What searches found for regions, kept for other models that have the same ones. A region is a
// part of a graph that is searched by itself (cells.h); its key says all that a search of it
// depends on but measurements. Whoever takes an entry matches every rewrite anew, so an entry that
// is old or wrong costs a gain, never a right answer.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "graph/structure_hash.h"
#include "plan/measurement.h"

namespace ag {

// One rewrite, told by what is computed at its place, so that it is found again in every region of
// the form (region_steps.h).
struct RegionStep {
  std::string rule;
  std::vector<StructureHash> place;  // EdgeNames::Blind of the matched roots, ascending.
  int which = 0;                     // Of the rule's rewrites at that place, as OneRule lists them.
  bool begins_round = false;         // As RewriteStep's.
  double gain_ns = 0;                // The same.
  bool operator==(const RegionStep&) const = default;
};

struct RegionResult {
  std::vector<RegionStep> steps;
  double estimate_ns = 0;  // Of the region by itself after them.
  bool operator==(const RegionResult&) const = default;
};

// The best-K list of a region. No results: a whole search found nothing better than the region.
struct RegionEntry {
  int operators = 0;                  // Of the region.
  double estimate_ns = 0;             // Of the region as it is.
  std::vector<RegionResult> results;  // The best first.
  bool operator==(const RegionEntry&) const = default;
};

struct RegionKey {
  Environment environment;
  // One line per thing that what is found depends on: the form (structure, shapes, integers; not
  // the weights), the environment, the rules, the policy, the parameters of the search.
  std::string depends_on;

  Digest digest() const { return Sha256(depends_on); }
};

// Calls block. Called by one thread.
class RegionStore {
 public:
  virtual ~RegionStore() = default;
  // Returns the entry of the key, and notes that a model has so many copies of the region.
  // kNotFound: there is none.
  virtual StatusOr<RegionEntry> Find(const RegionKey& key, int copies) = 0;
  // Keeps what a search found that no limit but the region's own ended, in place of what is there.
  virtual Status Put(const RegionKey& key, const RegionEntry& entry, int copies) = 0;
};

// How a search came to what it knows of a region.
enum class RegionOrigin {
  kNotReached,  // A limit of all regions came before it.
  kCut,         // Such a limit, or a measurement that failed, came while it was searched.
  kSearched,
  kKnown,  // The store had it.
};

// A region of one search.
struct RegionUse {
  RegionKey key;
  int copies = 0;  // In the graph.
  RegionOrigin origin = RegionOrigin::kNotReached;
  RegionEntry entry;  // kKnown: as the store gave it.
};

// A store in memory.
class MemoryRegions : public RegionStore {
 public:
  MemoryRegions() = default;
  // Begins with the entries that a search took from its store, so that a replay of it finds no
  // other ones.
  explicit MemoryRegions(std::span<const RegionUse> uses);

  StatusOr<RegionEntry> Find(const RegionKey& key, int copies) override;
  Status Put(const RegionKey& key, const RegionEntry& entry, int copies) override;

  std::map<Digest, RegionEntry>& entries() { return entries_; }  // By the keys' digests.

 private:
  std::map<Digest, RegionEntry> entries_;
};

// Encode and decode an entry; equal entries have equal bytes. Any bytes are decoded or are
// kDataLoss: unknown versions, more than kRegionResultsMax results or kRegionStepsMax steps, and
// estimates that are no times.
inline constexpr size_t kRegionResultsMax = 16, kRegionStepsMax = 1000;
std::string EncodeRegionEntry(const RegionEntry& entry);
StatusOr<RegionEntry> DecodeRegionEntry(std::string_view bytes);

}  // namespace ag
