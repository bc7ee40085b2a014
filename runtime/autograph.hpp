// AutoGraph's runtime in C++20, header-only over the C interface (autograph.h):
//
//   autograph::Result<autograph::Session> session = autograph::Session::Open("model.onnx");
//   if (!session.ok()) { std::cerr << session.status().message << '\n'; return 1; }
//   std::vector<float> pixels(3 * 224 * 224), scores(1000);
//   autograph::Status status = session->Run({pixels}, {scores});
//
// Throws nothing but std::bad_alloc. Thread-safe as autograph.h says: several threads may run one
// Session.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograph.h"

namespace autograph {

struct Status {
  ag_status code = AG_OK;
  std::string message;  // Empty when OK.
  bool ok() const { return code == AG_OK; }
};

// A value, or the error that explains why there is none.
template <class T>
class Result {
 public:
  Result(Status status) : status_(std::move(status)) {}  // REQUIRES: not OK.
  Result(T value) : value_(std::move(value)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // REQUIRES: ok().
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

// Contiguous memory of the caller, read by one call: any vector, array or span of plain values.
class Input {
 public:
  template <std::ranges::contiguous_range Range>
  requires std::is_trivially_copyable_v<std::ranges::range_value_t<Range>> Input(const Range& range)
      : data_(std::ranges::data(range)),
        bytes_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>)) {}
  Input(const void* data, size_t bytes) : data_(data), bytes_(bytes) {}

  const void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  const void* data_;
  size_t bytes_;
};

// Contiguous memory of the caller, written by one call.
class Output {
 public:
  template <std::ranges::contiguous_range Range>
  requires std::is_trivially_copyable_v<std::ranges::range_value_t<Range>> Output(Range&& range)
      : data_(std::ranges::data(range)),
        bytes_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>)) {}
  Output(void* data, size_t bytes) : data_(data), bytes_(bytes) {}

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
};

// The name and type of an input or output of the model. Lives as long as its session.
struct TensorInfo {
  std::string_view name;
  ag_dtype dtype = AG_FLOAT32;
  std::span<const int64_t> shape;  // Outermost first; every size is known.
  size_t bytes = 0;                // Row-major, without gaps.
  // False: an output whose sizes are known after a run, or what is no tensor.
  bool has_shape = true;
  ag_kind kind = AG_TENSOR;  // Else dtype is that of its tensors.

  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
  }
};

struct Options {
  std::string device = "cpu";  // "cpu:2", "sim:NAME", "cuda:0".
  ag_plan_choice plan = AG_PLAN_CARRIED;
  int32_t streams = 0;  // 0: as the plan says; tuned, as many as measure best.
  // Sizes for inputs whose sizes the model leaves open, by input name.
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {};
  // True: a plan that is made here comes from measurements, which take seconds to a minute while
  // loading.
  bool tune = false;
  // A folder that keeps tuned plans for later sessions. Nothing: the user's own, below ~/.cache.
  // Empty: no folder.
  std::optional<std::string> tuned_plans = std::nullopt;
};

// The outputs of one run, in the library's memory. Movable; its destructor frees them.
class Results {
 public:
  explicit Results(ag_results* handle) : handle_(handle) {}
  size_t size() const { return ag_results_count(handle_.get()); }
  // REQUIRES: the output is a tensor.
  const ag_tensor& operator[](size_t index) const { return *ag_results_at(handle_.get(), index); }
  const ag_value& value(size_t index) const { return *ag_results_value(handle_.get(), index); }

 private:
  struct Free {
    void operator()(ag_results* results) const { ag_results_destroy(results); }
  };
  std::unique_ptr<ag_results, Free> handle_;
};

// A loaded model on its device. Movable; its destructor frees it.
class Session {
 public:
  // Loads a file, also with data files beside it, and maps its weights: the files must not be
  // written to while the session lives.
  static Result<Session> Open(const std::string& path, const Options& options = {}) {
    return Make(options, [&](const ag_session_options& converted, ag_session** out) {
      return ag_session_create_from_file(path.c_str(), &converted, out);
    });
  }
  // Loads the bytes of a model, which may be freed afterwards.
  static Result<Session> Load(std::span<const std::byte> onnx, const Options& options = {}) {
    return Make(options, [&](const ag_session_options& converted, ag_session** out) {
      return ag_session_create(onnx.data(), onnx.size(), &converted, out);
    });
  }

  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  bool uses_carried_plan() const { return ag_session_uses_carried_plan(handle_.get()) != 0; }
  std::vector<std::string> warnings() const {
    std::vector<std::string> result;
    const size_t count = ag_session_warning_count(handle_.get());
    for (size_t i = 0; i < count; ++i) result.emplace_back(ag_session_warning(handle_.get(), i));
    return result;
  }

  // Runs the model once, in place: one buffer per input and output, in the model's order, of
  // exactly the sizes in inputs() and outputs(). AG_INVALID_ARGUMENT names the buffer that does not
  // fit. Sets `device_time`, unless null, to the time that the device spent.
  Status Run(std::span<const Input> inputs, std::span<const Output> outputs,
             std::chrono::nanoseconds* device_time = nullptr) {
    if (Status status = Check("input", inputs_, inputs); !status.ok()) return status;
    if (Status status = Check("output", outputs_, outputs); !status.ok()) return status;
    Pointers<const void*> in(inputs);
    Pointers<void*> out(outputs);
    int64_t spent = 0;
    const ag_status code = ag_session_run_timed(handle_.get(), in.data(), out.data(), &spent);
    if (code != AG_OK) return {code, ag_last_error()};
    if (device_time != nullptr) *device_time = std::chrono::nanoseconds(spent);
    return {};
  }
  Status Run(std::initializer_list<Input> inputs, std::initializer_list<Output> outputs,
             std::chrono::nanoseconds* device_time = nullptr) {
    return Run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()),
               device_time);
  }

  // Runs the model once on tensors of any sizes that it leaves open, and returns its outputs in the
  // model's order; also a model whose outputs' sizes are known after a run (ag_session_run_any).
  Result<Results> RunAny(std::span<const ag_tensor> inputs) {
    ag_results* results = nullptr;
    const ag_status code =
        ag_session_run_any(handle_.get(), inputs.data(), inputs.size(), &results);
    if (code != AG_OK) return Status{code, ag_last_error()};
    return Results(results);
  }

  // Runs as RunAny, on a model that takes sequences or optionals too (ag_session_run_values).
  Result<Results> RunValues(std::span<const ag_value> inputs) {
    ag_results* results = nullptr;
    const ag_status code =
        ag_session_run_values(handle_.get(), inputs.data(), inputs.size(), &results);
    if (code != AG_OK) return Status{code, ag_last_error()};
    return Results(results);
  }

  ag_session* get() const { return handle_.get(); }  // For calls of autograph.h.

 private:
  struct Free {
    void operator()(ag_session* session) const { ag_session_destroy(session); }
  };

  // One pointer per buffer, without allocation for up to 16 of them.
  template <class Pointer>
  class Pointers {
   public:
    template <class Buffer>
    explicit Pointers(std::span<const Buffer> buffers) {
      Pointer* at = few_.data();
      if (buffers.size() > few_.size()) {
        many_.resize(buffers.size());
        at = many_.data();
      }
      for (size_t i = 0; i < buffers.size(); ++i) at[i] = buffers[i].data();
    }
    const Pointer* data() const { return many_.empty() ? few_.data() : many_.data(); }

   private:
    std::array<Pointer, 16> few_ = {};
    std::vector<Pointer> many_;
  };

  explicit Session(ag_session* session) : handle_(session) {
    for (size_t i = 0; i < ag_session_input_count(session); ++i) {
      inputs_.push_back(Convert(*ag_session_input(session, i), ag_session_input_kind(session, i)));
    }
    for (size_t i = 0; i < ag_session_output_count(session); ++i) {
      outputs_.push_back(
          Convert(*ag_session_output(session, i), ag_session_output_kind(session, i)));
    }
  }

  static TensorInfo Convert(const ag_tensor_info& info, ag_kind kind) {
    const bool has_shape = info.rank >= 0;
    const std::span shape(info.shape, static_cast<size_t>(has_shape ? info.rank : 0));
    return {info.name, info.dtype, shape, info.bytes, has_shape, kind};
  }

  template <class Create>
  static Result<Session> Make(const Options& options, const Create& create) {
    std::vector<ag_input_shape> shapes;
    for (const auto& [input, sizes] : options.shapes) {
      shapes.push_back({input.c_str(), static_cast<int32_t>(sizes.size()), sizes.data()});
    }
    ag_session_options converted = {};
    converted.size = sizeof(converted);
    converted.device = options.device.c_str();
    converted.plan = options.plan;
    converted.streams = options.streams;
    converted.shapes = shapes.data();
    converted.shapes_count = shapes.size();
    converted.tune = options.tune ? 1 : 0;
    converted.tuned_plans = options.tuned_plans ? options.tuned_plans->c_str() : nullptr;
    ag_session* session = nullptr;
    const ag_status code = create(converted, &session);
    if (code != AG_OK) return Status{code, ag_last_error()};
    return Session(session);
  }

  template <class Buffer>
  static Status Check(const char* what, const std::vector<TensorInfo>& infos,
                      std::span<const Buffer> buffers) {
    if (buffers.size() != infos.size()) {
      return {AG_INVALID_ARGUMENT, "expected " + std::to_string(infos.size()) + " " + what +
                                       "s, got " + std::to_string(buffers.size())};
    }
    for (size_t i = 0; i < infos.size(); ++i) {
      if (buffers[i].bytes() == infos[i].bytes) continue;
      return {AG_INVALID_ARGUMENT, std::string(what) + " \"" + std::string(infos[i].name) +
                                       "\": expected " + std::to_string(infos[i].bytes) +
                                       " bytes, got " + std::to_string(buffers[i].bytes())};
    }
    return {};
  }

  std::unique_ptr<ag_session, Free> handle_;
  std::vector<TensorInfo> inputs_, outputs_;  // Names and shapes belong to the handle.
};

}  // namespace autograph
