// The sizes that open dimensions of inputs take where nobody gives one: by the role that the name
// of the dimension, its place and the input's element type suggest. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "graph/onnx/wire.h"

namespace ag {

// Sizes of symbolic dimensions by name.
using DimSizes = std::map<std::string, int64_t>;

// Whether the name stands for one size wherever it occurs. "", "?", "-1" and the like do not.
bool IsSymbol(const std::string& name);

// Returns the sum that a name such as "past + sequence" or "past + 1" means, when all its parts are
// known; else nothing.
std::optional<int64_t> SizeOfSum(const std::string& name, const DimSizes& sizes);

// Sets of sizes in the order in which they are tried: a model whose nodes do not fit one of them
// (a text line of 48 rows, a window of 512 samples) mostly fits another.
inline constexpr int kDefaultSizeSets = 8;

// Returns the size in set `set`, from 0. In the first: 1 for a batch, 128 for a sequence, 16,000
// for samples of sound, 224 for the sides of a picture, 3 for its channels, 16 for a past, and 1
// for what has no known role. Sequences, sides and what has no known role differ between sets.
int64_t DefaultSize(const OnnxValueInfo& input, size_t axis, int set);

// Whether the sequences of set `set` are shorter than those of the first.
bool HasShorterSequences(int set);

}  // namespace ag
