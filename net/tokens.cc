#include "net/tokens.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "base/file.h"
#include "base/handle.h"
#include "base/text.h"

namespace ag {
namespace {

constexpr std::array kRoles = {Role::kSubmit, Role::kRead, Role::kAdmin, Role::kWorker};
constexpr size_t kNameBytesMax = 64, kTokenBytesMax = 4096;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : Split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

StatusOr<TokenRow> ParseLine(std::string_view line) {
  const std::vector<std::string_view> words = WordsOf(line);
  if (words.size() != 3 && words.size() != 4) {
    return Err(StatusCode::kInvalidArgument,
               "expected NAME ROLES SHA256 and perhaps device seconds, got {} words", words.size());
  }
  TokenRow row;
  AG_TRY(CheckTokenName(words[0]));
  row.name = words[0];
  AG_LET(row.roles, ParseRoles(words[1]));
  const StatusOr<Digest> token = ParseDigest(words[2]);
  if (!token.ok()) {
    return Err(StatusCode::kInvalidArgument, "the third word is not 64 hexadecimal digits");
  }
  row.token = *token;
  if (words.size() == 3) return row;
  const StatusOr<double> seconds = ParseDouble(words[3]);
  if (!seconds.ok() || !std::isfinite(*seconds) || *seconds < 0) {
    return Err(StatusCode::kInvalidArgument, "the fourth word is no number of device seconds");
  }
  row.device_seconds = *seconds;
  return row;
}

std::string_view WithoutSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Writes in place, so that a file that is there keeps its owner; a new one is its user's alone.
Status Append(const std::string& path, int mode, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0600));
  if (!fd) return FromErrno(errno, path);
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  if (written < 0) return FromErrno(errno, path);
  if (static_cast<size_t>(written) != text.size()) return FromErrno(ENOSPC, path);
  return ::fsync(fd.get()) == 0 ? OkStatus() : FromErrno(errno, path);
}

}  // namespace

std::span<const Role> AllRoles() { return kRoles; }

std::string RoleName(Role role) {
  switch (role) {
    case Role::kSubmit:
      return "submit";
    case Role::kRead:
      return "read";
    case Role::kAdmin:
      return "admin";
    case Role::kWorker:
      return "worker";
  }
  return "";
}

std::string ToText(RoleSet roles, std::string_view separator) {
  std::vector<std::string> names;
  for (const Role role : kRoles) {
    if (roles.Has(role)) names.push_back(RoleName(role));
  }
  return Join(names, separator);
}

StatusOr<RoleSet> ParseRoles(std::string_view text) {
  RoleSet roles;
  for (const std::string_view word : Split(text, ',')) {
    const auto found =
        std::ranges::find_if(kRoles, [&](const Role role) { return RoleName(role) == word; });
    if (found == kRoles.end()) {
      return Err(StatusCode::kInvalidArgument, "roles: expected some of submit,read,admin,worker");
    }
    roles.Add(*found);
  }
  return roles;
}

Status CheckTokenName(std::string_view name) {
  if (!name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, IsNameByte)) {
    return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument,
             "a token's name is 1 to {} letters, digits, '.', '_' or '-'", kNameBytesMax);
}

std::string NewToken() {
  Digest random;
  AG_CHECK(::RAND_bytes(random.bytes.data(), static_cast<int>(random.bytes.size())) == 1);
  return "autograph_" + random.Hex();
}

StatusOr<std::vector<TokenRow>> ParseTokens(std::string_view text) {
  std::vector<TokenRow> rows;
  int number = 0;
  for (const std::string_view whole : Split(text, '\n')) {
    ++number;
    const std::string_view line = WithoutSpace(whole);
    if (line.empty() || line.starts_with("#")) continue;
    AG_LET(TokenRow row, [&]() -> StatusOr<TokenRow> {
      StatusOr<TokenRow> parsed = ParseLine(line);
      if (!parsed.ok()) return Within(parsed.status(), fmt::format("line {}", number));
      return parsed;
    }());
    if (std::ranges::any_of(rows, [&](const TokenRow& r) { return r.token == row.token; })) {
      return Err(StatusCode::kInvalidArgument, "line {}: this token is there already", number);
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return Err(StatusCode::kInvalidArgument, "it has no token");
  return rows;
}

std::string ToLine(const TokenRow& row) {
  const std::string quota =
      row.device_seconds.has_value() ? fmt::format(" {:g}", *row.device_seconds) : "";
  return fmt::format("{} {} {}{}\n", row.name, ToText(row.roles), row.token.Hex(), quota);
}

StatusOr<std::vector<TokenRow>> ReadTokens(const std::string& path) {
  struct stat info {};
  const bool is_there = ::stat(path.c_str(), &info) == 0;  // Else the reader says why not.
  if (is_there && !S_ISREG(info.st_mode)) {                // A pipe without a writer is waited for.
    return Err(StatusCode::kFailedPrecondition, "{}: not a regular file", path);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Err(StatusCode::kFailedPrecondition,
               "{}: others than its owner may write it; chmod go-w makes it safe", path);
  }
  AG_LET(const std::string text, ReadFile(path));
  StatusOr<std::vector<TokenRow>> rows = ParseTokens(text);
  AG_TRY(rows.status(), "{}", path);
  return rows;
}

Status AddToken(const std::string& path, const TokenRow& row) {
  std::string line = ToLine(row);
  if (FileExists(path)) {
    AG_LET(const std::string text, ReadFile(path));
    AG_TRY(text.empty() ? OkStatus() : ReadTokens(path).status());
    if (!text.empty() && !text.ends_with('\n')) line = "\n" + line;
  }
  return Append(path, O_APPEND, line);
}

Status WriteTokenFile(const std::string& path, std::string_view token) {
  return Append(path, O_EXCL, fmt::format("{}\n", token));
}

const TokenRow* FindToken(std::span<const TokenRow> rows, std::string_view token) {
  const Digest digest = Sha256(token);
  const TokenRow* found = nullptr;
  for (const TokenRow& row : rows) {
    const bool is_it =
        ::CRYPTO_memcmp(row.token.bytes.data(), digest.bytes.data(), digest.bytes.size()) == 0;
    if (is_it) found = &row;
  }
  return found;
}

Status CheckTokenText(std::string_view token) {
  const bool is_visible = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 127; });
  if (!token.empty() && token.size() <= kTokenBytesMax && is_visible) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "a token is one word of visible ASCII characters");
}

StatusOr<std::string> ReadTokenFile(const std::string& path) {
  AG_LET(const std::string text, ReadFile(path));
  const std::string_view token = WithoutSpace(text);
  AG_TRY(CheckTokenText(token), "{}", path);
  return std::string(token);
}

}  // namespace ag
