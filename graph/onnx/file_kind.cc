#include "graph/onnx/file_kind.h"

#include <algorithm>

namespace ag {
namespace {

using namespace std::string_view_literals;

constexpr size_t kLookedAt = 4096;

struct Magic {
  size_t offset;
  std::string_view bytes;
  std::string_view kind;
};

constexpr Magic kMagics[] = {
    {0, "\x89PNG\r\n\x1a\n", "a PNG picture"},
    {0, "\xff\xd8\xff", "a JPEG picture"},
    {0, "GIF8", "a GIF picture"},
    {8, "WEBP", "a WebP picture"},
    {0, "II*\0"sv, "a TIFF picture"},
    {0, "MM\0*"sv, "a TIFF picture"},
    {4, "ftypavif", "an AVIF picture"},
    {4, "ftyp", "a video or picture in an MP4 container"},
    {0, "%PDF-", "a PDF document"},
    {4, "TFL3", "a TensorFlow Lite model"},
    {0, "\x89HDF\r\n\x1a\n", "an HDF5 file (Keras keeps models in them)"},
    {0, "PK\3\4", "a zip archive (PyTorch keeps models in them: export it with torch.onnx)"},
    {0, "\x80\2", "a Python pickle (PyTorch keeps models in them: export it with torch.onnx)"},
    {0, "\x93NUMPY", "a NumPy array"},
    {0, "GGUF", "a GGUF model"},
    {0, "ORTM", "a model in ONNX Runtime's own format"},
    {4, "ORTM", "a model in ONNX Runtime's own format"},
    {0, "\x1f\x8b", "a gzip archive: unpack it first"},
    {0, "BZh", "a bzip2 archive: unpack it first"},
    {0, "\xfd\x37zXZ", "an xz archive: unpack it first"},
    {0, "\x28\xb5\x2f\xfd", "a zstd archive: unpack it first"},
    {0,
     "\x7f"
     "ELF",
     "a program or library"},
    {0, "#!", "a script"},
    {0, "version https://git-lfs.github.com/",
     "a Git LFS pointer: fetch the file itself (git lfs pull)"},
};

bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : c == '\n' || c == '\r' || c == '\t' || c == '\f';
  });
}

// Returns the kind of bytes that are text.
std::string_view KindOfText(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "blank text";
  const std::string_view rest = text.substr(begin);
  if (rest.starts_with("<!DOCTYPE html") || rest.starts_with("<html")) return "a web page";
  if (rest.starts_with("<?xml") || rest.starts_with("<svg")) return "XML";
  const size_t next = rest.find_first_not_of(" \t\r\n", 1);
  const char after = next == std::string_view::npos ? '\0' : rest[next];
  if (rest[0] == '{' && (after == '"' || after == '}')) return "JSON";
  if (rest[0] == '[' && after != '\0' && "[{\"-0123456789]tfn"sv.find(after) != rest.npos) {
    return "JSON";
  }
  return "text";
}

}  // namespace

std::string_view KindOfFile(std::string_view bytes) {
  for (const Magic& magic : kMagics) {
    if (bytes.size() >= magic.offset && bytes.substr(magic.offset).starts_with(magic.bytes)) {
      return magic.kind;
    }
  }
  if (bytes.size() > 9 && bytes[8] == '{' && bytes[7] == '\0') return "a safetensors file";
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);  // Byte-order mark.
  // After text, because the magic number of BMP is so short.
  const std::string_view head = bytes.substr(0, kLookedAt);
  if (!head.empty() && IsText(head)) return KindOfText(head);
  if (bytes.starts_with("BM")) return "a BMP picture";
  return "";
}

}  // namespace ag
