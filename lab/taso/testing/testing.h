// Helpers for the tests of this room: TASO rules written by hand, and the place of the published
// file. Pure functions.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "lab/taso/format.h"

namespace ag {

inline constexpr TasoTensor kX1{-1}, kX2{-2}, kX3{-3}, kW1{-4}, kW2{-5};
inline constexpr TasoTensor kI1{-7}, kI2{-8}, kW4{-10}, kW5{-11};

inline TasoOperator TasoOp(TasoOpType type, std::vector<TasoTensor> inputs,
                           std::map<TasoKey, int> parameters = {}) {
  return {type, std::move(inputs), std::move(parameters)};
}

inline TasoOperator TasoConv(TasoTensor x, TasoTensor w,
                             TasoActivation activation = TasoActivation::kNone,
                             int padding = kTasoSame) {
  return TasoOp(TasoOpType::kConv, {x, w},
                {{TasoKey::kStrideHeight, 1},
                 {TasoKey::kStrideWidth, 1},
                 {TasoKey::kPadding, padding},
                 {TasoKey::kActivation, static_cast<int>(activation)}});
}

inline TasoOperator TasoConcat(int axis, int rank, TasoTensor a, TasoTensor b) {
  return TasoOp(TasoOpType::kConcat, {a, b}, {{TasoKey::kAxis, axis}, {TasoKey::kRank, rank}});
}

inline TasoOperator TasoSplit(int axis, TasoTensor x) {
  return TasoOp(TasoOpType::kSplit, {x}, {{TasoKey::kAxis, axis}, {TasoKey::kOutputs, 2}});
}

// Returns a pool of 3 by 3 with stride 1.
inline TasoOperator TasoPool(TasoOpType type, TasoTensor x, int padding = kTasoSame) {
  return TasoOp(type, {x},
                {{TasoKey::kKernelHeight, 3},
                 {TasoKey::kKernelWidth, 3},
                 {TasoKey::kStrideHeight, 1},
                 {TasoKey::kStrideWidth, 1},
                 {TasoKey::kPadding, padding}});
}

// Returns a rule that replaces the last operator of the source by the last one of the target.
inline TasoRule TasoRuleOf(std::vector<TasoOperator> source, std::vector<TasoOperator> target) {
  TasoRule rule{.name = "test", .source = std::move(source), .target = std::move(target)};
  rule.mappings = {{{static_cast<int>(rule.source.size()) - 1, 0},
                    {static_cast<int>(rule.target.size()) - 1, 0}}};
  return rule;
}

#ifdef AG_SOURCE_DIR
// Returns the path of TASO's graph_subst.pb: $AUTOGRAPH_TASO_FILE, else the file beside the
// sources; "": there is none.
inline std::string PublishedTasoFile() {
  const char* named = std::getenv("AUTOGRAPH_TASO_FILE");
  const std::string path =
      named != nullptr ? named : AG_SOURCE_DIR "/../shared/data/taso/graph_subst.pb";
  return FileExists(path) ? path : "";
}
#endif

}  // namespace ag
