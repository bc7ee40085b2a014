// The numbers of reference kernels: double, integers of any type, exact rationals, and residues in
// a pair of prime fields. Scalar<T> has the functions that kernels need beyond + - * /. Plain data
// and pure functions.
//
// An exact number can fail: a rational overflows 128 bits, or a division is by zero. It is then
// *poisoned*; every result computed from it is poisoned too, and EvaluateAs reports a poisoned
// output.
//
// Functions that an exact type cannot compute are *uninterpreted*: the result is a keyed hash of
// the function, its parameters and the argument. So f(x) = f(y) exactly when x = y, except with a
// probability of about 2^-60 (2^-16 for rationals), and f(0) = 0 where the operator table says so.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "graph/op_kind.h"

namespace ag {

// A reduced fraction; the denominator is positive, or 0 when poisoned.
struct Rational {
  constexpr Rational() = default;
  constexpr Rational(__int128 num, __int128 den) : num(num), den(den) {}
  explicit Rational(double v);  // As Scalar<Rational>::Of.
  __int128 num = 0;
  __int128 den = 1;
};
Rational operator-(Rational v);
Rational operator+(Rational a, Rational b);
Rational operator-(Rational a, Rational b);
Rational operator*(Rational a, Rational b);
Rational operator/(Rational a, Rational b);
bool operator==(Rational a, Rational b);  // A poisoned value equals nothing.
bool operator<(Rational a, Rational b);

// A residue modulo p and, where it is known, modulo q, with p = 2 q + 1 and both prime (Mirage,
// OSDI 2025, section 5: with two fields an exponential is a homomorphism). Arithmetic works on both
// parts. exp maps the q part b to g^b mod p, where g has order q: exp(x + y) = exp(x) exp(y), and
// exp(x) = exp(y) exactly when x = y. The result has no q part; exp of a value without a q part is
// uninterpreted.
struct Residue {
  static constexpr uint64_t kQ = 2305843009213688669ull;  // The largest such q below 2^61.
  static constexpr uint64_t kP = 2 * kQ + 1;
  static constexpr uint64_t kGenerator = 4;  // A square, not 1: its order is q.
  static constexpr uint64_t kNone = ~0ull;   // In p: poisoned. In q: unknown.
  constexpr Residue() = default;
  constexpr Residue(uint64_t p, uint64_t q) : p(p), q(q) {}
  explicit Residue(double v);  // As Scalar<Residue>::Of.
  uint64_t p = 0;
  uint64_t q = 0;
};
Residue operator-(Residue v);
Residue operator+(Residue a, Residue b);
Residue operator-(Residue a, Residue b);
Residue operator*(Residue a, Residue b);
Residue operator/(Residue a, Residue b);
bool operator==(Residue a, Residue b);  // Compares the p part; a poisoned value equals nothing.

// A value of any integer type of ONNX, or of bool. Sums, differences and products wrap at 128 bits,
// so their value in the type, which is its last bits, is right. Division by zero gives zero.
struct Whole {
  constexpr Whole() = default;
  constexpr explicit Whole(__int128 value) : value(value) {}
  __int128 value = 0;
};
inline Whole Wrapped(unsigned __int128 bits) { return Whole(static_cast<__int128>(bits)); }
inline unsigned __int128 BitsOf(Whole v) { return static_cast<unsigned __int128>(v.value); }
inline Whole operator+(Whole a, Whole b) { return Wrapped(BitsOf(a) + BitsOf(b)); }
inline Whole operator-(Whole a, Whole b) { return Wrapped(BitsOf(a) - BitsOf(b)); }
inline Whole operator-(Whole v) { return Whole() - v; }
inline Whole operator*(Whole a, Whole b) { return Wrapped(BitsOf(a) * BitsOf(b)); }
inline Whole operator/(Whole a, Whole b) {  // Toward zero.
  return b.value == 0 ? Whole() : Whole(a.value / b.value);
}
inline Whole operator%(Whole a, Whole b) {  // With the sign of the dividend.
  return b.value == 0 ? Whole() : Whole(a.value % b.value);
}
inline bool operator==(Whole a, Whole b) { return a.value == b.value; }
inline bool operator<(Whole a, Whole b) { return a.value < b.value; }

// The functions on numbers of type T. kOrdered: Less agrees with arithmetic, so relu and similar
// functions may be computed. For residues, Less is a fixed total order without a meaning: it makes
// max and min commutative, associative and idempotent, and comparisons consistent.
template <class T>
struct Scalar;

template <>
struct Scalar<double> {
  static constexpr bool kOrdered = true;
  static constexpr bool kExact = false;
  static double Of(double v) { return v; }
  static bool Poisoned(double) { return false; }
  static bool Less(double a, double b) { return a < b; }
  static double Exp(double v);
  static double Sqrt(double v);
  static double Erf(double v);
  static double Tanh(double v);
  static double Sigmoid(double v);
  static double Truncate(double v);
  static double Pow(double base, double exponent);
  static double Modulo(double a, double b);     // With the sign of the divisor.
  static double Remainder(double a, double b);  // With the sign of the dividend, as C's fmod.
  static std::optional<int64_t> ToInt(double v);
};

template <>
struct Scalar<Whole> {
  static constexpr bool kOrdered = true;
  static constexpr bool kExact = true;
  static Whole Of(double v);  // Toward zero; beyond 64 bits the nearest end. NaN: 0.
  static bool Poisoned(Whole) { return false; }
  static bool Less(Whole a, Whole b) { return a < b; }
  static Whole Truncate(Whole v) { return v; }
  static Whole Pow(Whole base, Whole exponent);  // A negative exponent: 1 over the power, cut.
  static Whole Modulo(Whole a, Whole b) {
    const Whole rest = a % b;
    return rest.value != 0 && (rest.value < 0) != (b.value < 0) ? rest + b : rest;
  }
  static Whole Remainder(Whole a, Whole b) { return a % b; }
  static std::optional<int64_t> ToInt(Whole v) { return static_cast<int64_t>(v.value); }
};

// The shared part of Rational and Residue. A constant becomes the simplest fraction close to the
// double (0.1 is 1/10, 0.1 * 0.2 is 1/50), so that attribute arithmetic gives the results of exact
// calculation. Infinities and NaN are poisoned.
template <class T>
struct ExactScalar {
  static constexpr bool kExact = true;
  static T Of(double v);
  static T Poison();
  static bool Poisoned(T v);
  static T Exp(T v);
  static T Log(T v) { return Opaque(OpKind::kLog, v); }
  static T Sqrt(T v) { return Opaque(OpKind::kSqrt, v); }
  static T Erf(T v) { return Opaque(OpKind::kErf, v); }
  static T Tanh(T v);     // Residues: 1 - 2 / (exp(2 v) + 1). Rationals: uninterpreted.
  static T Sigmoid(T v);  // Residues: 1 / (1 + exp(-v)). Rationals: uninterpreted.
  static T Floor(T v);
  static T Ceil(T v);
  static T Truncate(T v);
  static T Pow(T base, T exponent);  // Multiplies for small integer powers; Sqrt for 1/2.
  static T Modulo(T a, T b);
  static T Remainder(T a, T b);
  static std::optional<int64_t> ToInt(T v);  // Small integers only; else nothing.

  // Returns the uninterpreted function of an operator at v and further arguments.
  static T Opaque(OpKind f, T v, std::initializer_list<T> more = {});
};

// The parts that differ; scalar.cc instantiates the rest.
template <>
Rational ExactScalar<Rational>::Poison();
template <>
Residue ExactScalar<Residue>::Poison();
template <>
Rational ExactScalar<Rational>::Of(double v);
template <>
Residue ExactScalar<Residue>::Of(double v);
template <>
Rational ExactScalar<Rational>::Exp(Rational v);
template <>
Residue ExactScalar<Residue>::Exp(Residue v);
template <>
std::optional<int64_t> ExactScalar<Rational>::ToInt(Rational v);
template <>
std::optional<int64_t> ExactScalar<Residue>::ToInt(Residue v);
template <>
Rational ExactScalar<Rational>::Floor(Rational v);
template <>
Residue ExactScalar<Residue>::Floor(Residue v);
template <>
Rational ExactScalar<Rational>::Ceil(Rational v);
template <>
Residue ExactScalar<Residue>::Ceil(Residue v);
template <>
Rational ExactScalar<Rational>::Truncate(Rational v);
template <>
Residue ExactScalar<Residue>::Truncate(Residue v);

template <>
struct Scalar<Rational> : ExactScalar<Rational> {
  static constexpr bool kOrdered = true;
  static bool Less(Rational a, Rational b);
};

template <>
struct Scalar<Residue> : ExactScalar<Residue> {
  static constexpr bool kOrdered = false;
  static bool Less(Residue a, Residue b);
};

}  // namespace ag
