#include "plan/spec/kernel_family.h"

#include <gtest/gtest.h>

#include "plan/spec/device_spec.h"

namespace ag {
namespace {

TEST(KernelFamily, ReadsWhatItWrites) {
  const std::string_view texts[] = {
      "winograd_tiles = conv winograd4 share 1.3 bytes 0.7 fixed_ns 15000 layouts blocked16,plain",
      "copy = reorder bytes 0.5", "direct = conv depthwise",
      "panels = conv pointwise bytes 0.5 far 4 fixed_ns 900"};
  for (const std::string_view text : texts) {
    const StatusOr<KernelFamily> family = ParseKernelFamily(text);
    ASSERT_EQ(ToString(family.status()), "OK");
    EXPECT_EQ(FormatKernelFamily(*family), "kernel " + std::string(text) + "\n");
  }
  const KernelFamily family = *ParseKernelFamily(texts[0]);
  EXPECT_EQ(family.name, "winograd_tiles");
  EXPECT_EQ(family.form, KernelForm::kWinograd4);
  EXPECT_EQ(family.share, 1.3);
  EXPECT_EQ(family.bytes_share, 0.7);
  EXPECT_EQ(family.fixed_ns, 15000);
  EXPECT_EQ(family.layouts, (std::vector{Layout::kBlocked16, Layout::kPlain}));
}

TEST(KernelFamily, RefusesWhatItDoesNotKnow) {
  const auto message = [](std::string_view text) {
    return Message(ParseKernelFamily(text).status());
  };
  EXPECT_EQ(message("direct conv"),
            "kernel: expected 'name = pattern [form] [share S] [bytes B] [far F] [fixed_ns N]'");
  EXPECT_EQ(message("a = conv share 0"),
            "kernel: share: expected a number from 0.001 to 1e9, got '0'");
  EXPECT_EQ(message("a = conv speed 2"), "kernel: unexpected 'speed'");
  EXPECT_EQ(message("a = conv full share"), "kernel: unexpected 'share'");
}

TEST(KernelFamily, IsPartOfASpec) {
  const std::string text =
      "name d\ndtypes f32\ncores 1\nflops_per_second 1\nbytes_per_second 1\n"
      "kernel a = conv full share 2\npattern conv = Conv layouts plain\n";
  const StatusOr<DeviceSpec> spec = ParseDeviceSpec(text);
  ASSERT_EQ(ToString(spec.status()), "OK");
  ASSERT_EQ(spec->kernels.size(), 1u);
  EXPECT_EQ(*ParseDeviceSpec(FormatDeviceSpec(*spec)), *spec);
  EXPECT_EQ(Message(ParseDeviceSpec(text + "kernel b = dense\n").status()),
            "kernel b: no pattern 'dense'");
}

}  // namespace
}  // namespace ag
