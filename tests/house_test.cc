// The house rules that a machine can check (docs/design.md, CONTRIBUTING.md): arrows between rooms,
// which room may include which library, sizes of files and functions, a README in each folder, no
// leftovers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace ag {
namespace {

namespace fs = std::filesystem;

const fs::path kHouse = AG_SOURCE_DIR;

std::vector<std::string> ReadLines(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The rooms that a room's sources include, and its tests besides.
struct Arrows {
  std::set<std::string> sources, tests;
};

std::set<std::string> WordsOf(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// The arrows as CMake has them (cmake/room.cmake), by room or, of a program of bench, by file.
const std::map<std::string, Arrows>& AllArrows() {
  static const std::map<std::string, Arrows> all = [] {
    std::map<std::string, Arrows> found;
    for (const std::string& line : ReadLines(fs::path(AG_BINARY_DIR) / "rooms.txt")) {
      const size_t colon = line.find(": "), bar = line.find(" | ");
      Arrows& arrows = found[line.substr(0, colon)];
      arrows.sources.merge(WordsOf(line.substr(colon + 1, bar - colon - 1)));
      arrows.tests.merge(WordsOf(line.substr(bar + 3)));
    }
    return found;
  }();
  return all;
}

// A library's headers and the only rooms that may include them.
struct Library {
  std::string prefix;
  std::set<std::string> rooms;
};
const std::vector<Library>& Libraries() {
  static const std::vector<Library> libraries = {
      {"oneapi/dnnl", {"device/cpu"}},
      {"sqlite3.h", {"server/store", "server/store/testing"}},
      {"onnx/", {"graph/onnx", "graph/onnx/testing"}},
      {"cuda", {"device/cuda"}},
      {"cudnn", {"device/cuda"}},
      {"cublas", {"device/cuda"}},
      {"nvrtc", {"device/cuda"}},
      {"nvml", {"device/cuda"}},
      {"re2/", {"graph/onnx/operators"}},
      {"CLI/", {"base", "client/cli", "lab", "net", "server", "worker"}},
      {"seccomp.h", {"graph/onnx/sandbox", "base", "server/pipeline"}},
  };
  return libraries;
}

struct Source {
  std::string path;  // Relative to the root, with slashes.
  std::string room;
  std::vector<std::string> lines;
  bool is_test() const { return path.ends_with("_test.cc"); }
};

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
  return room == "autograph/v1" ? "proto" : room;
}

// The rooms of ours that the source includes, without its own.
std::set<std::string> IncludedRooms(const Source& source) {
  static const std::regex include_line("^\\s*#\\s*include\\s+\"([^\"]+/[^\"]+)\"");
  std::set<std::string> rooms;
  for (const std::string& line : source.lines) {
    std::smatch match;
    if (!std::regex_search(line, match, include_line)) continue;
    const std::string room = RoomOfInclude(match[1]);
    if (room != source.room && (room == "proto" || fs::exists(kHouse / room))) rooms.insert(room);
  }
  return rooms;
}

// The name under which CMake has the source's arrows.
std::string ArrowsName(const Source& source) {
  return AllArrows().contains(source.room) ? source.room : source.path;
}

TEST(House, RoomsIncludeWhatTheBuildSays) {
  std::map<std::string, Arrows> found;
  for (const Source& source : Sources()) {
    Arrows& arrows = found[ArrowsName(source)];
    (source.is_test() ? arrows.tests : arrows.sources).merge(IncludedRooms(source));
  }
  for (auto& [name, arrows] : found) {
    for (const std::string& room : arrows.sources) arrows.tests.erase(room);
    const auto built = AllArrows().find(name);
    if (built == AllArrows().end()) {  // A folder of data, or programs without a room.
      EXPECT_TRUE(arrows.sources.empty() && arrows.tests.empty()) << name << " is no room";
      continue;
    }
    EXPECT_EQ(built->second.sources, arrows.sources) << name << ", ROOMS in CMakeLists.txt";
    EXPECT_EQ(built->second.tests, arrows.tests) << name << ", TESTS in CMakeLists.txt";
  }
}

// Removes rooms that include nothing that is left, until nothing changes.
TEST(House, RoomsFormNoCycle) {
  std::map<std::string, std::set<std::string>> left;
  for (const auto& [name, arrows] : AllArrows()) left[name] = arrows.sources;
  ASSERT_GT(left.size(), 20u);
  for (bool changed = true; changed;) {
    changed = std::erase_if(left, [&](const auto& entry) {
                return std::ranges::none_of(entry.second,
                                            [&](const auto& room) { return left.contains(room); });
              }) > 0;
  }
  for (const auto& [name, rooms] : left) ADD_FAILURE() << name << " is on a cycle";
}

// Test support is a room of its own, <room>/testing, and no part of what is installed.
TEST(House, TestSupportStaysInTests) {
  for (const auto& [name, arrows] : AllArrows()) {
    if (name.ends_with("testing") || name.starts_with("tests") || name == "device/conformance" ||
        name.starts_with("bench/")) {
      continue;
    }
    for (const std::string& room : arrows.sources) {
      EXPECT_FALSE(room.ends_with("/testing")) << name << " includes " << room;
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
                      source.room.starts_with("server") || name.ends_with("_main.cc");
    if (wire || source.is_test()) continue;
    for (const std::string& line : source.lines) {
      EXPECT_FALSE(line.starts_with("#include") && line.find(".pb.h") != std::string::npos)
          << source.path << ": " << line;
    }
  }
}

TEST(House, FilesAreSmall) {
  constexpr size_t kFileLinesMax = 1000;
  for (const Source& source : Sources()) {
    EXPECT_LE(source.lines.size(), kFileLinesMax) << source.path;
  }
}

// Runs a command and returns what it prints.
std::string OutputOf(const std::string& command) {
  std::string text;
  std::array<char, 4096> piece;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  while (const size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), size);
  }
  pclose(pipe);
  return text;
}

// As the parser of universal-ctags reads them: also functions inside classes.
TEST(House, FunctionsAreSmall) {
  constexpr int kFunctionLinesMax = 70;
  const fs::path list = fs::path(AG_BINARY_DIR) / "house_test_sources";
  std::ofstream names(list);
  for (const Source& source : Sources()) {
    if (!source.is_test() && !source.path.ends_with(".def")) {
      names << (kHouse / source.path).string() << "\n";
    }
  }
  names.close();
  const std::string tags = OutputOf(
      "ctags --languages=C++ --langmap=C++:+.cu --kinds-C++=f --fields=ne --sort=no -f - -L " +
      list.string());
  const std::regex tag("^([^\t]+)\t([^\t]+)\t.*\tline:([0-9]+)\tend:([0-9]+)");
  int functions = 0;
  std::istringstream in(tags);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, tag)) continue;
    ++functions;
    EXPECT_LE(std::stoi(match[4]) - std::stoi(match[3]) + 1, kFunctionLinesMax)
        << match[2] << ":" << match[3] << " " << match[1];
  }
  EXPECT_GT(functions, 3000) << "is universal-ctags installed (scripts/install.sh)?";
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
