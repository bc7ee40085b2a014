#include "lab/generate/extra.h"

#include <algorithm>
#include <map>

#include "graph/hash.h"
#include "graph/reference/evaluate_as.h"
#include "graph/reference/reference.h"

namespace ag::generate {
namespace {

constexpr uint64_t kSamples = 200;

// Evaluates terms on the leaves of one sample.
class Evaluator {
 public:
  Evaluator(const TermTable& table, size_t assignment, uint64_t seed)
      : table_(table), assignment_(assignment), seed_(seed) {}

  // Returns the value; null: it cannot be computed.
  const Array<Residue>* Of(TermId id) {
    const auto [found, fresh] = values_.try_emplace(id);
    if (fresh) found->second = Make(table_.term(id));
    return found->second.has_value() ? &*found->second : nullptr;
  }

 private:
  using MaybeArray = std::optional<Array<Residue>>;

  MaybeArray Make(const Term& term) {
    const Shape& shape = table_.types[static_cast<size_t>(term.type)][assignment_];
    if (term.call < 0) {
      const uint64_t seed = MixIn(seed_, static_cast<uint64_t>(term.leaf));
      return RandomArray<Residue>({DType::kFloat64, shape}, seed);
    }
    std::vector<const Array<Residue>*> inputs;
    for (const TermId operand : term.operands) {
      inputs.push_back(Of(operand));
      if (inputs.back() == nullptr) return std::nullopt;
    }
    const Call& call = table_.call(term);
    if (call.extra == nullptr) return MakeOfTable(call, term.output, std::move(inputs));
    Array<Residue> out(shape);
    for (size_t i = 0; i < out.values.size(); ++i) {
      out.values[i] = call.extra->call(inputs[0]->values[i],
                                       call.extra->arity == 1 ? Residue{} : inputs[1]->values[i]);
    }
    return out;
  }

  MaybeArray MakeOfTable(const Call& call, int output,
                         std::vector<const Array<Residue>*> inputs) const {
    std::vector<const TensorType*> types;
    for (const TensorType& type : call.operands[assignment_]) types.push_back(&type);
    const Array<Residue> zeros(types.back()->shape);  // A bias.
    if (inputs.size() < types.size()) inputs.push_back(&zeros);
    auto computed = KernelOf<Residue>(call.op)(
        {.node = call.nodes[assignment_], .types = types, .inputs = inputs});
    if (!computed.ok()) return std::nullopt;
    return std::move((*computed)[static_cast<size_t>(output)]);
  }

  const TermTable& table_;
  const size_t assignment_;
  const uint64_t seed_;
  std::map<TermId, MaybeArray> values_;
};

}  // namespace

bool HasExtra(const TermTable& table, TermId id) {
  const Term& term = table.term(id);
  if (term.call < 0) return false;
  if (table.call(term).extra != nullptr) return true;
  return std::any_of(term.operands.begin(), term.operands.end(),
                     [&](TermId operand) { return HasExtra(table, operand); });
}

bool HoldsAgain(const TermTable& table, TermId left, TermId right, uint64_t seed) {
  for (size_t assignment = 0; assignment < table.universe.assignments(); ++assignment) {
    for (uint64_t sample = 0; sample < kSamples; ++sample) {
      Evaluator evaluator(table, assignment, MixIn(seed + sample, assignment));
      const Array<Residue>* a = evaluator.Of(left);
      const Array<Residue>* b = evaluator.Of(right);
      if (a == nullptr || b == nullptr || a->values != b->values) return false;
    }
  }
  return true;
}

}  // namespace ag::generate
