// The types of a node's outputs. They never change once made, so copies share them: nodes are
// copied from graph to graph far more often than made. Safe to share between threads.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "graph/types.h"

namespace ag {

using TensorTypes = absl::InlinedVector<TensorType, 1>;

class OutputTypes {
 public:
  OutputTypes() = default;  // No outputs.
  OutputTypes(TensorTypes types)
      : types_(std::make_shared<const TensorTypes>(std::move(types))),
        begin_(types_->data()),
        size_(types_->size()) {}

  const TensorType* begin() const { return begin_; }
  const TensorType* end() const { return begin_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // REQUIRES: i < size().
  const TensorType& operator[](size_t i) const { return begin_[i]; }

  bool operator==(const OutputTypes& other) const {
    return begin_ == other.begin_ || std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::shared_ptr<const TensorTypes> types_;
  const TensorType* begin_ = nullptr;  // Of types_.
  size_t size_ = 0;
};

}  // namespace ag
