// The C interface over Session. Every function that runs C++ code which may throw does so inside
// Guarded, or only reads data that the load has prepared, so no exception reaches a C caller.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <new>

#include "base/build_facts.h"
#include "graph/onnx/files/model_view.h"
#include "graph/onnx/wire.h"
#include "runtime/autograph.h"
#include "runtime/session.h"

struct ag_session {
  std::unique_ptr<ag::Session> session;
  std::vector<ag_tensor_info> inputs, outputs;  // Names and shapes point into `session`.
};

struct ag_results {
  struct Output {
    std::vector<ag::Tensor> tensors;
    std::vector<ag_tensor> views;  // Point into `tensors`, and of strings into `strings`.
    bool is_tensor = false;
    ag_value value = {};
  };
  std::deque<Output> outputs;
  std::deque<std::string> strings;
  std::deque<std::vector<const char*>> pointers;
};

namespace {

using ag::Err;
using ag::Status;
using ag::StatusCode;

std::string& LastError() {
  thread_local std::string message;
  return message;
}

// Returns the number of gRPC when the header has it.
ag_status ToC(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return AG_OK;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:  // An index of the inputs, of the model at its sizes.
      return AG_INVALID_ARGUMENT;
    case StatusCode::kDeadlineExceeded:
      return AG_DEADLINE_EXCEEDED;
    case StatusCode::kNotFound:
      return AG_NOT_FOUND;
    case StatusCode::kResourceExhausted:
      return AG_RESOURCE_EXHAUSTED;
    case StatusCode::kFailedPrecondition:
      return AG_FAILED_PRECONDITION;
    case StatusCode::kUnimplemented:
      return AG_UNIMPLEMENTED;
    case StatusCode::kInternal:
      return AG_INTERNAL;
    case StatusCode::kUnavailable:
      return AG_UNAVAILABLE;
    case StatusCode::kDataLoss:
      return AG_DATA_LOSS;
    default:
      return AG_UNKNOWN;
  }
}

// Keeps `message` for ag_last_error; when there is no memory for it, keeps "".
ag_status Fail(ag_status status, std::string_view message) noexcept {
  try {
    LastError() = message;
  } catch (const std::exception&) {
    LastError().clear();
  }
  return status;
}

// Runs body(), which returns a Status, and returns its status or exception as an ag_status.
template <class Body>
ag_status Guarded(const Body& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? AG_OK : Fail(ToC(status.code()), ag::Message(status));
  } catch (const std::bad_alloc&) {
    return Fail(AG_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception& error) {
    return Fail(AG_INTERNAL, error.what());
  } catch (...) {
    return Fail(AG_INTERNAL, "an exception of unknown type");
  }
}

// The first version of ag_session_options ended where `tune` begins.
constexpr size_t kFirstSize = offsetof(ag_session_options, tune);

Status AddShape(const ag_input_shape& shape, std::map<std::string, ag::Shape>* shapes) {
  if (shape.input == nullptr) {
    return Err(StatusCode::kInvalidArgument, "options.shapes: a shape without the input's name");
  }
  if (shape.rank < 0 || static_cast<size_t>(shape.rank) > ag::kRankMax) {
    return Err(StatusCode::kInvalidArgument,
               "options.shapes: input \"{}\": rank {}, expected 0..{}", shape.input, shape.rank,
               ag::kRankMax);
  }
  if (shape.shape == nullptr && shape.rank > 0) {
    return Err(StatusCode::kInvalidArgument, "options.shapes: input \"{}\": rank {} and no sizes",
               shape.input, shape.rank);
  }
  const ag::Shape sizes(shape.shape, shape.shape + shape.rank);
  for (const int64_t size : sizes) {
    if (size >= 0) continue;
    return Err(StatusCode::kInvalidArgument, "options.shapes: input \"{}\": size {} in {}",
               shape.input, size, ag::ShapeToString(sizes));
  }
  if (shapes->emplace(shape.input, sizes).second) return ag::OkStatus();
  return Err(StatusCode::kInvalidArgument, "options.shapes: input \"{}\" is there twice",
             shape.input);
}

// Returns the options of a caller that was compiled with this header or with an older one that had
// fewer fields.
ag::StatusOr<ag_session_options> Complete(const ag_session_options* given) {
  ag_session_options whole{};
  if (given == nullptr) return whole;
  if (given->size < kFirstSize || given->size > sizeof(whole)) {
    return Err(StatusCode::kInvalidArgument,
               "options.size: expected {}, got {}; set it to sizeof(ag_session_options)",
               sizeof(whole), given->size);
  }
  std::memcpy(&whole, given, given->size);
  return whole;
}

ag::StatusOr<ag::SessionOptions> ToOptions(const ag_session_options* caller) {
  ag::SessionOptions options;
  AG_LET(const ag_session_options whole, Complete(caller));
  const ag_session_options* given = &whole;
  options.tune = whole.tune != 0;
  if (whole.tuned_plans != nullptr) options.tuned_plans = whole.tuned_plans;
  if (given->device != nullptr) options.device = given->device;
  switch (static_cast<int>(given->plan)) {
    case AG_PLAN_CARRIED:
      options.plan = ag::PlanChoice::kCarried;
      break;
    case AG_PLAN_INPUT:
      options.plan = ag::PlanChoice::kInput;
      break;
    case AG_PLAN_UNFUSED:
      options.plan = ag::PlanChoice::kUnfused;
      break;
    default:
      return Err(StatusCode::kInvalidArgument, "options.plan: no choice has the number {}",
                 static_cast<int>(given->plan));
  }
  if (given->streams < 0) {
    return Err(StatusCode::kInvalidArgument, "options.streams: {} is negative", given->streams);
  }
  options.streams = given->streams;
  if (given->shapes == nullptr && given->shapes_count > 0) {
    return Err(StatusCode::kInvalidArgument, "options.shapes: NULL, but {} of them",
               given->shapes_count);
  }
  for (size_t i = 0; i < given->shapes_count; ++i) {
    AG_TRY(AddShape(given->shapes[i], &options.shapes));
  }
  return options;
}

std::vector<ag_tensor_info> InfosOf(const std::vector<ag::TensorInfo>& infos) {
  std::vector<ag_tensor_info> result;
  for (const ag::TensorInfo& info : infos) {
    ag_tensor_info view{.name = info.name.c_str(),
                        .dtype = static_cast<ag_dtype>(ag::DTypeToOnnx(info.type.dtype)),
                        .rank = -1};
    if (info.has_shape) {
      view.rank = static_cast<int32_t>(info.type.shape.size());
      view.shape = info.type.shape.data();
      view.bytes = static_cast<size_t>(info.type.Bytes());
    }
    result.push_back(view);
  }
  return result;
}

Status Create(std::string_view onnx, const ag::SessionOptions& options, ag_session** out) {
  auto session = std::make_unique<ag_session>();
  AG_LET(session->session, ag::Session::Load(onnx, options));
  session->inputs = InfosOf(session->session->inputs());
  session->outputs = InfosOf(session->session->outputs());
  *out = session.release();
  return ag::OkStatus();
}

Status NullArgument(std::string_view name) {
  return Err(StatusCode::kInvalidArgument, "{} is NULL", name);
}

ag::StatusOr<ag::Tensor> StringsFromC(const ag_tensor& given, const ag::TensorType& type,
                                      std::string_view name) {
  const auto* const texts = static_cast<const char* const*>(given.data);
  std::vector<std::string_view> strings;
  for (int64_t i = 0; i < type.NumElements(); ++i) {
    if (texts == nullptr || texts[i] == nullptr) {
      return Err(StatusCode::kInvalidArgument, "input \"{}\": string {} is NULL", name, i);
    }
    strings.emplace_back(texts[i]);
  }
  return ag::Tensor::FromStrings(type.shape, strings);
}

// Puts the strings of a tensor, each with a NUL, where the results keep them.
const void* StringsToC(const ag::Tensor& tensor, ag_results& results) {
  std::vector<const char*>& pointers = results.pointers.emplace_back();
  for (const std::string_view text : tensor.Strings()) {
    pointers.push_back(results.strings.emplace_back(text).c_str());
  }
  return pointers.data();
}

// Returns a view of the caller's tensor, which `name` names in errors.
ag::StatusOr<ag::Tensor> FromC(const ag_tensor& given, std::string_view name) {
  int32_t number = 0;  // C may store what no enumerator says, which C++ must not load.
  static_assert(sizeof(number) == sizeof(given.dtype));
  std::memcpy(&number, &given.dtype, sizeof(number));
  const ag::StatusOr<ag::DType> dtype = ag::DTypeFromOnnx(number);
  AG_TRY(dtype, "input \"{}\"", name);
  if (given.rank < 0 || static_cast<size_t>(given.rank) > ag::kRankMax ||
      (given.shape == nullptr && given.rank > 0)) {
    return Err(StatusCode::kInvalidArgument, "input \"{}\": rank {} without as many sizes", name,
               given.rank);
  }
  const ag::TensorType type{*dtype, ag::Shape(given.shape, given.shape + given.rank)};
  AG_TRY(ag::CheckType(type), "input \"{}\"", name);
  if (type.dtype == ag::DType::kString) return StringsFromC(given, type, name);
  const auto address = reinterpret_cast<uintptr_t>(given.data);
  if ((given.data == nullptr && type.Bytes() > 0) ||
      address % static_cast<uintptr_t>(ag::SizeOf(type.dtype)) != 0) {
    return Err(StatusCode::kInvalidArgument, "input \"{}\": no aligned data for {}", name,
               type.ToString());
  }
  const auto size = static_cast<size_t>(type.Bytes());
  return ag::Tensor::View(type, {static_cast<const char*>(given.data), size}, nullptr);
}

void AddOutput(const ag::ModelValue& value, const ag::TensorInfo& info, ag_results& results) {
  ag_results::Output& output = results.outputs.emplace_back();
  output.tensors = ag::TensorsIn(value);
  output.is_tensor = info.kind == ag::OnnxKind::kTensor;
  for (const ag::Tensor& tensor : output.tensors) {
    const ag::TensorType& type = tensor.type();
    const bool of_strings = type.dtype == ag::DType::kString;
    output.views.push_back(
        {.dtype = static_cast<ag_dtype>(ag::DTypeToOnnx(type.dtype)),
         .rank = static_cast<int32_t>(type.shape.size()),
         .shape = type.shape.data(),
         .data = of_strings ? StringsToC(tensor, results) : tensor.bytes().data()});
  }
  const bool is_none = value.kind == ag::OnnxKind::kOptional && value.items.empty();
  output.value = {is_none ? 1 : 0, output.views.size(), output.views.data()};
}

// Returns a view of the caller's value.
ag::StatusOr<ag::ModelValue> FromC(const ag_value& given, const ag::TensorInfo& info) {
  const bool is_optional = info.kind == ag::OnnxKind::kOptional;
  if (given.is_none != 0) {
    if (is_optional && given.count == 0) return ag::ModelValue(info.kind, {});
    return Err(StatusCode::kInvalidArgument, "input \"{}\": {} is given as none", info.name,
               given.count > 0 ? "a value" : ag::ToString(info.form()));
  }
  if (given.tensors == nullptr && given.count > 0) {
    return Err(StatusCode::kInvalidArgument, "input \"{}\": {} tensors at NULL", info.name,
               given.count);
  }
  if (!info.holds_sequence && given.count != 1) {
    return Err(StatusCode::kInvalidArgument, "input \"{}\": expected {}, got {} tensors", info.name,
               ag::ToString(info.form()), given.count);
  }
  std::vector<ag::Tensor> tensors;
  for (const ag_tensor& one : std::span(given.tensors, given.count)) {
    AG_LET(ag::Tensor tensor, FromC(one, info.name));
    tensors.push_back(std::move(tensor));
  }
  return ag::MakeValue(info.form(), std::move(tensors));
}

Status RunValues(ag_session& session, std::span<const ag_value> given, ag_results** out) {
  const std::vector<ag::TensorInfo>& infos = session.session->inputs();
  if (given.size() != infos.size()) {
    return Err(StatusCode::kInvalidArgument, "model: expected {} inputs, got {}", infos.size(),
               given.size());
  }
  std::vector<ag::ModelValue> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    AG_LET(ag::ModelValue value, FromC(given[i], infos[i]));
    inputs.push_back(std::move(value));
  }
  AG_LET(const std::vector<ag::ModelValue> outputs, session.session->RunValues(inputs));
  auto results = std::make_unique<ag_results>();
  for (size_t i = 0; i < outputs.size(); ++i) {
    AddOutput(outputs[i], session.session->outputs()[i], *results);
  }
  *out = results.release();
  return ag::OkStatus();
}

ag_kind KindOf(const ag::TensorInfo& info) {
  if (info.kind == ag::OnnxKind::kSequence) return AG_SEQUENCE;
  if (info.kind != ag::OnnxKind::kOptional) return AG_TENSOR;
  return info.holds_sequence ? AG_OPTIONAL_SEQUENCE : AG_OPTIONAL;
}

const ag_tensor_info* At(const std::vector<ag_tensor_info>& infos, size_t index) {
  return index < infos.size() ? &infos[index] : nullptr;
}

}  // namespace

const char* ag_version(void) { return ag::Version().data(); }

const char* ag_last_error(void) { return LastError().c_str(); }

ag_status ag_session_create(const void* onnx, size_t bytes, const ag_session_options* options,
                            ag_session** out) {
  return Guarded([&]() -> Status {
    if (out == nullptr) return NullArgument("out");
    *out = nullptr;
    if (onnx == nullptr) return NullArgument("onnx");
    AG_LET(const ag::SessionOptions converted, ToOptions(options));
    return Create({static_cast<const char*>(onnx), bytes}, converted, out);
  });
}

ag_status ag_session_create_from_file(const char* path, const ag_session_options* options,
                                      ag_session** out) {
  return Guarded([&]() -> Status {
    if (out == nullptr) return NullArgument("out");
    *out = nullptr;
    if (path == nullptr) return NullArgument("path");
    AG_LET(ag::SessionOptions converted, ToOptions(options));
    converted.name = path;
    AG_LET(const std::shared_ptr<const ag::ModelView> file, ag::ModelView::Open(path));
    converted.owner = file;
    return Create(file->bytes(), converted, out);
  });
}

void ag_session_destroy(ag_session* session) { delete session; }

size_t ag_session_input_count(const ag_session* session) {
  return session == nullptr ? 0 : session->inputs.size();
}

size_t ag_session_output_count(const ag_session* session) {
  return session == nullptr ? 0 : session->outputs.size();
}

const ag_tensor_info* ag_session_input(const ag_session* session, size_t index) {
  return session == nullptr ? nullptr : At(session->inputs, index);
}

const ag_tensor_info* ag_session_output(const ag_session* session, size_t index) {
  return session == nullptr ? nullptr : At(session->outputs, index);
}

size_t ag_session_warning_count(const ag_session* session) {
  return session == nullptr ? 0 : session->session->warnings().size();
}

const char* ag_session_warning(const ag_session* session, size_t index) {
  if (index >= ag_session_warning_count(session)) return nullptr;
  return session->session->warnings()[index].c_str();
}

int ag_session_uses_carried_plan(const ag_session* session) {
  return session != nullptr && session->session->uses_carried_plan() ? 1 : 0;
}

ag_status ag_session_run(ag_session* session, const void* const* inputs, void* const* outputs) {
  return ag_session_run_timed(session, inputs, outputs, nullptr);
}

ag_status ag_session_run_timed(ag_session* session, const void* const* inputs, void* const* outputs,
                               int64_t* device_ns) {
  return Guarded([&]() -> Status {
    if (session == nullptr) return NullArgument("session");
    if (inputs == nullptr && !session->inputs.empty()) return NullArgument("inputs");
    if (outputs == nullptr && !session->outputs.empty()) return NullArgument("outputs");
    AG_LET(const ag::Nanos spent, session->session->RunInPlace({inputs, session->inputs.size()},
                                                               {outputs, session->outputs.size()}));
    if (device_ns != nullptr) *device_ns = spent.count();
    return ag::OkStatus();
  });
}

int ag_session_input_is_open(const ag_session* session, size_t index, int32_t axis) {
  if (session == nullptr || index >= session->inputs.size() || axis < 0) return 0;
  const auto& open = session->session->inputs()[index].open_axes;
  return std::ranges::count(open, static_cast<size_t>(axis)) > 0 ? 1 : 0;
}

ag_kind ag_session_input_kind(const ag_session* session, size_t index) {
  const bool is_there = index < ag_session_input_count(session);
  return is_there ? KindOf(session->session->inputs()[index]) : AG_TENSOR;
}

ag_kind ag_session_output_kind(const ag_session* session, size_t index) {
  const bool is_there = index < ag_session_output_count(session);
  return is_there ? KindOf(session->session->outputs()[index]) : AG_TENSOR;
}

ag_status ag_session_run_any(ag_session* session, const ag_tensor* inputs, size_t count,
                             ag_results** out) {
  return Guarded([&]() -> Status {
    if (out == nullptr) return NullArgument("out");
    *out = nullptr;
    if (session == nullptr) return NullArgument("session");
    if (inputs == nullptr && count > 0) return NullArgument("inputs");
    std::vector<ag_value> values;
    for (size_t i = 0; i < count; ++i) {
      if (ag_session_input_kind(session, i) != AG_TENSOR) {
        const ag::TensorInfo& info = session->session->inputs()[i];
        return Err(StatusCode::kInvalidArgument,
                   "input \"{}\" is {}: ag_session_run_values takes it", info.name,
                   ag::ToString(info.form()));
      }
      values.push_back({0, 1, inputs + i});
    }
    return RunValues(*session, values, out);
  });
}

ag_status ag_session_run_values(ag_session* session, const ag_value* inputs, size_t count,
                                ag_results** out) {
  return Guarded([&]() -> Status {
    if (out == nullptr) return NullArgument("out");
    *out = nullptr;
    if (session == nullptr) return NullArgument("session");
    if (inputs == nullptr && count > 0) return NullArgument("inputs");
    return RunValues(*session, {inputs, count}, out);
  });
}

size_t ag_results_count(const ag_results* results) {
  return results == nullptr ? 0 : results->outputs.size();
}

const ag_tensor* ag_results_at(const ag_results* results, size_t index) {
  const bool is_tensor = index < ag_results_count(results) && results->outputs[index].is_tensor;
  return is_tensor ? results->outputs[index].value.tensors : nullptr;
}

const ag_value* ag_results_value(const ag_results* results, size_t index) {
  return index < ag_results_count(results) ? &results->outputs[index].value : nullptr;
}

void ag_results_destroy(ag_results* results) { delete results; }
