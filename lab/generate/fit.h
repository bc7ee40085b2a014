// Expressions over the names of a rule's source that have given values. Often several expressions
// fit (an axis is at(perm, 0) or find(perm, 0) when perm is its own inverse). A script of choices
// selects one, so that a caller can try them one after another. One thread at a time.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lab/generate/phrase.h"
#include "lab/generate/spread.h"

namespace ag::generate {

using Signature = std::vector<AttributeValue>;  // By assignment.
using Numbers = std::vector<int64_t>;           // By assignment.
using MaybeText = std::optional<std::string>;

// Selects one of several ways at each choice, in the order of the choices.
class Script {
 public:
  // Returns a number in [0, ways). REQUIRES: ways > 0.
  int Pick(int ways);
  // Moves to the next combination. Returns false: all were tried.
  bool Next();

 private:
  std::vector<int> picks_, ways_;
  size_t at_ = 0;
};

// The meaning of a name: a leaf of the table, or the bias of a convolution, which the table lacks.
struct Named {
  int leaf = -1;      // -1: a bias ...
  int32_t node = -1;  // ... of this operator.
  Shapes shapes;
  Shapes last_shapes;  // Shapes for i = 1; `shapes` when there is no i.
  bool spread = false;
  std::string text;  // "x", or "x[i]".
  std::string letter;
};

// Returns true when `name` is a word of `text`.
bool Mentions(const std::string& text, const std::string& name);

struct AttributeVariable {
  std::string name;
  std::string attribute;
  Signature signature;
  bool list() const { return std::holds_alternative<Ints>(signature[0]); }
  // Returns the axis that the variable means, if it means one.
  std::optional<int64_t> Axis() const;
  // Returns "axis", or "at(axes, 0)".
  std::string AsInt() const;
};

struct FitOptions {
  const Wording* wording = nullptr;
  // Ranks follow from the operators, so an axis may be a number.
  bool literal_axes = false;
  bool shifts = false;  // An operator removes an axis, so other axes move by one.
};

class Fitter {
 public:
  // `used`: variables that are read; null: unknown yet.
  Fitter(const FitOptions& options, const Spread* spread, Script* script,
         const std::set<std::string>* used)
      : options_(options), spread_(spread), script_(*script), used_(used) {}

  // Returns the text for an attribute of the source; "": any value; nullopt: there is none.
  MaybeText SourceValue(const std::string& attribute, const Signature& signature, int64_t rank);
  // Returns the text for an attribute of the target; nullopt: there is none.
  MaybeText Fit(const std::string& attribute, const Signature& signature, int64_t rank);

  // Returns one of `ways`, by the script. nullopt: there are none.
  MaybeText Choose(const std::vector<std::string>& ways);
  int Pick(int ways) { return script_.Pick(ways); }

  std::vector<Named>& names() { return names_; }
  const std::vector<AttributeVariable>& variables() const { return variables_; }
  bool IsUsed(const std::string& name) const { return used_ == nullptr || used_->contains(name); }
  void Refer(const std::string& name) { referenced_.insert(name); }
  const std::set<std::string>& referenced() const { return referenced_; }
  // Returns the axis as the second argument of a size: dim(x, axis).
  std::string SizeAxis(int64_t axis, int64_t rank);

 private:
  MaybeText Variable(const std::string& attribute, const Signature& signature,
                     std::vector<std::string> known);
  MaybeText SourceAxis(const std::string& attribute, const Signature& signature, int64_t rank);
  MaybeText FitAxis(const std::string& attribute, const Signature& signature, int64_t rank);
  std::vector<std::string> AxisWays(int64_t axis, int64_t rank) const;
  void PermWays(int64_t axis, std::vector<std::string>* ways) const;
  void ShiftWays(int64_t axis, std::vector<std::string>* ways) const;
  MaybeText FitList(const std::string& attribute, const Signature& signature);
  MaybeText FitSpread(const Signature& signature);
  MaybeText FitPerm(const Signature& signature);
  MaybeText FitSize(const Numbers& values);
  void SumWays(const Numbers& values, std::vector<std::string>* ways);
  struct Size {
    std::string text;
    Numbers values;
    int64_t axis = 0;
    const Named* name = nullptr;
    bool by_variable = false;
  };
  std::vector<Size> Sizes();

  const FitOptions options_;
  const Spread* spread_;
  Script& script_;
  const std::set<std::string>* used_;
  std::vector<Named> names_;
  std::vector<AttributeVariable> variables_;
  std::set<std::string> referenced_;
};

bool IsAxis(std::string_view attribute);
bool Constant(const Signature& signature);
std::string Literal(const AttributeValue& value);

}  // namespace ag::generate
