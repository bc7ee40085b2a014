#include <gtest/gtest.h>

#include "device/cuda/cudnn_candidates.h"

namespace ag::cuda {
namespace {

TEST(CudnnChoice, NamesAreReadAsTheyAreWritten) {
  const struct {
    std::string_view name;
    CudnnChoice choice;
  } cases[] = {
      {"cudnn:e0", {0, {}}},
      {"cudnn:e41/2=5,13=1,18=0,25=1,27=4,28=1",
       {41, {{2, 5}, {13, 1}, {18, 0}, {25, 1}, {27, 4}, {28, 1}}}},
      {"cudnn:e7/17=16,24=36", {7, {{17, 16}, {24, 36}}}},
      {"cudnn:e23/12=-1,17=64", {23, {{12, -1}, {17, 64}}}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(CudnnName(c.choice), c.name);
    const StatusOr<CudnnChoice> read = ParseCudnnName(c.name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, c.choice);
  }
}

TEST(CudnnChoice, OtherNamesAreRefused) {
  for (const std::string name :
       {"", "cudnn", "cudnn:e", "cudnn:41", "cudnn:e41/", "cudnn:e41/2",
        "cudnn:e41/2=", "cudnn:e41/2=5,", "cudnn:e041", "cudnn:e41/13=1,2=5", "cudnn:e41/2=5,2=5",
        "cudnn:e-1", "cudnn:e41/-2=5", "cudnn:e41/99=1", "cudnn:e41/2=5 ", "generated:e41",
        "cudnn:e99999999999999999999"}) {
    const Status status = ParseCudnnName(name).status();
    EXPECT_EQ(ToString(status), "INVALID_ARGUMENT: '" + name + "' is no kernel of cuDNN");
  }
}

TEST(CudnnMenu, SplitsTheSumOfFewTilesAndNotOfMany) {
  // 512 channels at 7x7 by 3x3: 8 tiles of 64x64 and a sum of 4608.
  const auto few = CudnnMenu(7, {.batch = 1, .m = 49, .n = 512, .k = 4608}, 132, 4);
  ASSERT_EQ(few.size(), 4u);
  for (const CudnnChoice& choice : few) {
    EXPECT_EQ(choice.engine, 7);
    EXPECT_GT(choice.knobs[0].value, 1) << CudnnName(choice);
  }
  const auto many = CudnnMenu(7, {.batch = 1, .m = 12544, .n = 512, .k = 64}, 132, 1);
  ASSERT_EQ(many.size(), 1u);
  EXPECT_EQ(many[0].knobs[0].value, 1) << CudnnName(many[0]);
}

TEST(CudnnRules, RefuseByNotesPrecisionAndType) {
  constexpr DType kF32 = DType::kFloat32, kF16 = DType::kFloat16;
  constexpr CudnnNotes kTensorCore{.tensor_core = true};
  constexpr CudnnNotes kDown{.tensor_core = true, .down_convert_inputs = true};
  const struct {
    CudnnNotes notes;
    Precision precision;
    DType stored;
    std::string_view refusal;
  } cases[] = {
      {{}, Precision::kFp32, kF32, ""},
      {kTensorCore, Precision::kFp32, kF32, "computes in tf32"},
      {kTensorCore, Precision::kTf32, kF32, ""},
      {kTensorCore, Precision::kFp16, kF16, ""},
      {kTensorCore, Precision::kFp32, kF16, ""},  // The graph's own f16.
      {kDown, Precision::kTf32, kF32, "rounds its inputs to a narrower type"},
      {kDown, Precision::kFp16, kF16, ""},
      {{.reduced_precision_reduction = true}, Precision::kFp16, kF16, "sums in less than f32"},
      {{.nondeterministic = true}, Precision::kTf32, kF32, "differs from run to run"},
      {{.reorders_weights = true}, Precision::kTf32, kF32, "wants weights in a layout of its own"},
      {{.compiles_at_run_time = true}, Precision::kFp32, kF32, ""},
      {{.misreads_image = true}, Precision::kFp16, kF16, "may misread such an image"},
      {{.is_cublas = true}, Precision::kFp16, kF16, "does not say how it computes"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(RefusalOf(c.notes, c.precision, c.stored), c.refusal);
  }
}

TEST(CudnnRules, ACopyIsSeenByItsSize) {
  CudnnGraph graph;
  graph.stored = DType::kFloat16;
  graph.tensor_bytes = {{100'000, 120'000, 200'000}, {50'000, 50'000, 100'000}};
  const CudnnChoice plain{41, {{2, 5}}}, split{7, {{17, 4}, {24, 36}}};
  const struct {
    std::string_view what;
    CudnnChoice choice;
    int64_t workspace;
    bool has_copy;
  } cases[] = {
      {"none", plain, 0, false},
      {"alignment", plain, 131, false},
      {"one tensor", plain, 100'016, true},
      {"one padded", plain, 120'000, true},
      {"both", plain, 150'131, true},
      {"as f32, and the other padded", plain, 250'000, true},
      {"something else", plain, 77'000, false},
      {"partial sums of the same size", split, 100'000, false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(HoldsCopy(graph, c.choice, c.workspace), c.has_copy) << c.what;
  }
}

}  // namespace
}  // namespace ag::cuda
