#include "wire/measurement_wire.h"

#include <gtest/gtest.h>

#include "autograph/v1/measurement.pb.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using google::protobuf::FieldDescriptor;

void Fill(google::protobuf::Message& message, int* number);

// Sets a field, or adds an element to it. No two numbers are equal.
void FillField(google::protobuf::Message& message, const FieldDescriptor& field, int* number) {
  const auto& reflection = *message.GetReflection();
  const bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      ++*number;
      return repeated ? reflection.AddDouble(&message, &field, *number + 0.5)
                      : reflection.SetDouble(&message, &field, *number + 0.5);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, &field, ++*number);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(&message, &field, 2);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, std::to_string(++*number));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(repeated ? *reflection.AddMessage(&message, &field)
                           : *reflection.MutableMessage(&message, &field),
                  number);
    default:
      FAIL() << field.full_name() << " has a type that this test does not know";
  }
}

void Fill(google::protobuf::Message& message, int* number) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    FillField(message, *message.GetDescriptor()->field(i), number);
  }
}

// Fails when a field is forgotten in one of the two directions.
template <class Proto>
void ExpectEveryFieldComesBack() {
  Proto sent;
  int number = 0;
  Fill(sent, &number);
  Proto back;
  ToProto(FromProto(sent), &back);
  EXPECT_EQ(back.DebugString(), sent.DebugString());
}

TEST(MeasurementWire, EveryFieldComesBack) {
  ExpectEveryFieldComesBack<v1::Latency>();
  ExpectEveryFieldComesBack<v1::Ratio>();
  ExpectEveryFieldComesBack<v1::Measurement>();
  ExpectEveryFieldComesBack<v1::PlanTiming>();
  ExpectEveryFieldComesBack<v1::OutputError>();
  ExpectEveryFieldComesBack<v1::ComparedInputs>();
  ExpectEveryFieldComesBack<v1::KernelChoice>();
}

TEST(MeasurementWire, FileTimesComeBack) {
  FileTimes times;
  times.runners = {{OkStatus(), "1.2", true},
                   {Err(StatusCode::kUnimplemented, "no kernel"), "", false}};
  times.blocks = {{1, 0, 0, 2}, {3, 0, 0, 4}};
  times.disturbed = 1;
  v1::FileTimes proto;
  ToProto(times, &proto);
  const FileTimes back = FromProto(proto);
  EXPECT_EQ(back.runners[0].version, "1.2");
  EXPECT_TRUE(back.runners[0].carried_plan);
  EXPECT_EQ(ToString(back.runners[1].status), "UNIMPLEMENTED: no kernel");
  EXPECT_EQ(back.blocks, times.blocks);
  EXPECT_EQ(back.disturbed, 1);
}

TEST(MeasurementWire, WhatAWorkerSentIsBounded) {
  EXPECT_EQ(Message(StatusFromWire(3, std::string(5000, 'x'))).size(), 3000u);
  EXPECT_EQ(StatusFromWire(99, "odd").code(), StatusCode::kInternal);
  EXPECT_TRUE(StatusFromWire(0, "fine").ok());
  v1::FileTimes times;
  times.add_blocks();
  times.set_disturbed(7);
  times.add_runners()->set_version(std::string(500, 'v'));
  EXPECT_EQ(FromProto(times).disturbed, 1);
  EXPECT_EQ(FromProto(times).runners[0].version.size(), 100u);
  v1::PlanTiming timing;
  timing.set_verdict(static_cast<v1::PlanTiming::Verdict>(77));
  EXPECT_EQ(FromProto(timing).verdict, Verdict::kAmbiguous);
}

TEST(MeasurementWire, BytesThatAreNoMeasurementAreDataLoss) {
  const Measurement m = {{100, 90, 110}, 21, 1, 5, "kernel", {{"other", 150}}, false, 12};
  EXPECT_EQ(DecodeMeasurement(EncodeMeasurement(m))->alternatives, m.alternatives);
  EXPECT_EQ(ToString(DecodeMeasurement("\x0a\x7f").status()),
            "DATA_LOSS: measurement: not a Measurement message");
}

}  // namespace
}  // namespace ag
