// Tests of the tree of verbs: errors for wrong words, and the sources of defaults.
#include "client/cli/commands.h"
#include "client/cli/testing/testing.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "client/cli/flags.h"

namespace ag {
namespace {

Ran Call(std::vector<std::string> words) {
  words.insert(words.begin(), "autograph");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return Capture([&] { return CliMain(static_cast<int>(words.size()), argv.data()); });
}

// Misspelt verbs and flags produce an error with a suggestion.
TEST(Commands, WrongWordsAreSaid) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } kCases[] = {
      {{},
       "a verb is missing: optimize, run, verify, bench, plan, jobs, cache, store, rules, zoo, "
       "workers, "
       "token, health, doctor"},
      {{"optimise"}, "unknown verb \"optimise\"; did you mean 'optimize'?"},
      {{"xyzzy"}, "unknown verb \"xyzzy\""},
      {{"jobs"}, "a verb is missing: list, show, watch, cancel, fetch, delete"},
      {{"jobs", "lst"}, "unknown verb \"lst\"; did you mean 'list'?"},
      {{"optimize", "m", "-o", "o", "--budgt", "1s"},
       "unknown flag --budgt; did you mean '--budget'?"},
      {{"optimize", "m", "-o", "o", "--jsn"}, "unknown flag --jsn; did you mean '--json'?"},
      {{"optimize"}, "model is required"},
      {{"optimize", "m", "-o", "o", "--budget", "5"},
       "--budget: \"5\" has no unit; try 5s, 5m or 5h"},
      {{"verify"}, "model is required"},
      {{"bench", "m", "--seconds", "soon"}, "--seconds: \"soon\" is not a number above 0"},
      {{"optimize", "m", "-o", "o", "--budget", "soon"},
       "--budget: \"soon\" is not a duration; try 60s, 2m or 1h"},
      {{"optimize", "m", "-o", "o", "--shape", "x"}, "--shape: x: expected NAME=1x3x224x224"},
      {{"optimize", "m", "-o", "o", "--target", "portble"},
       "--target: \"portble\" is none of device, portable; did you mean 'portable'?"},
      {{"optimize", "m", "-o", "o", "--ort", "yes"},
       "--ort: \"yes\" is none of auto, off, require"},
      {{"bench", "m", "--ort-seconds", "0"}, "--ort-seconds: \"0\" is not a number above 0"},
      {{"bench", "m", "--clients", "-2"}, "--clients: \"-2\" is not a number above 0"},
      {{"bench", "--compare", "old.onnx"}, "model is required"},
      {{"bench", "m", "--comprae", "o"}, "unknown flag --comprae; did you mean '--compare'?"},
      {{"cache", "export"}, "file is required"},
      {{"jobs", "show"}, "job is required"},
      {{"jobs", "fetch", "7"}, "--output is required"},
  };
  for (const auto& c : kCases) {
    const Ran ran = Call(c.words);
    EXPECT_EQ(ran.code, kExitUsage);
    EXPECT_EQ(ran.err, fmt::format("autograph: {}\nTry autograph --help.\n", c.message));
    EXPECT_EQ(ran.out, "");
    // With --json the error is a document, wherever the flag stands.
    std::vector<std::string> words = c.words;
    words.insert(words.begin(), "--json");
    const Ran json = Call(words);
    EXPECT_EQ(json.err, ran.err);
    EXPECT_EQ(json.json()["error"]["code"], 3) << json.out;
    EXPECT_EQ(json.json()["error"]["message"], c.message);
  }
  EXPECT_EQ(Call({"optimise", "--json"}).json()["error"]["message"],
            "unknown verb \"optimise\"; did you mean 'optimize'?");
}

TEST(Commands, HelpAndVersionAreNoErrors) {
  for (const char* flag : {"--help", "--version"}) {
    const Ran ran = Call({flag});
    EXPECT_EQ(ran.code, kExitOk) << flag;
    EXPECT_NE(ran.out, "") << flag;
    EXPECT_EQ(ran.err, "") << flag;
  }
}

TEST(Commands, WrongValuesAreUsageErrors) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } kCases[] = {
      {{"optimize", "m"}, "--output is required (not with --detach)"},
      {{"optimize", "m", "-o", "o", "--report", "o"}, "--output and --report are one file: o"},
      {{"optimize", "m", "--detach"},
       "--detach needs --server: an embedded service ends with this command"},
      {{"optimize", "m", "-o", "o", "--detach"},
       "--detach needs --server: an embedded service ends with this command"},
      {{"zoo"}, "zoo needs a name and -o FILE, or --list"},
      {{"zoo", "tiny_cnn"}, "zoo needs a name and -o FILE, or --list"},
  };
  unsetenv("AUTOGRAPH_SERVER");
  for (const auto& c : kCases) {
    const Ran ran = Call(c.words);
    EXPECT_EQ(ran.code, kExitUsage);
    EXPECT_EQ(ran.err, fmt::format("autograph: {}\n", c.message));
  }
}

TEST(Commands, TheModelIsNotReplacedByMistake) {
  const TempDir folder = *TempDir::Make("commands-test");
  const std::string model = folder.path() + "/m.onnx", link = folder.path() + "/link",
                    other = folder.path() + "/o";
  ASSERT_TRUE(WriteFileAtomically(model, "bytes").ok());
  std::filesystem::create_symlink(model, link);
  for (const std::string& output : {model, folder.path() + "/./m.onnx", link}) {
    const Ran ran = Call({"optimize", model, "-o", output});
    EXPECT_EQ(ran.code, kExitUsage);
    EXPECT_EQ(ran.err, fmt::format("autograph: --output {} is the model itself: choose another "
                                   "file, or --force to replace it\n",
                                   output));
  }
  EXPECT_EQ(Call({"optimize", link, "-o", other, "--report", model}).code, kExitUsage);
  EXPECT_EQ(*ReadFile(model), "bytes");
}

// The help of each option that takes a value names its default.
TEST(Commands, HelpShowsEveryDefault) {
  const std::vector<std::vector<std::string>> verbs = {{},
                                                       {"optimize"},
                                                       {"run"},
                                                       {"verify"},
                                                       {"bench"},
                                                       {"plan", "show"},
                                                       {"jobs", "list"},
                                                       {"jobs", "fetch"},
                                                       {"cache", "list"},
                                                       {"cache", "export"},
                                                       {"cache", "forget"},
                                                       {"rules", "verify"},
                                                       {"zoo"},
                                                       {"doctor"}};
  for (std::vector<std::string> words : verbs) {
    words.push_back("--help");
    const std::string help = Call(words).out;
    int options = 0;
    for (const std::string_view line : Split(help, '\n')) {
      const std::string_view option = Trim(line);
      if (!option.starts_with("-")) continue;
      const std::string_view takes = option.substr(std::min(option.find(' '), option.size()));
      const bool has_value = takes.starts_with(" TEXT") || takes.starts_with(" INT") ||
                             takes.starts_with(" UINT") || takes.starts_with(" FLOAT");
      options += has_value ? 1 : 0;
      const bool says = takes.find('[') != takes.npos || takes.find("REQUIRED") != takes.npos;
      EXPECT_TRUE(!has_value || says) << words[0] << ": " << option;
    }
    EXPECT_GT(options, 0) << words[0];
  }
  EXPECT_NE(Call({"optimize", "--help"}).out.find("--rounds INT [8]"), std::string::npos);
}

// The server comes from the flag, else the file named by --config, else the environment.
TEST(Commands, TheServerComesFromFlagFileOrEnvironment) {
  const TempDir folder = *TempDir::Make("commands-test");
  const std::string file = folder.path() + "/autograph.conf";
  ASSERT_TRUE(WriteFileAtomically(file, "server=127.0.0.1:2\n").ok());
  const struct {
    const char* name;
    const char* environment;
    std::vector<std::string> flags;
    const char* server;
  } kCases[] = {
      {"environment", "127.0.0.1:1", {}, "127.0.0.1:1"},
      {"file", nullptr, {"--config", file}, "127.0.0.1:2"},
      {"file over environment", "127.0.0.1:1", {"--config", file}, "127.0.0.1:2"},
      {"flag", nullptr, {"--server", "127.0.0.1:3"}, "127.0.0.1:3"},
      {"flag over environment", "127.0.0.1:1", {"--server", "127.0.0.1:3"}, "127.0.0.1:3"},
      {"flag over both",
       "127.0.0.1:1",
       {"--config", file, "--server", "127.0.0.1:3"},
       "127.0.0.1:3"},
  };
  for (const auto& c : kCases) {
    c.environment != nullptr ? setenv("AUTOGRAPH_SERVER", c.environment, 1)
                             : unsetenv("AUTOGRAPH_SERVER");
    std::vector<std::string> words = {"jobs", "list"};
    words.insert(words.end(), c.flags.begin(), c.flags.end());
    const Ran ran = Call(words);
    EXPECT_EQ(ran.code, kExitUnavailable) << c.name;
    EXPECT_EQ(ran.err,
              fmt::format("autograph: no server at {}: is autographd running?\n", c.server))
        << c.name;
  }
  unsetenv("AUTOGRAPH_SERVER");
}

TEST(Commands, AConfigFileThatIsWrongIsSaid) {
  const TempDir folder = *TempDir::Make("commands-test");
  const std::string file = folder.path() + "/autograph.conf";
  EXPECT_EQ(Call({"zoo", "--list", "--config", file}).code, kExitUsage) << "there is none";
  ASSERT_TRUE(WriteFileAtomically(file, "wheels=4\n").ok());
  const Ran ran = Call({"zoo", "--list", "--config", file});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_EQ(ran.err, "autograph: INI was not able to parse wheels\nTry autograph --help.\n");
}

}  // namespace
}  // namespace ag
