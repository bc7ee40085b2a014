#include "device/cuda/codegen/testing/host_check.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/cuda/codegen/space.h"
#include "device/cuda/codegen/testing/host_kernels.h"
#include "graph/array.h"
#include "graph/reference/evaluate.h"
#include "plan/spec/layout.h"

namespace ag::cuda {
namespace {

constexpr size_t kPage = 4096;
constexpr uint8_t kUntouched = 0xa5;

// Memory that ends at a page that cannot be touched, aligned to exactly 16 bytes.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : bytes_(bytes) {
    const size_t whole = (bytes + 15) / 16 * 16;
    mapped_ = (whole + kPage - 1) / kPage * kPage + 2 * kPage;
    void* memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    AG_CHECK(memory != MAP_FAILED);
    map_ = static_cast<uint8_t*>(memory);
    mprotect(map_, kPage, PROT_NONE);
    mprotect(map_ + mapped_ - kPage, kPage, PROT_NONE);
    data_ = map_ + mapped_ - kPage - whole;
    std::memset(map_ + kPage, kUntouched, mapped_ - 2 * kPage);
    if (bytes > 0) std::memset(data_, 0xff, bytes);  // NaN in floats.
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    std::swap(map_, other.map_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GuardedBuffer() {
    if (map_ != nullptr) munmap(map_, mapped_);
  }

  uint8_t* data() { return data_; }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(data_), bytes_}; }
  void Protect() { mprotect(map_ + kPage, mapped_ - 2 * kPage, PROT_READ); }
  bool IsIntact() const {
    const auto untouched = [](uint8_t byte) { return byte == kUntouched; };
    return std::all_of(map_ + kPage, data_, untouched) &&
           std::all_of(data_ + bytes_, map_ + mapped_ - kPage, untouched);
  }

 private:
  uint8_t* map_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

// The places of a tensor's elements, and the number of bytes.
struct Placing {
  Sizes strides;
  int64_t bytes = 0;
};

Placing PlacingIn(const TensorType& stored, Layout layout) {
  return {DenseStrides(stored.shape, layout), LayoutBytes(stored, layout)};
}

// The bytes between a tensor's elements: in constants the zeros that the kernel asked for,
// elsewhere NaN, which must not reach a result (outside of tests it is zero).
enum class Between : uint8_t { kZero = 0, kNan = 0xff };

// Returns the tensor's values as another type has them; the same type keeps what no double holds.
Tensor Converted(const Tensor& tensor, DType to) {
  if (tensor.type().dtype == to) return tensor;
  return Tensor::FromDoubles({to, tensor.type().shape}, tensor.ToDoubles());
}

// Returns a plain tensor's elements in another type and placing.
GuardedBuffer Packed(const Tensor& tensor, DType stored, const Placing& placing, Between between) {
  const Tensor converted = Converted(tensor, stored);
  GuardedBuffer buffer(placing.bytes);
  std::fill_n(buffer.data(), placing.bytes, static_cast<uint8_t>(between));
  const Sizes& strides = placing.strides;
  const size_t size = static_cast<size_t>(SizeOf(stored));
  Walker<1> walker(tensor.type().shape, {Shape(strides.begin(), strides.end())});
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i, walker.Next()) {
    std::memcpy(buffer.data() + static_cast<size_t>(walker.offset(0)) * size,
                converted.bytes().data() + static_cast<size_t>(i) * size, size);
  }
  buffer.Protect();
  return buffer;
}

// Returns the elements that a kernel wrote. kInternal: padding is not zero.
StatusOr<Tensor> Unpacked(const GuardedBuffer& buffer, const TensorType& type, DType stored,
                          const Placing& placing) {
  const int64_t size = SizeOf(stored);
  Tensor plain = Tensor::Zeros({stored, type.shape});
  std::string padding(buffer.bytes());
  const Sizes& strides = placing.strides;
  Walker<1> walker(type.shape, {Shape(strides.begin(), strides.end())});
  for (int64_t i = 0; i < type.NumElements(); ++i, walker.Next()) {
    std::memcpy(plain.Mutable<char>().data() + i * size,
                buffer.bytes().data() + walker.offset(0) * size, static_cast<size_t>(size));
    padding.replace(walker.offset(0) * size, size, size, '\0');
  }
  const auto wrong = padding.find_first_not_of('\0');
  if (wrong == std::string::npos) return Converted(plain, type.dtype);
  return Err(StatusCode::kInternal, "byte {} of the padding is not zero", wrong);
}

// Returns the placing of a constant whose axes are in `order` and as long as `padded` says; empty:
// as they are.
Placing PlacingOf(const GeneratedConstant& constant, const Shape& shape) {
  const Shape& padded = constant.padded.empty() ? shape : constant.padded;
  Placing placing{DenseStrides(padded, Layout::kPlain)};
  int64_t below = 1;
  for (size_t i = constant.order.size(); i-- > 0;) {
    placing.strides[constant.order[i]] = below;
    below *= padded[constant.order[i]];
  }
  placing.bytes = NumElements(padded) * SizeOf(constant.stored);
  return placing;
}

// The buffers of one group, by what arguments point to.
class GroupRun {
 public:
  static StatusOr<GroupRun> Prepare(const GroupCheck& check) {
    GroupRun run(check);
    for (size_t i = 0; i < check.inputs.size(); ++i) {
      const TensorType& type = check.inputs[i].type();
      run.buffers_[0].push_back(Packed(check.inputs[i], run.Stored(type),
                                       run.PlacingAt(check.group.inputs[i]), Between::kNan));
    }
    for (const Port& port : check.group.outputs) {
      run.buffers_[1].emplace_back(run.PlacingAt(port).bytes);
    }
    for (const GeneratedConstant& constant : check.generated.constants) {
      AG_LET(const Tensor value, Materialize(check.graph, constant.edge, *check.weights));
      run.buffers_[2].push_back(
          Packed(value, constant.stored, PlacingOf(constant, value.type().shape), Between::kZero));
    }
    run.buffers_[3].emplace_back(check.generated.workspace_bytes);
    return run;
  }

  Status Run(HostModule* module, const std::string& prefix) {
    for (const GeneratedKernel& kernel : check_.generated.kernels) {
      std::vector<const void*> pointers;
      for (const GeneratedArgument& argument : kernel.arguments) {
        GuardedBuffer& buffer = buffers_[static_cast<size_t>(argument.kind)][argument.index];
        pointers.push_back(buffer.data() + argument.offset_bytes);
      }
      AG_TRY(module->Run(prefix + kernel.function, kernel.grid, kernel.block, kernel.shared_bytes,
                         pointers));
    }
    return OkStatus();
  }

  Status Compare() const {
    for (const std::vector<GuardedBuffer>& kind : buffers_) {
      for (const GuardedBuffer& buffer : kind) {
        if (!buffer.IsIntact()) return Err(StatusCode::kInternal, "wrote beside a tensor");
      }
    }
    for (size_t i = 0; i < check_.expected.size(); ++i) {
      const Tensor& expected = check_.expected[i];
      const StatusOr<Tensor> actual =
          Unpacked(buffers_[1][i], expected.type(), Stored(expected.type()),
                   PlacingAt(check_.group.outputs[i]));
      AG_TRY(actual, "output {}", i);
      AG_TRY(CompareTensors(expected, *actual, check_.precision), "output {}", i);
    }
    return OkStatus();
  }

 private:
  explicit GroupRun(const GroupCheck& check) : check_(check) {}
  DType Stored(const TensorType& type) const { return StoredDType(type.dtype, check_.precision); }
  Placing PlacingAt(const Port& port) const {
    const TensorType& type = check_.graph.type(port.edge);
    return PlacingIn({Stored(type), type.shape}, port.layout);
  }

  const GroupCheck& check_;
  std::array<std::vector<GuardedBuffer>, 4> buffers_;  // By GeneratedArgument::Kind.
};

std::string ElementOf(const Tensor& tensor, size_t i) {
  if (tensor.type().dtype == DType::kInt64) return fmt::format("{}", tensor.As<int64_t>()[i]);
  return fmt::format("{}", tensor.At(static_cast<int64_t>(i)));
}

// Compares every bit: doubles do not hold all integers.
Status CompareIntegers(const Tensor& expected, const Tensor& actual) {
  const std::string_view a = expected.bytes(), b = actual.bytes();
  const auto size = static_cast<size_t>(SizeOf(expected.type().dtype));
  for (size_t i = 0; i < a.size() / size; ++i) {
    if (a.substr(i * size, size) == b.substr(i * size, size)) continue;
    return Err(StatusCode::kInternal, "{}: element {}: expected {}, got {}",
               expected.type().ToString(), i, ElementOf(expected, i), ElementOf(actual, i));
  }
  return OkStatus();
}

Status RunOne(const GroupCheck& check, HostModule* module, const std::string& prefix) {
  AG_LET(GroupRun run, GroupRun::Prepare(check));
  AG_TRY(run.Run(module, prefix));
  return run.Compare();
}

}  // namespace

Status CompareTensors(const Tensor& expected, const Tensor& actual, Precision precision) {
  if (IsInteger(expected.type().dtype)) return CompareIntegers(expected, actual);
  double tolerance = 2e-5;
  if (precision == Precision::kFp16 || precision == Precision::kTf32) tolerance = 2e-3;
  if (precision == Precision::kBf16) tolerance = 2e-2;
  double largest = 0, error = 0;
  for (int64_t i = 0; i < expected.type().NumElements(); ++i) {
    const double a = expected.At(i), b = actual.At(i);
    if (std::isfinite(a)) largest = std::max(largest, std::abs(a));
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) {
      return Err(StatusCode::kInternal, "element {}: expected {}, got {}", i, a, b);
    }
    error = std::max(error, std::abs(a - b));
  }
  if (!IsFloat(expected.type().dtype)) tolerance = 0;
  if (error <= tolerance * largest) return OkStatus();
  return Err(StatusCode::kInternal, "{}: error {:.3g} of {:.3g}", expected.type().ToString(), error,
             largest);
}

StatusOr<std::vector<GroupCheck>> ChecksOf(const std::string& name, const GroupProblem& problem,
                                           Precision precision, const Chip& chip) {
  GroupCheck check{.name = name, .graph = problem.graph, .precision = precision};
  check.group = SingleGroupPlan(problem).groups[0];
  check.weights = std::make_shared<SyntheticWeights>();
  for (const NodeId id : check.graph.inputs()) {
    const TensorType type = check.graph.type({id, 0});
    const Tensor values = RandomTensor(type, 5 + check.inputs.size());
    // The kernel reads rounded values, so the reference gets the same.
    const DType stored = StoredDType(type.dtype, precision);
    check.inputs.push_back(Converted(Converted(values, stored), type.dtype));
  }
  AG_LET(check.expected, Evaluate(check.graph, check.inputs, *check.weights));
  const GroupContext context{check.graph, check.group, precision, chip};
  AG_LET(const std::vector<std::string> variants, GeneratedVariants(context));
  std::vector<GroupCheck> checks;
  for (const std::string& variant : variants) {
    AG_LET(check.generated, GenerateGroup(context, variant));
    check.name = fmt::format("{} by {}", name, variant);
    checks.push_back(check);
  }
  return checks;
}

std::string JoinSources(std::span<const GroupCheck> checks) {
  std::string text;
  for (size_t i = 0; i < checks.size(); ++i) {
    text += fmt::format("\n// {}\nnamespace g{} {{\n", checks[i].name, i);
    for (const GeneratedKernel& kernel : checks[i].generated.kernels) {
      text += fmt::format("#define {0} g{1}_{0}\n", kernel.function, i);
    }
    text += checks[i].generated.source;
    for (const GeneratedKernel& kernel : checks[i].generated.kernels) {
      text += fmt::format("#undef {}\n", kernel.function);
    }
    text += fmt::format("}}  // namespace g{}\n", i);
  }
  return text;
}

StatusOr<std::vector<std::string>> RunChecks(std::span<const GroupCheck> checks) {
  AG_LET(const std::string object, CompileForHost(JoinSources(checks)));
  AG_LET(HostModule module, HostModule::Load(object));
  std::vector<std::string> wrong;
  for (size_t i = 0; i < checks.size(); ++i) {
    const Status status = RunOne(checks[i], &module, fmt::format("g{}_", i));
    if (!status.ok()) wrong.push_back(fmt::format("{}: {}", checks[i].name, Message(status)));
  }
  return wrong;
}

}  // namespace ag::cuda
