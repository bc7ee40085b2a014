// Where an import puts the bytes of constants: a blob folder, or the jail's socket.
#pragma once

#include <string_view>

#include "base/blobs.h"
#include "base/digest.h"
#include "base/status.h"

namespace ag {

class WeightSink {
 public:
  virtual ~WeightSink() = default;
  // Weights that the import found in the model's own bytes come here, all before the first Put, so
  // that a sink may hash them side by side. A Put of the same address may follow, or none.
  virtual void Expect(std::string_view bytes) { (void)bytes; }
  // Stores the bytes and returns their digest. May be called twice with the same bytes.
  virtual StatusOr<Digest> Put(std::string_view bytes) = 0;
};

// A model has a thousand weights, each fsync costs 10 ms: power-loss safety is left to one Sync.
class BlobSink : public WeightSink {
 public:
  explicit BlobSink(BlobDir& blobs) : blobs_(blobs) {}
  StatusOr<Digest> Put(std::string_view bytes) override {
    return blobs_.Put(bytes, BlobDir::Durable::kAfterSync);
  }

 private:
  BlobDir& blobs_;
};

}  // namespace ag
