// Element types, shapes and tensor types. Plain data and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "base/status.h"

namespace ag {

// The numbers are part of stored bytes and never change.
enum class DType : uint8_t {
  kFloat32 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kFloat64 = 4,
  kInt64 = 5,
  kInt32 = 6,
  kInt16 = 7,
  kInt8 = 8,
  kUInt8 = 9,
  kBool = 10,
  kUInt16 = 11,
  kUInt32 = 12,
  kUInt64 = 13,
  kString = 14,  // Only at opaque nodes; no kernel of the IR computes on it.
  // The narrow types (graph/narrow.h): one byte per element in memory, only at opaque nodes.
  kFloat8E4M3 = 15,
  kFloat8E4M3Fnuz = 16,
  kFloat8E5M2 = 17,
  kFloat8E5M2Fnuz = 18,
  kFloat4E2M1 = 19,
  kInt4 = 20,
  kUInt4 = 21,
};

int64_t SizeOf(DType dtype);              // Bytes per element; 0 for kString.
std::string_view DTypeName(DType dtype);  // "f32", "i64", "bool", ...
StatusOr<DType> ParseDType(std::string_view name);
bool IsFloat(DType dtype);     // Of 16 bits or more.
bool IsInteger(DType dtype);   // Not floating point, not bool, not string, of 8 bits or more.
bool IsNarrow(DType dtype);    // A floating point type of 8 or 4 bits, or an integer of 4.
bool IsDType(int64_t number);  // True when `number` is the number of an element type.

inline constexpr size_t kRankMax = 32;
inline constexpr int64_t kElementsMax = int64_t{1} << 40;
// Times 8 bytes still fits into 64 bits.
inline constexpr int64_t kElementsOverflow = int64_t{1} << 58;

// Sizes of the axes, outermost first. Every size is known and >= 0; graphs hold no symbolic sizes.
using Shape = absl::InlinedVector<int64_t, 6>;

// Returns 1 for a scalar; kElementsOverflow for a product that does not fit (CheckType refuses it).
int64_t NumElements(std::span<const int64_t> shape);
std::string ShapeToString(std::span<const int64_t> shape);  // "[1,3,224,224]"

struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;

  bool operator==(const TensorType&) const = default;
  int64_t NumElements() const { return ag::NumElements(shape); }
  int64_t Bytes() const { return NumElements() * SizeOf(dtype); }
  std::string ToString() const;  // "f32[1,3,224,224]"
};

using TensorTypes = absl::InlinedVector<TensorType, 1>;

// Returns kInvalidArgument for a negative size, a rank above kRankMax, or more than kElementsMax
// elements (sizes of zero not counted). So no arithmetic on a checked type overflows.
Status CheckType(const TensorType& type);

}  // namespace ag
