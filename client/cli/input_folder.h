// The user's own inputs of a model, as files in a folder (docs/cli.md, "Your own inputs").
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "graph/inputs/input_set.h"

namespace ag {

struct NamedSet {
  std::string name;  // Of its folder.
  InputSet inputs;
};

// Returns the name of a file for the tensor `name`, without what follows the last dot: characters
// that have a meaning in paths become underscores.
std::string FileStem(std::string name);

// Reads the sets in `folder`: the files NAME.npy and NAME.pb in it are one, those in each folder
// below it one more; in the order of their names. NAME is an
// input's of the model in file `model` or its FileStem; input_N, where that is none, is the N-th,
// and output_N.pb is left out; ONNX's own test data is written so. kNotFound: no such folder;
// kInvalidArgument: it has no such file, one that cannot be read, one name twice, or more than
// kInputSetBytesMax.
StatusOr<std::vector<NamedSet>> ReadInputFolder(const std::string& folder,
                                                const std::string& model);

}  // namespace ag
