#include "graph/inputs/input_set.h"

#include <cmath>

#include "base/file.h"
#include "base/text.h"

namespace ag {
namespace {

constexpr std::string_view kFirstLine = "autograph-inputs 1\n";
constexpr size_t kLineMax = 1024;

// Reads the pieces of the bytes in their order.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool is_at_end() const { return rest_.empty(); }

  StatusOr<std::string_view> Line() {
    const size_t end = rest_.substr(0, kLineMax).find('\n');
    if (end == std::string_view::npos) return Broken("a line has no end");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  StatusOr<std::string_view> Take(int64_t size) {
    if (size < 0 || static_cast<uint64_t>(size) > rest_.size()) return Broken("it is cut off");
    const std::string_view piece = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(static_cast<size_t>(size));
    return piece;
  }

  static Status Broken(std::string_view why) {
    return Err(StatusCode::kInvalidArgument, "not a set of inputs: {}", why);
  }

 private:
  std::string_view rest_;
};

StatusOr<TensorType> ParseType(std::string_view dtype, std::string_view sizes) {
  TensorType type;
  AG_LET(type.dtype, ParseDType(dtype));
  if (sizes != "-") {
    for (const std::string_view size : Split(sizes, 'x')) {
      AG_LET(const int64_t parsed, ParseInt(size));
      type.shape.push_back(parsed);
    }
  }
  AG_TRY(CheckType(type));
  return type;
}

Status ReadOne(Reader& reader, const std::shared_ptr<const void>& owner, InputSet* set) {
  AG_LET(const std::string_view line, reader.Line());
  const std::vector<std::string_view> words = Split(line, ' ');
  if (words.size() != 4) return Reader::Broken("a line has not four words");
  AG_LET(const int64_t name_bytes, ParseInt(words[0]));
  AG_LET(const TensorType type, ParseType(words[1], words[2]));
  AG_LET(const int64_t data_bytes, ParseInt(words[3]));
  AG_LET(const std::string_view name, reader.Take(name_bytes));
  AG_LET(const std::string_view data, reader.Take(data_bytes));
  if (!BytesFit(type, data)) {
    return Reader::Broken(fmt::format("{} bytes for {}", data.size(), type.ToString()));
  }
  // Elements are read in place only where they are aligned.
  const bool is_aligned = reinterpret_cast<uintptr_t>(data.data()) % alignof(int64_t) == 0;
  Tensor tensor = is_aligned ? Tensor::View(type, data, owner) : Tensor::FromBytes(type, data);
  if (!set->emplace(std::string(name), std::move(tensor)).second) {
    return Reader::Broken(fmt::format("input {} is there twice", name));
  }
  return OkStatus();
}

std::string NamesOf(const std::vector<InputSpec>& inputs) {
  std::vector<std::string> names;
  for (const InputSpec& input : inputs) names.push_back(input.name);
  return Join(names, ", ");
}

Status CheckOneType(const std::string& name, const TensorType& wanted, const TensorType& given) {
  if (wanted == given) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input {}: the model takes {}, given is {}", name,
             wanted.ToString(), given.ToString());
}

Status CheckFinite(const std::string& name, const Tensor& tensor) {
  if (!IsFloat(tensor.type().dtype)) return OkStatus();
  const int64_t n = tensor.type().NumElements();
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong += std::isfinite(tensor.At(i)) ? 0 : 1;
  if (wrong == 0) return OkStatus();
  return Err(StatusCode::kInvalidArgument,
             "input {}: {} of {} values are Inf or NaN, which would hide differences", name, wrong,
             n);
}

}  // namespace

std::string EncodeInputSet(const InputSet& set) {
  std::string bytes(kFirstLine);
  for (const auto& [name, tensor] : set) {
    const Shape& shape = tensor.type().shape;
    const std::string sizes = shape.empty() ? "-" : Join(shape, "x");
    bytes += fmt::format("{} {} {} {}\n", name.size(), DTypeName(tensor.type().dtype), sizes,
                         tensor.bytes().size());
    bytes += name;
    bytes += tensor.bytes();
  }
  return bytes;
}

StatusOr<InputSet> DecodeInputSet(std::string_view bytes, std::shared_ptr<const void> owner) {
  if (static_cast<int64_t>(bytes.size()) > kInputSetBytesMax) {
    return Err(StatusCode::kInvalidArgument, "a set of inputs has {} bytes, at most {} are taken",
               bytes.size(), kInputSetBytesMax);
  }
  if (!bytes.starts_with(kFirstLine)) return Reader::Broken("it begins otherwise");
  Reader reader(bytes.substr(kFirstLine.size()));
  InputSet set;
  while (!reader.is_at_end()) {
    const Status read = ReadOne(reader, owner, &set);
    if (!read.ok()) return Status(StatusCode::kInvalidArgument, Message(read));
  }
  return set;
}

StatusOr<InputSet> ReadInputSet(const std::string& path) {
  AG_LET(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return DecodeInputSet(file->bytes(), file);
}

Status CheckInputSet(const InputSet& set, const std::vector<InputSpec>& inputs) {
  std::map<std::string, const InputSpec*> known;
  std::vector<std::string> names;
  for (const InputSpec& input : inputs) {
    known[input.name] = &input;
    names.push_back(input.name);
  }
  for (const auto& [name, tensor] : set) {
    if (known.contains(name)) continue;
    return Err(StatusCode::kInvalidArgument, "the model has no input {}{}; its inputs are {}", name,
               DidYouMean(name, names), NamesOf(inputs));
  }
  for (const InputSpec& input : inputs) {
    const auto given = set.find(input.name);
    if (given == set.end()) {
      return Err(StatusCode::kInvalidArgument, "input {} is missing; the model's inputs are {}",
                 input.name, NamesOf(inputs));
    }
    AG_TRY(CheckOneType(input.name, input.type, given->second.type()));
    AG_TRY(CheckFinite(input.name, given->second));
  }
  return OkStatus();
}

Status TakeFromSet(const InputSet& set, std::span<const InputSpec> inputs,
                   std::vector<Tensor>* tensors) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto given = set.find(inputs[i].name);
    if (given == set.end()) continue;
    AG_TRY(CheckOneType(inputs[i].name, inputs[i].type, given->second.type()));
    (*tensors)[i] = given->second;
  }
  return OkStatus();
}

InputSet ToInputSet(const std::vector<InputSpec>& inputs, const std::vector<Tensor>& tensors) {
  InputSet set;
  for (size_t i = 0; i < inputs.size(); ++i) set[inputs[i].name] = tensors[i];
  return set;
}

}  // namespace ag
