// What a file is that is no ONNX model: said instead of where it stopped to be one.
#pragma once

#include <string_view>

namespace ag {

// "a PNG picture", "JSON", "text", "a zip archive (PyTorch?)": what the first bytes say; "": bytes
// that could be anything. A model may begin like some of them: ask only when it does not parse.
std::string_view KindOfFile(std::string_view bytes);

}  // namespace ag
