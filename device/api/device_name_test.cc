#include "device/api/device_name.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

using Kind = DeviceName::Kind;

TEST(DeviceName, Parses) {
  const struct {
    const char* text;
    DeviceName name;
  } kCases[] = {
      {"cpu", {.kind = Kind::kCpu}},
      {"cpu:2", {.kind = Kind::kCpu, .cores = 2}},
      {"cuda:0", {.kind = Kind::kCuda}},
      {"cuda:3", {.kind = Kind::kCuda, .ordinal = 3}},
      {"sim:h200", {.kind = Kind::kSim, .spec = "h200"}},
      {"sim:deploy/devices/cpu.spec", {.kind = Kind::kSim, .spec = "deploy/devices/cpu.spec"}},
  };
  for (const auto& c : kCases) {
    const StatusOr<DeviceName> name = ParseDeviceName(c.text);
    ASSERT_TRUE(name.ok()) << c.text;
    EXPECT_EQ(*name, c.name) << c.text;
    EXPECT_EQ(name->Text(), c.text);
  }
}

TEST(DeviceName, Refuses) {
  const std::string forms = ": expected one of cpu, cpu:<cores>, cuda:<ordinal>, sim:<spec>";
  const struct {
    const char* text;
    std::string message;
  } kCases[] = {
      {"gpu", "device \"gpu\"" + forms},
      {"", "device \"\"" + forms},
      {"sim:", "device \"sim:\"" + forms},
      {"cpu:0", "device \"cpu:0\": expected a number >= 1 after ':'"},
      {"cuda:x", "device \"cuda:x\": expected a number >= 0 after ':'"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Message(ParseDeviceName(c.text).status()), c.message);
  }
}

TEST(DeviceName, TellsFilesFromBuiltInNames) {
  EXPECT_TRUE(IsSpecFile("a/b"));
  EXPECT_TRUE(IsSpecFile("x.spec"));
  EXPECT_FALSE(IsSpecFile("h200"));
}

}  // namespace
}  // namespace ag
