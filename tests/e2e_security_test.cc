// TLS, tokens and tenants with the programs themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/testing/certificates.h"
#include "tests/cluster.h"

namespace ag {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Certificates, a tokens file that `autograph token` made, and a cluster that wants both.
class SecureTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return place_.path(name); }

  // Returns the path of a new token's file.
  std::string MakeToken(const std::string& name, const std::string& roles) {
    const std::string file = Path(name + ".token");
    const CommandResult made =
        place_.Cli({"token", name, "--roles", roles, "--tokens", tokens_, "-o", file});
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.out, file + "\n");
    secrets_.push_back(TokenIn(file));
    return file;
  }
  static std::string TokenIn(const std::string& file) {
    const std::string text = *ReadFile(file);
    return text.substr(0, text.find('\n'));
  }
  // Those of a client, which the cluster's own programs get in their variables.
  Variables Of(const TlsFiles& files, const std::string& token_file) const {
    return {{"AUTOGRAPH_TLS_CA", files.ca},
            {"AUTOGRAPH_TLS_CERT", files.cert},
            {"AUTOGRAPH_TLS_KEY", files.key},
            {"AUTOGRAPH_TOKEN_FILE", token_file}};
  }
  ClusterOptions Options() {
    const TlsFiles server = authority_.Make("server");
    ClusterOptions options;
    options.coordinator_flags = {"--tls-cert",      server.cert, "--tls-key", server.key,
                                 "--tls-client-ca", server.ca,   "--tokens",  tokens_};
    options.variables = Of(authority_.Make("client"), MakeToken("root", "admin,read"));
    options.worker_variables = Of(authority_.Make("client"), MakeToken("gpu-1", "worker"));
    return options;
  }
  CommandResult As(Cluster& cluster, const Variables& who, std::vector<std::string> words) {
    words.insert(words.begin(), Program("autograph"));
    words.insert(words.end(), {"--server", cluster.address()});
    Variables variables = place_.variables;
    variables.insert(who.begin(), who.end());
    return RunCommand(words, variables);
  }

  const Alone place_;
  TestAuthority authority_{place_.folder.path(), "ours"};
  const std::string tokens_ = Path("tokens");
  std::vector<std::string> secrets_;
};

TEST_F(SecureTest, AJobWithMutualTlsAndTokens) {
  Cluster cluster(Options());  // Waits until the worker serves.
  const std::string model = place_.Zoo("tiny_inception");
  const TlsFiles client = authority_.Make("client");
  const Variables alice = Of(client, MakeToken("alice", "submit,read"));
  const Variables bob = Of(client, MakeToken("bob", "submit,read"));
  const auto optimize = [&](const Variables& who, const std::string& output) {
    return As(cluster, who,
              {"optimize", model, "-o", Path(output), "--device", "sim:small", "--json"});
  };
  CommandResult done;
  EXPECT_TRUE(Eventually([&] {  // Until the coordinator has read the two tokens.
    done = optimize(alice, "a.onnx");
    return done.code != 4;
  }));
  ASSERT_EQ(done.code, 0) << done.err << cluster.Logs();
  const std::string job = json::parse(done.out)["name"];

  // Another tenant sees none of it, and makes his own job.
  const CommandResult shown = As(cluster, bob, {"jobs", "show", job});
  EXPECT_EQ(shown.code, 3);
  EXPECT_EQ(shown.err, "autograph: no job " + job + "\n");
  EXPECT_EQ(As(cluster, bob, {"jobs", "list", "--json"}).out, "[]\n");
  const CommandResult his = optimize(bob, "b.onnx");
  ASSERT_EQ(his.code, 0) << his.err << cluster.Logs();
  EXPECT_NE(json::parse(his.out)["name"], job);
  EXPECT_FALSE(json::parse(his.out)["result"]["cache"]["model_hit"]);
  const CommandResult again = optimize(alice, "c.onnx");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(json::parse(again.out)["result"]["cache"]["model_hit"]);
  EXPECT_EQ(DigestOfFile(Path("a.onnx")), DigestOfFile(Path("c.onnx")));

  // What a user lacks the role for.
  const CommandResult forget = As(cluster, alice, {"cache", "forget", "--all"});
  EXPECT_EQ(forget.code, 4);
  EXPECT_EQ(forget.err,
            "autograph: alice lacks the role admin for autograph.v1.Cache.Forget; it has submit, "
            "read\n");
  EXPECT_EQ(As(cluster, Of(client, Path("root.token")), {"cache", "forget", "--all"}).code, 0);

  const std::string logs = cluster.Logs() + done.out + done.err + shown.err + forget.err;
  for (const std::string& secret : secrets_) EXPECT_THAT(logs, Not(HasSubstr(secret)));
}

TEST_F(SecureTest, WhoHasUsedItsDeviceSecondsWaits) {
  ClusterOptions options = Options();
  options.coordinator_flags.insert(options.coordinator_flags.end(), {"--quota", "0.000001"});
  Cluster cluster(options);
  const TlsFiles client = authority_.Make("client");
  const Variables alice = Of(client, MakeToken("alice", "submit,read"));
  const auto optimize = [&](const std::string& model) {
    return As(cluster, alice,
              {"optimize", place_.Zoo(model), "-o", Path("o.onnx"), "--device", "sim:small",
               "--rounds", "1", "--json"});
  };
  EXPECT_TRUE(Eventually([&] { return optimize("tiny_cnn").code == 0; })) << cluster.Logs();
  const CommandResult over = optimize("tiny_sru");
  EXPECT_EQ(over.code, 3) << over.err;
  const json error = json::parse(over.out)["error"];
  EXPECT_EQ(error["reason"], "QUOTA_EXCEEDED");
  EXPECT_GT(error["retry_after_seconds"].get<double>(), 0);
  EXPECT_THAT(std::string(error["message"]), StartsWith("alice has used "));
  EXPECT_EQ(optimize("tiny_cnn").code, 0) << "what is remembered costs nothing";
  // A line of the file says else, without a restart.
  const std::string more = Path("more.token");
  EXPECT_EQ(place_.Cli({"token", "alice", "--tokens", tokens_, "--quota", "1000", "-o", more}).code,
            0);
  EXPECT_TRUE(Eventually([&] { return optimize("tiny_sru").code == 0; })) << cluster.Logs();
}

TEST_F(SecureTest, WhoHasNoRightGetsNoConnectionOrNoAnswer) {
  Cluster cluster(Options());
  const TlsFiles client = authority_.Make("client");
  const std::vector<std::string> list = {"jobs", "list"};
  const auto expect = [&](const Variables& who, const std::string& message) {
    const CommandResult result = As(cluster, who, list);
    EXPECT_EQ(result.code, 4) << message;
    EXPECT_THAT(result.err, StartsWith("autograph: " + message));
    EXPECT_EQ(result.out, "");
  };
  const std::string at = cluster.address();
  EXPECT_EQ(As(cluster, Of(client, Path("root.token")), list).code, 0);
  expect({}, "no server at " + at + ": is autographd running? (one with TLS needs --tls-ca)");
  expect({{"AUTOGRAPH_TLS_CA", client.ca}, {"AUTOGRAPH_TOKEN_FILE", Path("root.token")}},
         "no TLS connection to " + at + ": ");
  const Variables no_token = Of(client, "");
  expect(no_token,
         "autograph.v1.Optimizer.GetCapabilities needs a token: AUTOGRAPH_TOKEN or --token-file of "
         "the client\n");
  Variables wrong = no_token;
  wrong["AUTOGRAPH_TOKEN"] = "autograph_wrong";
  expect(wrong, "the token is not known here\n");
  Variables worker = no_token;
  worker["AUTOGRAPH_TOKEN"] = TokenIn(Path("gpu-1.token"));
  expect(worker,
         "gpu-1 lacks the role read or admin for autograph.v1.Optimizer.ListJobs; it has worker\n");

  // A worker that is no worker says so, and does not serve.
  Variables variables = Of(client, Path("root.token"));
  variables.insert(place_.variables.begin(), place_.variables.end());
  const Background pretender(
      {Program("autograph-worker"), "--server", at, "--device", "sim:small", "--id", "pretender"},
      Path("pretender.log"), variables);
  EXPECT_TRUE(Eventually([&] {
    return pretender.Log().find(
               "the coordinator refuses this worker: root lacks the role worker for "
               "autograph.v1.Workers.Synchronize; it has read, admin") != std::string::npos;
  })) << pretender.Log();
  EXPECT_THAT(cluster.Cli({"workers", "list"}).out, Not(HasSubstr("pretender")));
}

TEST_F(SecureTest, WhatStopsTheStart) {
  const std::string data = Path("data");
  const auto start = [&](std::vector<std::string> flags) {
    std::vector<std::string> words = {Program("autographd"), "--data", data};
    words.insert(words.end(), flags.begin(), flags.end());
    return RunCommand(words, place_.variables);
  };
  const CommandResult open = start({"--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.code, 1);
  EXPECT_EQ(open.err,
            "autographd: the service at 0.0.0.0:0 would be open to other machines in plain text: "
            "give --tls-cert and --tls-key, or allow it with --insecure\n");
  const TlsFiles old = authority_.Make("old", TestAuthority::kExpired);
  const CommandResult expired =
      start({"--listen", "127.0.0.1:0", "--tls-cert", old.cert, "--tls-key", old.key});
  EXPECT_EQ(expired.code, 1);
  EXPECT_THAT(expired.err, StartsWith("autographd: " + old.cert + ": the certificate expired on "));
  const CommandResult tokens = start({"--listen", "127.0.0.1:0", "--tokens", Path("none")});
  EXPECT_EQ(tokens.code, 1);
  EXPECT_EQ(tokens.err, "autographd: read " + Path("none") + ": No such file or directory\n");

  const CommandResult leak = RunCommand({Program("autograph-worker"), "--server", "10.0.0.1:7450",
                                         "--token-file", MakeToken("gpu-1", "worker")},
                                        place_.variables);
  EXPECT_EQ(leak.code, 1);
  EXPECT_EQ(leak.err,
            "autograph-worker: the token would go to 10.0.0.1:7450 in plain text: name the "
            "certificate that signed the server's (--tls-ca), or allow it (--insecure)\n");
}

TEST_F(SecureTest, TokensAreMadeOnceAndShownOnce) {
  const CommandResult shown = place_.Cli({"token", "alice", "--tokens", tokens_});
  EXPECT_EQ(shown.code, 0);
  const std::string token = shown.out.substr(0, shown.out.find('\n'));
  EXPECT_THAT(token, StartsWith("autograph_"));
  const std::string file = *ReadFile(tokens_);
  EXPECT_THAT(file, StartsWith("alice submit,read "));
  EXPECT_THAT(file, Not(HasSubstr(token)));
  EXPECT_EQ(shown.err, tokens_ + ": alice may submit and read\n");

  // A token that has no place to go leaves no line.
  const std::string out = place_.Write("taken", "");
  const CommandResult refused = place_.Cli({"token", "bob", "--tokens", tokens_, "-o", out});
  EXPECT_EQ(refused.code, 3);
  EXPECT_EQ(refused.err, "autograph: " + out + ": File exists\n");
  EXPECT_EQ(*ReadFile(tokens_), file);
  EXPECT_EQ(place_.Cli({"token", "bo/b", "--tokens", tokens_}).code, 3);
  EXPECT_EQ(place_.Cli({"token", "bob", "--roles", "all", "--tokens", tokens_}).code, 3);
  EXPECT_EQ(*ReadFile(tokens_), file);
}

}  // namespace
}  // namespace ag
