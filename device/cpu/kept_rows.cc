// Operators that move elements to or from places that indices say: GatherElements, GatherND,
// ScatterElements, ScatterND; and Trilu, which keeps a part of each row. Elements have 1 to 8
// bytes.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/cpu/kept.h"
#include "device/cpu/parallel.h"
#include "graph/onnx/node_attributes.h"
#include "graph/onnx/operators/layout.h"

namespace ag::cpu {
namespace {

using onnx_operators::ElementsOf;
using onnx_operators::StridesOf;

// Indices of i64 or i32.
class IndexOperand {
 public:
  static StatusOr<IndexOperand> Of(const GroupContext& context, const KeptOperands& operands,
                                   size_t i) {
    IndexOperand made;
    AG_LET(made.operand_, KeptOperand::Of(context, operands, i));
    made.is_wide_ = operands.Type(i).dtype == DType::kInt64;
    return made;
  }
  // Calls body(pointer) with a pointer to the indices in their type.
  template <class Body>
  void With(Inputs inputs, const Body& body) const {
    const void* at = operand_.At(inputs);
    is_wide_ ? body(static_cast<const int64_t*>(at)) : body(static_cast<const int32_t*>(at));
  }

 private:
  KeptOperand operand_;
  bool is_wide_ = true;
};

bool IsIndex(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

// One bad index among those of a run, for its message.
class BadIndex {
 public:
  // Returns the index counted from the front; of a bad one 0, which is then kept for Said.
  int64_t Resolve(int64_t index, int64_t size) {
    if (index >= 0 && index < size) return index;
    if (index < 0 && index >= -size) return index + size;
    index_.store(index, std::memory_order_relaxed);
    size_.store(size, std::memory_order_relaxed);
    found_.store(true, std::memory_order_relaxed);
    return 0;
  }
  // REQUIRES: the threads that call Resolve have ended.
  Status Said() const {
    if (!found_) return OkStatus();
    return onnx_operators::ResolveIndex(index_, size_).status();
  }

 private:
  std::atomic<int64_t> index_{0}, size_{0};
  std::atomic<bool> found_{false};
};

// Calls run<T>() for an unsigned type of `width` bytes. Returns false when there is none.
template <class F>
bool ForWidth(int64_t width, F&& run) {
  switch (width) {
    case 1:
      run.template operator()<uint8_t>();
      return true;
    case 2:
      run.template operator()<uint16_t>();
      return true;
    case 4:
      run.template operator()<uint32_t>();
      return true;
    case 8:
      run.template operator()<uint64_t>();
      return true;
    default:
      return false;
  }
}
bool HasWidth(DType dtype) {
  return ForWidth(SizeOf(dtype), []<class>() {});
}

// Whether operand 0 is data of such a width and operand 1 indices, all in plain layout.
bool HasDataAndIndices(const GroupContext& context, const KeptOperands& operands) {
  return operands.Has(0) && operands.Has(1) && ArePlain(context.group) &&
         HasWidth(operands.Type(0).dtype) && IsIndex(operands.Type(1).dtype);
}

// Copies bytes on the cores.
void CopyAll(int cores, const void* from, void* to, int64_t bytes) {
  constexpr int64_t kGrain = int64_t{1} << 16;
  ParallelFor(cores, bytes, kGrain, [&](int64_t begin, int64_t end, int) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

// The places of a tensor of indices, row by row: rows of its last axis, and where in the data each
// begins. The data's other axes may be longer.
struct IndexedRows {
  Shape outer;         // The axes of the indices but the last.
  Ints strides;        // Of the data, 0 along `axis`.
  int64_t size = 1;    // Of the data along `axis`,
  int64_t step = 1;    // and between its neighbours.
  int64_t length = 1;  // Of a row.
  int64_t along = 0;   // Between neighbours of a row in the data: 0 where the row is the axis.
  int64_t rows = 1;

  int64_t BeginOf(int64_t row) const {
    int64_t at = 0;
    for (size_t i = outer.size(); i-- > 0; row /= outer[i]) at += row % outer[i] * strides[i];
    return at;
  }
};

// kUnimplemented: the shapes do not go together.
StatusOr<IndexedRows> IndexedRowsOf(const KeptOperator& kept, NodeAttributes& attributes,
                                    const Shape& data, const Shape& indices) {
  const auto rank = static_cast<int64_t>(data.size());
  const auto axis = ResolveAxis(attributes.Int("axis", 0), rank);
  if (rank < 1 || indices.size() != data.size() || !axis.ok() || NumElements(indices) == 0 ||
      NumElements(data) == 0) {
    return RefuseForm(kept);
  }
  for (int64_t i = 0; i < rank; ++i) {
    if (i != *axis && indices[static_cast<size_t>(i)] > data[static_cast<size_t>(i)]) {
      return RefuseForm(kept);
    }
  }
  IndexedRows rows{.outer = Shape(indices.begin(), indices.end() - 1), .strides = StridesOf(data)};
  rows.size = data[static_cast<size_t>(*axis)];
  rows.step = rows.strides[static_cast<size_t>(*axis)];
  rows.strides[static_cast<size_t>(*axis)] = 0;
  rows.length = indices.back();
  rows.along = rows.strides.back();
  rows.rows = NumElements(rows.outer);
  return rows;
}

class KeptGatherElements : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    if (!HasDataAndIndices(context, operands) || !operands.ResultIs(0, operands.ShapeOf(1))) {
      return RefuseForm(kept);
    }
    AG_LET(rows_, IndexedRowsOf(kept, attributes, operands.ShapeOf(0), operands.ShapeOf(1)));
    width_ = SizeOf(operands.Type(0).dtype);
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    AG_LET(indices_, IndexOperand::Of(context, operands, 1));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    BadIndex bad;
    ForWidth(width_, [&]<class T>() {
      indices_.With(inputs, [&](const auto* index) {
        Gather(static_cast<const T*>(x_.At(inputs)), index, static_cast<T*>(outputs[0]), bad);
      });
    });
    return bad.Said();
  }

 private:
  template <class T, class I>
  void Gather(const T* x, const I* index, T* to, BadIndex& bad) const {
    const int64_t grain = std::max<int64_t>(1, kLightGrain / rows_.length);
    ParallelFor(cores_, rows_.rows, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + rows_.BeginOf(row);
        const int64_t first = row * rows_.length;
        for (int64_t i = 0; i < rows_.length; ++i) {
          const int64_t at = bad.Resolve(index[first + i], rows_.size);
          to[first + i] = from[i * rows_.along + at * rows_.step];
        }
      }
    });
  }

  KeptOperand x_;
  IndexOperand indices_;
  IndexedRows rows_;
  int64_t width_ = 4;
  int cores_ = 1;
};

// Tuples of indices, and what each stands for: `inner` elements of the data.
struct Tuples {
  int64_t count = 0, depth = 0, inner = 1;
  int64_t in_batch = 1;  // Tuples of an item of the batch.
  Ints sizes;            // Of the axes that a tuple indexes.

  // The place of the first element, from the tuple and its number.
  template <class I>
  int64_t PlaceOf(const I* tuple, int64_t number, BadIndex& bad) const {
    int64_t at = number / in_batch;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t size = sizes[static_cast<size_t>(d)];
      at = at * size + bad.Resolve(tuple[d], size);
    }
    return at * inner;
  }
};

StatusOr<Tuples> TuplesOf(const KeptOperator& kept, const Shape& data, const Shape& list,
                          int64_t batch) {
  const auto rank = static_cast<int64_t>(data.size());
  const auto axes = static_cast<int64_t>(list.size());
  if (axes < 1 || NumElements(data) == 0 || NumElements(list) == 0 || batch < 0 ||
      batch >= std::min(rank, axes) ||
      !std::equal(data.begin(), data.begin() + batch, list.begin()) || list.back() > rank - batch) {
    return RefuseForm(kept);
  }
  Tuples tuples{.count = ElementsOf(list, 0, axes - 1), .depth = list.back()};
  tuples.inner = ElementsOf(data, batch + tuples.depth, rank);
  tuples.in_batch = tuples.count / ElementsOf(list, 0, batch);
  tuples.sizes.assign(data.begin() + batch, data.begin() + batch + tuples.depth);
  return tuples;
}

// The shape of what the tuples stand for.
Shape ShapeOfTuples(const Shape& data, const Shape& list, int64_t batch) {
  Shape shape(list.begin(), list.end() - 1);
  shape.insert(shape.end(), data.begin() + batch + list.back(), data.end());
  return shape;
}

class KeptGatherNd : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    if (!HasDataAndIndices(context, operands)) return RefuseForm(kept);
    const int64_t batch = kept.opset() < 12 ? 0 : attributes.Int("batch_dims", 0);
    const Shape &data = operands.ShapeOf(0), &list = operands.ShapeOf(1);
    AG_LET(tuples_, TuplesOf(kept, data, list, batch));
    if (!operands.ResultIs(0, ShapeOfTuples(data, list, batch))) return RefuseForm(kept);
    bytes_ = static_cast<size_t>(tuples_.inner * SizeOf(operands.Type(0).dtype));
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    AG_LET(indices_, IndexOperand::Of(context, operands, 1));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    BadIndex bad;
    const auto* x = static_cast<const char*>(x_.At(inputs));
    auto* to = static_cast<char*>(outputs[0]);
    const auto width = bytes_ / static_cast<size_t>(tuples_.inner);
    const int64_t grain = std::max<int64_t>(1, kLightGrain / (tuples_.inner + tuples_.depth));
    indices_.With(inputs, [&](const auto* index) {
      ParallelFor(cores_, tuples_.count, grain, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t at = tuples_.PlaceOf(index + i * tuples_.depth, i, bad);
          std::memcpy(to + static_cast<size_t>(i) * bytes_, x + static_cast<size_t>(at) * width,
                      bytes_);
        }
      });
    });
    return bad.Said();
  }

 private:
  KeptOperand x_;
  IndexOperand indices_;
  Tuples tuples_;
  size_t bytes_ = 0;  // Of what a tuple stands for.
  int cores_ = 1;
};

// What happens where an update meets an element.
enum class Meeting { kReplace, kAdd };

// kUnimplemented: another reduction, or a sum of other elements than f32.
StatusOr<Meeting> MeetingOf(const KeptOperator& kept, NodeAttributes& attributes, DType dtype) {
  const std::string reduction = attributes.String("reduction", "none");
  if (reduction == "none") return Meeting::kReplace;
  if (reduction == "add" && dtype == DType::kFloat32) return Meeting::kAdd;
  return RefuseForm(kept);
}

// The operands of a scatter, and what it begins with.
class Scattered {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    if (!HasDataAndIndices(context, operands) || !operands.Has(2) ||
        operands.Type(2).dtype != operands.Type(0).dtype ||
        !operands.ResultIs(0, operands.ShapeOf(0))) {
      return RefuseForm(kept);
    }
    AG_LET(meeting, MeetingOf(kept, attributes, operands.Type(0).dtype));
    width = SizeOf(operands.Type(0).dtype);
    bytes_ = operands.Type(0).Bytes();
    cores = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    AG_LET(indices, IndexOperand::Of(context, operands, 1));
    AG_LET(updates_, KeptOperand::Of(context, operands, 2));
    return OkStatus();
  }
  // Copies the data to the result, then calls body.operator()<T, adds>(index, updates, to).
  template <class Body>
  void Run(Inputs inputs, Outputs outputs, const Body& body) const {
    CopyAll(cores, x_.At(inputs), outputs[0], bytes_);
    const void* updates = updates_.At(inputs);
    indices.With(inputs, [&](const auto* index) {
      if (meeting == Meeting::kAdd) {
        body.template operator()<true>(index, static_cast<const float*>(updates),
                                       static_cast<float*>(outputs[0]));
        return;
      }
      ForWidth(width, [&]<class T>() {
        body.template operator()<false>(index, static_cast<const T*>(updates),
                                        static_cast<T*>(outputs[0]));
      });
    });
  }

  Meeting meeting = Meeting::kReplace;
  IndexOperand indices;
  int64_t width = 4;
  int cores = 1;

 private:
  KeptOperand x_, updates_;
  int64_t bytes_ = 0;
};

class KeptScatterElements : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    AG_TRY(scattered_.Prepare(context, kept));
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    const Shape& list = operands.ShapeOf(1);
    if (operands.ShapeOf(2) != list) return RefuseForm(kept);
    AG_LET(rows_, IndexedRowsOf(kept, attributes, operands.ShapeOf(0), list));
    // Updates of different items along the first axis never meet, unless they are scattered along
    // it.
    const bool is_apart = rows_.strides[0] != 0;
    rows_of_item_ = is_apart && list.size() > 1 ? rows_.rows / list[0] : rows_.rows;
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    BadIndex bad;
    scattered_.Run(
        inputs, outputs, [&]<bool adds>(const auto* index, const auto* updates, auto* to) {
          const int64_t work = rows_of_item_ * rows_.length;
          ParallelFor(
              scattered_.cores, rows_.rows / rows_of_item_,
              std::max<int64_t>(1, kLightGrain / work), [&](int64_t begin, int64_t end, int) {
                for (int64_t row = begin * rows_of_item_; row < end * rows_of_item_; ++row) {
                  auto* into = to + rows_.BeginOf(row);
                  for (int64_t i = 0; i < rows_.length; ++i) {
                    const int64_t n = row * rows_.length + i;
                    const int64_t at = bad.Resolve(index[n], rows_.size);
                    auto& place = into[i * rows_.along + at * rows_.step];
                    adds ? void(place += updates[n]) : void(place = updates[n]);
                  }
                }
              });
        });
    return bad.Said();
  }

 private:
  Scattered scattered_;
  IndexedRows rows_;
  int64_t rows_of_item_ = 1;
};

class KeptScatterNd : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    AG_TRY(scattered_.Prepare(context, kept));
    const KeptOperands operands(context, kept);
    const Shape &data = operands.ShapeOf(0), &list = operands.ShapeOf(1);
    AG_LET(tuples_, TuplesOf(kept, data, list, 0));
    if (operands.ShapeOf(2) != ShapeOfTuples(data, list, 0)) return RefuseForm(kept);
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    BadIndex bad;
    // In order: the last one of equal places stays.
    scattered_.Run(inputs, outputs,
                   [&]<bool adds>(const auto* index, const auto* updates, auto* to) {
                     for (int64_t i = 0; i < tuples_.count; ++i) {
                       auto* into = to + tuples_.PlaceOf(index + i * tuples_.depth, i, bad);
                       const auto* from = updates + i * tuples_.inner;
                       if constexpr (adds) {
                         for (int64_t n = 0; n < tuples_.inner; ++n) into[n] += from[n];
                       } else {
                         std::copy_n(from, tuples_.inner, into);
                       }
                     }
                   });
    return bad.Said();
  }

 private:
  Scattered scattered_;
  Tuples tuples_;
};

class KeptTrilu : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    if (!operands.Has(0) || operands.ShapeOf(0).size() < 2 || !ArePlain(context.group) ||
        !HasWidth(operands.Type(0).dtype) || !operands.ResultIs(0, operands.ShapeOf(0)) ||
        NumElements(operands.ShapeOf(0)) == 0) {
      return RefuseForm(kept);
    }
    has_diagonal_ = operands.Has(1);
    if (has_diagonal_) {
      const bool fits =
          operands.Type(1).dtype == DType::kInt64 && NumElements(operands.ShapeOf(1)) == 1;
      if (!fits) return RefuseForm(kept);
      AG_LET(diagonal_, KeptOperand::Of(context, operands, 1));
    }
    const Shape& x = operands.ShapeOf(0);
    rows_ = x[x.size() - 2];
    columns_ = x.back();
    all_rows_ = NumElements(x) / columns_;
    width_ = static_cast<size_t>(SizeOf(operands.Type(0).dtype));
    upper_ = attributes.Int("upper", 1) != 0;
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const char*>(x_.At(inputs));
    auto* y = static_cast<char*>(outputs[0]);
    // Beyond the matrix every diagonal is the same.
    const int64_t diagonal =
        std::clamp(has_diagonal_ ? *static_cast<const int64_t*>(diagonal_.At(inputs)) : 0,
                   -rows_ - 1, columns_ + 1);
    const int64_t grain = std::max<int64_t>(1, kLightGrain / columns_);
    ParallelFor(cores_, all_rows_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        // The first column of the upper part, or the first behind the lower one.
        const int64_t at =
            std::clamp<int64_t>(row % rows_ + diagonal + (upper_ ? 0 : 1), 0, columns_);
        const size_t head = static_cast<size_t>(at) * width_;
        const size_t tail = static_cast<size_t>(columns_ - at) * width_;
        const char* from = x + static_cast<size_t>(row * columns_) * width_;
        char* to = y + static_cast<size_t>(row * columns_) * width_;
        upper_ ? std::memset(to, 0, head) : std::memcpy(to, from, head);
        upper_ ? std::memcpy(to + head, from + head, tail) : std::memset(to + head, 0, tail);
      }
    });
    return OkStatus();
  }

 private:
  KeptOperand x_, diagonal_;
  int64_t rows_ = 1, columns_ = 1, all_rows_ = 1;
  size_t width_ = 4;
  bool upper_ = true, has_diagonal_ = false;
  int cores_ = 1;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeGatherElements(const GroupContext& context,
                                                     const KeptOperator& kept) {
  return PreparedKept<KeptGatherElements>(context, kept);
}
StatusOr<std::unique_ptr<Kernel>> MakeGatherNd(const GroupContext& context,
                                               const KeptOperator& kept) {
  return PreparedKept<KeptGatherNd>(context, kept);
}
StatusOr<std::unique_ptr<Kernel>> MakeScatterElements(const GroupContext& context,
                                                      const KeptOperator& kept) {
  return PreparedKept<KeptScatterElements>(context, kept);
}
StatusOr<std::unique_ptr<Kernel>> MakeScatterNd(const GroupContext& context,
                                                const KeptOperator& kept) {
  return PreparedKept<KeptScatterNd>(context, kept);
}
StatusOr<std::unique_ptr<Kernel>> MakeTrilu(const GroupContext& context, const KeptOperator& kept) {
  return PreparedKept<KeptTrilu>(context, kept);
}

}  // namespace ag::cpu
