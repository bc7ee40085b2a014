// Pages that speak of more than one room: docs/protocol.md names only what proto/ and the metrics
// have, no page names a flag that no program takes, docs/tour.md names files that exist with what
// is in them, and nothing cites a page that does not exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/v1/blobs.pb.h"
#include "autograph/v1/cache.pb.h"
#include "autograph/v1/error.pb.h"
#include "autograph/v1/optimizer.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/file.h"
#include "base/reason.h"
#include "base/text.h"

namespace ag {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FileDescriptor;
using Names = std::set<std::string>;

const std::string kRoot = AG_SOURCE_DIR;

Names Matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  Names names;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

// What proto/ calls things, as the page writes them.
struct Wire {
  Names fields;     // "request_id" and "OptimizeRequest.request_id".
  Names types;      // "OptimizeRequest", "Job.State", "Optimizer", "autograph.v1.Optimizer".
  Names methods;    // "Optimize" and "Optimizer.Optimize".
  Names constants;  // "QUEUED", and the codes of gRPC.
};

void AddEnum(const EnumDescriptor& type, Wire* wire) {
  for (int i = 0; i < type.value_count(); ++i) wire->constants.insert(type.value(i)->name());
}

void AddMessage(const Descriptor& type, Wire* wire) {
  wire->types.insert(type.name());
  for (int i = 0; i < type.field_count(); ++i) {
    wire->fields.insert(type.field(i)->name());
    wire->fields.insert(type.name() + "." + type.field(i)->name());
  }
  for (int i = 0; i < type.enum_type_count(); ++i) AddEnum(*type.enum_type(i), wire);
}

Wire RealWire() {
  namespace v1 = autograph::v1;
  Wire wire;
  wire.constants = {"INVALID_ARGUMENT",   "FAILED_PRECONDITION", "UNAVAILABLE",
                    "RESOURCE_EXHAUSTED", "NOT_FOUND",           "UNAUTHENTICATED",
                    "PERMISSION_DENIED"};
  wire.constants.insert(ReasonNames().begin(), ReasonNames().end());
  for (const FileDescriptor* file :
       {v1::Job::descriptor()->file(), v1::UploadRequest::descriptor()->file(),
        v1::CacheRecord::descriptor()->file(), v1::WorkerState::descriptor()->file(),
        v1::ErrorStatus::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) AddMessage(*file->message_type(i), &wire);
    for (int s = 0; s < file->service_count(); ++s) {
      const auto& service = *file->service(s);
      wire.types.insert(service.full_name());
      for (int m = 0; m < service.method_count(); ++m) {
        wire.methods.insert(service.method(m)->name());
        wire.methods.insert(service.name() + "." + service.method(m)->name());
      }
    }
  }
  return wire;
}

// Whether one name in `backticks` is of the wire; what is no name of the wire by its looks is.
bool IsTrue(const std::string& name, const Wire& wire) {
  if (name.starts_with("autograph.v1.")) return wire.types.contains(name);
  if (std::regex_match(name, std::regex("[A-Z][A-Z_]+"))) return wire.constants.contains(name);
  if (std::regex_match(name, std::regex("[A-Z][A-Za-z]+(\\.[A-Za-z_]+)?"))) {
    return wire.types.contains(name) || wire.methods.contains(name) || wire.fields.contains(name);
  }
  if (name.starts_with("autograph_")) return true;  // A metric.
  if (std::regex_match(name, std::regex("[a-z]+(_[a-z]+)*"))) return wire.fields.contains(name);
  return true;  // A path, a flag, a value.
}

TEST(Docs, TheProtocolNamesWhatProtoHas) {
  const std::string page = *ReadFile(kRoot + "/docs/protocol.md");
  const Wire wire = RealWire();
  for (const std::string& name : Matches(page, "`([^`\\n]+)`")) {
    EXPECT_TRUE(IsTrue(name, wire)) << name;
  }
  // In the exchange: field=, field{ and field[.
  Names shown;
  for (const std::string& line : Matches(page, "^    [WC]  ((?:\\S+ ?)+)")) {
    shown.merge(Matches(line, "\\b([a-z][a-z_]*)[={\\[]"));
  }
  EXPECT_GE(shown.size(), 10u);
  for (const std::string& field : shown) EXPECT_TRUE(wire.fields.contains(field)) << field;
}

TEST(Docs, TheProtocolHasEveryStateAndMetric) {
  const std::string page = *ReadFile(kRoot + "/docs/protocol.md");
  const Names quoted = Matches(page, "`([^`\\n]+)`");
  const EnumDescriptor& states = *autograph::v1::Job::State_descriptor();
  for (int i = 1; i < states.value_count(); ++i) {
    EXPECT_TRUE(quoted.contains(states.value(i)->name())) << states.value(i)->name();
  }
  EXPECT_EQ(Matches(page, "`(autograph_[a-z_]+)"),
            Matches(*ReadFile(kRoot + "/server/rpc/metrics.cc"), "\"(autograph_[a-z_]+)\""));
}

TEST(Docs, TheProtocolHasEveryReason) {
  const Names quoted = Matches(*ReadFile(kRoot + "/docs/protocol.md"), "`([^`\\n]+)`");
  for (const char* const reason : ReasonNames()) EXPECT_TRUE(quoted.contains(reason)) << reason;
}

// Flags of programs that are not ours, and of scripts, are not in backticks alone.
TEST(Docs, FlagsAreThoseOfThePrograms) {
  Names flags = {"--help"};  // The library adds it.
  for (const char* source :
       {"/client/cli/commands.cc", "/server/autographd_main.cc", "/worker/autograph_worker_main.cc",
        "/net/channel_flags.h", "/lab/commands.cc"}) {
    flags.merge(Matches(*ReadFile(kRoot + source), "\"(?:-[a-z],)?(--[a-z-]+)\""));
  }
  EXPECT_GE(flags.size(), 40u);
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/docs")) {
    if (entry.path().extension() != ".md") continue;
    for (const std::string& flag : Matches(*ReadFile(entry.path()), "`(--[a-z][a-z-]*)")) {
      EXPECT_TRUE(flags.contains(flag)) << entry.path().filename() << ": " << flag;
    }
  }
}

// The numbered stops of docs/tour.md; the lines below a number belong to its stop.
std::vector<std::string> TourStops(const std::string& page) {
  std::vector<std::string> stops;
  for (const std::string_view line : Split(page, '\n')) {
    if (!line.empty() && line[0] >= '0' && line[0] <= '9') stops.emplace_back();
    if (!stops.empty()) stops.back() += std::string(line) + "\n";
  }
  return stops;
}

TEST(Docs, TheTourNamesFilesThatExist) {
  const std::string page = *ReadFile(kRoot + "/docs/tour.md");
  const Names paths = Matches(page, "`([A-Za-z0-9_-]+/[A-Za-z0-9_./-]+\\.[a-z]+)`");
  EXPECT_GE(paths.size(), 20u);
  for (const std::string& path : paths) EXPECT_TRUE(FileExists(kRoot + "/" + path)) << path;
}

// "`ImportInSandbox` in `graph/onnx/sandbox/sandbox.h`": at least one in each stop, and the file
// has the word.
TEST(Docs, EachStopOfTheTourNamesWhatItsFileHas) {
  const std::regex named("`([A-Za-z_]+)`\\s+in\\s+`([^`\\n]+)`");
  const std::vector<std::string> stops = TourStops(*ReadFile(kRoot + "/docs/tour.md"));
  EXPECT_EQ(stops.size(), 10u);
  for (const std::string& stop : stops) {
    int count = 0;
    for (std::sregex_iterator it(stop.begin(), stop.end(), named), end; it != end; ++it) {
      const std::string word = (*it)[1], path = (*it)[2];
      const StatusOr<std::string> text = ReadFile(kRoot + "/" + path);
      ASSERT_TRUE(text.ok()) << path;
      EXPECT_TRUE(std::regex_search(*text, std::regex("\\b" + word + "\\b")))
          << path << " has no " << word;
      ++count;
    }
    EXPECT_GE(count, 1) << stop;
  }
}

// Folders that hold nothing of the tree: what is built, fetched or hidden.
bool IsOutside(const std::string& folder) {
  return (folder.starts_with(".") && folder != ".github") || folder.starts_with("build") ||
         folder == "out" || folder == "__pycache__";
}

// Pages, sources and scripts.
std::vector<std::filesystem::path> TextFiles() {
  const Names extensions = {"",     ".md",   ".cc",    ".h",     ".hpp",  ".c",
                            ".def", ".inc",  ".py",    ".sh",    ".toml", ".txt",
                            ".map", ".spec", ".proto", ".rules", ".cmake"};
  std::vector<std::filesystem::path> files;
  for (std::filesystem::recursive_directory_iterator it(kRoot), end; it != end; ++it) {
    const std::filesystem::path& path = it->path();
    if (it->is_directory()) {
      if (IsOutside(path.filename().string())) it.disable_recursion_pending();
    } else if (it->is_regular_file() && extensions.contains(path.extension().string())) {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Pages that a line names: a path with a folder everywhere; on a page also what is in backticks,
// and where links lead.
Names PagesCited(const std::string& line, bool on_page) {
  Names pages = Matches(line,
                        "(?:^|[^A-Za-z0-9_./$}-])"
                        "((?:\\.\\./)*(?:[A-Za-z0-9_-]+/)+[A-Za-z0-9_.-]+\\.md)\\b");
  if (on_page) {
    pages.merge(Matches(line, "`([A-Za-z0-9_./-]+\\.md)`"));
    pages.merge(Matches(line, "\\]\\(([A-Za-z0-9_./-]+\\.md)[)#]"));
  }
  return pages;
}

// A path is of the root, or of the folder of the file that names it.
TEST(Docs, PagesThatAreCitedExist) {
  int cited = 0;
  for (const std::filesystem::path& file : TextFiles()) {
    const StatusOr<std::string> text = ReadFile(file.string());
    ASSERT_TRUE(text.ok()) << file;
    for (const std::string_view line : Split(*text, '\n')) {
      if (line.find(".md") == std::string_view::npos) continue;
      for (const std::string& page : PagesCited(std::string(line), file.extension() == ".md")) {
        EXPECT_TRUE(FileExists(kRoot + "/" + page) ||
                    FileExists((file.parent_path() / page).string()))
            << file << " cites " << page;
        ++cited;
      }
    }
  }
  EXPECT_GE(cited, 100);
}

}  // namespace
}  // namespace ag
