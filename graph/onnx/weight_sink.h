// The place where an import puts the bytes of constants: a blob folder, or the sandbox's socket.
// One thread at a time.
#pragma once

#include <string_view>

#include "base/blobs.h"
#include "base/digest.h"
#include "base/status.h"

namespace ag {

class WeightSink {
 public:
  virtual ~WeightSink() = default;
  // Announces a weight that lies in the model's own bytes, so that a sink may hash weights in
  // parallel. All calls come before the first Put. A Put of the same address may follow or not.
  virtual void Expect(std::string_view bytes) { (void)bytes; }
  // Stores the bytes and returns their digest. The same bytes may come twice.
  virtual StatusOr<Digest> Put(std::string_view bytes) = 0;
};

// Puts weights into a blob folder without an fsync for each: a model has a thousand weights, and an
// fsync takes 10 ms. The caller makes them durable with one Sync.
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
