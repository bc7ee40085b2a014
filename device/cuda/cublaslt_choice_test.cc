#include "device/cuda/cublaslt_choice.h"

#include <gtest/gtest.h>

namespace ag::cuda {
namespace {

TEST(CublasLtChoice, NamesAreReadAsTheyAreWritten) {
  const struct {
    std::string_view name;
    CublasLtChoice choice;
  } cases[] = {
      {"cublaslt:nn/0", {}},
      {"cublaslt:tn/66,tile=20,stages=24,split=4,reduce=2,cluster=2",
       {.form = MatmulForm::kColumns,
        .id = 66,
        .tile = 20,
        .stages = 24,
        .split = 4,
        .reduce = 2,
        .cluster = 2}},
      {"cublaslt:nn/42,split=-1,reduce=2,custom=1",
       {.id = 42, .split = -1, .reduce = 2, .custom = 1}},
      {"cublaslt:nn/21,tile=15,swizzle=1,custom=4294967295,inner=65535",
       {.id = 21, .tile = 15, .swizzle = 1, .custom = 4294967295u, .inner = 65535}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(CublasLtName(c.choice), c.name);
    const StatusOr<CublasLtChoice> read = ParseCublasLtName(c.name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, c.choice);
  }
}

TEST(CublasLtChoice, OtherNamesAreRefused) {
  for (const std::string name :
       {"", "cublaslt", "cublaslt:", "cublaslt:nt/5", "cublaslt:nn/", "cublaslt:nn/x",
        "cublaslt:nn/5,", "cublaslt:nn/5,tile=", "cublaslt:nn/5,split=1", "cublaslt:nn/05",
        "cublaslt:nn/5,tile=2,tile=2", "cublaslt:nn/5,stages=1,tile=2", "cublaslt:nn/5,inner=65536",
        "cublaslt:nn/-5", "cublaslt:nn/4294967295", "cublaslt:nn/5 ", "cudnn:nn/5"}) {
    EXPECT_EQ(ToString(ParseCublasLtName(name).status()),
              "INVALID_ARGUMENT: '" + name + "' is no kernel of cuBLASLt");
  }
}

}  // namespace
}  // namespace ag::cuda
