#include "lab/generate/constraints.h"

#include <algorithm>

namespace ag::generate {
namespace {

class Collector {
 public:
  Collector(const TermTable& table, const Wording& wording, const std::vector<JoinedNames>& joined,
            Fitter* fit)
      : table_(table), wording_(wording), joined_(joined), fit_(*fit) {}

  std::vector<Constraint> Run(const std::vector<Labelled>& labels) {
    Pairs([&](const Named& a, const Named& b) {
      if (Alike(a, b)) Add(fmt::format("same_shape({}, {})", a.text, b.text));
    });
    for (const Named& name : fit_.names()) Ranks(name);
    for (const Named& name : fit_.names()) Family(name);
    Pairs([&](const Named& a, const Named& b) { Sizes(a, b); });
    for (const Labelled& labelled : labels) Attributes(labelled);
    Pairs([&](const Named& a, const Named& b) {
      if (a.shapes[0].size() == b.shapes[0].size()) {
        Add(fmt::format("rank({}) == rank({})", a.text, b.text));
      }
    });
    Variables();
    std::erase_if(all_, [&](const Constraint& c) { return MentionsUnused(c.text); });
    return std::move(all_);
  }

 private:
  bool MentionsUnused(const std::string& text) const {
    return std::any_of(
        fit_.variables().begin(), fit_.variables().end(),
        [&](const AttributeVariable& v) { return !fit_.IsUsed(v.name) && Mentions(text, v.name); });
  }

  static bool Alike(const Named& a, const Named& b) {
    return a.shapes == b.shapes && a.last_shapes == b.last_shapes;
  }
  static bool AlikeAlong(const Shapes& a, const Shapes& b, int64_t axis) {
    for (size_t s = 0; s < a.size(); ++s) {
      if (a[s][static_cast<size_t>(axis)] != b[s][static_cast<size_t>(axis)]) return false;
    }
    return true;
  }
  static bool AlikeAlong(const Named& a, const Named& b, int64_t axis) {
    return AlikeAlong(a.shapes, b.shapes, axis) && AlikeAlong(a.last_shapes, b.last_shapes, axis);
  }

  void Add(std::string text) { all_.push_back({std::move(text), ""}); }

  template <class Visit>
  void Pairs(const Visit& visit) {
    std::vector<Named>& names = fit_.names();
    for (size_t i = 0; i < names.size(); ++i) {
      for (size_t j = i + 1; j < names.size(); ++j) {
        if (names[i].leaf >= 0 && names[j].leaf >= 0) visit(names[i], names[j]);
      }
    }
  }

  // Adds a guard for the rank where axes are numbers.
  void Ranks(const Named& name) {
    if (wording_.axes != Wording::Axes::kLiteral || name.leaf < 0) return;
    Add(fmt::format("rank({}) == {}", name.text, name.shapes[0].size()));
  }

  // Adds guards for equal sizes of the operands of one join: all sizes, or all but one.
  void Family(const Named& name) {
    if (!name.spread || name.leaf < 0) return;
    const auto rank = static_cast<int64_t>(name.shapes[0].size());
    std::vector<int64_t> differ;
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (!AlikeAlong(name.shapes, name.last_shapes, axis)) differ.push_back(axis);
    }
    if (differ.empty()) Add(fmt::format("{}s = shape({})", name.letter, name.text));
    for (int64_t axis = rank - 1; axis >= 0; --axis) {
      if (differ.size() > 1 || (differ.size() == 1 && differ[0] != axis)) continue;
      Add(fmt::format("{}k{} = shape_but({}, {})", name.letter, axis, name.text,
                      fit_.SizeAxis(axis, rank)));
    }
  }

  // Adds guards for equal sizes of two leaves with different shapes.
  void Sizes(const Named& a, const Named& b) {
    if (a.shapes[0].size() != b.shapes[0].size()) return;
    std::vector<int64_t> differ;
    const auto rank = static_cast<int64_t>(a.shapes[0].size());
    for (int64_t axis = 0; axis < rank; ++axis) {
      const bool same = AlikeAlong(a, b, axis);
      if (!same) differ.push_back(axis);
      if (!same || !a.spread || !b.spread) continue;
      Add(fmt::format("dim({0}, {2}) == dim({1}, {2})", a.text, b.text, fit_.SizeAxis(axis, rank)));
    }
    if (differ.size() > 1 || rank < 2) return;
    // Equal here, but in general they may differ along the axis that joins them, or in channels.
    if (differ.empty()) differ = JoinedAlong(a, b);
    if (differ.empty() && rank == 4) differ.push_back(1);
    if (differ.empty()) return;
    const std::string axis = fit_.SizeAxis(differ[0], rank);
    Add(fmt::format("shape_but({0}, {2}) == shape_but({1}, {2})", a.text, b.text, axis));
  }

  // Returns the axis along which the target joins the two, if it does.
  std::vector<int64_t> JoinedAlong(const Named& a, const Named& b) const {
    for (const JoinedNames& join : joined_) {
      const bool there = join.first == a.text && join.second == b.text;
      if (there || (join.first == b.text && join.second == a.text)) return {join.axis};
    }
    return {};
  }

  void Attributes(const Labelled& labelled) {
    const Call& call = table_.calls[static_cast<size_t>(labelled.call)];
    for (const AttributeSchema& schema : Info(call.op).attributes) {
      Signature signature;
      for (const Node& node : call.nodes) signature.push_back(*node.attributes->Find(schema.name));
      if (!Constant(signature)) continue;
      all_.push_back({schema.name + "=" + Literal(signature[0]), labelled.label});
    }
  }

  void Variables() {
    const auto& variables = fit_.variables();
    for (const AttributeVariable& v : variables) {
      if (v.attribute == "axes") Add(fmt::format("length({}) == 1", v.name));
      Bounds(v);
      for (const AttributeVariable& w : variables) {
        if (&w <= &v) continue;
        if (v.attribute == "perm" && w.attribute == "perm") Inverse(v, w);
        const auto a = v.Axis(), b = w.Axis();
        if (!a || !b || *a == *b) continue;
        Add(fmt::format("{} {} {}", v.AsInt(), *a < *b ? "<" : ">", w.AsInt()));
        Add(fmt::format("{} != {}", v.AsInt(), w.AsInt()));
      }
    }
  }

  // Adds guards that an axis is not the first or last one of a tensor.
  void Bounds(const AttributeVariable& v) {
    const auto axis = v.Axis();
    if (!axis) return;
    for (const Named& name : fit_.names()) {
      const auto rank = static_cast<int64_t>(name.shapes[0].size());
      if (name.leaf < 0 || rank < 2) continue;
      for (const int64_t last : {2, 1}) {
        if (*axis < rank - last) Add(fmt::format("{} < rank({}) - {}", v.AsInt(), name.text, last));
      }
    }
  }

  void Inverse(const AttributeVariable& p, const AttributeVariable& q) {
    const Ints& first = std::get<Ints>(p.signature[0]);
    const Ints& second = std::get<Ints>(q.signature[0]);
    if (first.size() != second.size()) return;
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[static_cast<size_t>(second[i])] != static_cast<int64_t>(i)) return;
    }
    fit_.Refer(p.name);
    fit_.Refer(q.name);
    Add(fmt::format("compose({}, {}) == range(0, length({}))", p.name, q.name, p.name));
  }

  const TermTable& table_;
  const Wording& wording_;
  const std::vector<JoinedNames>& joined_;
  Fitter& fit_;
  std::vector<Constraint> all_;
};

}  // namespace

std::vector<Constraint> ConstraintsOf(const TermTable& table, const Wording& wording,
                                      const std::vector<Labelled>& labels,
                                      const std::vector<JoinedNames>& joined, Fitter* fit) {
  return Collector(table, wording, joined, fit).Run(labels);
}

}  // namespace ag::generate
