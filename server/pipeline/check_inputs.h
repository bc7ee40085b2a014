// What a job compares its files on and times them with: data made for the model's inputs, and the
// user's own, which come first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/blobs.h"
#include "graph/inputs/input_set.h"
#include "graph/inputs/make_inputs.h"
#include "graph/onnx/imported_model.h"
#include "server/jobs/job.h"
#include "server/workers/work.h"

namespace ag {

// One of the request's sets of inputs.
struct GivenInputs {
  std::string name;
  Digest digest;
  std::optional<size_t> shape_set = {};  // Whose sizes it has; nothing: the bound ones.
};

// The inputs of a model at one set of its sizes.
struct SizedInputs {
  std::string shapes;  // For messages: "x=1x3x224x224".
  std::vector<InputSpec> inputs;
};
// Returns those that the model's graph has.
std::vector<InputSpec> InputsOf(const Graph& graph);

// Reads the request's sets of inputs. Returns where each belongs: `bound` or one of `shape_sets`.
// kInvalidArgument, with the set's name: its bytes are none, it lacks an input, has an unknown one,
// one of another type or a value that is not finite, or it has sizes that the job does not run at.
StatusOr<std::vector<GivenInputs>> PlaceInputs(const v1::OptimizeRequest& asked,
                                               const SizedInputs& bound,
                                               const std::vector<SizedInputs>& shape_sets,
                                               const ImportedModel& model, const BlobDir& blobs);

// Returns the shapes of the request's first set, so that the model is imported at them.
// kInvalidArgument: its bytes are none.
StatusOr<std::map<std::string, Shape>> ShapesOfInputs(const v1::OptimizeRequest& asked,
                                                      const BlobDir& blobs);

// Adds to a check the sets of these that belong to `shape_set`, then the kinds of data that differ
// for this graph. The first three kinds are always compared, edge values while there is time for
// them, and all but the first with the reference kernels only while there is.
void AddInputs(const Graph& graph, const std::vector<GivenInputs>& given,
               std::optional<size_t> shape_set, uint64_t seed, v1::Check* check);

// What files run on when they are timed: the first of these that belongs to `shape_set`, else usual
// data of the graph, which is stored. Empty, so that processes make random data: there is too much.
StatusOr<std::string> InputsToTime(const Graph& graph, const std::vector<GivenInputs>& given,
                                   std::optional<size_t> shape_set, uint64_t seed, BlobDir& blobs);

// What files with operators that only ONNX Runtime runs are compared on there: all that belong to
// the bound sizes, and usual, full and short data, which is stored.
struct ComparedElsewhere {
  std::vector<std::string> names, digests;
};
StatusOr<ComparedElsewhere> InputsElsewhere(const Graph& graph,
                                            const std::vector<GivenInputs>& given, uint64_t seed,
                                            BlobDir& blobs);

}  // namespace ag
