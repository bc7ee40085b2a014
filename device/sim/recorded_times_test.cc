#include "device/sim/recorded_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/file.h"
#include "device/profile/profile.h"
#include "device/sim/sim_device.h"
#include "graph/text_form.h"
#include "plan/fusion/grouping.h"

namespace ag {
namespace {

constexpr std::string_view kPatterns = R"(
dtypes f32,bool,i64
cores 4
streams_max 4
event_ns 100
pattern conv = Conv [Relu] layouts plain
pattern dense = MatMul [Add] [Relu] layouts plain
pattern chain = {elementwise}+ max 16 layouts any
pattern other = Softmax|LayerNorm|BatchNorm|{movement}|{reduction}|{pooling} layouts plain
)";

// The machine itself, and a wrong description of it.
std::string Truth() {
  return std::string(kPatterns) +
         "name truth\nflops_per_second 3e9\nbytes_per_second 4e9\nlaunch_ns 5000\n";
}
std::string Guess() {
  return std::string(kPatterns) +
         "name guess\nflops_per_second 1e10\nbytes_per_second 1e10\nlaunch_ns 1000\n";
}

// Groups of four kinds and many sizes.
std::vector<GroupProblem> Problems(const DeviceSpec& spec) {
  std::vector<GroupProblem> problems;
  std::set<std::string> seen;
  for (const int n : {4, 8, 12, 16, 24, 32, 48, 64}) {
    for (const int m : {8, 20, 40}) {
      const std::string text = fmt::format(
          "input x f32[{0},{1}]\ninput i f32[1,{0},{1},{1}]\nw = const f32[{1},{0}] seed 1\n"
          "k = const f32[{1},{0},3,3] seed 2\nc = const f32[{1}] seed 3\n"
          "output a = softmax(relu(matmul(x, w))) axis=1\n"
          "output b = tanh(conv(i, k, c) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n",
          n, m);
      const Graph graph = *ParseGraph(text);
      RooflineTimes times(spec);
      const std::vector<Group> groups = *FormGroups(graph, spec, {}, times);
      for (const Group& group : groups) {
        GroupProblem problem = ExtractGroup(graph, group, {});
        if (seen.insert(EncodeGroupProblem(problem)).second) problems.push_back(std::move(problem));
      }
    }
  }
  return problems;
}

// Returns `device`'s times of the problems, as its worker would measure them.
std::vector<RecordedGroup> Record(Device& device, const std::vector<GroupProblem>& problems) {
  std::vector<RecordedGroup> groups;
  for (const GroupProblem& problem : problems) {
    const auto measured = ProfileGroup(device, problem, {}, RealClock());
    EXPECT_TRUE(measured.ok()) << ToString(measured.status());
    groups.push_back({problem, device.environment(), *measured, 7});
  }
  return groups;
}

double TimeOf(Device& device, const GroupProblem& problem, const std::string& kernel) {
  Plan plan = SingleGroupPlan(problem);
  plan.groups[0].kernel = kernel;
  const auto built = device.Build({problem.graph, plan, SyntheticWeights()});
  EXPECT_TRUE(built.ok()) << ToString(built.status());
  return built.ok() ? *(*built)->Time({}) : 0;
}

struct Recorded {
  std::vector<RecordedGroup> known, held_out;
  Recording recording;  // Of the known groups, with the guessed spec.
};

Recorded TakeRecording() {
  const auto truth = *OpenSimDevice(Truth());
  Recorded recorded;
  int number = 0;
  for (const RecordedGroup& group : Record(*truth, Problems(truth->spec()))) {
    (number++ % 3 == 0 ? recorded.held_out : recorded.known).push_back(group);
  }
  recorded.recording.spec = *ParseDeviceSpec(Guess());
  recorded.recording.groups = recorded.known;
  return recorded;
}

TEST(RecordedTimes, RecordedGroupsTakeTheirRecordedTimes) {
  const Recorded recorded = TakeRecording();
  const auto device = *OpenSimDevice(FormatRecording(recorded.recording));
  EXPECT_TRUE(device->simulated());
  EXPECT_EQ(device->spec(), *ParseDeviceSpec(Guess()));
  EXPECT_TRUE(device->environment().starts_with("device=sim:guess;policy=2;recording="));
  for (const RecordedGroup& group : recorded.known) {
    const Measurement& m = group.measurement;
    EXPECT_EQ(*device->Kernels(group.problem),
              (std::vector<std::string>{m.kernel, m.alternatives[0].first}));
    EXPECT_EQ(TimeOf(*device, group.problem, m.kernel), m.latency.median_ns);
    EXPECT_EQ(TimeOf(*device, group.problem, ""), m.latency.median_ns);
    EXPECT_EQ(TimeOf(*device, group.problem, m.alternatives[0].first), m.alternatives[0].second);
  }
  const auto measured = ProfileGroup(*device, recorded.known[0].problem, {}, RealClock());
  EXPECT_EQ(measured->kernel, recorded.known[0].measurement.kernel);
  EXPECT_TRUE(measured->simulated);
}

TEST(RecordedTimes, OtherGroupsAreEstimatedAndSaySo) {
  const Recorded recorded = TakeRecording();
  const auto device = *OpenSimDevice(FormatRecording(recorded.recording));
  for (const RecordedGroup& group : recorded.held_out) {
    EXPECT_EQ(*device->Kernels(group.problem), std::vector<std::string>{"estimated"});
  }
  const GroupProblem& problem = recorded.held_out[0].problem;
  EXPECT_EQ(ProfileGroup(*device, problem, {}, RealClock())->kernel, kEstimatedKernel);
  Plan plan = SingleGroupPlan(problem);
  plan.groups[0].kernel = "sim_a";
  EXPECT_EQ(ToString(device->Build({problem.graph, plan, SyntheticWeights()}).status()),
            "INVALID_ARGUMENT: guess: no kernel sim_a");
}

// A cold problem is another entry: the record of a warm one does not answer it.
TEST(RecordedTimes, ColdGroupsAreRecordedByThemselves) {
  Recorded recorded = TakeRecording();
  RecordedGroup cold = recorded.known[0];
  cold.problem.cold_cache = true;
  cold.measurement.latency = {9e6, 9e6, 9e6};
  cold.measurement.kernel = "cold_one";
  cold.measurement.alternatives.clear();
  recorded.recording.groups.push_back(cold);
  const auto device = *OpenSimDevice(FormatRecording(recorded.recording));
  EXPECT_EQ(*device->Kernels(cold.problem), std::vector<std::string>{"cold_one"});
  EXPECT_EQ(device->Kernels(recorded.known[0].problem)->size(), 2u);
  const auto measured = ProfileGroup(*device, cold.problem, {}, RealClock());
  EXPECT_EQ(measured->latency.median_ns, 9e6);
  // Its kernel was not recorded warm: an estimate. A kernel with no record at all is an error.
  EXPECT_NE(TimeOf(*device, cold.problem, "cold_one"), 9e6);
  EXPECT_GT(TimeOf(*device, cold.problem, "cold_one"), 0);
  Plan plan = SingleGroupPlan(cold.problem);
  plan.groups[0].kernel = recorded.known[0].measurement.kernel;
  EXPECT_EQ(ToString(device->Build({cold.problem.graph, plan, SyntheticWeights()}).status()),
            "INVALID_ARGUMENT: guess: no kernel " + plan.groups[0].kernel);
  GroupProblem other = recorded.known[1].problem;
  other.cold_cache = true;
  EXPECT_EQ(*device->Kernels(other), std::vector<std::string>{"estimated"});
  EXPECT_EQ(ProfileGroup(*device, other, {}, RealClock())->kernel, kEstimatedKernel);
}

// Returns the device's error on groups without a record: the mean |log2(said / measured)|.
double Off(Device& device, const std::vector<RecordedGroup>& groups) {
  double sum = 0;
  for (const RecordedGroup& group : groups) {
    sum += std::abs(
        std::log2(TimeOf(device, group.problem, "") / group.measurement.latency.median_ns));
  }
  return sum / static_cast<double>(groups.size());
}

TEST(RecordedTimes, PredictsHeldOutGroupsBetterThanTheSpec) {
  Recorded recorded = TakeRecording();
  const auto guess = *OpenSimDevice(Guess());
  const auto calibrated = *OpenSimDevice(FormatRecording(recorded.recording));
  const double before = Off(*guess, recorded.held_out);
  const double after = Off(*calibrated, recorded.held_out);
  EXPECT_GT(before, 1.0);
  EXPECT_LT(after, 0.25);
  // One measurement in five is ten times too long; medians ignore it.
  for (size_t i = 0; i < recorded.known.size(); i += 5) {
    Measurement& m = recorded.recording.groups[i].measurement;
    m.latency = {10 * m.latency.median_ns, 10 * m.latency.low_ns, 10 * m.latency.high_ns};
    m.alternatives.clear();
  }
  const auto robust = *OpenSimDevice(FormatRecording(recorded.recording));
  EXPECT_LT(Off(*robust, recorded.held_out), 0.5);
}

TEST(RecordedTimes, ASpecNamesItsRecording) {
  const TempDir folder = *TempDir::Make("recorded-times-test");
  const Recorded recorded = TakeRecording();
  const std::string path = folder.path() + "/r.recording";
  ASSERT_TRUE(WriteFileAtomically(path, FormatRecording(recorded.recording)).ok());
  const std::string spec = Guess() + "recording r.recording\n";
  const auto device = *OpenSimDevice(spec, folder.path());
  const RecordedGroup& group = recorded.known[0];
  EXPECT_EQ(TimeOf(*device, group.problem, ""), group.measurement.latency.median_ns);
  EXPECT_NE(device->environment(), (*OpenSimDevice(Guess()))->environment());
  ASSERT_TRUE(WriteFileAtomically(path, "autograph-measurements 4\ngroup\n").ok());
  EXPECT_EQ(ToString(OpenSimDevice(spec, folder.path()).status()),
            "INVALID_ARGUMENT: " + folder.path() +
                "/r.recording: line 2: group: no environment was said before");
  EXPECT_EQ(ToString(OpenSimDevice(Guess() + "recording none\n", folder.path()).status()),
            "NOT_FOUND: read " + folder.path() + "/none: No such file or directory");
}

// Pairs and active cores of a recording: the simulated device shares its cores as the recorded one
// did.
TEST(RecordedTimes, PairsSayHowGroupsShareTheDevice) {
  const std::string gpu = Truth() + "block_outputs 1024\n";
  const auto truth = *OpenSimDevice(gpu + "overlap 0.6\n");
  std::vector<GroupProblem> problems = Problems(truth->spec());
  problems.resize(6);
  Recording recording;
  recording.spec = truth->spec();
  recording.groups = Record(*truth, problems);
  for (size_t i = 0; i + 1 < problems.size(); ++i) {
    RecordedPair pair{.environment = truth->environment()};
    for (size_t k = 0; k < 2; ++k) {
      pair.problem.groups[k] = problems[i + k];
      pair.problem.kernels[k] = recording.groups[i + k].measurement.kernel;
    }
    pair.problem = MakePair(std::move(pair.problem));
    const auto measured = ProfilePair(*truth, pair.problem, {}, RealClock());
    ASSERT_EQ(ToString(measured.status()), "OK");
    EXPECT_TRUE(measured->simulated);
    pair.measurement = *measured;
    recording.pairs.push_back(std::move(pair));
  }
  const auto times = sim::RecordedTimes::Of(recording, *recording.spec);
  ASSERT_EQ(ToString(times.status()), "OK");
  EXPECT_DOUBLE_EQ(times->overlap(), 0.6);
  // The recording lacks the spec line, but has its effect.
  const auto device = *OpenSimDevice(FormatRecording(recording));
  for (const RecordedPair& pair : recording.pairs) {
    const auto measured = ProfilePair(*device, pair.problem, {}, RealClock());
    EXPECT_NEAR(measured->latency.median_ns, pair.measurement.latency.median_ns, 2);
  }
  // Pairs of kernels without a record do not count.
  for (RecordedPair& pair : recording.pairs) pair.problem.kernels[0] = "other";
  EXPECT_EQ(sim::RecordedTimes::Of(recording, *recording.spec)->overlap(), 1);
}

TEST(RecordedTimes, ActiveCoresAreThoseOfTheFastestKernel) {
  Recorded recorded = TakeRecording();
  RecordedGroup& group = recorded.recording.groups[0];
  group.measurement.active_cores = 3;
  const auto device = *OpenSimDevice(FormatRecording(recorded.recording));
  const Measurement& m = group.measurement;
  for (const auto& [kernel, busy] : {std::pair(m.kernel, 3), std::pair(std::string(), 3),
                                     std::pair(m.alternatives[0].first, 0)}) {
    Plan plan = SingleGroupPlan(group.problem);
    plan.groups[0].kernel = kernel;
    const auto built = *device->Build({group.problem.graph, plan, SyntheticWeights()});
    EXPECT_EQ(built->active_cores(0), busy) << kernel;
  }
  EXPECT_EQ(ProfileGroup(*device, group.problem, {}, RealClock())->active_cores, 3);
  group.measurement.active_cores = 5;
  EXPECT_EQ(ToString(OpenSimDevice(FormatRecording(recorded.recording)).status()),
            "INVALID_ARGUMENT: recording: 5 active cores, guess has 4");
}

TEST(RecordedTimes, RefusesWhatItCannotAnswerFrom) {
  Recording recording;
  const DeviceSpec guess = *ParseDeviceSpec(Guess());
  EXPECT_EQ(ToString(sim::RecordedTimes::Of(recording, guess).status()),
            "INVALID_ARGUMENT: recording: it has no group");
  const auto truth = *OpenSimDevice(Truth());
  std::vector<GroupProblem> problems = Problems(truth->spec());
  problems.resize(2);
  recording.groups = Record(*truth, problems);
  EXPECT_EQ(ToString(OpenSimDevice(FormatRecording(recording)).status()),
            "INVALID_ARGUMENT: the recording has no spec; name it in a spec file by a line "
            "\"recording FILE\"");
  recording.groups[1].environment = "b=1";
  EXPECT_EQ(ToString(sim::RecordedTimes::Of(recording, guess).status()),
            "INVALID_ARGUMENT: recording: expected one environment, got \"" +
                recording.groups[0].environment + "\" and \"b=1\"");
  recording.groups[1].environment = recording.groups[0].environment;
  for (RecordedGroup& group : recording.groups) group.problem.pattern = "else";
  EXPECT_EQ(ToString(sim::RecordedTimes::Of(recording, guess).status()),
            "INVALID_ARGUMENT: recording: none of its 2 groups is of a pattern of guess");
}

}  // namespace
}  // namespace ag
