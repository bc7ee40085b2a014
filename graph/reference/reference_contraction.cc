// Reference kernels of sums of products: conv, matmul.
#include <algorithm>

#include "graph/contraction.h"
#include "graph/reference/reference.h"

namespace ag::internal {
namespace {

// The input of one image and group as the right matrix of a product: row k is a (channel, tap)
// pair, column j an output position.
class Columns {
 public:
  Columns(const Node& node, std::span<const int64_t> x, std::span<const int64_t> w,
          std::span<const int64_t> out)
      : x_(x.subspan(2)), kernel_(w.subspan(2)), out_(out.subspan(2)), channels_(w[1]) {
    strides_ = node.IntList("strides");
    pads_ = node.IntList("pads");
    dilations_ = node.IntList("dilations");
    plane_ = NumElements(x_);
    taps_ = NumElements(kernel_);
  }

  int64_t depth() const { return channels_ * taps_; }
  int64_t count() const { return NumElements(out_); }
  int64_t plane() const { return plane_; }

  // The offsets in a plane that the columns [begin, begin + columns) read, [tap][column]; -1 in the
  // padding. All images and groups have the same.
  std::vector<int64_t> Sources(int64_t begin, int64_t columns) const {
    std::vector<int64_t> sources(static_cast<size_t>(taps_ * columns));
    for (int64_t j = 0; j < columns; ++j) SetSources(begin + j, columns, sources.data() + j);
    return sources;
  }

  // Packs the columns of `sources` of `x`, the channels of one image and group.
  template <class T>
  void Pack(const T* x, const std::vector<int64_t>& sources, int64_t columns,
            std::vector<T>* panels) const {
    for (int64_t first = 0; first < columns; first += kPanelColumns) {
      const int64_t count = std::min(kPanelColumns, columns - first);
      T* out = panels->data() + first * depth();
      for (int64_t c = 0; c < channels_; ++c) {
        const T* plane = x + c * plane_;
        const int64_t* source = sources.data() + first;
        for (int64_t t = 0; t < taps_; ++t, out += kPanelColumns, source += columns) {
          for (int64_t j = 0; j < count; ++j) out[j] = source[j] < 0 ? T{} : plane[source[j]];
        }
      }
    }
  }

 private:
  // Sets sources[tap] to the offset in the plane that each tap reads for output position `at`; -1
  // in the padding.
  void SetSources(int64_t at, int64_t step, int64_t* sources) const {
    Shape origin(out_.size());
    for (size_t axis = out_.size(); axis-- > 0; at /= out_[axis]) {
      origin[axis] = at % out_[axis] * strides_[axis] - pads_[axis];
    }
    for (int64_t t = 0; t < taps_; ++t) {
      int64_t rest = t, offset = 0, pitch = 1;
      bool inside = true;
      for (size_t axis = out_.size(); axis-- > 0; rest /= kernel_[axis]) {
        const int64_t i = origin[axis] + rest % kernel_[axis] * dilations_[axis];
        inside = inside && i >= 0 && i < x_[axis];
        offset += i * pitch;
        pitch *= x_[axis];
      }
      sources[t * step] = inside ? offset : -1;
    }
  }

  std::span<const int64_t> x_, kernel_, out_;
  Ints strides_, pads_, dilations_;
  int64_t channels_, plane_ = 0, taps_ = 0;
};

template <class T>
void AddBias(const Array<T>& bias, int64_t plane, Array<T>* out) {
  const size_t channels = bias.values.size();
  size_t at = 0;
  while (at < out->values.size()) {
    for (size_t m = 0; m < channels; ++m) {
      for (int64_t i = 0; i < plane; ++i, ++at) out->values[at] = out->values[at] + bias.values[m];
    }
  }
}

// Returns an operand's offset for batch `i` of the broadcast batch shape.
int64_t BatchOf(int64_t i, std::span<const int64_t> batch, std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t axis = batch.size(); axis-- > 0; i /= batch[axis]) {
    offset += i % batch[axis] * strides[axis];
  }
  return offset;
}

// Packs columns [begin, begin + columns) of the row-major matrix b.
template <class T>
void PackMatrix(const T* b, int64_t depth, int64_t width, int64_t begin, int64_t columns,
                std::vector<T>* panels) {
  for (int64_t first = 0; first < columns; first += kPanelColumns) {
    T* out = panels->data() + first * depth;
    const int64_t count = std::min(kPanelColumns, columns - first);
    for (int64_t k = 0; k < depth; ++k) {
      std::copy_n(b + k * width + begin + first, count, out + k * kPanelColumns);
    }
  }
}

}  // namespace

template <class T>
StatusOr<Arrays<T>> RefConv(const KernelCall<T>& call) {
  const Array<T>&x = call.in(0), &w = call.in(1);
  Array<T> out(call.out_type().shape);
  const Columns columns(call.node, x.shape, w.shape, out.shape);
  const int64_t group = call.node.Int("group"), rows = w.shape[0] / group;
  const int64_t depth = columns.depth(), count = columns.count();
  const int64_t blocks = (count + kBlockColumns - 1) / kBlockColumns;
  const int64_t products = static_cast<int64_t>(out.values.size()) * depth;
  const int64_t image_groups = x.shape[0] * group;
  const auto work = [&](int64_t begin, int64_t end) {
    std::vector<T> panels(static_cast<size_t>(depth * kBlockColumns));
    std::vector<int64_t> sources;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / image_groups * kBlockColumns, image_group = i % image_groups;
      const int64_t size = std::min(kBlockColumns, count - block);
      if (i == begin || image_group == 0) sources = columns.Sources(block, size);
      columns.Pack(x.values.data() + image_group * w.shape[1] * columns.plane(), sources, size,
                   &panels);
      Multiply<T>({.a = w.values.data() + image_group % group * rows * depth,
                   .rows = rows,
                   .depth = depth,
                   .panels = panels.data(),
                   .columns = size,
                   .out = out.values.data() + image_group * rows * count + block,
                   .out_stride = count});
    }
  };
  ParallelFor(UsefulThreads(call.threads, products), image_groups * blocks, work);
  AddBias(call.in(2), count, &out);
  return One(std::move(out));
}

template <class T>
StatusOr<Arrays<T>> RefMatMul(const KernelCall<T>& call) {
  const Array<T>&a = call.in(0), &b = call.in(1);
  Array<T> out(call.out_type().shape);
  const size_t axes = out.shape.size() - 2;
  const int64_t rows = out.shape[axes], width = out.shape[axes + 1], depth = a.shape.back();
  const std::span<const int64_t> batch(out.shape.data(), axes);
  const auto batch_strides = [&](const Array<T>& m) {
    Shape strides = BroadcastStrides({m.shape.data(), m.shape.size() - 2}, batch);
    const int64_t matrix = m.shape.back() * m.shape[m.shape.size() - 2];
    for (int64_t& stride : strides) stride *= matrix;
    return strides;
  };
  const Shape a_strides = batch_strides(a), b_strides = batch_strides(b);
  const int64_t blocks = (width + kBlockColumns - 1) / kBlockColumns;
  const int64_t products = static_cast<int64_t>(out.values.size()) * depth;
  const auto work = [&](int64_t begin, int64_t end) {
    std::vector<T> panels(static_cast<size_t>(depth * kBlockColumns));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks * kBlockColumns, n = i / blocks;
      const int64_t size = std::min(kBlockColumns, width - block);
      PackMatrix(b.values.data() + BatchOf(n, batch, b_strides), depth, width, block, size,
                 &panels);
      Multiply<T>({.a = a.values.data() + BatchOf(n, batch, a_strides),
                   .rows = rows,
                   .depth = depth,
                   .panels = panels.data(),
                   .columns = size,
                   .out = out.values.data() + n * rows * width + block,
                   .out_stride = width});
    }
  };
  ParallelFor(UsefulThreads(call.threads, products), NumElements(batch) * blocks, work);
  return One(std::move(out));
}

AG_KERNEL(RefConv);
AG_KERNEL(RefMatMul);
AG_WHOLE_KERNEL(RefMatMul);

}  // namespace ag::internal
