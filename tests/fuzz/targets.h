// What must hold whatever bytes come. Each function returns whether the bytes were taken. A promise
// that is broken ends the program, with a line on standard error that says which. Thread-safe.
#pragma once

#include <string_view>

namespace ag {

// Import: gives a graph whose bytes and origin are read back the same, or an error that is the
// model's, in one line of UTF-8.
bool FuzzImport(std::string_view bytes);

// The canonical decoder: what decodes encodes to the same bytes, and its digest is theirs.
bool FuzzGraph(std::string_view bytes);

// A plan in a model's metadata: what decodes encodes to the same bytes, and is checked against the
// graph of PlanSeed() and shown without a crash.
bool FuzzPlan(std::string_view bytes);

}  // namespace ag
