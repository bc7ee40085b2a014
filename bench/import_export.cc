// Import (in the sandbox) and export (in its child) of one model file, as in a job: medians of
// several runs into fresh folders, and the peak memory of each child beside the model's size.
// Weights in data files beside the model are put inside before, as when it is sent.
//   import_export MODEL.onnx [RUNS]
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/blobs.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/handle.h"
#include "base/process.h"
#include "base/write_pieces.h"
#include "graph/codec.h"
#include "graph/onnx/files/model_file.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "server/pipeline/export_child.h"
#include "server/server.h"

namespace ag {
namespace {

struct Numbers {
  double seconds = 0;
  double cpu_seconds = 0;       // Of this process and its child; exact on a busy machine.
  int64_t child_bytes_max = 0;  // Of the one child.
};

struct Place {
  std::string model, folder;
  std::string blobs() const { return folder + "/blobs"; }
  std::string graph() const { return folder + "/graph"; }  // The file from import to export.
  std::string output() const { return folder + "/out.onnx"; }
};

double Seconds(Nanos began) {
  return static_cast<double>((RealClock().Now() - began).count()) / 1e9;
}

double CpuSeconds(const rusage& usage) {
  const timeval &user = usage.ru_utime, &system = usage.ru_stime;
  return static_cast<double>(user.tv_sec + system.tv_sec) +
         static_cast<double>(user.tv_usec + system.tv_usec) / 1e6;
}

// REQUIRES: this process has done one step, with one child.
Numbers NumbersOf(double seconds) {
  rusage self = {}, child = {};
  ::getrusage(RUSAGE_SELF, &self);
  ::getrusage(RUSAGE_CHILDREN, &child);
  return {seconds, CpuSeconds(self) + CpuSeconds(child), int64_t{child.ru_maxrss} << 10};
}

StatusOr<Numbers> Import(const Place& place) {
  AG_LET(const std::shared_ptr<BlobDir> blobs, BlobDir::Open(place.blobs()));
  const Nanos began = RealClock().Now();
  AG_LET(const ImportedModel model, ImportInSandbox(place.model, {}, *blobs));
  const double seconds = Seconds(began);
  ByteWriter writer;
  writer.String(EncodeGraph(model.graph));
  writer.String(EncodeOrigin(model.origin));
  AG_TRY(WriteFileAtomically(place.graph(), writer.Take()));
  return NumbersOf(seconds);
}

StatusOr<Numbers> Export(const Place& place) {
  AG_LET(const std::string bytes, ReadFile(place.graph()));
  ByteReader reader(bytes);
  ExportRequest request;
  AG_LET(const std::string graph, reader.String());
  AG_LET(request.graph, DecodeGraph(graph));
  request.imported = request.graph;
  AG_LET(const std::string origin, reader.String());
  AG_LET(request.origin, DecodeOrigin(origin));
  request.blob_root = place.blobs();
  const Fd output(::open(place.output().c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644));
  if (!output) return FromErrno(errno, place.output());
  request.fd = output.get();
  const Nanos began = RealClock().Now();
  AG_TRY(ExportInChild(request, {}));
  const double seconds = Seconds(began);
  return NumbersOf(seconds);
}

// Runs a step in a process of its own, so that the peak memory of its children is that of one child
// and an earlier step's memory does not count.
Numbers Alone(StatusOr<Numbers> (*step)(const Place&), const Place& place) {
  int ends[2];
  AG_CHECK(::pipe(ends) == 0);
  const pid_t pid = ::fork();
  AG_CHECK(pid >= 0);
  if (pid == 0) {
    const StatusOr<Numbers> numbers = step(place);
    if (!numbers.ok()) std::fprintf(stderr, "%s\n", Message(numbers.status()).c_str());
    const bool said = numbers.ok() && ::write(ends[1], &*numbers, sizeof(Numbers)) > 0;
    ::_exit(said ? 0 : 1);
  }
  ::close(ends[1]);
  Numbers numbers;
  const bool heard = ::read(ends[0], &numbers, sizeof(numbers)) == sizeof(numbers);
  ::close(ends[0]);
  ::waitpid(pid, nullptr, 0);
  if (!heard) std::exit(1);
  return numbers;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Writes the model with its weights inside.
Status WriteWhole(const std::string& path, const std::string& whole) {
  AG_LET(ModelFile file, ModelFile::Open(path));
  return WriteFileInPieces(whole, [&](const WritePiece& write) { return file.Read(write); });
}

int Main(const std::string& path, int runs) {
  const auto beside = TempDir::Make("import-export-model-");
  AG_CHECK(beside.ok());
  const std::string model = beside->path() + "/model.onnx";
  if (const Status written = WriteWhole(path, model); !written.ok()) {
    std::fprintf(stderr, "%s\n", Message(written).c_str());
    return 1;
  }
  const double model_bytes = static_cast<double>(std::filesystem::file_size(model));
  std::vector<double> imports, exports, sums, cpus, import_peaks, export_peaks;
  for (int run = 0; run < runs; ++run) {
    const auto folder = TempDir::Make("import-export-");
    AG_CHECK(folder.ok());
    const Place place = {model, folder->path()};
    const Numbers in = Alone(Import, place), out = Alone(Export, place);
    imports.push_back(in.seconds);
    exports.push_back(out.seconds);
    sums.push_back(in.seconds + out.seconds);
    cpus.push_back(in.cpu_seconds + out.cpu_seconds);
    import_peaks.push_back(static_cast<double>(in.child_bytes_max));
    export_peaks.push_back(static_cast<double>(out.child_bytes_max));
    std::printf("run %d: import %.3f s, export %.3f s\n", run + 1, in.seconds, out.seconds);
  }
  std::printf("%s, %.1f MB, medians of %d\n", path.c_str(), model_bytes / 1e6, runs);
  std::printf("import %.3f s, export %.3f s, both %.3f s (processor time %.3f s)\n",
              Median(imports), Median(exports), Median(sums), Median(cpus));
  const double sandbox = Median(import_peaks), exporter = Median(export_peaks);
  std::printf("peak memory: sandbox %.1f MB (%.2fx the model), export child %.1f MB (%.2fx)\n",
              sandbox / 1e6, sandbox / model_bytes, exporter / 1e6, exporter / model_bytes);
  return 0;
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::RegisterServerRoles();
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  if (argc < 2) {
    std::fprintf(stderr, "usage: import_export MODEL.onnx [RUNS]\n");
    return 2;
  }
  return ag::Main(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 5);
}
