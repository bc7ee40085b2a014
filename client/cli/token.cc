#include <unistd.h>

#include <nlohmann/json.hpp>

#include "client/cli/verbs.h"
#include "net/tokens.h"

namespace ag {

StatusOr<int> RunToken(Context& context, const TokenFlags& flags) {
  AG_TRY(CheckTokenName(flags.name));
  AG_LET(const RoleSet roles, ParseRoles(flags.roles));
  const std::string token = NewToken();
  if (!flags.output.empty()) AG_TRY(WriteTokenFile(flags.output, token));
  TokenRow row = {flags.name, roles, Sha256(token)};
  if (flags.quota >= 0) row.device_seconds = flags.quota;
  if (const Status added = AddToken(flags.tokens, row); !added.ok()) {
    if (!flags.output.empty()) ::unlink(flags.output.c_str());
    return added;
  }
  context.Note(fmt::format("{}: {} may {}", flags.tokens, flags.name, ToText(roles, " and ")));
  if (context.flags().json) {
    nlohmann::ordered_json shown = {{"name", flags.name}, {"roles", ToText(roles)}};
    shown[flags.output.empty() ? "token" : "file"] = flags.output.empty() ? token : flags.output;
    context.Print(shown.dump(2));
  } else {
    context.Print(flags.output.empty() ? token : flags.output);
  }
  return kExitOk;
}

}  // namespace ag
