#include "client/cli/input_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "client/cli/local_model.h"
#include "graph/onnx/files/model_view.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

namespace fs = std::filesystem;

// Returns the names of the model's inputs, without weights, which old models list as well. Empty:
// the file cannot be read; whoever loads the model says why.
std::vector<std::string> InputNames(const std::string& path) {
  const auto file = ModelView::Open(path);
  if (!file.ok()) return {};
  const auto model = ParseModel((*file)->bytes(), ImportLimits().nodes_max);
  if (!model.ok()) return {};
  std::set<std::string> weights;
  for (const OnnxTensor& weight : model->initializers) weights.insert(weight.name);
  std::vector<std::string> names;
  for (const OnnxValueInfo& input : model->inputs) {
    if (!weights.contains(input.name)) names.push_back(input.name);
  }
  return names;
}

// Returns N of "input_N"; nothing for another name.
std::optional<int64_t> NumberOf(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const StatusOr<int64_t> number = ParseInt(std::string_view(name).substr(prefix.size()));
  return number.ok() && *number >= 0 ? std::optional(*number) : std::nullopt;
}

class FolderReader {
 public:
  explicit FolderReader(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}

  StatusOr<InputSet> Read(const fs::path& folder) const {
    AG_LET(const std::vector<std::string> files, ListDir(folder.string()));
    InputSet set;
    int64_t bytes = 0;
    for (const std::string& file : files) {
      const fs::path path = folder / file;
      std::error_code error;
      if (file.starts_with(".") || fs::is_directory(path, error)) continue;
      AG_TRY(ReadOne(path, &bytes, &set));
    }
    return set;
  }

 private:
  Status ReadOne(const fs::path& path, int64_t* bytes, InputSet* set) const {
    const std::string extension = path.extension().string(), stem = path.stem().string();
    if (extension == ".npz") {
      return Err(StatusCode::kInvalidArgument,
                 "{}: an archive; save each input as NAME.npy in a folder", path.string());
    }
    const bool is_known = std::ranges::find(inputs_, stem) != inputs_.end();
    if (extension != ".npy" && extension != ".pb") {
      if (!is_known) return OkStatus();
      return Err(StatusCode::kInvalidArgument, "{}: expected {}.npy or {}.pb", path.string(), stem,
                 stem);
    }
    if (!is_known && NumberOf(stem, "output_")) return OkStatus();
    std::error_code error;
    *bytes += static_cast<int64_t>(fs::file_size(path, error));
    if (*bytes > kInputSetBytesMax) {
      return Err(StatusCode::kInvalidArgument, "{}: the files have more than {} bytes",
                 path.parent_path().string(), kInputSetBytesMax);
    }
    AG_LET(Tensor tensor, ReadTensorFile(path.string()));
    const std::string name = NameOf(stem);
    if (set->emplace(name, std::move(tensor)).second) return OkStatus();
    return Err(StatusCode::kInvalidArgument, "{}: input {} is there twice", path.string(), name);
  }

  std::string NameOf(const std::string& stem) const {
    if (std::ranges::find(inputs_, stem) != inputs_.end()) return stem;
    if (std::ranges::count(inputs_, stem, FileStem) == 1) {
      return *std::ranges::find(inputs_, stem, FileStem);
    }
    const std::optional<int64_t> number = NumberOf(stem, "input_");
    const bool is_place = number && static_cast<size_t>(*number) < inputs_.size();
    return is_place ? inputs_[static_cast<size_t>(*number)] : stem;
  }

  std::vector<std::string> inputs_;  // Of the model.
};

}  // namespace

std::string FileStem(std::string name) {
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  }
  return name;
}

StatusOr<std::vector<NamedSet>> ReadInputFolder(const std::string& folder,
                                                const std::string& model) {
  std::error_code error;
  if (!fs::exists(folder, error)) {
    return Err(StatusCode::kNotFound, "--inputs {}: there is no such folder", folder);
  }
  if (!fs::is_directory(folder, error)) {
    return Err(StatusCode::kInvalidArgument, "--inputs {}: a file; expected a folder of files",
               folder);
  }
  const FolderReader reader(InputNames(model));
  std::vector<NamedSet> sets;
  const auto add = [&](const fs::path& path) -> Status {
    AG_LET(InputSet set, reader.Read(path));
    const fs::path whole = fs::absolute(path).lexically_normal();
    const fs::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
    if (!set.empty()) sets.push_back({name.string(), std::move(set)});
    return OkStatus();
  };
  AG_TRY(add(folder), "--inputs");
  AG_LET(const std::vector<std::string> names, ListDir(folder));
  for (const std::string& name : names) {
    const fs::path below = fs::path(folder) / name;
    if (!name.starts_with(".") && fs::is_directory(below, error)) AG_TRY(add(below), "--inputs");
  }
  if (!sets.empty()) return sets;
  return Err(StatusCode::kInvalidArgument,
             "--inputs {}: no NAME.npy or NAME.pb in it or in a folder below it", folder);
}

}  // namespace ag
