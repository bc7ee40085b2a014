#include "net/tokens.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "base/file.h"

namespace ag {
namespace {

TokenRow Row(const std::string& name, RoleSet roles, const std::string& token) {
  return {name, roles, Sha256(token)};
}

TEST(Tokens, LinesAreReadAsTheyAreWritten) {
  const std::vector<TokenRow> rows = {
      Row("alice", {Role::kSubmit, Role::kRead}, "a"),
      Row("alice", {Role::kRead}, "b"),  // The token that replaces the first.
      Row("gpu-1.rack_2", {Role::kWorker}, "c"),
      Row("root", {Role::kSubmit, Role::kRead, Role::kAdmin, Role::kWorker}, "d"),
  };
  std::string text = "# who may what\n\n";
  for (const TokenRow& row : rows) text += ToLine(row);
  EXPECT_EQ(*ParseTokens(text), rows);
  EXPECT_EQ(ToLine(rows[0]), "alice submit,read " + Sha256("a").Hex() + "\n");
  EXPECT_EQ(*ParseTokens("  alice   submit,read " + Sha256("a").Hex() + "  \r\n"),
            std::vector<TokenRow>{rows[0]});
  TokenRow limited = rows[0];
  limited.device_seconds = 3600;
  EXPECT_EQ(ToLine(limited), "alice submit,read " + Sha256("a").Hex() + " 3600\n");
  EXPECT_EQ(*ParseTokens(ToLine(limited)), std::vector<TokenRow>{limited});
}

TEST(Tokens, WrongFiles) {
  const std::string hash = Sha256("a").Hex();
  const std::string name = "a token's name is 1 to 64 letters, digits, '.', '_' or '-'";
  const std::string roles = "roles: expected some of submit,read,admin,worker";
  struct Case {
    std::string text, message;
  };
  const Case cases[] = {
      {"", "it has no token"},
      {"# nobody\n", "it has no token"},
      {"alice read\n",
       "line 1: expected NAME ROLES SHA256 and perhaps device seconds, got 2 words"},
      {"alice read " + hash + " much", "line 1: the fourth word is no number of device seconds"},
      {"alice read " + hash + " -1", "line 1: the fourth word is no number of device seconds"},
      {"\nal/ice read " + hash, "line 2: " + name},
      {std::string(65, 'a') + " read " + hash, "line 1: " + name},
      {"alice reed " + hash, "line 1: " + roles},
      {"alice read,,admin " + hash, "line 1: " + roles},
      {"alice read autograph_secret", "line 1: the third word is not 64 hexadecimal digits"},
      {"a read " + hash + "\nb read " + hash, "line 2: this token is there already"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ToString(ParseTokens(c.text).status()), "INVALID_ARGUMENT: " + c.message) << c.text;
  }
}

TEST(Tokens, OnlyTheTokenItselfIsFound) {
  const std::vector<TokenRow> rows = {Row("alice", {Role::kRead}, "first"),
                                      Row("bob", {Role::kAdmin}, "second")};
  EXPECT_EQ(FindToken(rows, "first"), &rows[0]);
  EXPECT_EQ(FindToken(rows, "second"), &rows[1]);
  for (const std::string wrong : {"", "third", "firs", "first ", "FIRST"}) {
    EXPECT_EQ(FindToken(rows, wrong), nullptr) << wrong;
  }
  EXPECT_EQ(FindToken(rows, Sha256("first").Hex()), nullptr) << "the hash opens nothing";
}

TEST(Tokens, NewOnesDiffer) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(NewToken());
  EXPECT_EQ(tokens.size(), 100u);
  for (const std::string& token : tokens) {
    EXPECT_TRUE(CheckTokenText(token).ok());
    EXPECT_EQ(token.size(), std::string("autograph_").size() + 64);
  }
}

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

TEST(Tokens, AreAddedToAFileThatKeepsWhatItHas) {
  const TempDir folder = *TempDir::Make("tokens");
  const std::string path = folder.path() + "/tokens";
  const TokenRow alice = Row("alice", {Role::kRead}, "a"), bob = Row("bob", {Role::kAdmin}, "b");
  ASSERT_TRUE(AddToken(path, alice).ok());
  EXPECT_EQ(ModeOf(path), 0600u);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  ASSERT_TRUE(AddToken(path, bob).ok());
  EXPECT_EQ(ModeOf(path), 0640u);
  EXPECT_EQ(*ReadTokens(path), (std::vector<TokenRow>{alice, bob}));

  const std::string text = "# by hand\n" + ToLine(alice);
  ASSERT_TRUE(WriteFileAtomically(path, text.substr(0, text.size() - 1)).ok());  // No newline.
  ASSERT_TRUE(AddToken(path, bob).ok());
  EXPECT_EQ(*ReadFile(path), text + ToLine(bob));

  ASSERT_TRUE(WriteFileAtomically(path, "alice\n").ok());
  EXPECT_EQ(ToString(AddToken(path, bob)),
            "INVALID_ARGUMENT: " + path +
                ": line 1: expected NAME ROLES SHA256 and perhaps device seconds, got 1 words");
  EXPECT_EQ(*ReadFile(path), "alice\n");
}

TEST(Tokens, AFileThatOthersMayWriteIsRefused) {
  const TempDir folder = *TempDir::Make("tokens");
  const std::string path = folder.path() + "/tokens";
  ASSERT_TRUE(AddToken(path, Row("alice", {Role::kRead}, "a")).ok());
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(ToString(ReadTokens(path).status()),
              "FAILED_PRECONDITION: " + path +
                  ": others than its owner may write it; chmod go-w makes it safe");
  }
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(ReadTokens(path).ok());
}

TEST(Tokens, APipeIsNotWaitedFor) {
  const TempDir dir = *TempDir::Make("tokens-test-");
  const std::string path = dir.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(ToString(ReadTokens(path).status()),
            "FAILED_PRECONDITION: " + path + ": not a regular file");
}

TEST(Tokens, TheFileOfAClient) {
  const TempDir folder = *TempDir::Make("tokens");
  const std::string path = folder.path() + "/token";
  ASSERT_TRUE(WriteTokenFile(path, "autograph_1").ok());
  EXPECT_EQ(ModeOf(path), 0600u);
  EXPECT_EQ(*ReadTokenFile(path), "autograph_1");
  EXPECT_EQ(ToString(WriteTokenFile(path, "autograph_2")),
            "FAILED_PRECONDITION: " + path + ": File exists");
  for (const std::string wrong : {"", " \n", "two words", "a\nb", "\xc3\xa9", "a\x01"}) {
    ASSERT_TRUE(WriteFileAtomically(path, wrong).ok());
    EXPECT_EQ(ToString(ReadTokenFile(path).status()),
              "INVALID_ARGUMENT: " + path + ": a token is one word of visible ASCII characters")
        << wrong;
  }
}

}  // namespace
}  // namespace ag
