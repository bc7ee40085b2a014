// Texts of others (names of a model, what a damaged file says) in messages for people. Pure
// functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

// Returns the message on one line, in printable ASCII, shortened: a control byte would change the
// terminal, and a line end would make a second line.
std::string OneLine(std::string_view message);

// Returns the text with what would change a terminal as \xNN: control characters other than line
// ends and tabs, marks of direction, and bytes that are no UTF-8.
std::string Printable(std::string_view text);

// False: the text has control characters, line ends among them, or bytes that are no UTF-8.
bool IsPrintable(std::string_view text);

// kInvalidArgument "FIELD: a control character in '...'": IsPrintable is false.
Status CheckPrintable(std::string_view field, std::string_view text);

}  // namespace ag
