#include "graph/reference/scalar.h"

#include <cmath>
#include <limits>

#include "graph/hash.h"

namespace ag {

double Scalar<double>::Exp(double v) { return std::exp(v); }
double Scalar<double>::Sqrt(double v) { return std::sqrt(v); }
double Scalar<double>::Erf(double v) { return std::erf(v); }
double Scalar<double>::Tanh(double v) { return std::tanh(v); }
double Scalar<double>::Sigmoid(double v) {
  if (v >= 0) return 1 / (1 + std::exp(-v));
  const double e = std::exp(v);  // exp does not overflow for large negative v.
  return e / (1 + e);
}
double Scalar<double>::Truncate(double v) { return std::trunc(v); }
double Scalar<double>::Pow(double base, double exponent) { return std::pow(base, exponent); }
double Scalar<double>::Remainder(double a, double b) { return std::fmod(a, b); }
double Scalar<double>::Modulo(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

std::optional<int64_t> Scalar<double>::ToInt(double v) {
  if (!(std::fabs(v) < 9e18) || std::trunc(v) != v) return std::nullopt;
  return static_cast<int64_t>(v);
}

Whole Scalar<Whole>::Of(double v) {
  if (v != v) return Whole();
  constexpr double kEnd = 18446744073709551616.0;  // 2^64: every integer type lies below it.
  return Whole(static_cast<__int128>(v < -kEnd ? -kEnd : v > kEnd ? kEnd : v));
}

Whole Scalar<Whole>::Pow(Whole base, Whole exponent) {
  const Whole one(1);
  if (exponent.value < 0 && base != one && base != -one) return Whole();
  // Below zero the base is 1 or -1, and their powers go by whether the exponent is odd.
  Whole result = one;
  for (auto rest = BitsOf(exponent); rest != 0; rest >>= 1, base = base * base) {
    if ((rest & 1) != 0) result = result * base;
  }
  return result;
}

namespace {

using Int = __int128;

struct Fraction {
  int64_t num;
  int64_t den;  // 0: not a finite number.
};

// Returns the simplest fraction within a relative distance of 2^-50 of `value`: the first such
// convergent of its continued fraction. The margin is a few units in the last place, so 0.1 * 0.2
// is 1/50; it is too narrow to change the 24 bits of a float into another fraction. Without such a
// convergent it returns the dyadic value itself.
Fraction SimplestFraction(double value) {
  if (!std::isfinite(value) || std::fabs(value) >= 9e18) return {0, 0};
  const double magnitude = std::fabs(value);
  int64_t num = 1, den = 0, num_before = 0, den_before = 1;
  double rest = magnitude;
  for (int i = 0; i < 64; ++i) {
    const double whole = std::floor(rest);
    if (whole >= 9e18) break;
    const auto digit = static_cast<int64_t>(whole);
    const Int next_num = static_cast<Int>(digit) * num + num_before;
    const Int next_den = static_cast<Int>(digit) * den + den_before;
    if (next_num > std::numeric_limits<int64_t>::max() || next_den > (int64_t{1} << 53)) break;
    num_before = num;
    den_before = den;
    num = static_cast<int64_t>(next_num);
    den = static_cast<int64_t>(next_den);
    const double quotient = static_cast<double>(num) / static_cast<double>(den);
    if (std::fabs(quotient - magnitude) <= std::ldexp(magnitude, -50)) {
      return {value < 0 ? -num : num, den};
    }
    if (rest == whole) break;
    rest = 1 / (rest - whole);
  }
  int exponent = 0;
  const double mantissa = std::frexp(magnitude, &exponent);  // In [0.5, 1).
  const int shift = 53 - exponent;
  if (shift < 0 || shift > 62) return {0, 0};
  const auto scaled = static_cast<int64_t>(std::ldexp(mantissa, 53));
  return {value < 0 ? -scaled : scaled, int64_t{1} << shift};
}

Int Abs(Int v) { return v < 0 ? -v : v; }

Int Gcd(Int a, Int b) {
  a = Abs(a);
  b = Abs(b);
  while (b != 0) {
    const Int r = a % b;
    a = b;
    b = r;
  }
  return a;
}

constexpr Rational kPoisonedRational{0, 0};

// Numerators and denominators stay below 2^126, so that negation and Gcd never overflow.
bool Fits(Int v) { return Abs(v) < (static_cast<Int>(1) << 126); }

bool Times(Int a, Int b, Int* product) {
  return !__builtin_mul_overflow(a, b, product) && *product != std::numeric_limits<Int>::min() &&
         Fits(*product);
}

bool IsPoisoned(Rational v) { return v.den == 0; }

// REQUIRES: den != 0.
Rational Reduced(Int num, Int den) {
  const Int divisor = Gcd(num, den);
  if (den < 0) {
    num = -num;
    den = -den;
  }
  return {num / divisor, den / divisor};
}

Int FloorOf(Rational v) {
  const Int whole = v.num / v.den;
  return v.num % v.den < 0 ? whole - 1 : whole;
}

uint64_t MulMod(uint64_t a, uint64_t b, uint64_t modulus) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % modulus);
}

uint64_t PowMod(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = MulMod(result, base, modulus);
    base = MulMod(base, base, modulus);
  }
  return result;
}

uint64_t AddMod(uint64_t a, uint64_t b, uint64_t modulus) {
  const uint64_t sum = a + b;  // Both are below 2^62.
  return sum >= modulus ? sum - modulus : sum;
}

uint64_t IntMod(int64_t v, uint64_t modulus) {
  const Int m = static_cast<Int>(modulus);
  return static_cast<uint64_t>((static_cast<Int>(v) % m + m) % m);
}

bool IsPoisoned(Residue v) { return v.p == Residue::kNone; }

constexpr Residue kPoisonedResidue{Residue::kNone, Residue::kNone};

// Applies `f(a, b, modulus)` to the parts that both operands have.
template <class F>
Residue PartWise(Residue a, Residue b, F f) {
  if (IsPoisoned(a) || IsPoisoned(b)) return kPoisonedResidue;
  const bool with_q = a.q != Residue::kNone && b.q != Residue::kNone;
  return {f(a.p, b.p, Residue::kP), with_q ? f(a.q, b.q, Residue::kQ) : Residue::kNone};
}

Residue ResidueOf(int64_t v) { return {IntMod(v, Residue::kP), IntMod(v, Residue::kQ)}; }

uint64_t HashOf(Residue v) { return Mix(v.p ^ 0x5bf03635d2f1a9c7ull); }

uint64_t HashOf(Rational v) {
  const auto fold = [](Int i) {
    const auto u = static_cast<unsigned __int128>(i);
    return Mix(static_cast<uint64_t>(u) ^ Mix(static_cast<uint64_t>(u >> 64)));
  };
  return Mix(fold(v.num) + 3 * fold(v.den));
}

// Makes a number from a hash. Rationals are positive and small, so that their sums do not overflow.
void FromHash(uint64_t hash, Residue* result) {
  *result = {hash % Residue::kP, Mix(hash) % Residue::kQ};
}
void FromHash(uint64_t hash, Rational* result) {
  *result = {static_cast<Int>(hash % 65521) + 1, 1};
}

}  // namespace

Rational operator+(Rational a, Rational b) {
  if (IsPoisoned(a) || IsPoisoned(b)) return kPoisonedRational;
  Int left = 0, right = 0, den = 0;
  const Int divisor = Gcd(a.den, b.den);
  if (!Times(a.num, b.den / divisor, &left) || !Times(b.num, a.den / divisor, &right) ||
      !Times(a.den, b.den / divisor, &den) || !Fits(left + right)) {
    return kPoisonedRational;
  }
  return Reduced(left + right, den);
}

Rational operator-(Rational v) { return {-v.num, v.den}; }
Rational operator-(Rational a, Rational b) { return a + -b; }

Rational operator*(Rational a, Rational b) {
  if (IsPoisoned(a) || IsPoisoned(b)) return kPoisonedRational;
  const Int left = Gcd(a.num, b.den), right = Gcd(b.num, a.den);
  Int num = 0, den = 0;
  if (!Times(a.num / left, b.num / right, &num) || !Times(a.den / right, b.den / left, &den)) {
    return kPoisonedRational;
  }
  return {num, den};
}

Rational operator/(Rational a, Rational b) {
  if (IsPoisoned(a) || IsPoisoned(b) || b.num == 0) return kPoisonedRational;
  return a * (b.num < 0 ? Rational{-b.den, -b.num} : Rational{b.den, b.num});
}

bool operator==(Rational a, Rational b) {
  return !IsPoisoned(a) && !IsPoisoned(b) && a.num == b.num && a.den == b.den;
}

Residue operator+(Residue a, Residue b) { return PartWise(a, b, AddMod); }

Residue operator-(Residue a, Residue b) {
  return PartWise(a, b, [](uint64_t x, uint64_t y, uint64_t m) { return AddMod(x, m - y, m); });
}

Residue operator-(Residue v) { return Residue{} - v; }

Residue operator*(Residue a, Residue b) { return PartWise(a, b, MulMod); }

Residue operator/(Residue a, Residue b) {
  if (IsPoisoned(b) || b.p == 0) return kPoisonedResidue;
  if (b.q == 0) b.q = Residue::kNone;  // Not zero, but without an inverse modulo q.
  return PartWise(a, b, [](uint64_t x, uint64_t y, uint64_t m) {
    return MulMod(x, PowMod(y, m - 2, m), m);  // Fermat: y^(m-2) is the inverse.
  });
}

bool operator==(Residue a, Residue b) { return !IsPoisoned(a) && !IsPoisoned(b) && a.p == b.p; }

bool Scalar<Rational>::Less(Rational a, Rational b) { return a < b; }

bool operator<(Rational a, Rational b) {
  // Compares continued fractions term by term, so that nothing overflows.
  while (!IsPoisoned(a) && !IsPoisoned(b)) {
    const Int whole_a = FloorOf(a), whole_b = FloorOf(b);
    if (whole_a != whole_b) return whole_a < whole_b;
    const Int rest_a = a.num - whole_a * a.den, rest_b = b.num - whole_b * b.den;
    if (rest_a == 0 || rest_b == 0) return rest_a == 0 && rest_b != 0;
    const Rational inverse_a{a.den, rest_a};
    a = {b.den, rest_b};  // x < y is 1/y < 1/x.
    b = inverse_a;
  }
  return false;
}

bool Scalar<Residue>::Less(Residue a, Residue b) { return HashOf(a) < HashOf(b); }

template <>
Rational ExactScalar<Rational>::Poison() {
  return kPoisonedRational;
}
template <>
Residue ExactScalar<Residue>::Poison() {
  return kPoisonedResidue;
}
template <class T>
bool ExactScalar<T>::Poisoned(T v) {
  return IsPoisoned(v);
}

template <>
Rational ExactScalar<Rational>::Of(double v) {
  const Fraction f = SimplestFraction(v);
  return f.den == 0 ? kPoisonedRational : Reduced(f.num, f.den);
}
template <>
Residue ExactScalar<Residue>::Of(double v) {
  const Fraction f = SimplestFraction(v);
  if (f.den == 0) return kPoisonedResidue;
  return f.den == 1 ? ResidueOf(f.num) : ResidueOf(f.num) / ResidueOf(f.den);
}

Rational::Rational(double v) : Rational(Scalar<Rational>::Of(v)) {}
Residue::Residue(double v) : Residue(Scalar<Residue>::Of(v)) {}

template <class T>
T ExactScalar<T>::Opaque(OpKind f, T v, std::initializer_list<T> more) {
  uint64_t key = static_cast<uint64_t>(f) + 1;
  for (const T argument : more) {
    if (Poisoned(argument)) return argument;
    key = Mix(key) ^ HashOf(argument);
  }
  if (Poisoned(v) || (Has(f, kZeroToZero) && v == T{})) return v;
  T result;
  FromHash(Mix(HashOf(v) ^ Mix(key)), &result);
  return result;
}

template <>
Rational ExactScalar<Rational>::Exp(Rational v) {
  return v == Rational{} ? Rational{1, 1} : Opaque(OpKind::kExp, v);
}
template <>
Residue ExactScalar<Residue>::Exp(Residue v) {
  if (IsPoisoned(v) || v.q == Residue::kNone) return Opaque(OpKind::kExp, v);
  return {PowMod(Residue::kGenerator, v.q, Residue::kP), Residue::kNone};
}

template <class T>
T ExactScalar<T>::Tanh(T v) {
  const T one = Of(1);  // Rationals stay integers, because sums of quotients would soon overflow.
  if constexpr (Scalar<T>::kOrdered) return Opaque(OpKind::kTanh, v);
  return one - Of(2) / (Exp(v + v) + one);
}

template <class T>
T ExactScalar<T>::Sigmoid(T v) {
  const T one = Of(1);
  if constexpr (Scalar<T>::kOrdered) return Opaque(OpKind::kSigmoid, v);
  return one / (one + Exp(T{} - v));
}

template <>
std::optional<int64_t> ExactScalar<Rational>::ToInt(Rational v) {
  if (v.den != 1 || Abs(v.num) > (int64_t{1} << 53)) return std::nullopt;
  return static_cast<int64_t>(v.num);
}
template <>
std::optional<int64_t> ExactScalar<Residue>::ToInt(Residue v) {
  // A random residue is below it once in 2^21 draws.
  constexpr uint64_t kSmall = uint64_t{1} << 40;
  if (IsPoisoned(v)) return std::nullopt;
  std::optional<int64_t> result;
  if (v.p < kSmall) result = static_cast<int64_t>(v.p);
  if (v.p > Residue::kP - kSmall) result = -static_cast<int64_t>(Residue::kP - v.p);
  // The q part distinguishes a true integer from a residue that is small by chance.
  if (result.has_value() && v.q != Residue::kNone && ResidueOf(*result).q != v.q) return {};
  return result;
}

template <>
Rational ExactScalar<Rational>::Floor(Rational v) {
  return IsPoisoned(v) ? v : Rational{FloorOf(v), 1};
}
template <>
Residue ExactScalar<Residue>::Floor(Residue v) {
  return Opaque(OpKind::kFloor, v);
}
template <>
Rational ExactScalar<Rational>::Ceil(Rational v) {
  return IsPoisoned(v) ? v : Rational{-FloorOf({-v.num, v.den}), 1};
}
template <>
Residue ExactScalar<Residue>::Ceil(Residue v) {
  return Opaque(OpKind::kCeil, v);
}
template <>
Rational ExactScalar<Rational>::Truncate(Rational v) {
  return IsPoisoned(v) ? v : Rational{v.num / v.den, 1};
}
template <>
Residue ExactScalar<Residue>::Truncate(Residue v) {
  return ToInt(v).has_value() ? v : Opaque(OpKind::kCast, v);
}

template <class T>
T ExactScalar<T>::Pow(T base, T exponent) {
  constexpr int64_t kPowerMax = 64;
  if (exponent == Of(0.5)) return Sqrt(base);
  const std::optional<int64_t> power = ToInt(exponent);
  if (!power.has_value() || *power > kPowerMax || *power < -kPowerMax) {
    return Opaque(OpKind::kPow, base, {exponent});
  }
  T product = Of(1);
  for (int64_t i = 0; i < std::abs(*power); ++i) product = product * base;
  return *power < 0 ? Of(1) / product : product;
}

template <class T>
T ExactScalar<T>::Modulo(T a, T b) {
  if constexpr (Scalar<T>::kOrdered) return a - b * Floor(a / b);
  return Opaque(OpKind::kMod, a, {b});
}

template <class T>
T ExactScalar<T>::Remainder(T a, T b) {
  if constexpr (Scalar<T>::kOrdered) return a - b * Truncate(a / b);
  return Opaque(OpKind::kMod, a, {b, T{}});
}

template struct ExactScalar<Rational>;
template struct ExactScalar<Residue>;

}  // namespace ag
