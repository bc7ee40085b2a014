#include "device/cpu/onednn.h"

#include <algorithm>

#include "device/cpu/blocked_copy.h"
#include "device/cpu/onednn_threads.h"
#include "device/cpu/packed_weights.h"

namespace ag::cpu {
namespace {

using Tag = dnnl::memory::format_tag;

dnnl::memory::data_type TypeOf(DType dtype) {
  using Type = dnnl::memory::data_type;
  if (dtype == DType::kFloat32) return Type::f32;
  if (dtype == DType::kBFloat16) return Type::bf16;
  if (dtype == DType::kInt32) return Type::s32;
  if (dtype == DType::kInt8) return Type::s8;
  AG_CHECK(dtype == DType::kUInt8 || dtype == DType::kBool);
  return Type::u8;
}

Dims PlainStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

Desc Plain(const Dims& dims, dnnl::memory::data_type type) {
  if (dims.empty()) return Desc({1}, type, Dims{1});
  return Desc(dims, type, PlainStrides(dims));
}

}  // namespace

const dnnl::engine& Engine() {
  static const dnnl::engine engine = [] {
    RunOneDnnOnTeams();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

std::string OneDnnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

Dims ToDims(std::span<const int64_t> values) { return Dims(values.begin(), values.end()); }

Desc PlainDesc(const Dims& dims, DType dtype) { return Plain(dims, TypeOf(dtype)); }

Desc AnyDesc(const Dims& dims, DType dtype) { return Desc(dims, TypeOf(dtype), Tag::any); }

Desc DescOf(const TensorType& type, Layout layout) {
  const Dims dims = ToDims(type.shape);
  const dnnl::memory::data_type dtype = TypeOf(type.dtype);
  switch (layout) {
    case Layout::kPlain:
      return Plain(dims, dtype);
    case Layout::kBlocked8:
      return Desc(dims, dtype, Tag::nChw8c);
    case Layout::kBlocked16:
      return Desc(dims, dtype, Tag::nChw16c);
    case Layout::kChannelsLast:
      return Desc(dims, dtype, Tag::nhwc);
    case Layout::kChannelsLast8:  // No kernel takes it.
      break;
  }
  return {};
}

Desc GivenDesc(const GroupContext& context, Edge edge, const Desc& desc) {
  Desc given = desc;
  const bool is_constant = context.InputOf(edge) < 0;
  if (is_constant && desc.data.data_type == dnnl_bf16) given.data.data_type = dnnl_f32;
  return given;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Status FromDnnl(const dnnl::error& error, std::string_view what) {
  const auto make = [&](StatusCode code) {
    return Err(code, "{}: oneDNN: {} (status {})", what, error.message,
               static_cast<int>(error.status));
  };
  switch (error.status) {
    case dnnl_unimplemented:
      return make(StatusCode::kUnimplemented);
    case dnnl_out_of_memory:
      return make(StatusCode::kResourceExhausted);
    default:
      return make(StatusCode::kInternal);
  }
}

std::vector<Desc> HeldForms(const GroupContext& context, Edge edge, const Desc& given,
                            const Dims& dims) {
  if (!context.prefers_held_weights || context.packed == nullptr || context.constants == nullptr ||
      context.InputOf(edge) >= 0) {
    return {};
  }
  const std::optional<Digest> name = context.FloatConstants()->Name(edge);
  if (!name.has_value()) return {};
  std::vector<Desc> held = context.packed->FormsOf(*name, given);
  std::erase_if(held, [&](const Desc& form) { return form.dims() != dims; });
  return held;
}

bool IsAsGood(const std::string& impl, const std::string& best) {
  const auto is_product = [](const std::string& name) { return name.find("gemm") != name.npos; };
  return !IsSlow(impl) && (!is_product(impl) || is_product(best));
}

dnnl::memory Call::Bind(const Desc& desc, Source source, size_t place, size_t offset) {
  dnnl::memory memory(desc, Engine(), DNNL_MEMORY_NONE);
  bindings_.push_back({memory, source, place, offset, nullptr});
  return memory;
}

dnnl::memory Call::Temporary(const Desc& desc) {
  const size_t offset = temporaries_bytes_;
  temporaries_bytes_ += AlignUp(desc.get_size());
  return Bind(desc, Source::kScratch, 0, offset);
}

Call::Step Call::Reorder(const dnnl::memory& from, const dnnl::memory& to) {
  const dnnl::reorder::primitive_desc desc(from, to, UserScratchpad());
  scratchpad_bytes_ = std::max(scratchpad_bytes_, desc.scratchpad_desc().get_size());
  return {dnnl::reorder(desc), {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}}};
}

namespace {

// Returns the values that lie there in the form `given` in the form `wanted`.
StatusOr<AlignedBuffer> Pack(const void* values, const Desc& wanted, const Desc& given) {
  AG_LET(AlignedBuffer packed, AlignedBuffer::Make(wanted.get_size()));
  const bool is_copied =
      CopyToBlocks(wanted, given, static_cast<const float*>(values), packed.data());
  if (is_copied) return packed;
  dnnl::memory from(given, Engine(), const_cast<void*>(values));
  dnnl::memory to(wanted, Engine(), packed.data());
  dnnl::stream stream(Engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return packed;
}

}  // namespace

Status Call::Constant(const GroupContext& context, Edge edge, int arg, const Desc& wanted,
                      const Desc& given) {
  const auto pack = [&](const Tensor& value) { return Pack(value.bytes().data(), wanted, given); };
  AG_LET(auto packed, PackedConstant(context, edge, wanted, given, pack));
  const dnnl::memory to(wanted, Engine(), packed->data());
  args_.push_back({arg, to.get()});
  held_.push_back(to);
  packed_.push_back(std::move(packed));
  return OkStatus();
}

Status Call::Hold(int arg, const Desc& wanted, const Desc& given, const void* values) {
  AG_LET(AlignedBuffer own, Pack(values, wanted, given));
  packed_.push_back(std::make_shared<const AlignedBuffer>(std::move(own)));
  held_.emplace_back(wanted, Engine(), packed_.back()->data());
  args_.push_back({arg, held_.back().get()});
  return OkStatus();
}

void Call::Input(int arg, const Desc& wanted, const Desc& given, int port, size_t offset) {
  dnnl::memory memory = Bind(given, Source::kInput, port, offset);
  if (wanted != given) {
    dnnl::memory temporary = Temporary(wanted);
    before_.push_back(Reorder(memory, temporary));
    memory = temporary;
  }
  args_.push_back({arg, memory.get()});
}

Status Call::Operand(const GroupContext& context, Edge edge, int arg, const Desc& wanted,
                     const Desc& given) {
  if (const int port = context.InputOf(edge); port >= 0) {
    Input(arg, wanted, given, port);
    return OkStatus();
  }
  return Constant(context, edge, arg, wanted, given);
}

void Call::Output(int arg, const Desc& wanted, const Desc& given, int port, size_t offset) {
  dnnl::memory memory = Bind(given, Source::kOutput, port, offset);
  if (wanted != given) {
    dnnl::memory temporary = Temporary(wanted);
    after_.push_back(Reorder(temporary, memory));
    memory = temporary;
  }
  args_.push_back({arg, memory.get()});
}

void Call::Finish(dnnl::primitive primitive, const Desc& scratchpad) {
  scratchpad_bytes_ = std::max(scratchpad_bytes_, scratchpad.get_size());
  const Desc bytes({static_cast<int64_t>(std::max<size_t>(scratchpad_bytes_, 1))},
                   dnnl::memory::data_type::u8, Dims{1});
  const dnnl::memory scratch = Bind(bytes, Source::kScratch, 0, temporaries_bytes_);
  scratch_bytes_ = temporaries_bytes_ + AlignUp(scratchpad_bytes_);
  steps_ = std::move(before_);
  steps_.push_back({std::move(primitive), std::move(args_)});
  for (Step& step : after_) steps_.push_back(std::move(step));
  for (Step& step : steps_) step.args.push_back({DNNL_ARG_SCRATCHPAD, scratch.get()});
}

Status Call::Execute(const Step& step, dnnl_stream* stream) {
  const dnnl_status_t status = dnnl_primitive_execute(
      step.primitive.get(), stream, static_cast<int>(step.args.size()), step.args.data());
  if (status == dnnl_success) return OkStatus();
  return Err(StatusCode::kInternal, "oneDNN: primitive failed with status {}",
             static_cast<int>(status));
}

Status Call::Run(const RunContext& context, Inputs inputs, Outputs outputs) {
  for (Binding& b : bindings_) {
    const void* base = context.scratch;
    if (b.source == Source::kInput) base = inputs[b.place];
    if (b.source == Source::kOutput) base = outputs[b.place];
    const std::byte* const data = static_cast<const std::byte*>(base) + b.offset;
    // Setting a handle also clears padding, which costs time; arena addresses stay the same.
    if (data == b.bound) continue;
    dnnl_memory_set_data_handle(b.memory.get(), const_cast<std::byte*>(data));
    b.bound = data;
  }
  for (const Step& step : steps_) AG_TRY(Execute(step, context.stream));
  return OkStatus();
}

}  // namespace ag::cpu
