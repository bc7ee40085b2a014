// A guess at the kind of a file that is not an ONNX model, for a clear error message. Pure
// functions.
#pragma once

#include <string_view>

namespace ag {

// Returns "a PNG picture", "JSON", "text", "a zip archive (PyTorch?)" or similar, from the first
// bytes; "": unknown. A model may begin like some of these, so call it only for bytes that do not
// parse.
std::string_view KindOfFile(std::string_view bytes);

}  // namespace ag
