// The house rules that a machine can check (docs/design.md, CONTRIBUTING.md): arrows between rooms,
// which room may include which library, sizes of files and functions, a README in each folder, no
// leftovers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace ag {
namespace {

namespace fs = std::filesystem;

const fs::path kHouse = AG_SOURCE_DIR;

// Each room and the rooms to its left that it may include. Longest matching prefix wins.
const std::map<std::string, std::set<std::string>>& Arrows() {
  static const std::map<std::string, std::set<std::string>> arrows = {
      {"base", {}},
      {"graph", {"base"}},
      {"graph/onnx", {"base", "graph"}},
      {"rules", {"base", "graph"}},
      {"rules/generate", {"base", "graph", "rules"}},
      {"rules/taso", {"base", "graph", "rules", "gen"}},
      {"plan", {"base", "graph"}},
      {"search", {"base", "graph", "rules", "plan"}},
      {"device/api", {"base", "graph", "plan"}},
      {"device/profile", {"base", "graph", "plan", "device/api"}},
      {"device/cpu", {"base", "graph", "plan", "device/api"}},
      {"device/cuda/codegen", {"base", "graph", "plan"}},
      {"device/cuda/launch", {"base", "graph", "plan", "device/api", "device/cuda/codegen"}},
      {"device/cuda",
       {"base", "graph", "plan", "device/api", "device/cuda/codegen", "device/cuda/launch"}},
      {"device/sim", {"base", "graph", "plan", "device/api"}},
      {"device", {"base", "graph", "plan", "device/api", "device/cpu", "device/sim"}},
      {"device/conformance",
       {"base", "graph", "plan", "device/api", "device/cpu", "device/sim", "device/profile"}},
      {"server/store", {"base", "graph", "plan"}},
      {"server", {"base", "graph", "graph/onnx", "rules", "plan", "search", "server/store", "gen"}},
      {"worker",
       {"base", "graph", "plan", "device", "device/api", "device/profile", "runtime/timing",
        "gen"}},
      {"runtime",
       {"base", "graph", "graph/onnx", "rules", "plan", "device", "device/api", "device/profile"}},
      {"runtime/timing",
       {"base", "graph", "plan", "device/api", "device/cpu", "device/profile", "runtime"}},
      {"bench/zoo", {"base", "graph", "graph/onnx"}},
      {"client/cpp", {"base", "gen"}},
  };
  return arrows;
}

// A library's headers and the only rooms that may include them.
struct Library {
  std::string prefix;
  std::set<std::string> rooms;
};
const std::vector<Library>& Libraries() {
  static const std::vector<Library> libraries = {
      {"oneapi/dnnl", {"device/cpu"}},
      {"sqlite3.h", {"server/store"}},
      {"onnx/", {"graph/onnx"}},
      {"cuda", {"device/cuda"}},
      {"cudnn", {"device/cuda"}},
      {"cublas", {"device/cuda"}},
      {"nvrtc", {"device/cuda"}},
      {"nvml", {"device/cuda"}},
      {"CLI/", {"base", "client/cli", "server", "worker"}},
      {"seccomp.h", {"graph/onnx", "base", "server"}},
  };
  return libraries;
}

struct Source {
  std::string path;  // Relative to the root, with slashes.
  std::string room;
  std::vector<std::string> lines;
  bool is_test() const { return path.ends_with("_test.cc"); }
};

std::vector<std::string> ReadLines(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool IsSkipped(const std::string& top) {
  return top.empty() || top[0] == '.' || top.starts_with("build") || top == "out";
}

const std::vector<Source>& Sources() {
  static const std::vector<Source> sources = [] {
    std::vector<Source> found;
    for (const auto& top : fs::directory_iterator(kHouse)) {
      if (!top.is_directory() || IsSkipped(top.path().filename().string())) continue;
      for (const auto& entry : fs::recursive_directory_iterator(top.path())) {
        const std::string extension = entry.path().extension().string();
        if (extension != ".cc" && extension != ".h" && extension != ".def" && extension != ".cu") {
          continue;
        }
        Source source;
        source.path = fs::relative(entry.path(), kHouse).generic_string();
        source.room = fs::path(source.path).parent_path().generic_string();
        source.lines = ReadLines(entry.path());
        found.push_back(std::move(source));
      }
    }
    std::sort(found.begin(), found.end(),
              [](const Source& a, const Source& b) { return a.path < b.path; });
    return found;
  }();
  return sources;
}

std::string RoomOfInclude(const std::string& include) {
  std::string room = fs::path(include).parent_path().generic_string();
  return room == "autograph/v1" ? "gen" : room;
}

TEST(House, ArrowsPointLeft) {
  const std::regex include_line("^\\s*#\\s*include\\s+\"([^\"]+/[^\"]+)\"");
  for (const Source& source : Sources()) {
    const auto arrows = Arrows().find(source.room);
    if (arrows == Arrows().end() || source.is_test()) continue;
    for (const std::string& line : source.lines) {
      std::smatch match;
      if (!std::regex_search(line, match, include_line)) continue;
      const std::string room = RoomOfInclude(match[1]);
      const bool ours = room == "gen" || fs::exists(kHouse / room);
      if (!ours || room == source.room) continue;
      EXPECT_TRUE(arrows->second.contains(room)) << source.path << " includes " << match[1];
    }
  }
}

TEST(House, LibrariesStayInTheirRooms) {
  const std::regex include_line("^\\s*#\\s*include\\s+[<\"]([^>\"]+)[>\"]");
  for (const Source& source : Sources()) {
    for (const std::string& line : source.lines) {
      std::smatch match;
      if (!std::regex_search(line, match, include_line)) continue;
      for (const Library& library : Libraries()) {
        if (!match[1].str().starts_with(library.prefix)) continue;
        EXPECT_TRUE(library.rooms.contains(source.room)) << source.path << " includes " << match[1];
      }
    }
  }
}

TEST(House, GeneratedHeadersOnlyAtTheWire) {
  for (const Source& source : Sources()) {
    const std::string name = fs::path(source.path).filename().string();
    const bool wire = name.find("_wire") != std::string::npos ||
                      name.find("rpc") != std::string::npos || source.path.starts_with("client/") ||
                      name.ends_with("_main.cc");
    if (wire || source.is_test()) continue;
    for (const std::string& line : source.lines) {
      EXPECT_FALSE(line.starts_with("#include") && line.find(".pb.h") != std::string::npos)
          << source.path << ": " << line;
    }
  }
}

TEST(House, FilesAndFunctionsAreSmall) {
  constexpr size_t kFileLinesMax = 1000;
  constexpr size_t kFunctionLinesMax = 70;
  const std::regex not_a_function(
      "^(namespace|class|struct|enum|union|extern|typedef|#|//|\\}|TEST)");
  for (const Source& source : Sources()) {
    EXPECT_LE(source.lines.size(), kFileLinesMax) << source.path;
    size_t begin = 0;
    bool open = false;
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const std::string& line = source.lines[i];
      if (!open && !line.empty() && line[0] != ' ' && line.ends_with("{") &&
          !std::regex_search(line, not_a_function)) {
        open = true;
        begin = i;
      } else if (open && !line.empty() && line[0] == '}') {
        open = false;
        if (source.is_test() || !line.starts_with("}") || line == "};") continue;
        EXPECT_LE(i - begin + 1, kFunctionLinesMax) << source.path << ":" << begin + 1;
      }
    }
  }
}

TEST(House, LinesFitAndLeaveNothingBehind) {
  const std::regex todo("\\b(TODO|FIXME|XXX|HACK)\\b(?! ?\\(#[0-9]+\\))");
  for (const Source& source : Sources()) {
    if (source.path == "tests/house_test.cc") continue;
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const std::string where = source.path + ":" + std::to_string(i + 1);
      // Tables have one case a line, however long.
      if (!source.path.ends_with(".def") && !source.path.ends_with("_cases.cc")) {
        EXPECT_LE(source.lines[i].size(), 100u) << where;
      }
      EXPECT_FALSE(std::regex_search(source.lines[i], todo)) << where;
      const size_t import = source.lines[i].find("using namespace ");
      EXPECT_TRUE(import == std::string::npos ||
                  source.lines[i].find("_literals", import) != std::string::npos)
          << where;
    }
  }
}

TEST(House, EveryFolderHasAReadme) {
  std::set<std::string> folders;
  for (const Source& source : Sources()) folders.insert(source.room);
  for (const std::string& folder : folders) {
    EXPECT_TRUE(fs::exists(kHouse / folder / "README.md")) << folder;
  }
}

TEST(House, DocsNameOnlyFilesThatExist) {
  const std::regex link("`([a-z_]+/[a-z_/]+\\.(h|cc|md|proto|rules|spec|sh|def))`");
  for (const auto& entry : fs::recursive_directory_iterator(kHouse / "docs")) {
    if (entry.path().extension() != ".md") continue;
    for (const std::string& line : ReadLines(entry.path())) {
      for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
        EXPECT_TRUE(fs::exists(kHouse / (*it)[1].str()))
            << entry.path().filename() << " names " << (*it)[1];
      }
    }
  }
}

}  // namespace
}  // namespace ag
