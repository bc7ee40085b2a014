// One list of the fields of a struct, in the order of their bytes (base/bytes.h), that both encodes
// and decodes it, so that the two directions cannot differ. A struct takes part by a function
// beside it:
//
//   void Fields(auto& io, Is<Port> auto& port) { io(port.edge, port.layout); }
//
// A field may be a bool, an int (u32, never negative), an unsigned or a 64-bit integer, a double, a
// std::string, a Digest, a pair, a list or a map of such, or another struct with Fields. Pure
// functions.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/bytes.h"

namespace ag {

template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

class FieldWriter {
 public:
  explicit FieldWriter(ByteWriter& out) : out_(out) {}

  void operator()(const auto&... values) { (Write(values), ...); }
  // An enum class whose values are below `count`; `noun` names it in errors.
  void Enum(auto value, int /*count*/, std::string_view /*noun*/) {
    out_.U8(static_cast<uint8_t>(value));
  }
  // A value that has bytes of its own, as a string. `decode` returns StatusOr of the value.
  void Nested(const auto& value, auto encode, auto /*decode*/) { out_.String(encode(value)); }

 private:
  void Write(bool v) { out_.U8(v); }
  void Write(int v) { out_.U32(static_cast<uint32_t>(v)); }
  void Write(uint32_t v) { out_.U32(v); }
  void Write(uint64_t v) { out_.U64(v); }
  void Write(int64_t v) { out_.I64(v); }
  void Write(double v) { out_.F64(v); }
  void Write(const std::string& v) { out_.String(v); }
  void Write(const Digest& v) { out_.AddDigest(v); }
  template <class T>
  void Write(const T& value) {
    if constexpr (requires { value.begin(); }) {
      out_.U64(value.size());
      for (const auto& item : value) Write(item);
    } else if constexpr (requires { value.second; }) {
      (*this)(value.first, value.second);
    } else {
      Fields(*this, value);
    }
  }

  ByteWriter& out_;
};

// Stops at the first wrong field; the fields behind it stay as they are.
class FieldReader {
 public:
  explicit FieldReader(ByteReader& in) : in_(in) {}

  const Status& status() const { return status_; }

  void operator()(auto&... values) { (ReadNext(values), ...); }
  template <class T>
  void Enum(T& value, int count, std::string_view noun) {
    uint8_t number = 0;
    if (status_.ok()) Take(in_.U8(), number);
    value = static_cast<T>(number);
    if (number >= count) status_ = Err(StatusCode::kDataLoss, "no {} has number {}", noun, number);
  }
  void Nested(auto& value, auto /*encode*/, auto decode) {
    std::string bytes;
    ReadNext(bytes);
    if (status_.ok()) Take(decode(bytes), value);
  }

 private:
  void ReadNext(auto& value) {
    if (status_.ok()) Read(value);
  }

  void Take(auto read, auto& value) {
    if (read.ok()) {
      value = *std::move(read);
    } else {
      status_ = read.status();
    }
  }

  void Read(bool& v) { Take(in_.U8(), v); }
  void Read(uint32_t& v) { Take(in_.U32(), v); }
  void Read(uint64_t& v) { Take(in_.U64(), v); }
  void Read(int64_t& v) { Take(in_.I64(), v); }
  void Read(double& v) { Take(in_.F64(), v); }
  void Read(std::string& v) { Take(in_.String(), v); }
  void Read(Digest& v) { Take(in_.ReadDigest(), v); }
  void Read(int& v) {
    uint32_t number = 0;
    Take(in_.U32(), number);
    v = static_cast<int>(number);
    if (v < 0) status_ = Err(StatusCode::kDataLoss, "number {} is out of range", number);
  }
  template <class T>
  void Read(T& value) {
    if constexpr (requires { value.begin(); }) {
      ReadItems(value);
    } else if constexpr (requires { value.second; }) {
      (*this)(value.first, value.second);
    } else {
      Fields(*this, value);
    }
  }

  // Reads a list or a map. Every item has a byte, so that a wrong count ends early.
  template <class T>
  void ReadItems(T& items) {
    uint64_t count = 0;
    Take(in_.Count(1), count);
    for (uint64_t i = 0; i < count && status_.ok(); ++i) {
      if constexpr (requires { typename T::mapped_type; }) {
        std::pair<typename T::key_type, typename T::mapped_type> item;
        Read(item);
        items.insert_or_assign(std::move(item.first), std::move(item.second));
      } else {
        Read(items.emplace_back());
      }
    }
  }

  ByteReader& in_;
  Status status_;
};

// Returns what `out` holds already, then the bytes of `value`.
std::string EncodeFields(const auto& value, ByteWriter out = {}) {
  FieldWriter{out}(value);
  return out.Take();
}

// Reads the rest of `in`. kDataLoss: it is not exactly one T.
template <class T>
StatusOr<T> DecodeFields(ByteReader in) {
  T value;
  FieldReader reader(in);
  reader(value);
  AG_TRY(reader.status());
  AG_TRY(in.End());
  return value;
}

template <class T>
StatusOr<T> DecodeFields(std::string_view bytes) {
  return DecodeFields<T>(ByteReader(bytes));
}

}  // namespace ag
