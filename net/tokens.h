// Bearer tokens and the file that says what each may do (docs/security.md). The file has hashes: a
// token is 256 random bits, so its SHA-256 does not lead back to it. Plain data and pure functions
// but for the reads and writes of files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/status.h"

namespace ag {

enum class Role : uint8_t { kSubmit, kRead, kAdmin, kWorker };
std::span<const Role> AllRoles();
std::string RoleName(Role role);  // "submit"

class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<Role> roles) {
    for (const Role role : roles) Add(role);
  }
  constexpr void Add(Role role) { bits_ |= BitOf(role); }
  constexpr bool Has(Role role) const { return (bits_ & BitOf(role)) != 0; }
  constexpr bool Meets(RoleSet other) const { return (bits_ & other.bits_) != 0; }
  constexpr bool IsEmpty() const { return bits_ == 0; }
  constexpr bool operator==(const RoleSet&) const = default;

 private:
  static constexpr uint8_t BitOf(Role role) {
    return static_cast<uint8_t>(1 << static_cast<int>(role));
  }
  uint8_t bits_ = 0;
};

// Returns the names in the order of AllRoles, with `separator` between them.
std::string ToText(RoleSet roles, std::string_view separator = ",");
// Parses "submit,read". kInvalidArgument: a word that is no role, or none at all.
StatusOr<RoleSet> ParseRoles(std::string_view text);

// What one line of the file says of one token.
struct TokenRow {
  std::string name;  // The tenant. Several tokens may have it, so that one can replace another.
  RoleSet roles;
  Digest token;  // SHA-256 of the token's text.
  // What the tenant may use in a day; 0: without a limit; none: the server's default. The first
  // line of a name that says it counts.
  std::optional<double> device_seconds = {};

  bool operator==(const TokenRow&) const = default;
};

// Returns OK for a name of 1 to 64 letters, digits, '.', '_' and '-'.
Status CheckTokenName(std::string_view name);

// Returns a new token from the system's random numbers: "autograph_" and 64 hexadecimal digits.
std::string NewToken();

// Lines "NAME ROLES SHA256" or "NAME ROLES SHA256 DEVICE_SECONDS"; empty lines and those that begin
// with '#' say nothing. kInvalidArgument names the line that is wrong, without its words, which may
// be a token. A file without a token is an error: it would shut everybody out.
StatusOr<std::vector<TokenRow>> ParseTokens(std::string_view text);
std::string ToLine(const TokenRow& row);  // Ends with a newline.

// Reads and parses. kFailedPrecondition: others than the file's owner may write it.
StatusOr<std::vector<TokenRow>> ReadTokens(const std::string& path);

// Adds a line at the end of the file, which is made for its user only (0600) when it is missing.
// Errors as ReadTokens: a file that is wrong stays as it is.
Status AddToken(const std::string& path, const TokenRow& row);

// Returns the row of this token; null: none. Takes the same time whichever it is: every hash is
// compared whole.
const TokenRow* FindToken(std::span<const TokenRow> rows, std::string_view token);

// Returns the token in the file of a client: its text without white space at the ends.
// kInvalidArgument: no visible ASCII text of one line; the message does not have it.
StatusOr<std::string> ReadTokenFile(const std::string& path);
// Writes a new file of this kind for its user only. kFailedPrecondition: the file is there already.
Status WriteTokenFile(const std::string& path, std::string_view token);
Status CheckTokenText(std::string_view token);  // As ReadTokenFile.

}  // namespace ag
