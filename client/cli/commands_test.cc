// The tree of verbs: what the command line says of wrong words, and where defaults come from.
#include "client/cli/commands.h"
#include "client/cli/testing.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
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

// What is asked for is said to be wrong with the word that was meant.
TEST(Commands, WrongWordsAreSaid) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } kCases[] = {
      {{},
       "a verb is missing: optimize, run, verify, bench, plan, jobs, cache, rules, zoo, workers, "
       "doctor"},
      {{"optimise"}, "unknown verb \"optimise\"; did you mean 'optimize'?"},
      {{"xyzzy"}, "unknown verb \"xyzzy\""},
      {{"jobs"}, "a verb is missing: list, show, watch, cancel"},
      {{"jobs", "lst"}, "unknown verb \"lst\"; did you mean 'list'?"},
      {{"optimize", "m", "-o", "o", "--budgt", "1s"},
       "unknown flag --budgt; did you mean '--budget'?"},
      {{"optimize", "m", "-o", "o", "--jsn"}, "unknown flag --jsn; did you mean '--json'?"},
      {{"optimize"}, "model is required"},
      {{"optimize", "m"}, "--output is required"},
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
  };
  for (const auto& c : kCases) {
    const Ran ran = Call(c.words);
    EXPECT_EQ(ran.code, kExitUsage);
    EXPECT_EQ(ran.err, fmt::format("autograph: {}\nTry autograph --help.\n", c.message));
    EXPECT_EQ(ran.out, "");
  }
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

// Which server is asked: the flag, else the file named by --config, else the environment.
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
