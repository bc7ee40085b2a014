#include "search/repeats.h"

#include <gmock/gmock.h>

#include <map>

#include "search/cells.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A chain of these operators behind an input, which is node 0.
Graph ChainOf(const std::vector<std::string>& ops) {
  std::string text = "input v0 f32[8]\n";
  for (size_t i = 0; i < ops.size(); ++i) text += fmt::format("v{} = {}(v{})\n", i + 1, ops[i], i);
  return TestGraph(text + fmt::format("output y = v{}\n", ops.size()));
}

std::vector<Piece> Joined(const Graph& graph, const std::vector<Piece>& pieces,
                          const RepeatOptions& options) {
  const auto form = [&](const Piece& piece) {
    return CellsOf(graph, std::vector<Piece>{piece}).at(0).form;
  };
  std::vector<Piece> joined;
  for (const JoinedPiece& piece : JoinRepeats(graph, pieces, form, options)) {
    if (piece.is_joined) joined.push_back(piece.nodes);
  }
  return joined;
}

// Three times the same four operators, which are cut at other places each time, behind another one.
TEST(Repeats, RunsThatAreCutElsewhereAreJoined) {
  const Graph graph = ChainOf({"exp", "relu", "tanh", "sigmoid", "abs", "relu", "tanh", "sigmoid",
                               "abs", "relu", "tanh", "sigmoid", "abs", "neg"});
  const std::vector<Piece> pieces = {{1}, {2, 3}, {4, 5}, {6}, {7, 8, 9}, {10, 11, 12, 13}, {14}};
  EXPECT_THAT(Joined(graph, pieces, {.nodes_min = 4, .nodes_max = 8}),
              ElementsAre(Piece{2, 3, 4, 5}, Piece{6, 7, 8, 9}, Piece{10, 11, 12, 13}));
  // Nothing is lost, and the order stays.
  const auto form = [](const Piece&) { return Sha256(""); };
  Piece all;
  for (const JoinedPiece& piece : JoinRepeats(graph, pieces, form, {.nodes_min = 4})) {
    all.insert(all.end(), piece.nodes.begin(), piece.nodes.end());
  }
  EXPECT_THAT(all, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
}

TEST(Repeats, RunsThatAreTooSmallOrTooLargeStayApart) {
  const Graph graph = ChainOf({"relu", "tanh", "relu", "tanh"});
  const std::vector<Piece> pieces = {{1}, {2}, {3}, {4}};
  EXPECT_THAT(Joined(graph, pieces, {.nodes_min = 2, .nodes_max = 2}), SizeIs(2));
  EXPECT_THAT(Joined(graph, pieces, {.nodes_min = 3, .nodes_max = 9}), IsEmpty());
  EXPECT_THAT(Joined(graph, {{1, 2}, {3, 4}}, {.nodes_min = 1, .nodes_max = 1}), IsEmpty());
}

TEST(Repeats, EqualOperatorsInAnotherOrderAreNoRepeat) {
  const Graph graph = ChainOf({"relu", "tanh", "tanh", "relu"});
  EXPECT_THAT(Joined(graph, {{1, 2}, {3, 4}}, {.nodes_min = 2, .nodes_max = 2}), IsEmpty());
}

// One layer as transformers have it: every layer reads the mask, so the last one, behind which
// nothing reads it, is cut at more places.
std::string LayerText(int i) {
  std::string text = fmt::format("q{0}_0 = matmul(x{0}, const f32[8,8] seed {1})\n", i, 10 * i + 1);
  for (int j = 0; j < 12; ++j) {
    text += fmt::format("q{0}_{1} = {3}(q{0}_{2})\n", i, j + 1, j, j % 2 == 0 ? "tanh" : "relu");
  }
  return text + fmt::format(
                    "k{0} = matmul(x{0}, const f32[8,8] seed {1})\n"
                    "s{0} = softmax(add(matmul(q{0}_12, k{0}), m)) axis=1\n"
                    "o{0} = matmul(s{0}, const f32[8,8] seed {2})\n"
                    "y{0} = add(o{0}, x{0})\n"
                    "z{0} = relu(matmul(y{0}, const f32[8,8] seed {3}))\n"
                    "x{4} = add(matmul(z{0}, const f32[8,8] seed {5}), y{0})\n",
                    i, 10 * i + 2, 10 * i + 3, 10 * i + 4, i + 1, 10 * i + 5);
}

TEST(Repeats, LayersOfATransformerAreCellsOfOneForm) {
  for (const int layers : {6, 12}) {
    std::string text = "input x0 f32[8,8]\ninput mask f32[8,8]\nm = sqrt(mask)\n";
    for (int i = 0; i < layers; ++i) text += LayerText(i);
    const Graph graph = TestGraph(text + fmt::format("output y = tanh(x{})\n", layers));
    const std::vector<Cell> cells = CutIntoCells(graph);
    std::map<Digest, int> forms;
    size_t operators = 0;
    for (const Cell& cell : cells) {
      ++forms[cell.form];
      operators += cell.nodes.size();
      EXPECT_LE(cell.nodes.size(), 120u);
    }
    EXPECT_EQ(operators, static_cast<size_t>(23 * layers + 2));
    EXPECT_LE(forms.size(), 3u) << layers;
    int most = 0;
    for (const auto& [form, copies] : forms) most = std::max(most, copies);
    EXPECT_GE(most, layers - 1);
  }
}

TEST(Repeats, AGraphOfVeryManyPiecesIsLeftAsItIs) {
  std::vector<std::string> ops;
  std::vector<Piece> pieces;
  for (int i = 1; i <= 3000; ++i) {
    ops.emplace_back(i % 2 == 0 ? "tanh" : "relu");
    pieces.push_back({i});
  }
  EXPECT_THAT(Joined(ChainOf(ops), pieces, {}), IsEmpty());
}

}  // namespace
}  // namespace ag
