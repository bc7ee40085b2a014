// What an input of a model is for, as far as its name and its type tell. The sizes that open
// dimensions take (graph/onnx/import/default_sizes.h) and the data that inputs are given
// (graph/inputs) follow from the same guesses. Pure functions.
#pragma once

#include <initializer_list>
#include <string_view>

#include "graph/types.h"

namespace ag {

enum class InputRole : uint8_t {
  kNumbers,     // Floats without a known role.
  kPicture,     // Colours by height and width.
  kSound,       // Samples.
  kIntegers,    // Integers without a known role.
  kTokens,      // Numbers of rows of a table.
  kTokenTypes,  // 0 for a first text, 1 for a second one.
  kPositions,   // 0, 1, 2, ... along the last axis.
  kMask,        // 1 where there is something, 0 behind its end.
  kPadding,     // The opposite of a mask.
  kLengths,     // How many elements of a sequence count.
  kFlags,       // Booleans without a known role.
  kStrings,
};

// Whether `name`, in small letters, has one of the words in it.
bool NamesAny(std::string_view name, std::initializer_list<std::string_view> words);

// Whether an input of this name and element type has samples of sound.
bool IsSound(std::string_view name, DType dtype);

// The axes of a picture of rank 4: its channels are first, or last where that size is small and the
// other is not. A size that is not known is negative.
struct PictureAxes {
  size_t channels = 1, height = 2, width = 3;
};
PictureAxes PictureAxesOf(int64_t size_of_axis_1, int64_t size_of_axis_3);

// Returns the role that name and type suggest; kTokens never, since the table is in the graph.
InputRole RoleByName(std::string_view name, const TensorType& type);

}  // namespace ag
