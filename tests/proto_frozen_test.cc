// The wire contract only grows: every message, field, number and type of proto/ stands in
// proto_frozen.txt. A change of an old line breaks clients; new lines are added with
// AUTOGRAPH_UPDATE=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "autograph/v1/blobs.pb.h"
#include "autograph/v1/cache.pb.h"
#include "autograph/v1/error.pb.h"
#include "autograph/v1/measurement.pb.h"
#include "autograph/v1/optimizer.pb.h"
#include "autograph/v1/taso.pb.h"
#include "autograph/v1/worker.pb.h"

namespace ag {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FileDescriptor;

void AddEnum(const EnumDescriptor& type, std::set<std::string>* lines) {
  for (int i = 0; i < type.value_count(); ++i) {
    lines->insert(type.full_name() + " " + type.value(i)->name() + " = " +
                  std::to_string(type.value(i)->number()));
  }
}

void AddMessage(const Descriptor& type, std::set<std::string>* lines) {
  for (int i = 0; i < type.field_count(); ++i) {
    std::string line = type.field(i)->DebugString();
    line = line.substr(0, line.find(';'));
    lines->insert(type.full_name() + " " + line.substr(line.find_first_not_of(' ')));
  }
  for (int i = 0; i < type.enum_type_count(); ++i) AddEnum(*type.enum_type(i), lines);
  for (int i = 0; i < type.nested_type_count(); ++i) AddMessage(*type.nested_type(i), lines);
}

std::set<std::string> Lines() {
  namespace v1 = autograph::v1;
  std::set<std::string> lines;
  for (const FileDescriptor* file :
       {v1::Job::descriptor()->file(), v1::UploadRequest::descriptor()->file(),
        v1::CacheRecord::descriptor()->file(), v1::Measurement::descriptor()->file(),
        v1::WorkerState::descriptor()->file(), v1::TasoRule::descriptor()->file(),
        v1::ErrorStatus::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) AddMessage(*file->message_type(i), &lines);
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        std::string line = file->service(s)->method(m)->DebugString();
        lines.insert(file->service(s)->full_name() + " " + line.substr(0, line.find(';')));
      }
    }
  }
  return lines;
}

TEST(Proto, OldLinesStay) {
  const std::string path = AG_SOURCE_DIR "/tests/proto_frozen.txt";
  const std::set<std::string> now = Lines();
  if (std::getenv("AUTOGRAPH_UPDATE") != nullptr) {
    std::ofstream out(path);
    for (const std::string& line : now) out << line << "\n";
  }
  std::ifstream in(path);
  std::set<std::string> frozen;
  for (std::string line; std::getline(in, line);) frozen.insert(line);
  for (const std::string& line : frozen) EXPECT_TRUE(now.contains(line)) << "gone: " << line;
  for (const std::string& line : now)
    EXPECT_TRUE(frozen.contains(line)) << "not frozen yet: " << line;
}

}  // namespace
}  // namespace ag
