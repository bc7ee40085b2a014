// A counter-example as files that its finder can send: two graphs that should compute the same and
// do not, as ONNX models, with inputs and expected outputs as ONNX's own test data, and a script
// that replays it in ONNX Runtime. One thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograph/v1/optimizer.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/blobs.h"
#include "graph/onnx/origin.h"
#include "server/pipeline/export_child.h"
#include "server/pipeline/guilty_rewrite.h"

namespace ag {

namespace v1 = autograph::v1;

// Two graphs with the same inputs and outputs.
struct GraphPair {
  Graph before, after;
  bool is_model = false;  // The whole graphs, and not a part that was cut out.
};

// More is not kept.
inline constexpr int64_t kCounterExampleBytesMax = int64_t{64} << 20;

struct CounterExampleRequest {
  const GuiltyRewrite* guilty = nullptr;
  const RuleSet* rules = nullptr;  // Those that the guilty one is of.
  std::string what;                // "rewrite conv-x at /features/0/Conv": begins the text file.
  Graph imported;                  // Of the origin's names.
  OnnxOrigin origin;
  std::string blob_root;
  ExportChildOptions child;
  // Returns the values where the second graph differs from the first, at most these many bytes of
  // them; nothing: they do not differ.
  std::function<StatusOr<std::optional<v1::ShownValues>>(const GraphPair&, int64_t bytes_max)> show;
  std::function<bool()> stop;  // May be null. Asked before each call of `show`.
  int64_t bytes_max = kCounterExampleBytesMax;
};

// Makes the smallest counter-example that shows the difference: what the rule matched, cut out,
// else the whole graphs before and after it. Stores its files as blobs. What keeps it from being
// made is said in its left_out; errors come from outside: no worker, cancelled, disk full.
StatusOr<v1::CounterExample> MakeCounterExample(const CounterExampleRequest& request,
                                                BlobDir& blobs);

// Returns the names in the user's model of the nodes that the rewrite replaces, or where they have
// none the operator: "/features/0/Conv, /features/1/Conv".
std::string PlaceText(const Graph& graph, const Rewrite& rewrite, const OnnxOrigin& origin,
                      const Graph& imported);

}  // namespace ag
