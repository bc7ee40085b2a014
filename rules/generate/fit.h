// Values said by expressions over what the source of a rule binds. The same value can often be said
// in several ways (an axis is at(perm, 0) or find(perm, 0) where perm is its own inverse): a script
// of choices says which, so that a caller can try them one after another.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rules/generate/phrase.h"
#include "rules/generate/spread.h"

namespace ag::generate {

using Signature = std::vector<AttributeValue>;  // By assignment.
using Numbers = std::vector<int64_t>;           // By assignment.
using MaybeText = std::optional<std::string>;

// Which of several ways is taken, in the order in which they are asked for.
class Script {
 public:
  // In [0, ways). REQUIRES: ways > 0.
  int Pick(int ways);
  // The next combination. False: all were tried.
  bool Next();

 private:
  std::vector<int> picks_, ways_;
  size_t at_ = 0;
};

// What a name stands for: a leaf of the table, or the bias of a convolution that has none there.
struct Named {
  int leaf = -1;      // -1: a bias ...
  int32_t node = -1;  // ... of this operator.
  Shapes shapes;
  Shapes last_shapes;  // Of what stands for it where i is 1; `shapes` where there is no i.
  bool spread = false;
  std::string text;  // "x", or "x[i]".
  std::string letter;
};

// Whether `name` is a word of `text`.
bool Mentions(const std::string& text, const std::string& name);

struct AttributeVariable {
  std::string name;
  std::string attribute;
  Signature signature;
  bool list() const { return std::holds_alternative<Ints>(signature[0]); }
  // The axis it stands for, where it is one.
  std::optional<int64_t> Axis() const;
  // "axis", or "at(axes, 0)".
  std::string AsInt() const;
};

struct FitOptions {
  const Wording* wording = nullptr;
  bool literal_axes =
      false;            // Ranks are known from the operators: an axis may be said as a number.
  bool shifts = false;  // An operator takes an axis away: others move by one.
};

class Fitter {
 public:
  // `used`: variables that somebody reads; null when that is not known yet.
  Fitter(const FitOptions& options, const Spread* spread, Script* script,
         const std::set<std::string>* used)
      : options_(options), spread_(spread), script_(*script), used_(used) {}

  // What an attribute of the source is said as; "" when it may be anything.
  MaybeText SourceValue(const std::string& attribute, const Signature& signature, int64_t rank);
  // What one of the target is.
  MaybeText Fit(const std::string& attribute, const Signature& signature, int64_t rank);

  // One of these, by the script. nullopt: there are none.
  MaybeText Choose(const std::vector<std::string>& ways);
  int Pick(int ways) { return script_.Pick(ways); }

  std::vector<Named>& names() { return names_; }
  const std::vector<AttributeVariable>& variables() const { return variables_; }
  bool IsUsed(const std::string& name) const { return used_ == nullptr || used_->contains(name); }
  void Refer(const std::string& name) { referenced_.insert(name); }
  const std::set<std::string>& referenced() const { return referenced_; }
  // An axis as a size's second argument: dim(x, axis).
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
