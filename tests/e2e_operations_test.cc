// What operators use: the health verb, variables for flags, metrics, with real processes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

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
  for (const char* name : {"live", "ready", "workers"}) {
    const CommandResult health = cluster.Cli({"health", name});
    EXPECT_EQ(health.code, 0) << name << health.err;
  // Health follows the worker within a fraction of a second.
  EXPECT_TRUE(Eventually([&] { return cluster.Cli({"health", "workers"}).code == 0; }));
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
  EXPECT_THAT(metrics, HasSubstr("autograph_workers{health=\"SERVING\"} 1"));
}

}  // namespace
}  // namespace ag
