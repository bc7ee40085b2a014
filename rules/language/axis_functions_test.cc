#include <gtest/gtest.h>

#include "rules/language/guards.h"

namespace ag {
namespace {

using Arguments = std::vector<Value>;
const Value kNone;

struct FunctionCase {
  const char* function;
  Arguments arguments;
  Value expected;  // kNone: no value.
};

const FunctionCase kFunctionCases[] = {
    {"inverse", {Ints{2, 0, 1}}, Ints{1, 2, 0}},
    {"inverse", {Ints{0, 0, 1}}, kNone},
    {"perm_without", {Ints{2, 0, 3, 1}, Ints{0, 3}}, Ints{0, 1}},
    {"perm_without", {Ints{2, 0, 3, 1}, Ints{1}}, Ints{1, 2, 0}},
    {"moves_ones", {Ints{1, 3, 1, 4}, Ints{1, 0, 3, 2}}, int64_t{1}},
    {"moves_ones", {Ints{1, 3, 1, 4}, Ints{3, 0, 1, 2}}, int64_t{0}},
    {"moves_ones", {Ints{1, 3}, Ints{0}}, kNone},
    {"at", {Ints{5, 6, 7}, Ints{2, 0}}, Ints{7, 5}},
    {"at", {Ints{5, 6, 7}, Ints{2, 3}}, kNone},
    {"at", {Ints{5, 6, 7}, int64_t{3}}, kNone},
    {"contains", {Ints{4, 5}, int64_t{5}}, int64_t{1}},
    {"contains", {Ints{4, 5}, Ints{1, 2}}, int64_t{0}},
    {"below", {Ints{0, 2, 5}, int64_t{5}}, int64_t{2}},
    {"min", {Ints{4, -1}, int64_t{2}}, int64_t{-1}},
    {"first", {int64_t{7}, int64_t{8}}, int64_t{7}},
    {"power_of_two", {8.0}, int64_t{1}},
    {"power_of_two", {-0.125}, int64_t{1}},
    {"power_of_two", {3.0}, int64_t{0}},
    {"power_of_two", {0.0}, int64_t{0}},
    {"power_of_two", {32768.0}, int64_t{0}},
    {"broadcast", {Ints{3, 1}, Ints{2, 1, 4}}, Ints{2, 3, 4}},
    {"broadcast", {Ints{3}, Ints{4}}, kNone},
    {"constant_along", {Ints{1, 4}, Ints{2, 3, 4}, int64_t{1}}, int64_t{1}},
    {"constant_along", {Ints{1, 4}, Ints{2, 3, 4}, Ints{0, 1}}, int64_t{1}},
    {"constant_along", {Ints{1, 4}, Ints{2, 3, 4}, int64_t{-1}}, int64_t{0}},
    {"constant_along", {Ints{1, 1, 1}, Ints{4}, int64_t{0}}, int64_t{0}},
    {"constant_along", {Ints{4}, Ints{4}, int64_t{1}}, kNone},
    {"size_along", {Ints{2, 3, 4}, Ints{0, 2}}, int64_t{8}},
    {"size_along", {Ints{2, 3, 4}, Ints{3}}, kNone},
    {"joined_axes", {Ints{1}, int64_t{1}, Ints{0}}, Ints{0, 1}},
    {"joined_axes", {Ints{0, 2}, int64_t{0}, Ints{0, 1}}, Ints{0, 1, 2, 3}},
    // Every second of 1..8, then the last two of these four: 5 and 7.
    {"slice_axes",
     {Ints{9, 2}, Ints{0}, Ints{1}, Ints{9}, Ints{2}, Ints{0}, Ints{-2}, Ints{9}, Ints{1}},
     Ints{0}},
    {"slice_starts",
     {Ints{9, 2}, Ints{0}, Ints{1}, Ints{9}, Ints{2}, Ints{0}, Ints{-2}, Ints{9}, Ints{1}},
     Ints{5}},
    {"slice_ends",
     {Ints{9, 2}, Ints{0}, Ints{1}, Ints{9}, Ints{2}, Ints{0}, Ints{-2}, Ints{9}, Ints{1}},
     Ints{8}},
    {"slice_steps",
     {Ints{9, 2}, Ints{0}, Ints{1}, Ints{9}, Ints{2}, Ints{0}, Ints{-2}, Ints{9}, Ints{1}},
     Ints{2}},
    // A slice backwards to the first element; its end is written from the end.
    {"slice_ends",
     {Ints{5}, Ints{0}, Ints{0}, Ints{3}, Ints{1}, Ints{0}, Ints{2}, Ints{-9}, Ints{-1}},
     Ints{-6}},
    {"slice_starts",
     {Ints{5}, Ints{0}, Ints{0}, Ints{3}, Ints{1}, Ints{0}, Ints{3}, Ints{3}, Ints{1}},
     kNone},
    {"crop", {Ints{9, 2}, Ints{0}, Ints{2}, Ints{-1}, Ints{1}}, Ints{-2, 0, -1, 0}},
    {"crop", {Ints{9, 2}, Ints{0}, Ints{2}, Ints{8}, Ints{2}}, kNone},
};

TEST(AxisFunctions, GiveWhatTheirCasesSay) {
  const GraphBuilder none;
  for (const FunctionCase& c : kFunctionCases) {
    SCOPED_TRACE(fmt::format("{}, case {}", c.function, &c - kFunctionCases));
    const RuleFunction* function = FindFunction(c.function);
    ASSERT_NE(function, nullptr);
    const auto value = function->call(TensorFacts(none), c.arguments);
    EXPECT_TRUE(value.value_or(kNone) == c.expected);
  }
}

TEST(AxisFunctions, AllFunctionsAreListedOnceInOrder) {
  const std::vector<RuleFunction> all = AllFunctions();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].name, all[i].name);
}

}  // namespace
}  // namespace ag
