// The constants of one model while it is loaded: the import puts them in, the device takes them
// out. They stay where the model's bytes are, so nothing is written to disk; each is hashed once,
// the large ones on all cores. One thread calls Put; Get is thread-safe once no Put follows.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/onnx/weight_sink.h"
#include "graph/weights.h"

namespace ag {

// A sink and source of weights over one model's bytes.
class ModelWeights : public WeightSink, public WeightSource {
 public:
  // REQUIRES: `model` outlives this. With an `owner` that keeps the bytes alive and unchanged, the
  // tensors of Get are views of them where the alignment allows; without one they are copies and
  // may outlive the model.
  // `drop_pages`: as in SessionOptions; may be empty.
  ModelWeights(std::string_view model, std::shared_ptr<const void> owner,
               std::function<void()> drop_pages = {})
      : model_(model), owner_(std::move(owner)), drop_pages_(std::move(drop_pages)) {}

  // The digests of bytes inside the model that are known by now, by address and size. Bytes that
  // another load of the same memory hashed need not be hashed again.
  using Hashes = std::map<std::pair<const char*, size_t>, Digest>;
  const Hashes& hashes() const { return hashed_; }
  void Know(const Hashes& hashes) { hashed_ = hashes; }
  // Returns the digests as those of the same bytes in `copy`, a copy of the model.
  Hashes HashesIn(std::string_view copy) const;

  void Expect(std::string_view bytes) override;
  // Records bytes that lie inside `model`, copies others (weights stored as lists of numbers), and
  // returns their digest.
  StatusOr<Digest> Put(std::string_view bytes) override;
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
  // True: groups that read one constant then share one packed copy, e.g. the steps of a recurrent
  // model.
  bool names_content() const override { return true; }
  void DropPages() const override {
    if (drop_pages_) drop_pages_();
  }

 private:
  Digest DigestOf(std::string_view bytes);

  std::string_view model_;
  std::shared_ptr<const void> owner_;
  std::function<void()> drop_pages_;
  std::vector<std::string_view> expected_;  // Not hashed yet.
  Hashes hashed_;
  std::map<Digest, std::string_view> inside_;
  std::map<Digest, Tensor> copied_;  // As bytes.
};

}  // namespace ag
