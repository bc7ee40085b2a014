#include "search/cells.h"

#include <gmock/gmock.h>

#include <set>

#include "graph/text_form.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// A module of four operators behind one: relu, two branches, their sum. Equal weights for one seed.
std::string Module(int i, int seed, std::string_view second = "sigmoid") {
  return fmt::format(
      "a{0} = relu(x{0})\n"
      "b{0} = matmul(a{0}, const f32[8,8] seed {1})\n"
      "c{0} = {2}(matmul(a{0}, const f32[8,8] seed {3}))\n"
      "x{4} = add(b{0}, c{0})\n",
      i, seed, second, seed + 1, i + 1);
}

Graph Network(const std::vector<std::string>& modules) {
  std::string text = "input x0 f32[4,8]\n";
  for (const std::string& module : modules) text += module;
  return TestGraph(text + fmt::format("output y = x{}\n", modules.size()));
}

TEST(Cells, RepeatedModulesAreCellsOfOneForm) {
  const Graph graph = Network({Module(0, 1), Module(1, 3), Module(2, 5, "tanh"), Module(3, 7)});
  const std::vector<Cell> cells = CutIntoCells(graph);
  ASSERT_THAT(cells, SizeIs(4));
  EXPECT_EQ(cells[0].form, cells[1].form);
  EXPECT_NE(cells[0].form, cells[2].form);
  EXPECT_EQ(cells[0].form, cells[3].form);
  EXPECT_NE(cells[0].graph.digest(), cells[1].graph.digest());  // Its weights are its own.
  for (const Cell& cell : cells) {
    EXPECT_THAT(cell.nodes, SizeIs(5));
    EXPECT_THAT(cell.inputs, SizeIs(1));
    EXPECT_THAT(cell.graph.outputs(), SizeIs(1));
  }
}

// Where one weight is used twice, a rule may do what it may not do elsewhere.
TEST(Cells, EqualWeightsAreAnotherForm) {
  std::string same = Module(1, 3);
  same.replace(same.find("seed 4"), 6, "seed 3");
  const std::vector<Cell> cells = CutIntoCells(Network({Module(0, 1), same}));
  ASSERT_THAT(cells, SizeIs(2));
  EXPECT_NE(cells[0].form, cells[1].form);
}

TEST(Cells, NumbersThatARuleMayReadBelongToTheForm) {
  const auto scaled = [](int i, std::string_view value) {
    const std::string module = Module(i, 2 * i + 1);
    return fmt::format("{}x{} = mul(add(b{}, c{}), const f32 {{{}}})\n",
                       module.substr(0, module.rfind('x')), i + 1, i, i, value);
  };
  const std::vector<Cell> cells =
      CutIntoCells(Network({scaled(0, "0.5"), scaled(1, "0.5"), scaled(2, "1")}));
  // The product behind a module is a single operator: it belongs to the next module.
  ASSERT_THAT(cells, SizeIs(4));
  EXPECT_EQ(cells[1].form, cells[2].form);
  EXPECT_NE(cells[1].form, cells[3].form);
}

// Every layer reads the mask: two tensors pass each cut.
TEST(Cells, MoreTensorsMayPassWhereOneDoesNotSuffice) {
  std::string text = "input x0 f32[4,8]\ninput m f32[4,8]\n";
  for (int i = 0; i < 6; ++i) {
    std::string module = Module(i, 2 * i + 1);
    module.replace(module.find("relu(x"), 5, "mul(m,");
    text += module;
  }
  const Graph graph = TestGraph(text + "output y = x6\n");
  const auto forms = [](const std::vector<Cell>& cells) {
    std::set<Digest> forms;
    for (const Cell& cell : cells) forms.insert(cell.form);
    return forms;
  };
  const std::vector<Cell> cells = CutIntoCells(graph, {.tensors_max = 2, .nodes_max = 8});
  ASSERT_THAT(cells, SizeIs(6));
  EXPECT_THAT(forms(cells), SizeIs(1));
  // Only the last product with the mask is a cut that one tensor passes; the rest is cut anywhere.
  EXPECT_THAT(forms(CutIntoCells(graph, {.tensors_max = 1, .nodes_max = 8})),
              SizeIs(testing::Gt(1u)));
  // Where a part is small enough, no more tensors than one pass its ends.
  EXPECT_THAT(CutIntoCells(graph, {.tensors_max = 2}), SizeIs(2));
}

TEST(Cells, EachOperatorIsInOneCellAndNoneReadsFromALaterOne) {
  const Graph graph = Network({Module(0, 1), Module(1, 3), Module(2, 5), Module(3, 7)});
  std::vector<int> cell_of(static_cast<size_t>(graph.size()), -1);
  const std::vector<Cell> cells = CutIntoCells(graph);
  for (size_t i = 0; i < cells.size(); ++i) {
    for (const NodeId id : cells[i].nodes) {
      EXPECT_EQ(cell_of[id], -1);
      cell_of[id] = static_cast<int>(i);
    }
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (Has(graph.node(id).op, kLeaf)) continue;
    EXPECT_GE(cell_of[id], 0);
    for (const Edge& e : graph.node(id).inputs) EXPECT_LE(cell_of[e.node], cell_of[id]);
  }
}

TEST(Cells, AChainIsCutByItsLength) {
  std::string text = "input x0 f32[8]\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("x{} = relu(tanh(x{}))\n", i + 1, i);
  const std::vector<Cell> cells =
      CutIntoCells(TestGraph(text + "output y = x100\n"), {.nodes_max = 40});
  ASSERT_THAT(cells, SizeIs(5));
  for (const Cell& cell : cells) EXPECT_THAT(cell.nodes, SizeIs(40));
}

// Every operator reads what four others left, so more tensors pass than any cut may have.
TEST(Cells, WhatNoFewTensorsPassIsCutWhereTheFewestDo) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("input x{} f32[8]\n", i);
  for (int i = 4; i < 104; ++i) text += fmt::format("x{} = add(x{}, x{})\n", i, i - 4, i - 3);
  for (int i = 100; i < 104; ++i) text += fmt::format("output y{0} = x{0}\n", i);
  const Graph graph = TestGraph(text);
  const std::vector<Cell> cells = CutIntoCells(graph, {.nodes_max = 40});
  ASSERT_THAT(cells, SizeIs(testing::Ge(3u)));
  std::vector<int> cell_of(static_cast<size_t>(graph.size()), -1);
  for (size_t i = 0; i < cells.size(); ++i) {
    EXPECT_LE(cells[i].nodes.size(), 40u);
    for (const NodeId id : cells[i].nodes) cell_of[id] = static_cast<int>(i);
  }
  for (NodeId id = 4; id < graph.size(); ++id) {
    EXPECT_GE(cell_of[id], 0) << id;
    for (const Edge& e : graph.node(id).inputs) EXPECT_LE(cell_of[e.node], cell_of[id]);
  }
}

TEST(Cells, WhatRunsNothingOrIsTooLargeHasNone) {
  EXPECT_THAT(CutIntoCells(TestGraph("input x f32[8]\noutput y = x\n")), IsEmpty());
  std::string text = "input x0 f32[8]\n";
  for (int i = 0; i < kCellGraphMax; ++i) text += fmt::format("x{} = tanh(x{})\n", i + 1, i);
  EXPECT_THAT(CutIntoCells(TestGraph(text + fmt::format("output y = x{}\n", kCellGraphMax))),
              IsEmpty());
}

}  // namespace
}  // namespace ag
