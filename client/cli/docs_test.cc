// Checks that docs/cli.md names exactly the verbs and flags of --help.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "client/cli/commands.h"

namespace ag {
namespace {

using Names = std::set<std::string>;

std::string HelpOf(std::vector<std::string> words) {
  words.insert(words.begin(), "autograph");
  words.push_back("--help");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(CliMain(static_cast<int>(words.size()), argv.data()), 0);
  return ::testing::internal::GetCapturedStdout();
}

Names Matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  Names names;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

// Returns long names, or short ones where there is no long one.
Names FlagsOf(const std::string& help) {
  return Matches(help, "^ +(?:-[a-z],)?(--?[a-z][a-z-]*)[ ,]");
}

// Returns each verb ("jobs list") with its own flags; "" with the flags of all.
std::map<std::string, Names> RealVerbs() {
  std::map<std::string, Names> verbs;
  const auto subverbs = [](const std::string& help) {
    const size_t list = help.find("Subcommands:\n");
    return list == std::string::npos ? Names() : Matches(help.substr(list), "^  ([a-z]+) ");
  };
  const std::string all = HelpOf({});
  verbs[""] = FlagsOf(all);
  for (const std::string& verb : subverbs(all)) {
    const std::string help = HelpOf({verb});
    const Names below = subverbs(help);
    if (below.empty()) verbs[verb] = FlagsOf(help);
    for (const std::string& sub : below) verbs[verb + " " + sub] = FlagsOf(HelpOf({verb, sub}));
  }
  for (auto& [verb, flags] : verbs) {
    if (!verb.empty()) flags.erase("--help");
  }
  return verbs;
}

// Returns the rows "| `jobs list` | ... `--flag` ..." below `heading`.
std::map<std::string, Names> ListedVerbs(const std::string& page) {
  std::map<std::string, Names> verbs;
  bool below = false;
  for (const std::string_view line : Split(page, '\n')) {
    if (line.starts_with("#")) below = line == "## Flags";
    if (!below || !line.starts_with("| ") || line.starts_with("| verb")) continue;
    const size_t second = line.find('|', 1);
    const Names flags = Matches(std::string(line.substr(second)), "`(--?[a-z][a-z-]*)");
    const std::string cell(line.substr(0, second));
    if (cell.find('`') == std::string::npos) verbs[""] = flags;
    for (const std::string& verb : Matches(cell, "`([a-z ]+)`")) verbs[verb] = flags;
  }
  return verbs;
}

TEST(Docs, EveryVerbHasItsFlagsOnThePage) {
  const auto listed = ListedVerbs(*ReadFile(AG_SOURCE_DIR "/docs/cli.md"));
  const auto real = RealVerbs();
  for (const auto& [verb, flags] : real) {
    const auto found = listed.find(verb);
    ASSERT_NE(found, listed.end()) << "docs/cli.md does not list " << verb;
    EXPECT_EQ(found->second, flags) << verb;
  }
  for (const auto& [verb, flags] : listed) EXPECT_TRUE(real.contains(verb)) << verb;
}

// Every verb and flag that the page names exists, and its first table has every verb.
TEST(Docs, ThePageNamesOnlyWhatThereIs) {
  const std::string page = *ReadFile(AG_SOURCE_DIR "/docs/cli.md");
  Names flags, verbs;
  for (const auto& [verb, own] : RealVerbs()) {
    flags.insert(own.begin(), own.end());
    verbs.insert(verb.substr(0, verb.find(' ')));
  }
  for (const std::string& flag : Matches(page, "[` \\[](--[a-z][a-z-]*)")) {
    EXPECT_TRUE(flags.contains(flag)) << flag;
  }
  verbs.erase("");
  EXPECT_EQ(Matches(page.substr(0, page.find("\n## ")), "^\\| `([a-z]+)"), verbs);
}

// Returns the commands in README.md: "    autograph VERB ... --flag ...".
TEST(Docs, TheReadmeShowsRealCommands) {
  const std::string page = *ReadFile(AG_SOURCE_DIR "/README.md");
  const auto verbs = RealVerbs();
  int commands = 0;
  for (const std::string_view line : Split(page, '\n')) {
    if (!line.starts_with("    autograph ")) continue;
    const std::string command(line.substr(0, line.find('#')));
    const Names verb = Matches(command, "^ +autograph ([a-z]+)");
    ASSERT_EQ(verb.size(), 1u) << command;
    const auto own = verbs.find(*verb.begin());
    ASSERT_NE(own, verbs.end()) << command;
    for (const std::string& flag : Matches(command, " (--[a-z][a-z-]*)")) {
      EXPECT_TRUE(own->second.contains(flag) || verbs.at("").contains(flag)) << command;
    }
    ++commands;
  }
  EXPECT_GE(commands, 3);
}

}  // namespace
}  // namespace ag
