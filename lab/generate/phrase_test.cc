// What is enumerated in each default world, and what the rule language says of its equations.
#include "lab/generate/phrase.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/digest.h"
#include "base/file.h"
#include "lab/generate/enumerate.h"

namespace ag::generate {
namespace {

constexpr World kFamily = {.name = "family",
                           .sizes = "A=2,3 B=3,4 C=4,2 D=3,5",
                           .leaves = "x:A,B y:A,B w:B,C v:B,D",
                           .ops = "matmul add relu concat split"};
constexpr World kAxes = {.name = "axes",
                         .sizes = "A=2,3 B=3,4 C=4,2",
                         .leaves = "x:A,B,C y:A,C",
                         .ops = "transpose reduce_sum softmax slice reshape"};

// The first operator that is made is that of the product of a join.
constexpr World kFirst = {.name = "first",
                          .sizes = "A=2,3 B=3,4 C=4,2 T=4,6",
                          .leaves = "t:T,B w:B,C x:A,B y:A,B",
                          .ops = "matmul concat split"};

// The counts and the digest of one world. The text behind the digest stands in the build folder in
// phrases_<world>.txt, to be compared with the text of a build before the change.
struct Said {
  const char* world;
  int ops_max;
  const char* summary;
};
const Said kSaid[] = {
    {"cube", 2, "1238 graphs, 904 classes, 178 equations, 2452 phrases, 0d6224cc79e9"},
    {"batch", 2, "609 graphs, 403 classes, 110 equations, 1572 phrases, 3b6c55cb5b76"},
    {"pointwise", 2, "884 graphs, 610 classes, 30 equations, 345 phrases, f46c9be855bb"},
    {"order", 2, "312 graphs, 157 classes, 45 equations, 655 phrases, 916e9d212bda"},
    {"matrix", 2, "2016 graphs, 1638 classes, 225 equations, 3226 phrases, 0b0b8e646882"},
    {"layout", 2, "474 graphs, 339 classes, 93 equations, 1264 phrases, c379802b93dd"},
    {"reduce", 2, "1614 graphs, 1272 classes, 204 equations, 4209 phrases, 6aafddb6c304"},
    {"conv", 2, "1678 graphs, 1456 classes, 130 equations, 2682 phrases, 0c15ae849fa7"},
    {"kernels", 2, "832 graphs, 737 classes, 159 equations, 3664 phrases, 7ad2e0378026"},
    {"groups", 2, "1990 graphs, 1902 classes, 196 equations, 2172 phrases, 17fe0d4a81bd"},
    {"pool", 2, "551 graphs, 500 classes, 97 equations, 1314 phrases, 58822f42b4ad"},
    {"family", 3, "3316 graphs, 2321 classes, 826 equations, 25100 phrases, 145e8b491354"},
    {"axes", 3, "1246 graphs, 671 classes, 573 equations, 13008 phrases, c4ff36cea13f"},
    {"first", 3, "1105 graphs, 609 classes, 406 equations, 7339 phrases, e761f5dab4af"},
};

World WorldNamed(std::string_view name) {
  for (const World& world : {kFamily, kAxes, kFirst}) {
    if (name == world.name) return world;
  }
  return *std::ranges::find(DefaultWorlds(), name, &World::name);
}

std::string SummaryOf(const World& world, int ops_max) {
  const StatusOr<Universe> universe = ReadWorld(world);
  if (!universe.ok()) return ToString(universe.status());
  const Enumeration found = Enumerate(*universe, {.ops_max = ops_max});
  std::string text;
  int phrases = 0;
  for (const Equation& equation : found.equations) {
    text += "\n";
    for (const bool forward : {false, true}) {
      const auto& source = forward ? equation.left : equation.right;
      const auto& target = forward ? equation.right : equation.left;
      for (const Wording& wording : Wordings()) {
        for (const Phrase& phrase : Say(*equation.table, source, target, wording)) {
          text += phrase.With(phrase.constraints) + (phrase.zeros ? " [zeros]\n" : "\n");
          ++phrases;
        }
      }
    }
  }
  const std::string file = fmt::format("{}/phrases_{}.txt", AG_BINARY_DIR, world.name);
  EXPECT_TRUE(WriteFileAtomically(file, text).ok());
  return fmt::format("{} graphs, {} classes, {} equations, {} phrases, {}", found.graphs,
                     found.classes, found.equations.size(), phrases, Sha256(text).Short());
}

TEST(Enumerate, ReportsEveryGraph) {
  const Universe universe = *ReadWorld(WorldNamed("pointwise"));
  int64_t reported = 0;
  int calls = 0;
  const auto progress = [&](int64_t more) {
    reported += more;
    ++calls;
  };
  const Enumeration found = Enumerate(universe, {.ops_max = 3, .progress = progress});
  EXPECT_GT(calls, 2);
  EXPECT_EQ(reported, found.graphs);
}

TEST(Phrases, OfEveryWorldAreTheSame) {
  for (const Said& said : kSaid) {
    EXPECT_EQ(SummaryOf(WorldNamed(said.world), said.ops_max), said.summary) << said.world;
  }
}

}  // namespace
}  // namespace ag::generate
