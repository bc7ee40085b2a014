// A whole file, written in pieces: for bytes that are never in memory at once; file.cc has it.
// Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

using WritePiece = std::function<Status(std::string_view piece)>;

// Replaces the file by the pieces that `give` hands over, as WriteFileAtomically does
// (base/file.h). An error of `give` is returned and leaves the old file.
Status WriteFileInPieces(const std::string& path,
                         const std::function<Status(const WritePiece& write)>& give);

}  // namespace ag
