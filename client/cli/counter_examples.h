// The folders of counter-examples that a job leaves beside its output (docs/report.md). Pure
// functions, but for the download.
#pragma once

#include <string>

#include "client/cpp/client.h"

namespace ag {

// Returns "OUT.onnx.counter-example", with "-2" and so on behind it for further ones.
std::string CounterExampleFolder(const std::string& output, int number);

// Whether a file of this name stays inside the folder that it is written into.
bool StaysInside(const std::string& name);

// Writes the files of the job's counter-examples into such folders, which it makes. kDataLoss: a
// name leads out of them.
Status TakeCounterExamples(Client& client, const autograph::v1::Job& job,
                           const std::string& output);

// Returns a row for each folder, with a line break before it.
std::string CounterExampleRows(const autograph::v1::Job& job, const std::string& output);

}  // namespace ag
