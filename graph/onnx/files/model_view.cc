#include "graph/onnx/files/model_view.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "graph/onnx/files/join.h"

namespace ag {
namespace {

constexpr uint64_t kMappedBytesMin = uint64_t{1} << 20;  // Smaller weights are copied.
constexpr uint64_t kCopiedBytes = uint64_t{1} << 20;     // At a time.

uint64_t PageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

Status CopyFrom(FileReader& file, FilePlace place, char* to) {
  for (uint64_t at = 0; at < place.size; at += kCopiedBytes) {
    const auto size = static_cast<size_t>(std::min(kCopiedBytes, place.size - at));
    AG_LET(const std::string_view bytes, file.Read(place.offset + at, size));
    std::memcpy(to + at, bytes.data(), size);
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::shared_ptr<const ModelView>> ModelView::Open(const std::string& path) {
  std::shared_ptr<ModelView> view(new ModelView());
  AG_LET(view->model_, MappedFile::Open(path));
  AG_TRY(view->Join(path), "{}", path);
  return std::shared_ptr<const ModelView>(std::move(view));
}

// Maps the whole pages of a large weight and copies the rest.
Status ModelView::Put(FileReader& file, const FilePlace& place, char* to) {
  if (place.file == 0 || place.size < kMappedBytesMin) return CopyFrom(file, place, to);
  const uint64_t before = (PageBytes() - place.offset % PageBytes()) % PageBytes();
  const uint64_t whole = (place.size - before) / PageBytes() * PageBytes();
  const uint64_t after = before + whole;
  void* const mapped = ::mmap(to + before, whole, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd(),
                              static_cast<off_t>(place.offset + before));
  if (mapped == MAP_FAILED) return FromErrno(errno, "map a data file");
  mapped_.emplace_back(to + before, whole);
  AG_TRY(CopyFrom(file, {place.file, place.offset, before}, to));
  return CopyFrom(file, {place.file, place.offset + after, place.size - after}, to + after);
}

Status ModelView::Join(const std::string& path) {
  AG_LET(DataFiles files, DataFiles::Open(path));
  AG_LET(const ModelPieces joined,
         JoinModel(model_->bytes(), files,
                   {.page_bytes = PageBytes(), .aligned_bytes_min = kMappedBytesMin}));
  bytes_ = model_->bytes();
  if (!files.has_data_files()) {
    mapped_ = {bytes_};
    return OkStatus();
  }
  memory_ = ::mmap(nullptr, joined.size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) {
    memory_ = nullptr;
    return FromErrno(errno, "memory for the model");
  }
  bytes_ = {static_cast<const char*>(memory_), joined.size};
  char* to = static_cast<char*>(memory_);
  for (const ModelPiece& piece : joined.pieces) {
    if (piece.text.empty()) {
      AG_TRY(Put(files.file(piece.place.file), piece.place, to));
    } else {
      std::copy(piece.text.begin(), piece.text.end(), to);
    }
    to += piece.size();
  }
  model_.reset();
  if (::mprotect(memory_, joined.size, PROT_READ) == 0) return OkStatus();
  return FromErrno(errno, "memory for the model");
}

void ModelView::DropPages() const {
  for (const std::string_view part : mapped_) {
    ::madvise(const_cast<char*>(part.data()), part.size(), MADV_DONTNEED);
  }
}

ModelView::~ModelView() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_.size());
}

}  // namespace ag
