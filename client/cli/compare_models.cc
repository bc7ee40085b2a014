#include "client/cli/compare_models.h"

#include <algorithm>

#include "client/cli/local_model.h"

namespace ag {
namespace {

std::string List(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string> texts;
  for (const TensorInfo& info : tensors) {
    texts.push_back(fmt::format("{}: {}", info.name, ToString(info.form())));
  }
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

// Compares tensor by tensor; values of different kinds or lengths differ as different shapes do.
OutputError CompareValues(const std::string& name, const ModelValue& expected,
                          const ModelValue& actual) {
  const std::vector<Tensor> left = TensorsIn(expected), right = TensorsIn(actual);
  const bool is_same_kind = expected.kind == actual.kind &&
                            expected.items.size() == actual.items.size() &&
                            left.size() == right.size();
  OutputError error{.name = name, .nonfinite_differs = !is_same_kind};
  for (size_t i = 0; i < left.size() && is_same_kind; ++i) {
    error = Larger(CompareTensors(name, left[i], right[i]), error);
  }
  return error;
}

}  // namespace

StatusOr<std::vector<size_t>> MatchTensors(const std::vector<TensorInfo>& a,
                                           const std::vector<TensorInfo>& b, const char* what,
                                           const std::string& name_a, const std::string& name_b) {
  std::vector<size_t> positions;
  for (const TensorInfo& info : a) {
    const auto found = std::ranges::find(b, info.name, &TensorInfo::name);
    if (found == b.end() || found->type != info.type || found->kind != info.kind ||
        a.size() != b.size()) {
      positions.clear();
      break;
    }
    positions.push_back(static_cast<size_t>(found - b.begin()));
  }
  if (positions.size() == b.size()) return positions;
  return Err(StatusCode::kInvalidArgument,
             "the models differ in their {}, they cannot be compared: {} has {}; {} has {}", what,
             name_a, List(a), name_b, List(b));
}

StatusOr<ModelMatch> MatchModels(const Session& a, const Session& b, const std::string& name_a,
                                 const std::string& name_b) {
  ModelMatch match;
  AG_LET(match.inputs, MatchTensors(a.inputs(), b.inputs(), "inputs", name_a, name_b));
  AG_LET(match.outputs, MatchTensors(a.outputs(), b.outputs(), "outputs", name_a, name_b));
  return match;
}

ModelMatch MatchByPosition(const Session& a) {
  ModelMatch match;
  for (size_t i = 0; i < a.inputs().size(); ++i) match.inputs.push_back(i);
  for (size_t i = 0; i < a.outputs().size(); ++i) match.outputs.push_back(i);
  return match;
}

StatusOr<std::vector<OutputError>> CompareOutputs(Session& a, Session& b, const ModelMatch& match,
                                                  const std::vector<NamedSet>& own, int seeds) {
  std::vector<OutputError> errors(a.outputs().size());
  const auto compare = [&](const std::vector<ModelValue>& inputs) -> Status {
    AG_LET(const std::vector<ModelValue> expected, a.RunValues(inputs));
    AG_LET(const std::vector<ModelValue> actual, b.RunValues(Reordered(inputs, match.inputs)));
    for (size_t i = 0; i < errors.size(); ++i) {
      const ModelValue& other = actual[match.outputs[i]];
      // The graph's outputs are the model's when no part of it is dynamic.
      const OutputError error = a.is_dynamic()
                                    ? CompareValues(a.outputs()[i].name, expected[i], other)
                                    : CompareOutput(a.graph(), i, expected[i].tensor, other.tensor);
      errors[i] = Larger(error, errors[i]);
    }
    return OkStatus();
  };
  for (const NamedSet& set : own) {
    const auto inputs = TensorsOf(a, set.inputs);
    AG_TRY(inputs, "{}", set.name);
    AG_TRY(compare(ValuesOf(a, {*inputs})), "{}", set.name);
  }
  constexpr int kKinds = 3;  // Usual, full, short.
  for (int i = 0; i < seeds; ++i) {
    const auto kind = static_cast<InputKind>(i % kKinds);
    AG_TRY(compare(MakeValues(a, kind, static_cast<uint64_t>(i + 1) * 1000)));
  }
  return errors;
}

}  // namespace ag
