// Checks that docs/report.md and the first table of docs/store.md show what the code really makes.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "server/report.h"
#include "server/server.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

std::string Page(const std::string& name) {
  return *ReadFile(std::string(AG_SOURCE_DIR) + "/docs/" + name);
}

// Returns the words in `backticks` of one cell.
std::vector<std::string> Quoted(const std::string& cell) {
  std::vector<std::string> words;
  const std::regex quoted("`([^`]+)`");
  for (std::sregex_iterator it(cell.begin(), cell.end(), quoted), end; it != end; ++it) {
    words.push_back((*it)[1]);
  }
  return words;
}

struct TableRow {
  std::vector<std::string> names;    // Quoted in the first cell.
  std::vector<std::string> details;  // Quoted in the others.
};
std::vector<TableRow> FirstTable(const std::string& page) {
  std::vector<TableRow> rows;
  for (const std::string_view line : Split(page, '\n')) {
    if (!rows.empty() && !line.starts_with("|")) break;
    if (!line.starts_with("| `")) continue;
    const size_t second = line.find('|', 1);
    rows.push_back(
        {Quoted(std::string(line.substr(0, second))), Quoted(std::string(line.substr(second)))});
  }
  return rows;
}

// The result that the example of docs/report.md shows.
JobResult ResultOfTheExample() {
  JobResult r;
  r.verdict = "FASTER";
  r.baseline = "ONNX Runtime 1.23.2";
  r.output_runtime = "AutoGraph";
  r.output_kind = "REWRITTEN";
  r.search = "COMPLETE";
  r.input_latency = {4.81e6, 4.79e6, 4.84e6};
  r.output_latency = {3.6e6, 3.58e6, 3.62e6};
  r.speedup = {1.336, 1.329, 1.343};
  r.over_onnxruntime = r.speedup;
  r.over_untuned = {1.28, 1.27, 1.29};
  r.over_tuned_input = {1.121, 1.115, 1.13};
  r.fresh_session = {1.001, 0.996, 1.004};
  r.input_facts = {4962000, 1235496, {{"Conv", 26}, {"Relu", 26}}};
  r.output_facts = {4975000, 1235496, {{"Conv", 24}, {"Relu", 26}}};
  r.estimate_ns = 3.52e6;
  r.errors = {{"logits", 1.9e-6, 4e-7, 3e-6, false}};
  r.rewrites = {{"conv-merge-siblings", 9, 0.7e6}};
  r.stop_reason = "rounds";
  r.rounds = 4;
  r.expansions = 800;
  r.graphs = 12043;
  r.candidates = 32;
  return r;
}

Json RealReport() {
  const JobRequest request;
  const JobResult result = ResultOfTheExample();
  ReportFacts facts;
  facts.request = &request;
  facts.result = &result;
  return Json::parse(WriteReport(facts));
}

// Checks that `real` has all members of `shown`, in the same order and with equal values.
void ExpectPartOf(const Json& shown, const Json& real, const std::string& where) {
  if (shown.is_array()) {
    ASSERT_EQ(shown.size(), real.size()) << where;
    for (size_t i = 0; i < shown.size(); ++i) ExpectPartOf(shown[i], real[i], where + "[]");
    return;
  }
  if (!shown.is_object()) {
    EXPECT_EQ(shown, real) << where;
    return;
  }
  auto at = real.begin();
  for (const auto& [key, value] : shown.items()) {
    while (at != real.end() && at.key() != key) ++at;
    ASSERT_NE(at, real.end()) << where << " has no (or not here) " << key;
    ExpectPartOf(value, *at, where + "." + key);
  }
}

TEST(Docs, TheReportOfTheExample) {
  const std::string page = Page("report.md");
  const std::string text = page.substr(page.find("\n    {\n"));
  const Json shown = Json::parse(text, nullptr, false);
  ASSERT_FALSE(shown.is_discarded()) << text;
  ExpectPartOf(shown, RealReport(), "report");
}

TEST(Docs, TheReportHasTheMembersOfThePage) {
  const Json real = RealReport();
  std::vector<std::string> listed, members;
  for (const TableRow& row : FirstTable(Page("report.md"))) {
    listed.insert(listed.end(), row.names.begin(), row.names.end());
    const Json& member = real.value(row.names[0], Json());
    for (const std::string& name : row.details) {
      EXPECT_TRUE(!member.is_object() || member.contains(name)) << row.names[0] << "." << name;
    }
  }
  for (const auto& [key, value] : real.items()) members.push_back(key);
  EXPECT_EQ(listed, members);
}

TEST(Docs, TheDataFolderHasThePathsOfThePage) {
  const TempDir folder = *TempDir::Make("docs-test");
  ServerOptions options;
  options.data_dir = folder.path();
  auto server = *Server::Start(options);
  std::set<std::string> listed, found;
  for (const TableRow& row : FirstTable(Page("store.md"))) listed.insert(row.names[0]);
  listed.erase("cache.snapshot");  // Made with the first measurement.
  listed.erase("verdicts.jsonl");  // Made with the first `rules verify`.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename();
    if (!name.ends_with("-wal")) found.insert(entry.is_directory() ? name + "/" : name);
  }
  EXPECT_EQ(listed, found);
}

}  // namespace
}  // namespace ag
