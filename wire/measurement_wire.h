// Conversions of measured values between plain structs and the messages of measurement.proto. The
// worker, the coordinator, its stores and the command line share them. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "plan/file_times.h"
#include "plan/fusion/kernel_rivals.h"
#include "plan/measurement.h"

namespace autograph::v1 {
class ComparedInputs;
class FileTimes;
class KernelChoice;
class Latency;
class Measurement;
class OutputError;
class PlanTiming;
class Ratio;
}  // namespace autograph::v1

namespace ag {

void ToProto(const Latency& latency, autograph::v1::Latency* proto);
void ToProto(const Ratio& ratio, autograph::v1::Ratio* proto);
void ToProto(const Measurement& measurement, autograph::v1::Measurement* proto);
void ToProto(const PlanTiming& timing, autograph::v1::PlanTiming* proto);  // Without the status.
void ToProto(const OutputError& error, autograph::v1::OutputError* proto);
void ToProto(const ComparedInputs& compared, autograph::v1::ComparedInputs* proto);
void ToProto(const FileTimes& times, autograph::v1::FileTimes* proto);
void ToProto(const KernelChoice& choice, autograph::v1::KernelChoice* proto);

// These take what a worker sent, which may be wrong: the caller checks the numbers
// (CheckMeasurement, CheckFileTimes).
Latency FromProto(const autograph::v1::Latency& proto);
Ratio FromProto(const autograph::v1::Ratio& proto);
Measurement FromProto(const autograph::v1::Measurement& proto);
PlanTiming FromProto(const autograph::v1::PlanTiming& proto);
OutputError FromProto(const autograph::v1::OutputError& proto);
ComparedInputs FromProto(const autograph::v1::ComparedInputs& proto);
FileTimes FromProto(const autograph::v1::FileTimes& proto);
KernelChoice FromProto(const autograph::v1::KernelChoice& proto);

// Returns the status of a code and a message that came from another process: at most 3000 bytes of
// the message, and kInternal for an unknown code.
Status StatusFromWire(int code, const std::string& message);

// The bytes of a stored measurement. kDataLoss: not such bytes.
std::string EncodeMeasurement(const Measurement& measurement);
StatusOr<Measurement> DecodeMeasurement(std::string_view bytes);

}  // namespace ag
