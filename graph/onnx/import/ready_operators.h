// Single operators that runs of a dynamic part repeat: made ready by a device once they have cost
// enough on the reference kernels, and kept by their form and the types of their operands. One
// thread at a time.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/weights.h"

namespace ag {

// Runs a graph on its inputs and writes its outputs, all in the graph's order.
using RunGraph = std::function<Status(std::span<const Tensor> inputs, std::span<Tensor> outputs)>;
// Makes a graph of one operator ready. An error: the reference kernels run the operator.
using MakeReady =
    std::function<StatusOr<RunGraph>(const Graph& graph, const WeightSource& weights)>;

// An operand of an operator that runs by itself.
struct GivenOperand {
  Tensor tensor;
  int64_t lasting = 0;  // The number of a value that is the same in every run; 0: another value.
};

// One operator to compute.
struct SingleOperator {
  OpKind op = OpKind::kOpaque;
  std::string_view form;  // Equal for equal operators, whatever their operands.
  std::span<const GivenOperand> operands;
  std::function<StatusOr<Attributes>()> attributes;
};

class ReadyOperators {
 public:
  // One tensor per output; nothing: a result is too large. A kept operator has an empty tensor in
  // the place of an omitted output.
  using Results = std::optional<std::vector<Tensor>>;

  // `make` is empty: the reference kernels run everything.
  explicit ReadyOperators(MakeReady make = {}, Clock& clock = RealClock())
      : make_(std::move(make)), clock_(clock) {}

  // Returns the results, from what was made ready or from `reference`.
  StatusOr<Results> Run(const SingleOperator& call,
                        const std::function<StatusOr<Results>()>& reference);

  int ready() const { return ready_; }  // How many operators were made ready so far.

 private:
  struct Entry {
    std::string key;
    Nanos spent{0};  // On the reference kernels.
    bool refused = false;
    RunGraph run;                   // Empty: not ready.
    std::vector<TensorType> types;  // Of the results that are not omitted.
    std::vector<bool> omitted;      // By result.
  };
  Entry& EntryOf(const SingleOperator& call);
  Status Make(const SingleOperator& call, Entry& entry);
  StatusOr<Results> RunReady(const SingleOperator& call, const Entry& entry) const;

  MakeReady make_;
  Clock& clock_;
  int ready_ = 0;
  std::list<Entry> entries_;  // The one used last is the first.
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> places_;
};

}  // namespace ag
