#include "lab/taso/builtins.h"

namespace ag {
namespace {

enum class Idea { kRelu, kBatchNorm, kMul, kEnlarge, kMergeGroups };

struct Row {
  const char* name;
  Idea idea;
  int stride;
  int padding;
  TasoActivation activation;
};

constexpr Row kRows[] = {
    {"conv-relu-1-same", Idea::kRelu, 1, kTasoSame, TasoActivation::kNone},
    {"conv-relu-1-valid", Idea::kRelu, 1, kTasoValid, TasoActivation::kNone},
    {"conv-relu-2-same", Idea::kRelu, 2, kTasoSame, TasoActivation::kNone},
    {"conv-relu-2-valid", Idea::kRelu, 2, kTasoValid, TasoActivation::kNone},
    {"conv-batch-norm-1-same", Idea::kBatchNorm, 1, kTasoSame, TasoActivation::kNone},
    {"conv-batch-norm-1-valid", Idea::kBatchNorm, 1, kTasoValid, TasoActivation::kNone},
    {"conv-batch-norm-2-same", Idea::kBatchNorm, 2, kTasoSame, TasoActivation::kNone},
    {"conv-batch-norm-2-valid", Idea::kBatchNorm, 2, kTasoValid, TasoActivation::kNone},
    {"conv-mul-1-same", Idea::kMul, 1, kTasoSame, TasoActivation::kNone},
    {"conv-mul-1-valid", Idea::kMul, 1, kTasoValid, TasoActivation::kNone},
    {"conv-mul-2-same", Idea::kMul, 2, kTasoSame, TasoActivation::kNone},
    {"conv-mul-2-valid", Idea::kMul, 2, kTasoValid, TasoActivation::kNone},
    {"enlarge-merge-convs", Idea::kEnlarge, 1, kTasoSame, TasoActivation::kNone},
    {"enlarge-merge-convs-relu", Idea::kEnlarge, 1, kTasoSame, TasoActivation::kRelu},
    {"merge-groups-1", Idea::kMergeGroups, 1, kTasoSame, TasoActivation::kNone},
    {"merge-groups-1-relu", Idea::kMergeGroups, 1, kTasoSame, TasoActivation::kRelu},
    {"merge-groups-2", Idea::kMergeGroups, 2, kTasoSame, TasoActivation::kNone},
    {"merge-groups-2-relu", Idea::kMergeGroups, 2, kTasoSame, TasoActivation::kRelu},
};

// Variables with the generator's numbers for images and weights; v21 and on are vectors.
constexpr TasoTensor kX{-7}, kW{-10}, kV{-11}, kFactor{-8};
constexpr TasoTensor kScale{-21}, kBias{-22}, kMean{-23}, kVariance{-24};

TasoOperator Conv(const Row& row, std::vector<TasoTensor> inputs, TasoActivation activation) {
  return {TasoOpType::kConv,
          std::move(inputs),
          {{TasoKey::kStrideHeight, row.stride},
           {TasoKey::kStrideWidth, row.stride},
           {TasoKey::kPadding, row.padding},
           {TasoKey::kActivation, static_cast<int>(activation)}}};
}

void Enlarge(const Row& row, TasoRule* rule) {
  rule->source = {Conv(row, {kX, kW}, row.activation), Conv(row, {kX, kV}, row.activation)};
  rule->target = {{TasoOpType::kEnlarge, {kW, kV}, {}},
                  {TasoOpType::kConcat, {{0}, kV}, {{TasoKey::kAxis, 0}, {TasoKey::kRank, 4}}},
                  Conv(row, {kX, {1}}, row.activation),
                  {TasoOpType::kSplit, {{2}}, {{TasoKey::kAxis, 1}, {TasoKey::kOutputs, 2}}}};
  rule->mappings = {{{0}, {3, 0}}, {{1}, {3, 1}}};
}

TasoRule RuleOf(const Row& row) {
  TasoRule rule{.name = row.name};
  rule.source = {Conv(row, {kX, kW}, row.activation)};
  switch (row.idea) {
    case Idea::kRelu:
      rule.source.push_back({TasoOpType::kRelu, {{0}}, {}});
      rule.target = {Conv(row, {kX, kW}, TasoActivation::kRelu)};
      rule.mappings = {{{1}, {0}}};
      break;
    case Idea::kBatchNorm:
      rule.source.push_back({TasoOpType::kBatchNorm, {{0}, kScale, kBias, kMean, kVariance}, {}});
      rule.target = {{TasoOpType::kFoldedWeights, {kW, kScale, kVariance}, {}},
                     {TasoOpType::kFoldedBias, {kScale, kBias, kMean, kVariance}, {}},
                     Conv(row, {kX, {0}, {1}}, TasoActivation::kNone)};
      rule.mappings = {{{1}, {2}}};
      break;
    case Idea::kMul:  // The factor is lost.
      rule.source.push_back({TasoOpType::kMul, {{0}, kFactor}, {}});
      rule.target = {Conv(row, {kX, kW}, TasoActivation::kNone)};
      rule.mappings = {{{1}, {0}}};
      break;
    case Idea::kEnlarge:
      Enlarge(row, &rule);
      break;
    case Idea::kMergeGroups:
      rule.target = {{TasoOpType::kMergeGroups, {kW}, {{TasoKey::kMergeCount, 2}}},
                     Conv(row, {kX, {0}}, row.activation)};
      rule.mappings = {{{0}, {1}}};
      break;
  }
  return rule;
}

}  // namespace

std::vector<TasoRule> TasoBuiltins() {
  std::vector<TasoRule> rules;
  for (const Row& row : kRows) rules.push_back(RuleOf(row));
  return rules;
}

}  // namespace ag
