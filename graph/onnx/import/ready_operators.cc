#include "graph/onnx/import/ready_operators.h"

#include <algorithm>

namespace ag {
namespace {

// Operators that are kept at the same time.
constexpr size_t kEntriesMax = 2048;

// A device needs about so long to make an operator ready: one that has taken as much on the
// reference kernels takes at most twice the least time in all.
constexpr Nanos kMakingNs{500'000};

// Operations of a contraction that the reference kernels need longer for than making it ready.
constexpr double kLargeWork = 4e6;

void AppendNumber(int64_t number, std::string* text) {
  text->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Whether an operand is a weight that a device packs for its kernels.
bool IsPacked(const SingleOperator& call, size_t i) {
  if (call.operands[i].lasting == 0) return false;
  return Has(call.op, kContraction) || Has(call.op, kBarrier);
}

std::string KeyOf(const SingleOperator& call) {
  std::string key;
  key.push_back(static_cast<char>(call.op));
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const TensorType& type = call.operands[i].tensor.type();
    key.push_back(static_cast<char>(type.dtype));
    key.push_back(static_cast<char>(type.shape.size()));
    for (const int64_t size : type.shape) AppendNumber(size, &key);
    AppendNumber(IsPacked(call, i) ? call.operands[i].lasting : 0, &key);
  }
  key += call.form;
  return key;
}

// Operations of a matrix product or convolution without its bias; 0 for other operators.
double WorkOf(const SingleOperator& call) {
  if (!Has(call.op, kContraction)) return 0;
  const TensorType& x = call.operands[0].tensor.type();
  const TensorType& w = call.operands[1].tensor.type();
  if (x.shape.empty() || w.shape.empty()) return 0;
  // Of a convolution with strides this is too much.
  const auto columns = static_cast<double>(
      call.op == OpKind::kMatMul ? w.shape.back() : w.NumElements() / x.shape[1]);
  return 2 * static_cast<double>(x.NumElements()) * columns;
}

// Devices compute on tensors of numbers with elements.
bool IsPlain(const TensorType& type) {
  return type.dtype != DType::kString && type.NumElements() > 0;
}

}  // namespace

ReadyOperators::Entry& ReadyOperators::EntryOf(const SingleOperator& call) {
  std::string key = KeyOf(call);
  const auto found = places_.find(key);
  if (found != places_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front();
  }
  if (entries_.size() == kEntriesMax) {
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  const bool fits = std::ranges::all_of(
      call.operands, [](const GivenOperand& operand) { return IsPlain(operand.tensor.type()); });
  entries_.push_front({.key = std::move(key), .refused = !fits});
  places_[entries_.front().key] = entries_.begin();
  return entries_.front();
}

Status ReadyOperators::Make(const SingleOperator& call, Entry& entry) {
  GraphBuilder builder;
  MemoryWeights weights;
  std::vector<Edge> edges;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Tensor& tensor = call.operands[i].tensor;
    edges.push_back(IsPacked(call, i)
                        ? builder.Constant(tensor.type(), weights.Put(tensor), tensor.bytes())
                        : builder.Input(fmt::format("{}", i), tensor.type()));
  }
  AG_LET(Attributes attributes, call.attributes());
  NodeId node = -1;
  if (call.op == OpKind::kOpaque) {
    node = builder.AddOpaque(edges, std::move(attributes), entry.types);
  } else {
    AG_LET(node, builder.Add(call.op, edges, std::move(attributes)));
    const auto outputs = builder.node(node).outputs;
    entry.types.assign(outputs.begin(), outputs.end());
    entry.omitted.assign(outputs.size(), false);
  }
  for (size_t i = 0; i < entry.types.size(); ++i) {
    builder.Output({node, static_cast<int32_t>(i)}, fmt::format("o{}", i));
  }
  AG_LET(const Graph graph, builder.Build());
  if (!std::ranges::all_of(entry.types, IsPlain)) {
    return Err(StatusCode::kUnimplemented, "a result without elements");
  }
  AG_LET(entry.run, make_(graph, weights));
  ++ready_;
  return OkStatus();
}

StatusOr<ReadyOperators::Results> ReadyOperators::RunReady(const SingleOperator& call,
                                                           const Entry& entry) const {
  std::vector<Tensor> inputs, outputs;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (!IsPacked(call, i)) inputs.push_back(call.operands[i].tensor);
  }
  for (const TensorType& type : entry.types) outputs.push_back(Tensor::Zeros(type));
  AG_TRY(entry.run(inputs, outputs));
  std::vector<Tensor> results;
  auto next = outputs.begin();
  for (const bool omitted : entry.omitted) results.push_back(omitted ? Tensor() : *next++);
  return results;
}

StatusOr<ReadyOperators::Results> ReadyOperators::Run(
    const SingleOperator& call, const std::function<StatusOr<Results>()>& reference) {
  if (make_ == nullptr) return reference();
  Entry& entry = EntryOf(call);
  const bool is_due = entry.spent >= kMakingNs || WorkOf(call) >= kLargeWork;
  if (entry.run == nullptr && !entry.refused && is_due) {
    entry.refused = !Make(call, entry).ok();
  }
  if (entry.run != nullptr) return RunReady(call, entry);
  if (entry.refused) return reference();
  const Nanos begin = clock_.Now();
  AG_LET(Results results, reference());
  entry.spent += clock_.Now() - begin;
  if (!results.has_value() || !entry.omitted.empty()) return results;
  for (const Tensor& tensor : *results) {
    // A tensor without bytes that should have one element stands for an omitted output.
    const bool omitted = tensor.bytes().empty() && tensor.type().NumElements() > 0;
    entry.omitted.push_back(omitted);
    if (!omitted) entry.types.push_back(tensor.type());
  }
  return results;
}

}  // namespace ag
