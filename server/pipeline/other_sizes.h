// The model of a job at other sizes than the bound ones, where it leaves sizes open. What holds at
// all of them, and at a last set that nothing was learnt from, is taken to hold for open sizes
// (docs/adr/007-open-sizes-by-examples.md). Pure functions, but for the import.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/blobs.h"
#include "rules/language/rule_set.h"
#include "server/pipeline/output_file.h"

namespace ag {

// The number of sets of sizes: kLearnt to learn from, and one that is kept for the proof.
inline constexpr int kLearnt = 3, kOtherSets = kLearnt + 1;

// Ways to choose the sizes, in the order in which they are tried. Free: without common factors
// where possible. Multiples: of the largest power of two up to 32 in the bound size, for models
// that halve their sizes again and again. Tied: open sizes that are bound to one size stay alike,
// for models that name one size twice.
struct SizeChoice {
  bool multiples = false, tied = false;
};
inline constexpr SizeChoice kSizeChoices[] = {
    {false, false}, {false, true}, {true, false}, {true, true}};

// Returns the shapes of all open inputs in set `set`. Every open size is above 1 and differs from
// the bound one and between the sets; the last set, for the proof, is small.
ShapesByInput OtherShapes(const ImportedModel& model, SizeChoice choice, int set);

// Imports the model at kOtherSets sets of sizes, by the first choice that fits its nodes.
// kFailedPrecondition: none does, or a part of the model that is kept as it is depends on sizes.
StatusOr<std::vector<AtOtherSizes>> ImportAtOtherSizes(const OutputSetting& setting,
                                                       const RuleSet& rules, BlobDir& blobs);

// Imports the model at the request's shape sets. `options` are those of the bound sizes, which
// `model` has. kInvalidArgument names the set: the model cannot take it, or it is there twice.
StatusOr<std::vector<AtOtherSizes>> ImportShapeSets(const v1::OptimizeRequest& asked,
                                                    const ImportedModel& model,
                                                    const ImportOptions& options,
                                                    const SandboxOptions& sandbox,
                                                    const RuleSet& rules, BlobDir& blobs);

// Returns the shapes of the inputs that the model leaves open.
ShapesByInput OpenShapes(const ImportedModel& model);

// Returns "x=1x3x224x224 mask=1x128".
std::string ShapesText(const ShapesByInput& shapes);

}  // namespace ag
