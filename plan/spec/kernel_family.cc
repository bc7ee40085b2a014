#include "plan/spec/kernel_family.h"

#include <algorithm>

#include "base/text.h"
#include "plan/spec/invalid.h"

namespace ag {
namespace {

constexpr std::pair<std::string_view, KernelForm> kForms[] = {
    {"full", KernelForm::kFull},           {"depthwise", KernelForm::kDepthwise},
    {"pointwise", KernelForm::kPointwise}, {"winograd2", KernelForm::kWinograd2},
    {"winograd4", KernelForm::kWinograd4}, {"product", KernelForm::kProduct}};

struct RateWord {
  std::string_view name;
  double KernelFamily::*value;
  double usual;  // Not written.
};
constexpr RateWord kRates[] = {{"share", &KernelFamily::share, 1},
                               {"bytes", &KernelFamily::bytes_share, 1},
                               {"far", &KernelFamily::far_share, 1},
                               {"fixed_ns", &KernelFamily::fixed_ns, 0}};

Status SetRate(const RateWord& rate, std::string_view word, KernelFamily* family) {
  const StatusOr<double> value = ParseDouble(word);
  const double least = rate.usual > 0 ? 1e-3 : 0;
  if (!value.ok() || !(*value >= least && *value <= 1e9)) {
    return Invalid(fmt::format("kernel: {}: expected a number from {} to 1e9, got '{}'", rate.name,
                               FormatDouble(least), word));
  }
  family->*rate.value = *value;
  return OkStatus();
}

Status SetWord(std::string_view key, std::string_view word, KernelFamily* family) {
  if (key == "layouts") {
    for (const std::string_view name : Split(word, ',')) {
      AG_LET(const Layout layout, ParseLayout(name));
      family->layouts.push_back(layout);
    }
    return OkStatus();
  }
  for (const RateWord& rate : kRates) {
    if (rate.name == key) return SetRate(rate, word, family);
  }
  return Invalid(fmt::format("kernel: unexpected '{}'", key));
}

}  // namespace

StatusOr<KernelFamily> ParseKernelFamily(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : Split(text, ' ')) {
    if (!Trim(word).empty()) words.push_back(Trim(word));
  }
  if (words.size() < 3 || words[1] != "=") {
    return Invalid(
        "kernel: expected 'name = pattern [form] [share S] [bytes B] [far F] [fixed_ns N]'");
  }
  KernelFamily family{.name = std::string(words[0]), .pattern = std::string(words[2])};
  size_t i = 3;
  for (const auto& [name, form] : kForms) {
    if (i >= words.size() || words[i] != name) continue;
    family.form = form;
    ++i;
    break;
  }
  for (; i + 1 < words.size(); i += 2) AG_TRY(SetWord(words[i], words[i + 1], &family));
  if (i < words.size()) return Invalid(fmt::format("kernel: unexpected '{}'", words[i]));
  return family;
}

std::string FormatKernelFamily(const KernelFamily& family) {
  std::string text = fmt::format("kernel {} = {}", family.name, family.pattern);
  for (const auto& [name, form] : kForms) {
    if (form == family.form) text += fmt::format(" {}", name);
  }
  for (const RateWord& rate : kRates) {
    const double value = family.*rate.value;
    if (value != rate.usual) text += fmt::format(" {} {}", rate.name, FormatDouble(value));
  }
  for (size_t i = 0; i < family.layouts.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? " layouts " : ",", LayoutName(family.layouts[i]));
  }
  return text + "\n";
}

}  // namespace ag
