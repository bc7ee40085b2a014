// Texts of others (names of a model, what a damaged file says) in messages for people. Pure
// functions.
#pragma once

#include <string>
#include <string_view>

namespace ag {

// Returns the message on one line, in printable ASCII, shortened: a control byte would change the
// terminal, and a line end would make a second line.
std::string OneLine(std::string_view message);

}  // namespace ag
