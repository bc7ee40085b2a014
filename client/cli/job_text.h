// Jobs and results for people and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "autograph/v1/optimizer.pb.h"
#include "client/cli/context.h"

namespace ag {

// The object that `optimize --json` and `jobs show --json` print (docs/cli.md lists the fields).
nlohmann::ordered_json JobJson(const autograph::v1::Job& job);

// One sentence that says what was gained, for who reads nothing else.
std::string Headline(const autograph::v1::Job& job);

// The headline and the result table.
std::string ResultTable(const autograph::v1::Job& job);

// A row as the table's, without the line's end.
std::string TableRow(const char* name, const std::string& value);

std::string StateText(autograph::v1::Job::State state);  // "searching"

}  // namespace ag
