// Checks that docs/store.md has the tables and columns of the real files and that its queries run.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "base/file.h"
#include "base/text.h"
#include "server/store/cache_db.h"
#include "server/store/jobs_db.h"
#include "server/store/sqlite.h"

namespace ag {
namespace {

struct Section {
  std::string heading;              // "jobs.db, version 1"
  std::vector<std::string> blocks;  // Its indented blocks, in order.
};

// Returns the section whose heading begins with `file`.
Section SectionOf(const std::string& file) {
  Section section;
  bool below = false, inside = false;
  const std::string page = *ReadFile(std::string(AG_SOURCE_DIR) + "/docs/store.md");
  for (const std::string_view line : Split(page, '\n')) {
    if (line.starts_with("## ")) below = line.substr(3).starts_with(file);
    if (below && line.starts_with("## ")) section.heading = line.substr(3);
    const bool indented = below && line.starts_with("    ");
    if (indented && !inside) section.blocks.emplace_back();
    if (indented) section.blocks.back() += std::string(line.substr(4)) + "\n";
    inside = indented;
  }
  return section;
}

// Returns "name(column, column)" for each table of `schema`.
std::map<std::string, std::string> TablesIn(const std::string& schema) {
  std::map<std::string, std::string> tables;
  const std::regex table("(\\w+)\\(([^)]*)\\)");
  for (std::sregex_iterator it(schema.begin(), schema.end(), table), end; it != end; ++it) {
    tables[(*it)[1]] = std::regex_replace((*it)[2].str(), std::regex("\\s+"), " ");
  }
  return tables;
}

// Returns the same for the file's own tables, without SQLite's internal ones.
std::map<std::string, std::string> TablesOf(Database& db) {
  std::map<std::string, std::string> tables;
  Statement each = *db.Prepare(
      "SELECT t.name, group_concat(c.name, ', ') FROM sqlite_schema AS t, "
      "pragma_table_info(t.name) "
      "AS c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' GROUP BY t.name");
  while (*each.Step()) tables[each.Text(0)] = each.Text(1);
  return tables;
}

void CompareWithPage(const std::string& file, const std::string& path) {
  const Section section = SectionOf(file);
  ASSERT_EQ(section.blocks.size(), 2u) << file << ": a schema and a query";
  Database db = *Database::Open(path, {});
  EXPECT_EQ(section.heading,
            fmt::format("{}, version {}", file, *db.ReadInt("PRAGMA user_version")));
  std::map<std::string, std::string> tables = TablesOf(db);
  EXPECT_EQ(tables["migrations"], "version, applied_unix_seconds");
  tables.erase("migrations");
  EXPECT_EQ(TablesIn(section.blocks[0]), tables);
  auto query = db.Prepare(section.blocks[1]);
  ASSERT_TRUE(query.ok()) << ToString(query.status());
  const StatusOr<bool> row = query->Step();
  EXPECT_TRUE(row.ok() && *row) << "the example finds nothing: " << ToString(row.status());
}

TEST(Docs, JobsDbIsAsItsPageSays) {
  const TempDir folder = *TempDir::Make("store-docs-");
  const std::string path = folder.path() + "/jobs.db";
  {
    auto jobs = *OpenJobsDb(path, RealClock());
    JobRow row;
    row.state = "FAILED";
    row.error_message = "why";
    row.finished_unix_seconds = RealClock().UnixSeconds();
    ASSERT_TRUE(jobs->Insert(row, "", "").ok());
  }
  CompareWithPage("jobs.db", path);
}

TEST(Docs, CacheDbIsAsItsPageSays) {
  const TempDir folder = *TempDir::Make("store-docs-");
  CacheDbOptions options;
  options.path = folder.path() + "/cache.db";
  {
    auto cache = *OpenCacheDb(options, RealClock());
    CacheRow row;
    row.problem = "p";
    row.environment = "cpu=x";
    row.measurement = {{100, 90, 110}, 21, 1, 5, "kernel", {}, false};
    ASSERT_TRUE(cache->Put(row).ok());
  }
  CompareWithPage("cache.db", options.path);
}

}  // namespace
}  // namespace ag
