#include <gtest/gtest.h>

#include "base/file.h"
#include "client/cli/local_model.h"

namespace ag {
namespace {

using namespace std::string_literals;

// Returns a file with this header, without padding: the reader accepts any length.
std::string File(const std::string& header, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY"s + static_cast<char>(version) + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return bytes + header + data;
}

std::string Header(const std::string& descr, const std::string& shape,
                   const std::string& order = "False") {
  return fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}\n", descr, order, shape);
}

std::string FileOf(const std::string& descr, const std::string& shape, size_t bytes) {
  return File(Header(descr, shape), std::string(bytes, '\1'));
}

TEST(Npy, EveryElementTypeComesBack) {
  const TempDir folder = *TempDir::Make("npy-test");
  const std::string path = folder.path() + "/t.npy";
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat16, DType::kFloat64, DType::kInt64, DType::kInt32,
        DType::kInt16, DType::kInt8, DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64,
        DType::kBool, DType::kBFloat16}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 4}}) {
      const Tensor tensor = RandomTensor({dtype, shape}, 5);
      ASSERT_EQ(ToString(WriteNpy(path, tensor)), "OK") << tensor.type().ToString();
      const auto read = ReadTensorFile(path);
      ASSERT_EQ(ToString(read.status()), "OK") << tensor.type().ToString();
      EXPECT_EQ(read->type(), tensor.type());
      EXPECT_EQ(read->bytes(), tensor.bytes());
    }
  }
}

// The bytes that numpy writes for np.array([[1, 2]], '<i2').
TEST(Npy, WritesWhatNumpyWrites) {
  const TempDir folder = *TempDir::Make("npy-test");
  const std::string path = folder.path() + "/t.npy";
  ASSERT_EQ(ToString(WriteNpy(
                path, Tensor::FromDoubles({DType::kInt16, {1, 2}}, std::vector<double>{1, 2}))),
            "OK");
  const std::string bytes = *ReadFile(path);
  ASSERT_EQ(bytes.size(), 128u + 4u);
  EXPECT_EQ(bytes.substr(0, 10), "\x93NUMPY\x01\x00\x76\x00"s);
  EXPECT_EQ(bytes.substr(10, 58), "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2, )");
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_EQ(bytes.substr(128), "\x01\x00\x02\x00"s);
}

TEST(Npy, WhatItCannotHoldIsSaid) {
  EXPECT_EQ(ToString(WriteNpy("/tmp/never.npy", Tensor::Zeros({DType::kFloat8E4M3, {2}}))),
            "UNIMPLEMENTED: /tmp/never.npy: npy cannot hold f8e4m3[2]");
  EXPECT_FALSE(WriteNpy("/dev/null/t.npy", Tensor::Zeros({DType::kFloat32, {2}})).ok());
}

TEST(Npy, ReadsAllThreeVersions) {
  for (const int version : {1, 2, 3}) {
    const auto tensor = ReadNpy(File(Header("'<i2'", "(2,)"), "\x01\x00\x02\x00"s, version));
    ASSERT_EQ(ToString(tensor.status()), "OK") << version;
    EXPECT_EQ(tensor->ToDoubles(), (std::vector<double>{1, 2})) << version;
  }
}

TEST(Npy, ReadsHeadersAsPythonMayWriteThem) {
  const struct {
    const char* name;
    std::string header, type;
  } kCases[] = {
      {"keys in another order", "{'shape': (2,), 'fortran_order': False, 'descr': '<i2'}",
       "i16[2]"},
      {"no blanks", "{'descr':'<i2','fortran_order':False,'shape':(2,)}", "i16[2]"},
      {"many blanks", "{ 'descr' : '<i2' , 'fortran_order' : False, 'shape' : ( 2 , ) }", "i16[2]"},
      {"a scalar", "{'descr': '<i4', 'fortran_order': False, 'shape': (), }", "i32[]"},
      {"no last comma", "{'descr': '|i1', 'fortran_order': False, 'shape': (2, 2)}", "i8[2,2]"},
  };
  for (const auto& c : kCases) {
    const auto tensor = ReadNpy(File(c.header, "\1\2\3\4"));
    ASSERT_EQ(ToString(tensor.status()), "OK") << c.name;
    EXPECT_EQ(tensor->type().ToString(), c.type) << c.name;
  }
}

TEST(Npy, SaysWhatItCannotRead) {
  const std::string good = FileOf("'<f4'", "(2,)", 8);
  const struct {
    const char* name;
    std::string bytes, status;
  } kCases[] = {
      {"good", good, "OK"},
      {"empty", "", "INVALID_ARGUMENT: not a npy file"},
      {"text", "hello, world, hello", "INVALID_ARGUMENT: not a npy file"},
      {"magic only", good.substr(0, 6), "INVALID_ARGUMENT: npy file is truncated"},
      {"no length", good.substr(0, 9), "INVALID_ARGUMENT: npy file is truncated"},
      {"half a header", good.substr(0, 40), "INVALID_ARGUMENT: npy file is truncated"},
      {"long header cut", File(Header("'<f4'", "(2,)"), "", 2).substr(0, 11),
       "INVALID_ARGUMENT: npy file is truncated"},
      {"version 0", "\x93NUMPY\x00\x00\x01\x00 "s,
       "UNIMPLEMENTED: npy version 0.0; 1, 2 and 3 are read"},
      {"version 4", File(Header("'<f4'", "(2,)"), "12345678", 4),
       "UNIMPLEMENTED: npy version 4.0; 1, 2 and 3 are read"},
      {"too few bytes", FileOf("'<f4'", "(2,)", 7),
       "INVALID_ARGUMENT: npy file has 7 bytes of data, f32[2] needs 8"},
      {"too many bytes", FileOf("'<f4'", "(2,)", 9),
       "INVALID_ARGUMENT: npy file has 9 bytes of data, f32[2] needs 8"},
      {"Fortran order", File(Header("'<f4'", "(2,1)", "True"), "12345678"),
       "UNIMPLEMENTED: npy in Fortran order; save it with np.ascontiguousarray"},
      {"Fortran order without blank",
       File("{'descr':'<f4','fortran_order':True,'shape':(2,1)}", "12345678"),
       "UNIMPLEMENTED: npy in Fortran order; save it with np.ascontiguousarray"},
      {"other order", File(Header("'<f4'", "(2,1)", "Maybe"), "12345678"),
       "INVALID_ARGUMENT: npy header: fortran_order is not True or False"},
      {"big-endian", FileOf("'>f4'", "(2,)", 8),
       "UNIMPLEMENTED: npy element type >f4 (big-endian); save it with .astype('<f4')"},
      {"objects", FileOf("'|O'", "(2,)", 8),
       "UNIMPLEMENTED: npy element type |O (Python objects); save an array of numbers"},
      {"strings", FileOf("'<U3'", "(2,)", 24), "UNIMPLEMENTED: npy element type <U3"},
      {"complex", FileOf("'<c8'", "(2,)", 16), "UNIMPLEMENTED: npy element type <c8"},
      {"records", FileOf("[('a', '<f4'), ('b', '<f4')]", "(1,)", 8),
       "UNIMPLEMENTED: npy of records; save one field of it"},
      {"no descr", File("{'fortran_order': False, 'shape': (2,)}", ""),
       "INVALID_ARGUMENT: npy header has no descr"},
      {"no order", File("{'descr': '<f4', 'shape': (2,)}", ""),
       "INVALID_ARGUMENT: npy header has no fortran_order"},
      {"no shape", File("{'descr': '<f4', 'fortran_order': False}", ""),
       "INVALID_ARGUMENT: npy header has no shape"},
      {"no value", File("{'descr':", ""), "INVALID_ARGUMENT: npy header: descr is not '...'"},
      {"open shape", File("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", ""),
       "INVALID_ARGUMENT: npy header: shape is not (...)"},
      {"a word as size", FileOf("'<f4'", "(two,)", 8),
       "INVALID_ARGUMENT: npy shape (two,): expected a whole number, got 'two'"},
      {"negative size", FileOf("'<f4'", "(-2,)", 8),
       "INVALID_ARGUMENT: npy shape (-2,): negative size in f32[-2]"},
      {"overflowing sizes", FileOf("'<f4'", "(4294967296, 4294967296)", 0),
       "INVALID_ARGUMENT: npy shape (4294967296, 4294967296): f32[4294967296,4294967296] has more "
       "than 2^40 elements"},
      {"overflowing beside zero", FileOf("'<f4'", "(0, 4294967296, 4294967296)", 0),
       "INVALID_ARGUMENT: npy shape (0, 4294967296, 4294967296): f32[0,4294967296,4294967296] has "
       "more than 2^40 elements"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(ReadNpy(c.bytes).status()), c.status) << c.name;
  }
}

// Any prefix is an error and none crashes.
TEST(Npy, EveryCutIsNoticed) {
  for (const int version : {1, 2}) {
    const std::string whole = File(Header("'<f4'", "(2,)"), "12345678", version);
    for (size_t n = 0; n < whole.size(); ++n) {
      EXPECT_FALSE(ReadNpy(whole.substr(0, n)).ok()) << n;
    }
  }
}

}  // namespace
}  // namespace ag
