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

// One line: "searching  round 2  graphs 310  measured 8  best 1.07x".
std::string ProgressLine(const autograph::v1::Job& job);

// Draws progress on a terminal as one line that is redrawn, elsewhere as plain lines when the stage
// changes.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(const Context& context) : context_(context) {}
  ~ProgressPrinter() { Clear(); }
  void Show(const autograph::v1::Job& job);
  void ShowBytes(const std::string& what, int64_t done, int64_t total);
  void Clear();

 private:
  void Draw(const std::string& line, double fraction);
  const Context& context_;
  std::string last_stage_;
  bool drawn_ = false;
};

}  // namespace ag
