#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "client/cli/compare_models.h"
#include "client/cli/local_model.h"
#include "client/cli/verbs.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

using Json = nlohmann::ordered_json;

// Returns a file name for `name` that is not in `taken` yet.
std::string FileName(std::string name, std::set<std::string>* taken) {
  name = FileStem(std::move(name));
  while (!taken->insert(name).second) name += '_';
  return name;
}

// Returns the first strings, quoted.
std::string SummaryOfStrings(const Tensor& tensor) {
  constexpr size_t kShownMax = 4;
  std::vector<std::string> shown;
  const auto strings = tensor.Strings();
  for (size_t i = 0; i < std::min(strings.size(), kShownMax); ++i) {
    shown.push_back(Quoted(strings[i]));
  }
  return fmt::format("{}{}", fmt::join(shown, " "), strings.size() > kShownMax ? " ..." : "");
}

std::string Summary(const Tensor& tensor) {
  if (tensor.type().dtype == DType::kString) return SummaryOfStrings(tensor);
  double low = 0, high = 0, sum = 0;
  const int64_t n = tensor.type().NumElements();
  for (int64_t i = 0; i < n; ++i) {
    const double v = tensor.At(i);
    low = i == 0 ? v : std::min(low, v);
    high = i == 0 ? v : std::max(high, v);
    sum += v;
  }
  return fmt::format("min {:.6g}  max {:.6g}  mean {:.6g}", low, high,
                     n > 0 ? sum / static_cast<double>(n) : 0.0);
}

Json ErrorJson(const OutputError& error) {
  return {{"output", error.name},
          {"max_abs", error.max_abs},
          {"max_rel", error.max_rel},
          {"max_elementwise", error.max_elementwise},
          {"nonfinite_differs", error.nonfinite_differs}};
}

// Prints the comparison and returns its exit code.
int PrintErrors(Context& context, const std::vector<OutputError>& errors, double tolerance) {
  bool equivalent = true;
  Json list = Json::array();
  for (const OutputError& error : errors) {
    const bool same = IsEquivalent(error, tolerance);
    equivalent &= same;
    list.push_back(ErrorJson(error));
    if (context.flags().json) continue;
    context.Print(fmt::format("{:<9} {:<24} max abs {:.3g}  max rel {:.3g}{}",
                              same ? "same" : "DIFFERENT", error.name, error.max_abs, error.max_rel,
                              error.nonfinite_differs ? "  Inf, NaN or shape differ" : ""));
  }
  if (context.flags().json) {
    context.Print(
        Json{{"equivalent", equivalent}, {"tolerance", tolerance}, {"errors", list}}.dump(2));
  } else {
    context.Print(
        fmt::format("{} within {}", equivalent ? "equivalent" : "NOT equivalent", tolerance));
  }
  return equivalent ? kExitOk : kExitFailed;
}

StatusOr<std::vector<OutputError>> CompareModels(const VerifyFlags& flags) {
  if (flags.seeds < 1) {
    return Err(StatusCode::kInvalidArgument, "--seeds {}: expected at least 1", flags.seeds);
  }
  AG_LET(const auto a, LoadSession(flags.model, PlanChoice::kUnfused));
  ModelFlags other = flags.model;
  other.model = flags.against;
  AG_LET(const auto b, LoadSession(other, PlanChoice::kCarried));
  const auto& left = a->outputs();
  const auto& right = b->outputs();
  if (a->inputs().size() != b->inputs().size() || left.size() != right.size()) {
    return Err(StatusCode::kInvalidArgument, "{} has {} inputs and {} outputs, {} has {} and {}",
               flags.model.model, a->inputs().size(), left.size(), flags.against,
               b->inputs().size(), right.size());
  }
  AG_LET(const std::vector<NamedSet> own, OwnInputs(flags.model));
  return CompareOutputs(*a, *b, MatchByPosition(*a), own, flags.seeds);
}

// The largest error of the tensors in two values, which differ also where they have not as many.
OutputError CompareValues(const std::string& name, const ModelValue& expected,
                          const ModelValue& actual) {
  const std::vector<Tensor> left = TensorsIn(expected), right = TensorsIn(actual);
  OutputError error{.name = name, .nonfinite_differs = left.size() != right.size()};
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    error = Larger(error, CompareTensors(name, left[i], right[i]));
  }
  return error;
}

// Compares with one test_data_set_N of the ONNX layout.
Status CompareDataSet(Session& session, const std::string& folder,
                      std::vector<OutputError>* errors) {
  std::vector<ModelValue> inputs;
  for (size_t i = 0; i < session.inputs().size(); ++i) {
    AG_LET(ModelValue value,
           ReadValueFile(fmt::format("{}/input_{}.pb", folder, i), session.inputs()[i].kind));
    inputs.push_back(std::move(value));
  }
  AG_LET(const std::vector<ModelValue> actual, session.RunValues(inputs));
  for (size_t i = 0; i < actual.size(); ++i) {
    const TensorInfo& info = session.outputs()[i];
    AG_LET(const ModelValue expected,
           ReadValueFile(fmt::format("{}/output_{}.pb", folder, i), info.kind));
    const OutputError error = CompareValues(info.name, expected, actual[i]);
    (*errors)[i] = (*errors)[i].name.empty() ? error : Larger(error, (*errors)[i]);
  }
  return OkStatus();
}

StatusOr<std::vector<OutputError>> CompareWithTestData(const VerifyFlags& flags) {
  ModelFlags model = flags.model;
  model.model += "/model.onnx";
  AG_LET(const auto session, LoadSession(model, PlanChoice::kCarried));
  AG_LET(const std::vector<std::string> names, ListDir(flags.model.model));
  std::vector<OutputError> errors(session->outputs().size());
  int sets = 0;
  for (const std::string& name : names) {
    if (!name.starts_with("test_data_set_")) continue;
    ++sets;
    AG_TRY(CompareDataSet(*session, flags.model.model + "/" + name, &errors));
  }
  if (sets == 0) {
    return Err(StatusCode::kNotFound, "{}: no test_data_set_N in it", flags.model.model);
  }
  return errors;
}

// Prints one tensor of an output, which `name` names, and adds it to the list.
Status SayTensor(Context& context, const RunFlags& flags, const std::string& name,
                 const Tensor& tensor, std::set<std::string>* taken, Json* list) {
  std::string line = fmt::format("{}: {}  {}", name, tensor.type().ToString(), Summary(tensor));
  Json entry = {{"output", name}, {"type", tensor.type().ToString()}};
  if (!flags.output_dir.empty()) {
    const std::string path = flags.output_dir + "/" + FileName(name, taken) + ".npy";
    AG_TRY(WriteNpy(path, tensor));
    line += "  -> " + path;
    entry["file"] = path;
  }
  list->push_back(entry);
  if (!context.flags().json) context.Print(line);
  return OkStatus();
}

// Prints an output: a tensor, or "parts[0]", "parts[1]", ... of a sequence.
Status SayOutput(Context& context, const RunFlags& flags, const TensorInfo& info,
                 const ModelValue& value, std::set<std::string>* taken, Json* list) {
  const std::vector<Tensor> tensors = TensorsIn(value);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = info.holds_sequence ? fmt::format("{}[{}]", info.name, i) : info.name;
    AG_TRY(SayTensor(context, flags, name, tensors[i], taken, list));
  }
  if (!tensors.empty()) return OkStatus();
  const bool is_none = value.kind == OnnxKind::kOptional && value.items.empty();
  const char* what = is_none ? "none" : "empty";
  list->push_back({{"output", info.name}, {"type", what}});
  if (!context.flags().json) context.Print(fmt::format("{}: {}", info.name, what));
  return OkStatus();
}

}  // namespace

StatusOr<int> RunModel(Context& context, const RunFlags& flags) {
  if (!flags.output_dir.empty()) {  // Checked before the work, which may be long.
    AG_TRY(MakeDirs(flags.output_dir));
    AG_TRY(CheckWritable(flags.output_dir + "/output.npy"));
  }
  AG_LET(const auto session, LoadSession(flags.model, PlanChoice::kCarried));
  for (const std::string& warning : session->warnings()) context.Note("warning: " + warning);
  AG_LET(const auto inputs, GatherInputs(*session, flags.inputs, flags.seed));
  AG_LET(const auto outputs, session->RunValues(inputs));
  Json list = Json::array();
  std::set<std::string> taken;
  for (size_t i = 0; i < outputs.size(); ++i) {
    AG_TRY(SayOutput(context, flags, session->outputs()[i], outputs[i], &taken, &list));
  }
  const bool carried = session->uses_carried_plan();
  if (context.flags().json) {
    context.Print(Json{{"plan", carried ? "carried" : "input"}, {"outputs", list}}.dump(2));
  } else {
    context.Note(carried ? "ran with the plan in the model" : "ran without a plan of its own");
  }
  return kExitOk;
}

StatusOr<int> RunVerify(Context& context, const VerifyFlags& flags) {
  if (!flags.model.inputs.empty() && flags.against.empty()) {
    return context.FailUsage(
        Err(StatusCode::kInvalidArgument, "--inputs goes with --against only"));
  }
  AG_LET(const auto errors,
         flags.against.empty() ? CompareWithTestData(flags) : CompareModels(flags));
  return PrintErrors(context, errors, flags.tolerance);
}

}  // namespace ag
