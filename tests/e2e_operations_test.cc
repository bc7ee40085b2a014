// What operators use: the health verb, variables for flags, metrics, with real processes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "base/handle.h"
#include "base/text.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns what the HTTP server on the loopback answers to GET; "" when it does not.
std::string HttpGet(int port, const std::string& path) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return "";
  }
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char piece[4096];
  for (ssize_t got = 0; (got = ::recv(fd.get(), piece, sizeof piece, 0)) > 0;) {
    answer.append(piece, static_cast<size_t>(got));
  }
  return answer;
}

TEST(Operations, HealthSaysWhoServes) {
  Cluster cluster({.coordinator_flags = {"--reconnect", "0.2"}});
  // Health follows the worker within a fraction of a second.
  EXPECT_TRUE(Eventually([&] { return cluster.Cli({"health", "workers"}).code == 0; }));
  for (const char* name : {"live", "ready", "workers"}) {
    const CommandResult health = cluster.Cli({"health", name});
    EXPECT_EQ(health.code, 0) << name << health.err;
    EXPECT_EQ(health.out, "SERVING\n");
  }
  cluster.KillWorker();
  EXPECT_TRUE(Eventually([&] { return cluster.Cli({"health", "workers"}).code == 1; }));
  EXPECT_EQ(cluster.Cli({"health", "workers"}).out, "NOT_SERVING\n");
  EXPECT_EQ(cluster.Cli({"health"}).code, 0) << "it takes jobs all the same";
  EXPECT_THAT(cluster.Cli({"health", "--json"}).out, HasSubstr("\"status\": \"SERVING\""));
  const CommandResult wrong = cluster.Cli({"health", "worker"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("\"worker\" is none of live, ready, workers"));
  cluster.KillCoordinator();
  EXPECT_EQ(cluster.Cli({"health", "live"}).code, 4);
  const Alone place;
  EXPECT_THAT(place.Cli({"health"}).err, HasSubstr("name it with --server HOST:PORT"));
}

TEST(Operations, HealthNeedsNoToken) {
  const Alone place;
  const std::string tokens = place.path("tokens");
  ASSERT_EQ(place.Cli({"token", "root", "--roles", "admin", "--tokens", tokens}).code, 0);
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  const Background daemon({Program("autographd"), "--listen", address, "--tokens", tokens, "--data",
                           place.path("server")},
                          place.path("log"), place.variables);
  EXPECT_TRUE(Eventually([&] {
    return place.Cli({"health", "--server", address}).code == 0;
  })) << daemon.Log();
  EXPECT_EQ(place.Cli({"jobs", "list", "--server", address}).code, 4) << "which a job list does";
}

TEST(Operations, EveryFlagOfADaemonHasAVariable) {
  const Alone place;
  const int port = FreePort();
  Variables variables = place.variables;
  variables["AUTOGRAPH_LISTEN"] = "127.0.0.1:" + std::to_string(port);
  variables["AUTOGRAPH_JOB_MEMORY"] = "512";
  Background daemon({Program("autographd")}, place.path("log"), variables);
  const std::string address = variables["AUTOGRAPH_LISTEN"];
  EXPECT_TRUE(Eventually([&] {
    return place.Cli({"health", "--server", address}).code == 0;
  })) << daemon.Log();
  variables["AUTOGRAPH_JOB_MEMORY"] = "much";
  const CommandResult wrong = RunCommand({Program("autographd")}, variables);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("\"much\" is not a number above 0"));
  for (const char* program : {"autographd", "autograph-worker"}) {
    const std::string help = RunCommand({Program(program), "--help"}, place.variables).out;
    EXPECT_THAT(help, HasSubstr("(Env:AUTOGRAPH_TICK)"));
    EXPECT_THAT(help, HasSubstr("(Env:AUTOGRAPH_MEASURING_LOCK)"));
    EXPECT_THAT(help, Not(HasSubstr("AUTOGRAPH_HELP")));
  }
}

TEST(Operations, AModelIsDeletedWithAllThatCameOfIt) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_cnn");
  const std::string job = cluster.Submit(model, {"--rounds", "1"});
  cluster.Watch(job);
  const CommandResult deleted = cluster.Cli({"jobs", "delete", model});
  EXPECT_EQ(deleted.code, 0) << deleted.err;
  EXPECT_THAT(deleted.out, HasSubstr("deleted with 1 jobs, 1 remembered answers and "));
  EXPECT_EQ(cluster.Cli({"jobs", "show", job}).code, 3);
  const std::string digest = DigestOfFile(model);
  const CommandResult again = cluster.Cli({"jobs", "delete", digest});
  EXPECT_EQ(again.code, 3);
  EXPECT_THAT(again.err, HasSubstr("no model " + digest));
  EXPECT_FALSE(Optimized(cluster, model, cluster.path("o.onnx"), {"--rounds", "1"})
                   .at("cache")
                   .at("model_hit"))
      << "the answer has gone";
}

// Records with wrong times come by an import; nobody asks for them, and soon they are true
// again.
TEST(Operations, WhatDoesNotHoldIsMeasuredAgain) {
  Cluster cluster({.coordinator_flags = {"--sentinel-pause", "0.2", "--sentinel-idle", "0.1"}});
  const std::string recording = cluster.path("recording");
  const std::string model = cluster.Zoo("tiny_cnn");
  Optimized(cluster, model, cluster.path("o.onnx"), {"--rounds", "1"});
  const auto ns_of = [&]() -> std::multiset<std::string> {
    const CommandResult exported = cluster.Cli({"cache", "export", recording});
    EXPECT_EQ(exported.code, 0) << exported.err;
    std::multiset<std::string> times;
    const std::string text = *ReadFile(recording);
    for (const std::string_view line : Split(text, '\n')) {
      if (line.starts_with("group ")) times.emplace(line.substr(0, line.find(" samples=")));
    }
    return times;
  };
  const std::multiset<std::string> truth = ns_of();
  ASSERT_GT(truth.size(), 5u);
  // A digit before the first one: ten times the time.
  const std::string wrong =
      std::regex_replace(*ReadFile(recording), std::regex("(group ns=|low=|high=)"), "$&9");
  ASSERT_TRUE(WriteFileAtomically(recording, wrong).ok());
  ASSERT_EQ(cluster.Cli({"cache", "forget", "--all"}).code, 0);
  ASSERT_EQ(cluster.Cli({"cache", "import", recording}).code, 0);
  EXPECT_TRUE(Eventually([&] {
    const std::multiset<std::string> now = ns_of();
    return now.size() > 2 && std::ranges::includes(truth, now);
  })) << cluster.Logs();
  EXPECT_THAT(cluster.Logs(), HasSubstr("from import 1 do not hold any more: forgot "));
}

TEST(Operations, RememberedGraphsAreLookedUpAndWritten) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_cnn"), made = cluster.path("made.onnx");
  Optimized(cluster, model, made, {"--rounds", "1"});
  for (int i = 0; i < 3; ++i) Optimized(cluster, model, made, {"--rounds", "1"});
  const CommandResult listed = cluster.Cli({"cache", "graphs", model, "--json"});
  const auto graphs = nlohmann::json::parse(listed.out);
  ASSERT_EQ(graphs.size(), 1u) << listed.out;
  EXPECT_EQ(graphs[0]["model_digest"], DigestOfFile(model));
  EXPECT_EQ(graphs[0]["device"], "sim:small");
  const std::string key = graphs[0]["key"];
  EXPECT_THAT(cluster.Cli({"cache", "graphs", "--key", key.substr(0, 12)}).out,
              HasSubstr("\"rounds\": 1"))
      << "what the answer depends on";
  const std::string output = cluster.path("again.onnx");
  const CommandResult got =
      cluster.Cli({"cache", "get", model, "--device", "sim:small", "-o", output});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(DigestOfFile(output), DigestOfFile(made));
  EXPECT_EQ(cluster.Cli({"cache", "get", cluster.Zoo("tiny_sru"), "-o", output}).code, 3);
  EXPECT_THAT(cluster.Cli({"cache", "stats"}).out, HasSubstr("; 3 whole answers given"));
}

TEST(Operations, AStoreIsBackedUpWhileItIsUsedAndRestored) {
  Cluster cluster;
  const std::string model = cluster.Zoo("tiny_cnn"), made = cluster.path("made.onnx");
  Optimized(cluster, model, made, {"--rounds", "1"});
  const std::string backup = cluster.path("backup");
  const CommandResult first = cluster.Cli({"store", "backup", backup, "--json"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_GE(nlohmann::json::parse(first.out)["fetched"], 2);
  // A second one, with a job in hand, takes only what is new.
  const FileLock lock = *FileLock::Try(cluster.measuring_lock(), FileLock::Mode::kExclusive);
  const std::string waiting = cluster.Submit(cluster.Zoo("tiny_sru"), {"--rounds", "1"});
  const CommandResult second = cluster.Cli({"store", "backup", backup, "--json"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(nlohmann::json::parse(second.out)["fetched"], 1) << "the second model";
  cluster.KillCoordinator();

  const CommandResult verified = cluster.Cli({"store", "verify", backup});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr(": 2 jobs (1 unfinished), "));
  const std::string restored = cluster.path("restored");
  ASSERT_EQ(cluster.Cli({"store", "restore", backup, restored}).code, 0);
  const CommandResult twice = cluster.Cli({"store", "restore", backup, restored});
  EXPECT_EQ(twice.code, 3);
  EXPECT_THAT(twice.err, HasSubstr("has a store already"));

  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  const Background daemon({Program("autographd"), "--listen", address, "--data", restored},
                          cluster.path("restored.log"), cluster.variables());
  const auto ask = [&](std::vector<std::string> words) {
    words.insert(words.begin(), Program("autograph"));
    words.insert(words.end(), {"--server", address});
    return RunCommand(words, cluster.variables());
  };
  EXPECT_TRUE(Eventually([&] { return ask({"health"}).code == 0; })) << daemon.Log();
  EXPECT_EQ(ask({"jobs", "fetch", "jobs/1", "-o", cluster.path("again.onnx")}).code, 0);
  EXPECT_EQ(DigestOfFile(cluster.path("again.onnx")), DigestOfFile(made));
  EXPECT_EQ(ask({"jobs", "show", waiting}).code, 0) << "it waits here, too";
  EXPECT_EQ(cluster.Cli({"store", "verify", restored}).code, 4) << "a process uses it";

  // A flipped bit and a lost file are found, and nothing is restored from them.
  const auto path_of = [&](const std::string& file) {
    const std::string digest = DigestOfFile(file);
    return backup + "/blobs/" + digest.substr(0, 2) + "/" + digest;
  };
  std::string bytes = *ReadFile(path_of(model));
  bytes[0] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path_of(model), bytes).ok());
  ASSERT_TRUE(std::filesystem::remove(path_of(made)));
  const CommandResult broken = cluster.Cli({"store", "verify", backup});
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.out, HasSubstr("blob " + DigestOfFile(model) + ": "));
  EXPECT_THAT(broken.out, HasSubstr(", which jobs/1 names: it is missing"));
  const std::string nowhere = cluster.path("nowhere");
  EXPECT_EQ(cluster.Cli({"store", "restore", backup, nowhere}).code, 5);
  EXPECT_FALSE(FileExists(nowhere + "/jobs.db"));
  EXPECT_EQ(cluster.Cli({"store", "verify", cluster.path("none")}).code, 3);
}

// The trace of the client's environment is in the lines of all three programs.
TEST(Operations, LogsAreJsonWithTheTraceOfTheClient) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  Cluster cluster({.coordinator_flags = {"--log-format", "json"},
                   .worker_flags = {"--log-format", "json"},
                   .variables = {{"TRACEPARENT", "00-" + trace + "-00f067aa0ba902b7-01"}}});
  const std::string job = cluster.Submit(cluster.Zoo("tiny_cnn"), {"--rounds", "1"});
  cluster.Watch(job);
  EXPECT_THAT(cluster.Show(job)["request"].value("traceparent", ""), HasSubstr("00-" + trace));
  EXPECT_GT(cluster.Show(job).value("device_seconds", 0.0), 0);
  int of_job = 0, of_attempts = 0;
  for (const std::string& log : {cluster.coordinator().Log(), cluster.worker().Log()}) {
    for (const std::string_view text : Split(log, '\n')) {
      if (text.empty() || text.starts_with("autographd listens")) continue;
      const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
      ASSERT_TRUE(line.is_object()) << text;
      for (const char* name : {"time", "level", "program", "message"}) {
        EXPECT_TRUE(line.contains(name)) << text;
      }
      if (line.value("trace_id", "") != trace) continue;
      of_job += line.value("job", "") == job ? 1 : 0;
      of_attempts += line.value("attempt", "").starts_with("e") ? 1 : 0;
    }
  }
  EXPECT_GE(of_job, 2) << cluster.Logs();
  EXPECT_GE(of_attempts, 2) << cluster.Logs();
}

// With constants that are scaled down: the job and its model are gone a moment after its end.
TEST(Operations, OldJobsAreRemoved) {
  Cluster cluster(
      {.coordinator_flags = {"--keep-jobs", "0.00001", "--keep-blobs", "5", "--retention", "0.2"}});
  const std::string job = cluster.Submit(cluster.Zoo("tiny_cnn"), {"--rounds", "1"});
  EXPECT_TRUE(Eventually([&] {
    return cluster.Cli({"jobs", "show", job}).code == 3;
  })) << cluster.Logs();
  EXPECT_TRUE(Eventually([&] {
    return cluster.coordinator().Log().find("removed 1 old jobs") != std::string::npos;
  })) << cluster.Logs();
  EXPECT_EQ(cluster.Cli({"jobs", "list"}).out, "");
}

TEST(Operations, MetricsCountJobsByDeviceAndOutcome) {
  const int port = FreePort();
  Cluster cluster({.coordinator_flags = {"--metrics", "127.0.0.1:" + std::to_string(port)}});
  EXPECT_THAT(HttpGet(port, "/metrics"),
              HasSubstr("autograph_queue_depth{device=\"sim:small\"} 0"));
  const std::string job = cluster.Submit(cluster.Zoo("tiny_cnn"), {"--rounds", "1"});
  const std::string verdict = cluster.Watch(job)["result"].value("verdict", "");
  const std::string metrics = HttpGet(port, "/metrics");
  const std::string labels = "{device=\"sim:small\",outcome=\"" + verdict + "\"";
  EXPECT_THAT(metrics, HasSubstr("autograph_jobs_total" + labels + "} 1"));
  EXPECT_THAT(metrics, HasSubstr("autograph_job_duration_seconds_count" + labels + "} 1"));
  EXPECT_THAT(metrics, HasSubstr("autograph_job_duration_seconds_bucket" + labels));
  EXPECT_THAT(metrics, HasSubstr("autograph_queue_oldest_seconds{device=\"sim:small\"} 0"));
  for (const char* store : {"jobs", "cache"}) {
    EXPECT_THAT(metrics, HasSubstr("autograph_store_write_duration_seconds_count{store=\"" +
                                   std::string(store) + "\"}"));
  }
  EXPECT_THAT(metrics, HasSubstr("autograph_workers{health=\"SERVING\"} 1"));
}

}  // namespace
}  // namespace ag
