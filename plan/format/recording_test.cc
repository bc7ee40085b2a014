#include "plan/format/recording.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"
#include "plan/format/problem_text.h"
#include "plan/fusion/grouping.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

constexpr std::string_view kRecordedNetwork = R"(
input x f32[1,3,8,8]
input indices i64[2]
w0 = const f32[16,3,3,3] seed 1
b = const f32[16] seed 3
c = relu(conv(x, w0, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])
p, q = split(c) axis=1 sizes=[5,11]
m = reduce_mean(q) axes=[2,3] keepdims=0
half = const f32[] {0.5}
v = const f32[11,4] seed 4
output "y" = gather(mul(matmul(m, v), half), indices) axis=0
output "z" = softmax(p) axis=1
)";

std::vector<GroupProblem> RecordedProblems() {
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  const Graph graph = GraphOf(kRecordedNetwork);
  RooflineTimes times(spec);
  const std::vector<Group> groups = *FormGroups(graph, spec, {}, times);
  std::vector<GroupProblem> problems;
  for (const Group& group : groups) {
    if (group.pattern != kViewPattern) problems.push_back(ExtractGroup(graph, group, {}));
  }
  return problems;
}

TEST(ProblemText, ReadsBackToTheSameBytes) {
  const std::vector<GroupProblem> problems = RecordedProblems();
  EXPECT_GT(problems.size(), 4u);
  for (GroupProblem problem : problems) {
    problem.cores = 3;
    const std::string text = FormatGroupProblem(problem);
    EXPECT_TRUE(text.starts_with("pattern=")) << text;
    EXPECT_EQ(text.find("sha256:"), text.npos) << text;
    EXPECT_EQ(text.find('\n'), text.npos) << text;
    const auto again = ParseGroupProblem(text);
    ASSERT_TRUE(again.ok()) << text << "\n" << ToString(again.status());
    EXPECT_EQ(EncodeGroupProblem(*again), EncodeGroupProblem(problem)) << text;
  }
}

constexpr char kRelu[] =
    "pattern=chain precision=fp32 cores=0 in=plain out=plain "
    "graph=input x f32[4]; v1 = relu(x); output \"y\" = v1";

TEST(ProblemText, IsOneReadableLine) {
  EXPECT_EQ(FormatGroupProblem(ReluProblem(4)), kRelu);
  GroupProblem odd = ReluProblem(4);
  odd.graph = *ParseGraph("input \"a; b \\\" c\" f32[4]\noutput y = relu(\"a; b \\\" c\")");
  odd.pattern = "two words, 100%";
  const std::string text = FormatGroupProblem(odd);
  EXPECT_TRUE(text.starts_with("pattern=two%20words%2c%20100%25 ")) << text;
  EXPECT_EQ(EncodeGroupProblem(*ParseGroupProblem(text)), EncodeGroupProblem(odd));
}

TEST(ProblemText, AColdProblemSaysSo) {
  GroupProblem cold = ReluProblem(4);
  cold.cold_cache = true;
  std::string text = kRelu;
  text.insert(text.find(" in="), " cold_cache=1");
  EXPECT_EQ(FormatGroupProblem(cold), text);
  EXPECT_EQ(EncodeGroupProblem(*ParseGroupProblem(text)), EncodeGroupProblem(cold));
  text.replace(text.find("cache=1"), 7, "cache=0");
  EXPECT_EQ(Message(ParseGroupProblem(text).status()), "cold_cache: expected 1, got '0'");
}

TEST(ProblemText, WhatTextCannotSayIsWrittenAsBytes) {
  GroupProblem problem = ReluProblem(4);
  // A NaN with a payload: no number in text reads back to its bits.
  GraphBuilder builder;
  const TensorType type{DType::kFloat32, {1}};
  const std::string nan("\x01\x00\xc0\x7f", 4);
  const Edge x = builder.Input("x", type);
  const Edge c = builder.Constant(type, Sha256(nan), nan);
  const std::vector<Edge> operands = {x, c};
  builder.Output({*builder.Add(OpKind::kAdd, operands, {}), 0}, "y");
  problem.graph = *builder.Build();
  const std::string text = FormatGroupProblem(problem);
  EXPECT_TRUE(text.starts_with("problem=")) << text;
  EXPECT_EQ(EncodeGroupProblem(*ParseGroupProblem(text)), EncodeGroupProblem(problem));
}

RecordedGroup Recorded(int cores, double ns) {
  RecordedGroup group{.problem = ReluProblem(4), .environment = "device=x;policy=2"};
  group.problem.cores = cores;
  group.measurement = {.latency = {ns, ns - 1, ns + 0.5},
                       .samples = 15,
                       .discarded = 2,
                       .canary_ns = 1e5,
                       .kernel = "a b",
                       .alternatives = {{"c@1,d", 2 * ns}, {"e", 3 * ns}}};
  group.measured_unix_seconds = 1'763'800'000;
  return group;
}

std::string Line(const std::string& cores, const std::string& ns, const std::string& low,
                 const std::string& high, const std::string& others) {
  return fmt::format(
      "group ns={} low={} high={} samples=15 discarded=2 canary=1e+05 time=1763800000 "
      "kernel=a%20b others={} pattern=chain precision=fp32 cores={} in=plain out=plain "
      "graph=input x f32[4]; v1 = relu(x); output \"y\" = v1\n",
      ns, low, high, others, cores);
}

TEST(Recording, IsOrderedText) {
  Recording recording;
  recording.groups = {Recorded(2, 20), Recorded(1, 10.25)};
  recording.groups.push_back(Recorded(1, 10.25));
  recording.groups.back().environment = "a=1";
  recording.groups.back().measurement.simulated = true;
  const std::string text = FormatRecording(recording);
  std::string simulated = Line("1", "10.25", "9.25", "10.75", "c%401%2cd@20.5,e@30.75");
  simulated.insert(simulated.find(" kernel="), " simulated=1");
  EXPECT_EQ(text, "autograph-measurements 4\nenvironment a=1\n" + simulated +
                      "environment device=x;policy=2\n" +
                      Line("1", "10.25", "9.25", "10.75", "c%401%2cd@20.5,e@30.75") +
                      Line("2", "20", "19", "20.5", "c%401%2cd@40,e@60"));
  const auto again = ParseRecording(text);
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  EXPECT_EQ(FormatRecording(*again), text);
  EXPECT_FALSE(again->spec.has_value());
  EXPECT_EQ(again->groups[2].measurement.alternatives,
            recording.groups[0].measurement.alternatives);
  EXPECT_TRUE(again->groups[0].measurement.simulated);
}

// Two groups and their pair, in two environments; in the second one a group of the pair is missing.
Recording WithPairs() {
  Recording recording;
  for (const char* environment : {"a=1", "b=1"}) {
    for (const int cores : {1, 2}) {
      if (cores == 2 && environment[0] == 'b') continue;
      recording.groups.push_back(Recorded(cores, 10 * cores));
      recording.groups.back().environment = environment;
      recording.groups.back().measurement.active_cores = 3 * cores - 3;
    }
    const GroupProblem &one = recording.groups[0].problem, &two = recording.groups[1].problem;
    for (const PairProblem& pair :
         {PairProblem{{one, two}, {"a b", "k"}}, PairProblem{{one, one}, {"l", "k"}}}) {
      RecordedPair recorded{.problem = MakePair(pair), .environment = environment};
      recorded.measurement = {.latency = {25, 24, 26}, .samples = 9, .canary_ns = 1e5};
      recorded.measured_unix_seconds = 1'763'800'001;
      recording.pairs.push_back(recorded);
    }
  }
  return recording;
}

constexpr char kPairTimes[] =
    "pair ns=25 low=24 high=26 samples=9 discarded=0 canary=1e+05 time=1763800001 ";

TEST(Recording, PairsNameTheirGroups) {
  const std::string text = FormatRecording(WithPairs());
  std::string one = Line("1", "10", "9", "10.5", "c%401%2cd@20,e@30");
  std::string two = Line("2", "20", "19", "20.5", "c%401%2cd@40,e@60");
  two.insert(two.find(" kernel="), " active_cores=3");
  const std::string same = std::string(kPairTimes) + "groups=1,1 first=k second=l\n";
  EXPECT_EQ(text, "autograph-measurements 4\nenvironment a=1\n" + one + two + same + kPairTimes +
                      "groups=1,2 first=a%20b second=k\nenvironment b=1\n" + one + same);
  const auto again = ParseRecording(text);
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  EXPECT_EQ(FormatRecording(*again), text);
  ASSERT_EQ(again->pairs.size(), 3u);
  EXPECT_EQ(EncodePairProblem(again->pairs[1].problem),
            EncodePairProblem(WithPairs().pairs[0].problem));
  EXPECT_EQ(again->groups[1].measurement.active_cores, 3);
}

TEST(Recording, SaysWhatIsWrongWithAPair) {
  const std::string good = FormatRecording(WithPairs());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    return at == text.npos ? "no " + from : text.replace(at, from.size(), to);
  };
  const struct {
    std::string text, message;
  } kCases[] = {
      {with("groups=1,1", "groups=1"), "line 5: groups: expected two numbers from 1 to 2, got '1'"},
      {with("groups=1,2", "groups=1,3"),
       "line 6: groups: expected two numbers from 1 to 2, got '1,3'"},
      {with("groups=1,2", "groups=0,2"),
       "line 6: groups: expected two numbers from 1 to 2, got '0,2'"},
      {with("first=", "1st="), "line 5: expected first=, got '1st=k'"},
      {with("second=k", "second=k third=l"), "line 6: expected no more words, got 'third=l'"},
      {with("ns=25", "ns=0"), "line 5: measurement: a time of 0 ns"},
      {with("active_cores=3", "active_cores=-3"),
       "line 4: active_cores: expected 0 to 1000000, got '-3'"},
      {good + kPairTimes + "groups=1,1 first=l second=k\n", "line 10: the pair of line 9 again"},
      {std::string("autograph-measurements 4\n") + kPairTimes,
       "line 2: pair: no environment was said before"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(ParseRecording(c.text).status()),
              std::string("INVALID_ARGUMENT: ") + c.message)
        << c.text;
  }
}

TEST(Recording, HoldsTheSpecWithoutWhatOnlyASimulatedDeviceReads) {
  Recording recording;
  recording.spec = LoadSpec(AG_SOURCE_DIR, "small");
  recording.spec->extra = {{"drift", "0.1"}};
  const auto again =
      ParseRecording("autograph-measurements 4\n# note\n" + FormatRecording(recording).substr(25));
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  recording.spec->extra.clear();
  EXPECT_EQ(*again->spec, *recording.spec);
}

TEST(Recording, SaysWhatIsWrongAndWhere) {
  const std::string head = "autograph-measurements 4\nenvironment a=1\n";
  const std::string times =
      "group ns=2 low=1 high=3 samples=5 discarded=0 canary=9 time=7 kernel=k others= ";
  const std::string good = head + times + kRelu + "\n";
  ASSERT_TRUE(ParseRecording(good).ok()) << ToString(ParseRecording(good).status());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    return at == text.npos ? "no " + from : text.replace(at, from.size(), to);
  };
  const struct {
    std::string text, message;
  } kCases[] = {
      {"", "line 1: expected 'autograph-measurements 4', got ''"},
      {"autograph-measurements 3\n",
       "line 1: expected 'autograph-measurements 4', got 'autograph-measurements 3'"},
      {with("environment a=1", "environment"), "line 2: environment: expected a value"},
      {with("environment a=1", "#"), "line 3: group: no environment was said before"},
      {with("environment", "surroundings"),
       "line 2: expected spec, environment, group or pair, got 'surroundings'"},
      {good + times + kRelu, "line 4: the group of line 3 again"},
      {with("ns=2", "ns=x"), "line 3: ns: expected a number, got 'x'"},
      {with("ns=2", "ns=nan"), "line 3: measurement: a time of nan ns"},
      {with("ns=2", "ns=-2"), "line 3: measurement: a time of -2 ns"},
      {with("low=1", "low=2.5"), "line 3: measurement: median 2 ns outside [2.5, 3]"},
      {with("samples=5 ", ""), "line 3: expected samples=, got 'discarded=0'"},
      {with("samples=5", "samples=-5"), "line 3: samples: expected 0 to 1000000000, got '-5'"},
      {with("kernel=k", "kernel=%2"), "line 3: expected two digits after '%' in '%2'"},
      {with("others=", "others=k"), "line 3: others: expected kernel@nanoseconds, got 'k'"},
      {with("others=", "others=k@0"), "line 3: others: expected kernel@nanoseconds, got 'k@0'"},
      {with("cores=0", "cores=-1"), "line 3: cores: expected 0 to 1000000, got '-1'"},
      {with("in=plain", "in=round"),
       "line 3: layout: expected plain, blocked8, blocked16, channels_last or "
       "channels_last8, got 'round'"},
      {with("in=plain", "in=plain,plain"), "line 3: expected 1 and 1 layouts, got 2 and 1"},
      {with("in=plain", "in=blocked16"), "line 3: input 0 cannot have its layout"},
      {with("relu(x)", "rely(x)"),
       "line 3: graph: line 2:6: no operator is called 'rely'; did you mean 'relu'?"},
      {with("graph=", "grap="),
       "line 3: expected graph=, got 'grap=input x f32[4]; v1 = relu(x); outpu'"},
      {good.substr(0, good.size() - 9), "line 3: graph: line 3:7: expected a name"},
      {head + times + "problem=???", "line 3: problem: base64: 3 characters in no canonical form"},
      {good + "spec cores 0\n", "line 4: cores: expected a whole number from 1 to 1e+06, got '0'"},
      {good + "spec name x\n", "line 5: no dtypes is given"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(ParseRecording(c.text).status()),
              std::string("INVALID_ARGUMENT: ") + c.message)
        << c.text;
  }
}

TEST(Recording, AnyCutOrFlippedByteIsAnErrorOrAnother) {
  Recording recording;
  recording.spec = LoadSpec(AG_SOURCE_DIR, "small");
  for (const GroupProblem& problem : RecordedProblems()) {
    recording.groups.push_back(Recorded(0, 10));
    recording.groups.back().problem = problem;
  }
  const std::string text = FormatRecording(recording);
  int refused = 0;
  for (size_t i = 0; i < text.size(); i += 7) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x15);
    refused += ParseRecording(flipped).ok() ? 0 : 1;
    refused += ParseRecording(text.substr(0, i)).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace ag
