// Migrations that are cut at any statement and at any write: the next start goes on, and the rows
// are all there. Files of each old version are made by the steps that made them.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "base/file_ops.h"
#include "plan/fusion/group_problem.h"
#include "server/store/cache_db.h"
#include "server/store/jobs_db.h"
#include "server/store/schemas.h"
#include "server/store/testing/fault_vfs.h"
#include "server/store/testing/store_engines.h"

namespace ag {
namespace {

constexpr char kRequestText[] = "{\n \"model_digest\": \"abc\",\n \"device\": \"cpu\"\n}";

// One of the two files: how one of the oldest version is made with rows of the newest, how it is
// opened, and whether the rows are there.
struct FileKind {
  const char* name;
  const Schema& (*schema)();
  std::function<void(const std::string& path)> fill;
  const char* copy_rows;  // From the attached database `newest` into version `oldest`.
  std::function<Status(const std::string& path)> open;
  std::function<void(const std::string& path)> expect_rows;
};

FakeClock g_clock;

StatusOr<std::unique_ptr<CacheStore>> OpenCacheAt(const std::string& path) {
  CacheDbOptions options;
  options.path = path;
  return OpenCacheDb(options, g_clock);
}

void FillJobs(const std::string& path) {
  auto db = *OpenJobsDb(path, g_clock);
  JobRow row = NewJob();
  ASSERT_EQ(*db->Insert(row, "first", "body"), 1);
  row.terminal = true;
  row.result = std::string(20'000, 'r');  // Does not fit into a page.
  ASSERT_EQ(*db->Insert(row, "", ""), 2);
  ASSERT_EQ(*db->OpenEpoch(), 1u);
}

void ExpectJobs(const std::string& path) {
  auto db = *OpenJobsDb(path, g_clock);
  EXPECT_EQ(db->List({})->size(), 2u);
  const JobRow first = *db->Get(1), second = *db->Get(2);
  EXPECT_EQ(first.request, NewJob().request);
  EXPECT_EQ(first.crashes, 0);
  EXPECT_EQ(first.waiters, 1);
  EXPECT_EQ(first.tenant, "");
  EXPECT_EQ(first.error_reason, "");
  EXPECT_EQ(first.device_seconds, 0);
  EXPECT_EQ(second.result.size(), 20'000u);
  EXPECT_EQ((*db->FindRequestId("first"))->job, 1);
  EXPECT_FALSE((*db->FindRequestId("first"))->left);
  EXPECT_TRUE(db->OwnBlob("alice", "d").ok());
  EXPECT_TRUE(db->AddDeviceUse({"alice", 1, 1}, 0).ok());
  EXPECT_EQ(*db->OpenEpoch(), 2u);
}

void FillCache(const std::string& path) {
  auto db = *OpenCacheAt(path);
  ASSERT_TRUE(db->Put(NewRow("p")).ok());
  ASSERT_TRUE(db->Put(NewRow(std::string(20'000, 'q'))).ok());
  for (const char* rest : {"environment=cpu=x\nonnxruntime=\nrules=r\n",
                           "environment=cpu=y\nonnxruntime=\nrules=r\ntenant=ann\n"}) {
    const std::string text = std::string(kRequestText) + rest;
    ASSERT_TRUE(db->PutModel({text, "result", Sha256("output")}).ok());
  }
  ASSERT_TRUE(db->PutModel({"no such text", "result", Sha256("output")}).ok());
  ASSERT_TRUE(db->Count(3, 4, {}).ok());
}

void ExpectCache(const std::string& path) {
  auto db = *OpenCacheAt(path);
  EXPECT_FALSE(db->was_corrupt());
  const auto row = FindRow(*db, "p");
  ASSERT_TRUE(row.has_value());
  EXPECT_FALSE(row->is_checked) << "it may have been imported";
  EXPECT_TRUE(FindRow(*db, std::string(20'000, 'q')).has_value());
  EXPECT_EQ(db->ListModels({})->size(), 3u);
  const auto answers = *db->ListModels({.model = "abc", .device = "cpu", .tenant = "ann"});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].answer.of.environment, "cpu=y");
  EXPECT_EQ(db->ListModels({.environment = "cpu=x", .tenant = ""})->size(), 1u);
  EXPECT_TRUE(db->FindModel("no such text").has_value());
  EXPECT_EQ(db->Stats()->hits, 3);
  EXPECT_TRUE(db->CountAnswers(1).ok());
  EXPECT_EQ(db->Stats()->answers, 1);
  EXPECT_EQ(db->Import({NewRow("imported")}, "me")->added, 1);
  EXPECT_TRUE(db->PutRegion({.depends_on = "form", .entry = "entry"}).ok());
  EXPECT_EQ(db->Stats()->regions, 1);
}

const FileKind kKinds[] = {
    {"jobs.db", &JobsSchema, &FillJobs,
     "INSERT INTO jobs SELECT id, state, terminal, device, request, result, error_code, "
     "error_message, created_unix_seconds, finished_unix_seconds, version, resumed, cancel, "
     "dedupe_key FROM newest.jobs;"
     "INSERT INTO request_ids SELECT request_id, body_digest, job FROM newest.request_ids;"
     "INSERT INTO epochs SELECT * FROM newest.epochs;",
     [](const std::string& path) { return OpenJobsDb(path, g_clock).status(); }, &ExpectJobs},
    {"cache.db", &CacheSchema, &FillCache,
     "INSERT INTO measurements SELECT row, key, problem, environment, code, reason, measurement, "
     "measured_unix_seconds, summary, hits, checksum FROM newest.measurements;"
     "INSERT INTO model_answers SELECT key, key_text, result, output, made_unix_seconds, checksum "
     "FROM newest.model_answers;"
     "UPDATE counters SET value = (SELECT value FROM newest.counters AS n WHERE n.name = "
     "counters.name);",
     [](const std::string& path) { return OpenCacheAt(path).status(); }, &ExpectCache},
};

class MigrationTest : public testing::TestWithParam<FileKind> {
 protected:
  // Returns the schema as it was when `version` was the newest.
  static Schema UpTo(int64_t version) {
    Schema schema = GetParam().schema();
    schema.steps.resize(static_cast<size_t>(version - schema.oldest));
    return schema;
  }
  // Makes a file of the oldest version, with rows.
  void MakeOldest(const std::string& path) {
    const std::string newest = folder_.path() + "/newest.db";
    GetParam().fill(newest);
    Database db = *Database::Open(path, {});
    ASSERT_TRUE(Migrate(db, UpTo(GetParam().schema().oldest), 1).ok());
    ASSERT_TRUE(db.Execute("ATTACH '" + newest + "' AS newest").ok());
    const Status copied = db.Execute(GetParam().copy_rows);
    ASSERT_TRUE(copied.ok()) << ToString(copied);
  }
  // Opens the file as the program would, and looks whether all is there.
  void ExpectWhole(const std::string& path, const std::string& what) {
    SCOPED_TRACE(what);
    const Status opened = GetParam().open(path);
    ASSERT_TRUE(opened.ok()) << ToString(opened);
    GetParam().expect_rows(path);
    const Schema& schema = GetParam().schema();
    Database db = *Database::Open(path, {});
    EXPECT_EQ(*db.ReadInt("PRAGMA user_version"), schema.newest());
    EXPECT_EQ(*db.ReadInt("SELECT count(*) FROM migrations"), schema.newest() - schema.oldest + 1);
    EXPECT_EQ(*db.ReadText("PRAGMA integrity_check"), "ok");
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename();
      EXPECT_FALSE(name.find("corrupt") != name.npos || name.find("old-") != name.npos) << name;
    }
  }

  const FaultVfs vfs_;
  const TempDir folder_ = *TempDir::Make("migration-");
  const std::string oldest_ = folder_.path() + "/oldest.db";
  const std::string path_ = folder_.path() + "/store.db";
};
INSTANTIATE_TEST_SUITE_P(Files, MigrationTest, testing::ValuesIn(kKinds), [](const auto& info) {
  return std::string(info.param.name).substr(0, 4);
});

TEST_P(MigrationTest, AFileOfEachVersionKeepsItsRows) {
  MakeOldest(oldest_);
  for (int64_t v = GetParam().schema().oldest; v <= GetParam().schema().newest(); ++v) {
    std::filesystem::copy_file(oldest_, path_, std::filesystem::copy_options::overwrite_existing);
    {
      Database db = *Database::Open(path_, {});
      ASSERT_TRUE(Migrate(db, UpTo(v), 1).ok());
    }
    ExpectWhole(path_, fmt::format("version {}", v));
  }
}

// Each step stops behind each of its statements: nothing of the step is there afterwards.
TEST_P(MigrationTest, AStepThatIsCutAtAStatementIsDoneAgain) {
  MakeOldest(oldest_);
  int cuts = 0;
  for (int64_t v = GetParam().schema().oldest + 1; v <= GetParam().schema().newest(); ++v) {
    const std::string step = UpTo(v).steps.back();
    for (size_t end = step.find(';'); end != step.npos; end = step.find(';', end + 1), ++cuts) {
      std::filesystem::copy_file(oldest_, path_, std::filesystem::copy_options::overwrite_existing);
      {
        Schema cut = UpTo(v);
        cut.steps.back() = step.substr(0, end + 1) + " SELECT no_such_function();";
        Database db = *Database::Open(path_, {});
        const Status failed = Migrate(db, cut, 1);
        EXPECT_TRUE(Message(failed).starts_with(fmt::format("migration to version {}: ", v)));
        EXPECT_EQ(*db.ReadInt("PRAGMA user_version"), v - 1);
      }
      ExpectWhole(path_, fmt::format("version {}, cut at {}", v, end));
    }
  }
  EXPECT_GT(cuts, 5);
}

// The n-th write, sync or removal fails, alone or with all later ones, as when the process ends
// there.
TEST_P(MigrationTest, AMigrationThatIsCutAtAWriteGoesOn) {
  MakeOldest(oldest_);
  const file_ops::FileFault::Options kinds[] = {
      {.error = EIO}, {.error = EIO, .all_later = true}, {.error = ENOSPC, .all_later = true}};
  for (file_ops::FileFault::Options options : kinds) {
    bool fired = true;
    for (options.n = 1; fired; ++options.n) {
      std::filesystem::copy_file(oldest_, path_, std::filesystem::copy_options::overwrite_existing);
      {
        const file_ops::FileFault fault(options);
        const Status opened = GetParam().open(path_);
        fired = fault.Fired();
        EXPECT_TRUE(opened.ok() || IsHostFault(opened)) << ToString(opened);
      }
      ExpectWhole(path_,
                  fmt::format("n={} error={} all={}", options.n, options.error, options.all_later));
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(options.n, 20);
  }
}

// The same for a file that is made.
TEST_P(MigrationTest, ANewFileThatIsCutAtAWriteIsMade) {
  bool fired = true;
  for (int n = 1; fired; ++n) {
    for (const char* suffix : {"", "-wal"}) std::filesystem::remove(path_ + suffix);
    {
      const file_ops::FileFault fault({.n = n, .error = EIO, .all_later = true});
      const Status opened = GetParam().open(path_);
      fired = fault.Fired();
      EXPECT_TRUE(opened.ok() || IsHostFault(opened)) << ToString(opened);
    }
    const Status opened = GetParam().open(path_);
    EXPECT_TRUE(opened.ok()) << n << ": " << ToString(opened);
    EXPECT_FALSE(FileExists(path_ + ".corrupt-1")) << n;
  }
}

// A cache that is too old or corrupt is set aside, whole, whichever step of that fails.
TEST(Migration, SettingACacheAsideIsDoneAgain) {
  const TempDir folder = *TempDir::Make("set-aside-");
  const std::string path = folder.path() + "/cache.db";
  const FaultVfs vfs;
  bool fired = true;
  for (int n = 1; fired; ++n) {
    for (const char* suffix : {"", "-wal", ".corrupt-1", ".corrupt-1-wal"}) {
      std::filesystem::remove(path + suffix);
    }
    ASSERT_TRUE(WriteFileAtomically(path, std::string(8192, 'x')).ok());
    ASSERT_TRUE(WriteFileAtomically(path + "-wal", "log").ok());
    {
      const file_ops::FileFault fault({.n = n, .error = EIO, .all_later = true});
      const Status opened = OpenCacheAt(path).status();
      fired = fault.Fired();
      EXPECT_TRUE(opened.ok() || IsHostFault(opened)) << n << ": " << ToString(opened);
    }
    const auto db = OpenCacheAt(path);
    ASSERT_TRUE(db.ok()) << n << ": " << ToString(db.status());
    EXPECT_TRUE((*db)->Put(NewRow("p")).ok());
    EXPECT_EQ(ReadFile(path + ".corrupt-1").value_or("")[0], 'x') << n;
    EXPECT_FALSE(FileExists(path + ".corrupt-2")) << n;
  }
}

}  // namespace
}  // namespace ag
