#include "device/cuda/cublaslt_choice.h"

#include <charconv>
#include <utility>

namespace ag::cuda {
namespace {

constexpr std::string_view kRowsPrefix = "cublaslt:nn/";
constexpr std::string_view kColumnsPrefix = "cublaslt:tn/";

// Calls visit(word, field, default) for every setting, in the order of the name.
template <class Choice, class Visit>
void ForEachSetting(Choice& choice, const Visit& visit) {
  visit("tile", choice.tile, 0);
  visit("stages", choice.stages, 0);
  visit("split", choice.split, 1);
  visit("reduce", choice.reduce, 0);
  visit("swizzle", choice.swizzle, 0);
  visit("custom", choice.custom, 0);
  visit("inner", choice.inner, 0);
  visit("cluster", choice.cluster, 0);
}

// Reads the number at the begin of `text` into `number`.
template <class T>
bool TakeNumber(std::string_view* text, T* number) {
  int64_t read = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), read);
  if (error != std::errc() || !std::in_range<T>(read)) return false;
  *number = static_cast<T>(read);
  text->remove_prefix(end - text->data());
  return true;
}

bool TakeWord(std::string_view word, std::string_view* text) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

}  // namespace

std::string CublasLtName(const CublasLtChoice& choice) {
  const bool rows = choice.form == MatmulForm::kRows;
  std::string name = fmt::format("{}{}", rows ? kRowsPrefix : kColumnsPrefix, choice.id);
  ForEachSetting(choice, [&](std::string_view word, auto value, int standard) {
    if (static_cast<int64_t>(value) != standard) name += fmt::format(",{}={}", word, value);
  });
  return name;
}

StatusOr<CublasLtChoice> ParseCublasLtName(std::string_view name) {
  std::string_view rest = name;
  CublasLtChoice choice;
  bool good = TakeWord(kRowsPrefix, &rest);
  if (!good) {
    good = TakeWord(kColumnsPrefix, &rest);
    choice.form = MatmulForm::kColumns;
  }
  good = good && TakeNumber(&rest, &choice.id) && choice.id >= 0;
  ForEachSetting(choice, [&](std::string_view word, auto& field, int) {
    if (good && TakeWord(fmt::format(",{}=", word), &rest)) good = TakeNumber(&rest, &field);
  });
  if (!good || !rest.empty() || CublasLtName(choice) != name) {  // Each choice has one name.
    return Err(StatusCode::kInvalidArgument, "'{}' is no kernel of cuBLASLt", name);
  }
  return choice;
}

}  // namespace ag::cuda
