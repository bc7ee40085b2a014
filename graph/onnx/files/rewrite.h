// Writes a serialized model anew with other messages for some of its tensors, as pieces: bytes of
// ours and places in files. What does not change stays byte by byte. Lengths of the messages that
// change take five bytes, which holds 32 GiB. One thread at a time.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/fields.h"
#include "graph/onnx/files/data_files.h"

namespace ag {

// Bytes of `text`, or of a place in a file where that is empty.
struct ModelPiece {
  std::string text;
  FilePlace place;
  uint64_t size() const { return text.empty() ? place.size : text.size(); }
};

struct ModelPieces {
  std::vector<ModelPiece> pieces;
  uint64_t size = 0;
};

class ModelRewriter {
 public:
  virtual ~ModelRewriter() = default;

  // Returns the rewritten model; file 0 is `model`. What is no model stays as it is. Returns the
  // first error of WriteTensor. kResourceExhausted: more than 32 GiB. REQUIRES: called once.
  StatusOr<ModelPieces> Run(std::string_view model);

 protected:
  // The messages in which tensors occur.
  enum class Kind { kOther, kModel, kGraph, kNode, kAttribute, kFunction, kSparse, kTensor };

  // Whether a TensorProto inside a message of kind `parent` changes.
  virtual bool Changes(std::string_view tensor, Kind parent) const = 0;
  // Writes the fields of one that does.
  virtual Status WriteTensor(std::string_view tensor) = 0;

  uint64_t size() const { return out_.size; }  // Of what is written so far.
  void Keep(std::string_view bytes);           // Takes bytes of the model as they are.
  // Takes the tensor's fields but its elements and what says where they are.
  Status KeepAllButData(std::string_view tensor);
  void Text(std::string_view text);
  void Add(const FilePlace& place);

  // A length-delimited field whose length is written at its end.
  struct Length {
    size_t piece, at;  // Where the length stands.
    uint64_t before;   // The size before what it counts.
  };
  Length Begin(uint32_t field);
  void End(const Length& length);
  static uint64_t SizeOfBegin(uint32_t field);  // How many bytes Begin writes.

 private:
  static Kind KindOf(Kind parent, uint32_t field);
  bool Mark(Kind kind, Kind parent, std::string_view message, int depth);
  Status Write(Kind kind, std::string_view message);

  std::string_view model_;
  std::set<const char*> changed_;  // The first bytes of messages that change.
  ModelPieces out_;
};

}  // namespace ag
