// Makes the contents of docs/plan.md and docs/device-spec.md again and compares.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/file.h"
#include "plan/format/plan_codec.h"
#include "plan/format/plan_format.h"
#include "plan/format/recording.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// Returns the text of the first block fenced with ``` after `heading`.
std::string BlockAfter(const std::string& page, const std::string& heading) {
  const size_t begin = page.find("\n```", page.find("\n" + heading + "\n"));
  const size_t first = page.find('\n', begin + 1) + 1;
  return page.substr(first, page.find("\n```", first) + 1 - first);
}

std::string Page(const std::string& name) {
  return *ReadFile(std::string(AG_SOURCE_DIR) + "/docs/" + name);
}

TEST(Docs, ThePlanOfTheExample) {
  const std::string page = Page("plan.md");
  const Graph graph = GraphOf(BlockAfter(page, "### The graph"));
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  RooflineTimes times(spec);
  const TimedGroups timed = *FormTimedGroups(graph, spec, {}, times);
  const auto streams =
      GreedyStreams(MakeScheduleProblem(graph, timed.groups, NsOf(timed.times), spec, {}, 2));
  const Plan plan = *CompletePlan(graph, timed.groups, streams, spec, {});
  std::string places;
  for (const Place& place : plan.places) {
    const char* kinds[] = {"arena", "input", "output"};
    places += fmt::format("{}:{} {:<9} -> {} {} offset {}\n", place.port.edge.node,
                          place.port.edge.output, LayoutName(place.port.layout),
                          kinds[static_cast<int>(place.kind)], place.index, place.offset_bytes);
  }
  EXPECT_EQ(BlockAfter(page, "### The plan"), FormatPlan(graph, plan));
  EXPECT_EQ(BlockAfter(page, "### The places"), places);
  std::string base64 = Base64(EncodePlan(plan));
  for (size_t i = 96; i < base64.size(); i += 97) base64.insert(i, "\n");
  EXPECT_EQ(BlockAfter(page, "### The bytes"), base64 + "\n");
}

TEST(Docs, TheSpecOfTheExample) {
  const std::string text = BlockAfter(Page("device-spec.md"), "## Example");
  const StatusOr<DeviceSpec> spec = ParseDeviceSpec(text);
  EXPECT_TRUE(spec.ok()) << ToString(spec.status());
}

TEST(Docs, TheRecordingOfTheExample) {
  const std::string text = BlockAfter(Page("recording.md"), "## Example");
  const StatusOr<Recording> recording = ParseRecording(text);
  ASSERT_TRUE(recording.ok()) << ToString(recording.status());
  EXPECT_EQ(recording->groups.size(), 2u);
  // The groups are as written, and the problems as a planner would extract them.
  EXPECT_NE(FormatRecording(*recording).find(text.substr(text.find("environment "))),
            std::string::npos);
}

}  // namespace
}  // namespace ag
