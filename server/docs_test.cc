// Checks that docs/report.md and the first table of docs/store.md show what the code really makes.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "server/jobs/job.h"
#include "server/server.h"
#include "wire/json_wire.h"

namespace ag {
namespace {

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

// The report that docs/report.md shows, as the text format of protobuf.
constexpr char kExample[] = R"pb(
  report_version: 4
  request {
    model_digest: "5d0c2f4e"
    model_name: "squeezenet.onnx"
    device: "cpu"
    shapes { input: "data" dims: 1 dims: 3 dims: 224 dims: 224 }
    policy { precision: "fp32" tolerance: 0.001 }
    budget {
      rounds: 4
      expansions: 200
      graphs: 4000
      candidates: 8
      time_seconds: 600
      cell_graphs: 3000
      stale_graphs: 500
    }
    search: OURS
    alpha: 0.25
    beta: 1.1
    seed: 1
    objective: LATENCY
    target: DEVICE
    onnxruntime: AUTO
  }
  result {
    verdict: FASTER
    device: "cpu"
    environment: "device=cpu;cores=2"
    input_latency { median_ns: 4810000 low_ns: 4790000 high_ns: 4840000 }
    output_latency { median_ns: 3600000 low_ns: 3580000 high_ns: 3620000 }
    unfused_latency { median_ns: 6200000 low_ns: 6170000 high_ns: 6250000 }
    speedup: 1.336
    speedup_low: 1.329
    speedup_high: 1.343
    errors { output: "logits" max_abs: 1.9e-06 max_rel: 4e-07 max_elementwise: 3e-06 }
    rewrites { rule: "conv-merge-siblings" count: 9 gain_ns: 700000 }
    clean_up { rule: "dropout-is-identity" count: 1 }
    groups: 31
    streams: 1
    stop_reason: ROUNDS
    seconds: 412.5
    cache { hits: 3 misses: 290 }
    output_digest: "0f6e5a11"
    output_bytes: 4975000
    rounds: 4
    expansions: 800
    graphs: 12043
    cell_graphs: 420
    search_log {
      measured {
        stage: ROUND
        round: 1
        streams: 1
        rewrites: 9
        estimates {
          mixed_ns: 4100000
          sum_ns: 3520000
          critical_path_ns: 2320000
          makespan_ns: 3520000
          groups: 31
        }
        timing {
          latency { median_ns: 3590000 low_ns: 3570000 high_ns: 3620000 }
          speedup: 1.121
          speedup_low: 1.115
          speedup_high: 1.13
          verdict: FASTER
          blocks: 5
        }
      }
      history { seconds: 98.5 graphs: 3420 candidates: 8 best_speedup: 1.121 }
      regions {
        copies: 8
        nodes: 10
        estimate_ns: 310000
        best_ns: 280000
        seen: 24
        pruned: 9
        groups: 12
        results: 2
        taken: 8
      }
    }
    candidates: 32
    estimate_ns: 3520000
    search: COMPLETE
    output: REWRITTEN
    carries_plan: true
    baseline: "ONNX Runtime 1.23.2"
    output_runtime: "AutoGraph"
    over_onnxruntime { median: 1.336 low: 1.329 high: 1.343 }
    over_untuned { median: 1.28 low: 1.27 high: 1.29 }
    over_tuned_input { median: 1.121 low: 1.115 high: 1.13 }
    fresh_session { median: 1.001 low: 0.996 high: 1.004 }
    input_facts {
      file_bytes: 4962000
      parameters: 1235496
      operators { op_type: "Conv" count: 26 }
    }
    output_facts {
      file_bytes: 4975000
      parameters: 1235496
      operators { op_type: "Conv" count: 24 }
    }
    compared_inputs { inputs: "usual" reference_kernels: true }
    tolerance: 0.001
    onnxruntime: "1.23.2"
  }
  rules_digest: "77aa01c9"
  nodes_in: 66
  nodes_out: 63
  overlap: 1
  input_plan: "stream 0"
  output_plan: "stream 0"
  output_kernels {
    group: 0
    measurement {
      latency { median_ns: 412000 low_ns: 410000 high_ns: 415000 }
      samples: 21
      canary_ns: 1000000
      kernel: "onednn:nhwc"
      alternatives { kernel: "onednn:nchw" median_ns: 520000 }
      active_cores: 2
    }
  }
)pb";

// With AG_WRITE_DOCS=1 the example of the page is written anew.
TEST(Docs, TheReportOfTheExample) {
  v1::Report report;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kExample, &report));
  std::string shown = "```json\n" + ToJson(report) + "\n```\n";
  const std::string page = Page("report.md");
  const size_t begin = page.find("```json\n"), end = page.find("\n```\n", begin);
  ASSERT_NE(end, std::string::npos);
  if (std::getenv("AG_WRITE_DOCS") != nullptr) {
    const std::string after = page.substr(end + 5);
    const std::string path = std::string(AG_SOURCE_DIR) + "/docs/report.md";
    ASSERT_TRUE(WriteFileAtomically(path, page.substr(0, begin) + shown + after).ok());
    return;
  }
  EXPECT_EQ(page.substr(begin, end + 5 - begin), shown);
}

// The page's table names every field of the report and of its result.
TEST(Docs, TheReportHasTheMembersOfThePage) {
  std::vector<std::string> listed, fields;
  for (const TableRow& row : FirstTable(Page("report.md"))) {
    listed.insert(listed.end(), row.names.begin(), row.names.end());
  }
  for (const auto& [type, prefix] :
       {std::pair(v1::Report::descriptor(), ""), std::pair(v1::Result::descriptor(), "result.")}) {
    for (int i = 0; i < type->field_count(); ++i) {
      if (type->field(i)->name() != "result") fields.push_back(prefix + type->field(i)->name());
    }
  }
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(fields));
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
