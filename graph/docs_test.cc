// Runs the worked examples of docs/text-form.md and docs/graph-bytes.md exactly as written there.
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "graph/codec.h"
#include "graph/text_form.h"

namespace ag {
namespace {

// Returns the indented blocks of a page, in order.
std::vector<std::string> Snippets(const std::string& page) {
  std::istringstream lines(ReadFile(AG_SOURCE_DIR "/docs/" + page).value());
  std::vector<std::string> snippets;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool indented = line.starts_with("    ");
    if (indented && !inside) snippets.emplace_back();
    if (indented) snippets.back() += line.substr(4) + "\n";
    inside = indented;
  }
  return snippets;
}

// Returns the bytes of the two-digit hexadecimal numbers before each line's comment.
std::string FromHexDump(const std::string& dump) {
  constexpr size_t kCommentColumn = 52;
  std::istringstream lines(dump);
  std::string bytes;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, kCommentColumn));
    for (std::string word; words >> word;) {
      bytes += static_cast<char>(std::stoi(word, nullptr, 16));
    }
  }
  return bytes;
}

TEST(DocsTest, TheTextFormExampleParses) {
  const StatusOr<Graph> graph = ParseGraph(Snippets("text-form.md").at(0));
  ASSERT_TRUE(graph.ok()) << ToString(graph.status());
  EXPECT_EQ(graph->outputs()[0].name, "logits");
}

TEST(DocsTest, TheGraphBytesExampleIsTrue) {
  const std::vector<std::string> snippets = Snippets("graph-bytes.md");
  ASSERT_EQ(snippets.size(), 2u);
  const Graph graph = ParseGraph(snippets[0]).value();
  EXPECT_EQ(FromHexDump(snippets[1]), EncodeGraph(graph));
}

}  // namespace
}  // namespace ag
