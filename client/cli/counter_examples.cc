#include "client/cli/counter_examples.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/text.h"
#include "client/cli/job_text.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

// Calls `use` with each counter-example that has files, the rewrite it is of, and its folder.
template <class Use>
void ForEachExample(const v1::Job& job, const std::string& output, Use use) {
  int number = 0;
  for (const v1::WrongRewrite& wrong : job.result().wrong_rewrites()) {
    if (wrong.counter_example().files().empty()) continue;
    use(wrong, CounterExampleFolder(output, ++number));
  }
}

Status TakeFiles(Client& client, const v1::CounterExample& example, const std::string& folder) {
  for (const v1::NamedBlob& file : example.files()) {
    if (!StaysInside(file.name())) {
      return Err(StatusCode::kDataLoss, "counter-example: {} is no name of a file in a folder",
                 file.name());
    }
    const std::string path = folder + "/" + file.name();
    AG_TRY(MakeDirs(path.substr(0, path.rfind('/'))));
    AG_LET(const Digest digest, ParseDigest(file.digest()));
    AG_TRY(client.DownloadFile(digest, path));
  }
  return OkStatus();
}

}  // namespace

std::string CounterExampleFolder(const std::string& output, int number) {
  return output + ".counter-example" + (number == 1 ? "" : "-" + std::to_string(number));
}

bool StaysInside(const std::string& name) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '/';
  };
  if (!std::ranges::all_of(name, is_plain)) return false;
  const auto parts = Split(name, '/');
  return std::ranges::none_of(
      parts, [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

Status TakeCounterExamples(Client& client, const v1::Job& job, const std::string& output) {
  Status taken = OkStatus();
  ForEachExample(job, output, [&](const v1::WrongRewrite& wrong, const std::string& folder) {
    if (taken.ok()) taken = TakeFiles(client, wrong.counter_example(), folder);
  });
  return taken;
}

std::string CounterExampleRows(const v1::Job& job, const std::string& output) {
  std::string text;
  ForEachExample(job, output, [&](const v1::WrongRewrite& wrong, const std::string& folder) {
    text += "\n" + TableRow("to report",
                            fmt::format("{}/: shows what is wrong with {}; please send it", folder,
                                        wrong.rule().empty() ? "the clean-up" : wrong.rule()));
  });
  return text;
}

}  // namespace ag
