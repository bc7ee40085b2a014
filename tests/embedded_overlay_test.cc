// Two processes and one data folder: the one that has it works on it, the other one reads its last
// snapshot and writes nothing there (docs/store.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/file.h"
#include "tests/cluster.h"
#include "tests/processes.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class EmbeddedOverlayTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  CommandResult Cli(std::vector<std::string> words) {
    words.insert(words.begin(), Program("autograph"));
    return RunCommand(words, variables_);
  }
  json Optimized(const std::string& output, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"optimize", path("m.onnx"), "-o",    path(output),
                                      "--device", "sim:small",    "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = Cli(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return ResultIn(result.out);
  }
  // Returns a 64-bit number of a document, where it is a string.
  static int Number(const json& text) {
    return text.is_string() ? std::stoi(text.get<std::string>()) : -1;
  }
  int Measurements() {
    const CommandResult stats = Cli({"cache", "stats", "--json"});
    EXPECT_EQ(stats.code, 0) << stats.err;
    return Number(json::parse(stats.out, nullptr, false)["measurements"]);
  }
  Background Holder() {
    return Background({Program("autographd"), "--listen", address_, "--data", path("data")},
                      path("holder.log"), variables_);
  }
  bool HolderListens() { return Cli({"jobs", "list", "--server", address_}).code == 0; }

  // Every file of the data folder with its size, and the bytes of the databases.
  std::map<std::string, std::string> Contents() {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::recursive_directory_iterator(path("data"))) {
      if (!entry.is_regular_file()) continue;
      const bool database = entry.path().filename().string().find(".db") != std::string::npos;
      contents[entry.path()] =
          database ? *ReadFile(entry.path()) : std::to_string(entry.file_size());
    }
    return contents;
  }

  // When the holder's own start has written all it writes: two looks half a second apart agree.
  std::map<std::string, std::string> SettledContents() {
    auto contents = Contents();
    EXPECT_TRUE(Eventually([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      return std::exchange(contents, Contents()) == contents;
    }));
    return contents;
  }

  const TempDir folder_ = *TempDir::Make("autograph-overlay");
  const Variables variables_ = {{"HOME", folder_.path()},
                                {"AUTOGRAPH_DATA", path("data")},
                                {"AUTOGRAPH_MEASURING_LOCK", path("measuring.lock")}};
  const std::string address_ = "127.0.0.1:" + std::to_string(FreePort());
};

TEST_F(EmbeddedOverlayTest, WhatTheHolderKnowsIsAHitAndNothingIsWrittenThere) {
  ASSERT_EQ(Cli({"zoo", "tiny_inception", "-o", path("m.onnx")}).code, 0);
  const json first = Optimized("first.onnx");
  const int known = Measurements();
  ASSERT_GT(known, 10);

  Background holder = Holder();
  ASSERT_TRUE(Eventually([&] { return HolderListens(); })) << holder.Log();
  // The holder's own snapshot has come: the first run left one that lacks its answer.
  ASSERT_TRUE(Eventually([&] {
    return Measurements() == known && Optimized("again.onnx")["cache"]["model_hit"] == true;
  })) << holder.Log();
  const auto before = SettledContents();

  const CommandResult stats = Cli({"cache", "stats"});
  EXPECT_THAT(stats.err, HasSubstr("held by autographd, process " + std::to_string(holder.pid())));
  EXPECT_THAT(stats.err, HasSubstr("this run reads the " + std::to_string(known) +
                                   " measurements of its last snapshot, and what it adds goes to a "
                                   "temporary store and is lost"));

  const json again =
      Optimized("again.onnx");  // The whole answer, its bytes from the holder's blobs.
  EXPECT_TRUE(again["cache"]["model_hit"]);
  EXPECT_EQ(again["output_digest"], first["output_digest"]);
  EXPECT_EQ(*ReadFile(path("again.onnx")), *ReadFile(path("first.onnx")));

  const json search = Optimized("search.onnx", {"--no-cache"});  // Every group is measured already.
  EXPECT_FALSE(search["cache"]["model_hit"]);
  EXPECT_EQ(search["cache"]["misses"], 0);
  EXPECT_GT(search["cache"]["hits"], 10);
  EXPECT_EQ(search["output_digest"], first["output_digest"]);

  ASSERT_EQ(Cli({"zoo", "tiny_cnn", "-o", path("m.onnx")}).code, 0);
  EXPECT_GT(Optimized("new.onnx")["cache"]["misses"], 0);
  EXPECT_EQ(Measurements(), known) << "what the run added is lost";
  EXPECT_EQ(Contents(), before);
  holder.Signal(SIGTERM);
  EXPECT_EQ(holder.Wait(), 0) << holder.Log();
}

TEST_F(EmbeddedOverlayTest, AHolderWithoutASnapshotIsSaid) {
  ASSERT_TRUE(MakeDirs(path("data")).ok());
  const FileLock lock = *FileLock::TryExclusive(path("data/lock"), "a test");
  const CommandResult stats = Cli({"cache", "stats"});
  EXPECT_EQ(stats.code, 0);
  EXPECT_EQ(stats.err, "data folder " + path("data") + " (another one: --data): lock " +
                           path("data/lock") + ": held by a test; nothing of it can be read (" +
                           path("data/cache.snapshot") +
                           ": no such file): this run uses an empty temporary store\n");
}

TEST_F(EmbeddedOverlayTest, AnEmbeddedHolderIsReadAsWell) {
  ASSERT_EQ(Cli({"zoo", "tiny_inception", "-o", path("m.onnx")}).code, 0);
  const json first = Optimized("first.onnx");
  const int known = Measurements();
  ASSERT_EQ(Cli({"zoo", "tiny_nasnet", "-o", path("long.onnx")}).code, 0);
  Background holder({Program("autograph"), "optimize", path("long.onnx"), "-o", path("long.out"),
                     "--device", "sim:small", "--rounds", "1000", "--expansions", "100000",
                     "--graphs", "1000000", "--budget", "10m"},
                    path("holder.log"), variables_);
  // Looked for in the file: a command of ours that comes first would take the lock itself.
  const std::string who = fmt::format("process {},", holder.pid());
  ASSERT_TRUE(Eventually([&] {
    return ReadFile(path("data/lock")).value_or("").find(who) != std::string::npos;
  })) << holder.Log();
  ASSERT_TRUE(Eventually([&] {
    const json stats = json::parse(Cli({"cache", "stats", "--json"}).out, nullptr, false);
    return Number(stats["measurements"]) >= known && Number(stats["models"]) >= 1;
  })) << holder.Log();
  const json again = Optimized("again.onnx");
  EXPECT_TRUE(again["cache"]["model_hit"]);
  EXPECT_TRUE(holder.Running()) << holder.Log();
  holder.Signal(SIGINT);
  EXPECT_EQ(holder.Wait(), 130) << holder.Log();
}

}  // namespace
}  // namespace ag
