#include "plan/spec/device_spec.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "plan/spec/invalid.h"

namespace ag {
namespace {

// Words in a step for all operators of a trait.
constexpr std::pair<std::string_view, OpTrait> kTraitWords[] = {{"{elementwise}", kElementwise},
                                                                {"{unary}", kUnary},
                                                                {"{binary}", kBinary},
                                                                {"{contraction}", kContraction},
                                                                {"{reduction}", kReduction},
                                                                {"{pooling}", kPooling},
                                                                {"{normalization}", kNormalization},
                                                                {"{movement}", kMovement},
                                                                {"{activation}", kActivation}};

// Words in a step for convolutions of a form.
constexpr std::pair<std::string_view, ConvolutionForm> kFormWords[] = {
    {"{depthwise}", ConvolutionForm::kDepthwise}, {"{pointwise}", ConvolutionForm::kPointwise}};

std::vector<OpKind> OpsWith(OpTrait trait) {
  std::vector<OpKind> ops;
  for (const OpInfo& info : AllOps()) {
    if ((info.traits & trait) != 0) ops.push_back(info.kind);
  }
  return ops;
}

StatusOr<std::vector<OpKind>> ParseOps(std::string_view word) {
  for (const auto& [name, trait] : kTraitWords) {
    if (word == name) return OpsWith(trait);
  }
  std::vector<std::string> names;
  for (const OpInfo& info : AllOps()) {
    if (info.name == word) return std::vector<OpKind>{info.kind};
    names.emplace_back(info.name);
  }
  return Invalid(fmt::format("unknown operator '{}'{}", word, DidYouMean(word, names)));
}

// Parses a step: "Conv", "[Add]", "[Relu|Clip]", "{elementwise}+", "{depthwise}",
// "[Add&]", "MatMul&<", "{elementwise}<>+".
StatusOr<PatternStep> ParseStep(std::string_view word) {
  PatternStep step;
  if (word.ends_with('+')) {
    step.repeated = true;
    word.remove_suffix(1);
  }
  if (word.starts_with('[') && word.ends_with(']')) {
    step.optional = true;
    word = word.substr(1, word.size() - 2);
  }
  bool takes_operands = false;
  const std::pair<char, bool*> marks[] = {
      {'>', &step.shared}, {'<', &takes_operands}, {'&', &step.any_operands}};
  for (const auto& [mark, is_set] : marks) {
    if (!word.ends_with(mark)) continue;
    *is_set = true;
    word.remove_suffix(1);
  }
  for (const auto& [name, form] : kFormWords) {
    if (word != name) continue;
    step.ops = {OpKind::kConv};
    step.form = form;
    step.takes_movements = takes_operands;
    return step;
  }
  for (const std::string_view alternative : Split(word, '|')) {
    AG_LET(const std::vector<OpKind> ops, ParseOps(alternative));
    step.ops.insert(step.ops.end(), ops.begin(), ops.end());
  }
  std::ranges::sort(step.ops);
  step.ops.erase(std::unique(step.ops.begin(), step.ops.end()), step.ops.end());
  const auto is_elementwise = [](OpKind op) { return Has(op, kElementwise); };
  step.is_tree = takes_operands && step.repeated && std::ranges::all_of(step.ops, is_elementwise);
  step.takes_movements = takes_operands && !step.is_tree;
  return step;
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (const std::string_view word : Split(text, ' ')) {
    if (!Trim(word).empty()) words.push_back(Trim(word));
  }
  return words;
}

StatusOr<int> ParsePositive(std::string_view word) {
  const StatusOr<int64_t> value = ParseInt(word);
  if (!value.ok() || *value < 1 || *value > 1'000'000) {
    return Invalid(fmt::format("expected a whole number from 1 to 1000000, got '{}'", word));
  }
  return static_cast<int>(*value);
}

StatusOr<std::vector<Layout>> ParseLayouts(std::string_view word) {
  std::vector<Layout> layouts;
  if (word == "any") return layouts;
  for (const std::string_view name : Split(word, ',')) {
    AG_LET(const Layout layout, ParseLayout(name));
    layouts.push_back(layout);
  }
  return layouts;
}

// Parses "conv = Conv [Add] [Relu|Clip] max 3 layouts blocked16,plain".
StatusOr<GroupPattern> ParsePattern(std::string_view text) {
  const std::vector<std::string_view> words = Words(text);
  if (words.size() < 3 || words[1] != "=") return Invalid("pattern: expected 'name = step ...'");
  GroupPattern pattern;
  pattern.name = words[0];
  size_t i = 2;
  for (; i < words.size() && words[i] != "max" && words[i] != "layouts"; ++i) {
    AG_LET(PatternStep step, ParseStep(words[i]));
    pattern.steps.push_back(std::move(step));
  }
  for (; i + 1 < words.size(); i += 2) {
    if (words[i] == "max") {
      AG_LET(pattern.nodes_max, ParsePositive(words[i + 1]));
    } else if (words[i] == "layouts") {
      AG_LET(pattern.layouts, ParseLayouts(words[i + 1]));
    } else {
      break;
    }
  }
  if (i < words.size()) return Invalid(fmt::format("pattern: unexpected '{}'", words[i]));
  if (pattern.steps.empty() || pattern.steps[0].optional) {
    return Invalid("pattern: the first step is the anchor and may not be missing");
  }
  if (std::any_of(pattern.steps.begin() + 1, pattern.steps.end(),
                  [](const PatternStep& step) { return step.is_tree; })) {
    return Invalid("pattern: only the first step may be a tree");
  }
  if (pattern.steps.size() > kPatternStepsMax) {
    return Invalid(fmt::format("pattern: expected at most {} steps, got {}", kPatternStepsMax,
                               pattern.steps.size()));
  }
  return pattern;
}

Status AddPattern(std::string_view text, DeviceSpec* spec) {
  AG_LET(GroupPattern pattern, ParsePattern(text));
  if (spec->FindPattern(pattern.name) != nullptr || pattern.name == "reorder" ||
      pattern.name == "view") {
    return Invalid(fmt::format("pattern: the name '{}' is taken", pattern.name));
  }
  spec->patterns.push_back(std::move(pattern));
  return OkStatus();
}

// A field that is a number. Reading and writing both use this list; an optional one is written only
// where it is not 0.
struct NumberField {
  std::string_view name;
  double minimum;
  bool whole;
  bool optional;
  double (*get)(const DeviceSpec& spec);
  void (*set)(DeviceSpec* spec, double value);
};
#define AG_FIELD(name, minimum, whole, optional)                              \
  NumberField {                                                               \
#name, minimum, whole, optional,                                            \
        [](const DeviceSpec& spec) { return static_cast<double>(spec.name); },  \
        [](DeviceSpec* spec, double value) {                                    \
          spec->name = static_cast<decltype(spec->name)>(value);                \
        } \
  }
const NumberField kFields[] = {
    AG_FIELD(cores, 1, true, false),
    AG_FIELD(streams_max, 1, true, false),
    AG_FIELD(stream_cores, 0, true, false),
    AG_FIELD(block_outputs, 0, true, false),
    AG_FIELD(channel_bytes, 0, true, false),
    AG_FIELD(flops_per_second, 1, false, false),
    AG_FIELD(bytes_per_second, 1, false, false),
    AG_FIELD(cache_bytes_per_second, 0, false, false),
    AG_FIELD(cache_bytes, 0, true, false),
    AG_FIELD(far_weights_bytes, 0, true, true),
    AG_FIELD(core_bytes_per_second, 0, false, true),
    AG_FIELD(launch_ns, 0, false, false),
    AG_FIELD(contraction_ns, 0, false, true),
    AG_FIELD(split_ns, 0, false, true),
    AG_FIELD(event_ns, 0, false, false),
    AG_FIELD(memory_bytes, 0, true, false),
    AG_FIELD(alignment_bytes, 1, true, false),
    AG_FIELD(clusters, 1, true, true),
    AG_FIELD(units, 1, true, true),
    AG_FIELD(local_bytes, 0, true, true),
    AG_FIELD(local_bytes_per_second, 1, false, true),
    AG_FIELD(global_bytes, 0, true, true),
    AG_FIELD(global_bytes_per_second, 1, false, true),
    AG_FIELD(vector_flops_per_second, 1, false, true),
};
#undef AG_FIELD

// The words that an estimate needs; the others have defaults.
constexpr std::string_view kRequired[] = {
    "name", "dtypes", "cores", "flops_per_second", "bytes_per_second", "pattern"};

Status SetNumber(const NumberField& field, std::string_view word, DeviceSpec* spec) {
  const StatusOr<double> value = ParseDouble(word);
  const double largest = field.minimum == 1 && field.whole ? 1e6 : 1e18;
  if (!value.ok() || !(*value >= field.minimum && *value <= largest) ||
      (field.whole && *value != std::floor(*value))) {
    return Invalid(fmt::format("{}: expected a {}number from {} to {}, got '{}'", field.name,
                               field.whole ? "whole " : "", FormatDouble(field.minimum),
                               FormatDouble(largest), word));
  }
  field.set(spec, *value);
  return OkStatus();
}

Status SetDTypes(std::string_view word, DeviceSpec* spec) {
  for (const std::string_view name : Split(word, ',')) {
    AG_LET(const DType dtype, ParseDType(Trim(name)));
    spec->dtypes.push_back(dtype);
  }
  return OkStatus();
}

// Parses "tf32 3e12".
Status AddPrecision(std::string_view text, DeviceSpec* spec) {
  const std::vector<std::string_view> words = Words(text);
  if (words.size() != 2) return Invalid("precision: expected 'name flops_per_second'");
  const StatusOr<double> rate = ParseDouble(words[1]);
  if (!rate.ok() || !(*rate >= 1 && *rate <= 1e18)) {
    return Invalid(fmt::format("precision: expected a number from 1 to 1e18, got '{}'", words[1]));
  }
  const StatusOr<Policy> policy = ParsePolicy(fmt::format("precision={}", words[0]));
  if (!policy.ok() || words[0] == "fp32" || spec->Offers(words[0])) {
    return Invalid(
        fmt::format("precision: expected one of tf32, fp16, bf16, each once, got '{}'", words[0]));
  }
  spec->precisions.emplace_back(words[0], *rate);
  return OkStatus();
}

// The word for "bf16 because of this": why a precision is not offered.
constexpr std::string_view kLacks = "lacks";

Status AddLack(std::string_view text, DeviceSpec* spec) {
  if (Words(text).size() < 2) return Invalid("lacks: expected a precision and why");
  spec->extra.emplace_back(kLacks, text);
  return OkStatus();
}

// Returns why the precision is not offered, as ": reason"; empty where the spec does not say.
std::string LackOf(const DeviceSpec& spec, std::string_view precision) {
  for (const auto& [key, value] : spec.extra) {
    const std::string_view text = value;
    if (key != kLacks || Words(text)[0] != precision) continue;
    return fmt::format(": {}", Trim(text.substr(precision.size())));
  }
  return "";
}

Status SetColdCache(std::string_view word, DeviceSpec* spec) {
  if (word != "yes" && word != "no") {
    return Invalid(fmt::format("cold_cache: expected yes or no, got '{}'", word));
  }
  spec->can_evict = word == "yes";
  return OkStatus();
}

Status ParseLine(std::string_view key, std::string_view value, DeviceSpec* spec) {
  if (value.empty()) return Invalid(fmt::format("{}: expected a value", key));
  if (key == "name") {
    spec->name = value;
    return OkStatus();
  }
  if (key == "dtypes") return SetDTypes(value, spec);
  if (key == "pattern") return AddPattern(value, spec);
  if (key == "kernel") {
    AG_LET(KernelFamily family, ParseKernelFamily(value));
    spec->kernels.push_back(std::move(family));
    return OkStatus();
  }
  if (key == "precision") return AddPrecision(value, spec);
  if (key == "cold_cache") return SetColdCache(value, spec);
  if (key == kLacks) return AddLack(value, spec);
  if (std::ranges::find(kExtraKeys, key) != std::end(kExtraKeys)) {
    spec->extra.emplace_back(key, value);
    return OkStatus();
  }
  for (const NumberField& field : kFields) {
    if (field.name == key) return SetNumber(field, value, spec);
  }
  return Invalid(fmt::format("unknown word '{}'", key));
}

std::string FormatStep(const PatternStep& step) {
  std::string ops;
  for (const auto& [name, trait] : kTraitWords) {
    if (step.ops == OpsWith(trait)) ops = name;
  }
  for (const auto& [name, form] : kFormWords) {
    if (step.form == form) ops = name;
  }
  if (ops.empty()) {
    for (const OpKind op : step.ops) ops += (ops.empty() ? "" : "|") + std::string(Info(op).name);
  }
  return fmt::format("{}{}{}{}{}{}{}", step.optional ? "[" : "", ops, step.any_operands ? "&" : "",
                     step.takes_movements || step.is_tree ? "<" : "", step.shared ? ">" : "",
                     step.optional ? "]" : "", step.repeated ? "+" : "");
}

std::string FormatPattern(const GroupPattern& pattern) {
  std::string text = fmt::format("pattern {} =", pattern.name);
  for (const PatternStep& step : pattern.steps) text += " " + FormatStep(step);
  if (pattern.nodes_max > 0) text += fmt::format(" max {}", pattern.nodes_max);
  text += " layouts ";
  if (pattern.layouts.empty()) return text + "any\n";
  for (size_t i = 0; i < pattern.layouts.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ",", LayoutName(pattern.layouts[i]));
  }
  return text + "\n";
}

}  // namespace

int StreamCores(const DeviceSpec& spec, int streams) {
  if (spec.block_outputs > 0) return 0;
  if (spec.stream_cores > 0) return std::min(spec.stream_cores, spec.cores);
  return std::max(1, spec.cores / streams);
}

int CoresTaken(const DeviceSpec& spec, int64_t outputs, int cores) {
  if (spec.block_outputs <= 0) return cores;
  const int64_t blocks = (outputs + spec.block_outputs - 1) / spec.block_outputs;
  return static_cast<int>(std::clamp<int64_t>(blocks, 1, cores));
}

const GroupPattern* DeviceSpec::FindPattern(std::string_view wanted) const {
  for (const GroupPattern& pattern : patterns) {
    if (pattern.name == wanted) return &pattern;
  }
  return nullptr;
}

double DeviceSpec::FlopsPerSecond(std::string_view precision) const {
  if (precision == "fp32") return flops_per_second;
  for (const auto& [name, rate] : precisions) {
    if (name == precision) return rate;
  }
  return 0;
}

Status CheckOffers(const DeviceSpec& spec, std::string_view precision) {
  if (spec.Offers(precision)) return OkStatus();
  std::string offered = "fp32";
  for (const auto& [name, rate] : spec.precisions) offered += ", " + name;
  return Err(StatusCode::kUnimplemented, "{}: precision {}{}; it offers {}", spec.name, precision,
             LackOf(spec, precision), offered);
}

Status CheckMeasures(const DeviceSpec& spec, const Policy& policy) {
  AG_TRY(CheckOffers(spec, policy.precision));
  if (!policy.cold_cache || spec.can_evict) return OkStatus();
  return Err(StatusCode::kUnimplemented, "{}: cold_cache: its caches cannot be evicted", spec.name);
}

namespace {

// Returns an error when words stand without those that they need.
Status CheckTogether(const DeviceSpec& spec) {
  for (const KernelFamily& family : spec.kernels) {
    if (family.pattern == "reorder" || spec.FindPattern(family.pattern) != nullptr) continue;
    return Invalid(fmt::format("kernel {}: no pattern '{}'", family.name, family.pattern));
  }
  if (spec.core_bytes_per_second > 0 && spec.block_outputs == 0) {
    return Invalid("core_bytes_per_second: expected block_outputs as well");
  }
  if (spec.split_ns > 0 && spec.core_bytes_per_second == 0) {
    return Invalid("split_ns: expected core_bytes_per_second as well");
  }
  const bool any = spec.units > 0 || spec.local_bytes > 0 || spec.local_bytes_per_second > 0 ||
                   spec.global_bytes > 0 || spec.global_bytes_per_second > 0 ||
                   spec.vector_flops_per_second > 0;
  if (spec.clusters == 0) {
    return any ? Invalid("buffers and units: expected clusters as well") : OkStatus();
  }
  if (spec.cores % spec.clusters != 0) {
    return Invalid(fmt::format("clusters: {} do not divide {} cores", spec.clusters, spec.cores));
  }
  if (spec.units == 0 || spec.local_bytes == 0 || spec.local_bytes_per_second == 0 ||
      spec.global_bytes == 0 || spec.global_bytes_per_second == 0 ||
      spec.vector_flops_per_second == 0) {
    return Invalid(
        "clusters: expected units, local_bytes, local_bytes_per_second, global_bytes, "
        "global_bytes_per_second and vector_flops_per_second as well");
  }
  return OkStatus();
}

}  // namespace

StatusOr<DeviceSpec> ParseDeviceSpec(std::string_view text) {
  DeviceSpec spec;
  std::set<std::string_view> seen;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t blank = line.find_first_of(" \t");
    const std::string_view key = line.substr(0, blank);
    const std::string_view value = blank == line.npos ? "" : Trim(line.substr(blank));
    const bool may_repeat =
        key == "pattern" || key == "kernel" || key == "fault" || key == "precision";
    if (!seen.insert(key).second && !may_repeat) {
      return Invalid(fmt::format("line {}: {} is given twice", number, key));
    }
    AG_TRY(ParseLine(key, value, &spec), "line {}", number);
  }
  for (const std::string_view key : kRequired) {
    if (!seen.contains(key)) return Invalid(fmt::format("line {}: no {} is given", number, key));
  }
  AG_TRY(CheckTogether(spec));
  return spec;
}

StatusOr<DeviceSpec> ReadDeviceSpec(const std::string& path) {
  AG_LET(const std::string text, ReadFile(path));
  StatusOr<DeviceSpec> spec = ParseDeviceSpec(text);
  AG_TRY(spec, "{}", path);
  return spec;
}

std::string FormatDeviceSpec(const DeviceSpec& spec) {
  std::string text = fmt::format("name {}\ndtypes ", spec.name);
  for (size_t i = 0; i < spec.dtypes.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ",", DTypeName(spec.dtypes[i]));
  }
  text += "\n";
  for (const NumberField& field : kFields) {
    const double value = field.get(spec);
    if (value == 0 && field.optional) continue;
    text += fmt::format("{} {}\n", field.name, FormatDouble(value));
  }
  if (!spec.can_evict) text += "cold_cache no\n";
  for (const auto& [name, rate] : spec.precisions) {
    text += fmt::format("precision {} {}\n", name, FormatDouble(rate));
  }
  for (const GroupPattern& pattern : spec.patterns) text += FormatPattern(pattern);
  for (const KernelFamily& family : spec.kernels) text += FormatKernelFamily(family);
  for (const auto& [key, value] : spec.extra) text += fmt::format("{} {}\n", key, value);
  return text;
}

}  // namespace ag
