#include "device/cuda/machine.h"

#include <gtest/gtest.h>

#include "plan/testing/testing.h"

namespace ag::cuda {
namespace {

MachineFacts H200() {
  MachineFacts facts;
  facts.name = "NVIDIA H200";
  facts.capability_major = 9;
  facts.sms = 132;
  facts.shared_bytes_max = 232448;
  facts.clock_mhz = 1980;
  facts.memory_clock_mhz = 3201;
  facts.memory_bus_bits = 6144;
  facts.memory_bytes = int64_t{141} << 30;
  facts.l2_bytes = 60 << 20;
  facts.cuda_driver = facts.cuda_runtime = 13000;
  facts.driver = "580.65.06";
  return facts;
}

TEST(Machine, SpecHasTheRatesOfTheChip) {
  const auto spec = SpecOf(H200());
  ASSERT_EQ(ToString(spec.status()), "OK");
  EXPECT_EQ(spec->cores, 132);
  EXPECT_NEAR(spec->flops_per_second * 132, 0.8 * 67e12, 0.02 * 67e12);
  EXPECT_NEAR(spec->FlopsPerSecond("tf32") * 132, 400e12, 40e12);
  EXPECT_NEAR(spec->FlopsPerSecond("fp16") * 132, 800e12, 80e12);
  EXPECT_NEAR(spec->bytes_per_second, 4.4e12, 0.1e12);
  EXPECT_EQ(spec->cache_bytes, 60 << 20);
  EXPECT_EQ(*ParseDeviceSpec(FormatDeviceSpec(*spec)), *spec);
  const DeviceSpec built_in = LoadSpec(AG_SOURCE_DIR, "h200");
  EXPECT_EQ(spec->patterns, built_in.patterns);
  EXPECT_EQ(spec->dtypes, built_in.dtypes);
}

TEST(Machine, TuringHasNeitherTf32NorBf16) {
  MachineFacts facts = H200();
  facts.capability_major = 7;
  facts.capability_minor = 5;
  EXPECT_EQ(Message(CheckOffers(*SpecOf(facts), "bf16")),
            "cuda: precision bf16; it offers fp32, fp16");
  facts.capability_minor = 0;
  EXPECT_EQ(Message(SpecOf(facts).status()),
            "NVIDIA H200: compute capability 7.0; 7.5 (Turing) and newer are supported");
}

TEST(Machine, EnvironmentSaysAllThatChangesATime) {
  EXPECT_EQ(EnvironmentOf(H200(), {.cublaslt = 130100, .cudnn = 91900}),
            "cc=9.0;clock_mhz=1980;cublaslt=13.1.0;cuda=13.0;cudnn=9.19.0;driver=580.65.06;"
            "gpu=NVIDIA H200;memory_mib=144384;mig=0;policy=2;sms=132");
  MachineFacts slice = H200();
  slice.is_mig = true;
  slice.driver = "";
  EXPECT_NE(EnvironmentOf(slice, {}).find("driver=unknown;"), std::string::npos);
  EXPECT_NE(EnvironmentOf(slice, {}).find("mig=1;"), std::string::npos);
}

TEST(Machine, ChipBeginsEarlyFromHopperOn) {
  EXPECT_TRUE(ChipOf(H200()).has_early_launch());
  MachineFacts ampere = H200();
  ampere.capability_major = 8;
  EXPECT_FALSE(ChipOf(ampere).has_early_launch());
  EXPECT_EQ(ChipOf(ampere).compute_capability, 80);
}

}  // namespace
}  // namespace ag::cuda
