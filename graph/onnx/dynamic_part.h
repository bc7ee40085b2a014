// The part of a model that the IR cannot hold, because the sizes of its tensors depend on values,
// or because it works on strings, sequences or optionals, or because nobody here knows what type an
// operator of another domain gives: the first node of which that is true and
// every node that reads from one (NonMaxSuppression and what comes after it, a loop with a
// condition of its own). The graph ends before it: its outputs are the values that this part reads,
// and those outputs of the model that it does not compute. Export writes both parts; a session runs
// the graph by its plan, then this part node by node (import/dynamic_program.h). Plain data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "graph/types.h"

namespace ag {

struct DynamicPart {
  // A constant that the nodes read by this name; its bytes are among the model's weights.
  struct Weight {
    std::string name;
    TensorType type;
    Digest digest;
  };
  // An input of the model that the graph does not have: of strings, a sequence, an optional.
  struct Input {
    int64_t position = 0;  // Among all inputs of the model.
    std::string name;
    TensorType type;    // Of strings, complete; else unused.
    std::string proto;  // ValueInfoProto.
  };
  std::vector<Input> inputs;           // By position.
  std::vector<std::string> nodes;      // NodeProtos, producers first.
  std::vector<std::string> functions;  // FunctionProtos: all of the model's.
  std::vector<Weight> weights;
  // Name and ValueInfoProto of each output of the whole model, in order.
  std::vector<std::pair<std::string, std::string>> outputs;

  // The first of the nodes that no kernel here runs, as "node \"f\" (Foo)": only another runtime,
  // which knows the operator, runs the whole model. "": there is none.
  std::string no_kernel;

  bool empty() const { return nodes.empty() && inputs.empty(); }
};

}  // namespace ag
