#include "graph/onnx/operators/attention.h"

#include <algorithm>
#include <cmath>

#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/wide.h"
#include "graph/shapes.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

constexpr double kUnattended = -std::numeric_limits<double>::infinity();

Status CheckAttention(const AttentionWork& work) {
  const HeadRows &q = work.q, &k = work.k, &v = work.v;
  const bool fits = q.batch == k.batch && q.batch == v.batch && q.size == k.size &&
                    k.steps == v.steps && k.heads == v.heads && k.heads > 0 &&
                    q.heads % k.heads == 0;
  if (fits) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "queries {}, keys {} and values {} do not fit",
             ShapeToString(q.shape()), ShapeToString(k.shape()), ShapeToString(v.shape()));
}

// Replaces scores by their shares; a row of -infinity by zeros. `sink` is one score more, whose
// share is dropped; -infinity: there is none.
void Softmax(std::vector<double>& scores, double sink) {
  double most = sink, sum = 0;
  for (const double s : scores) most = std::max(most, s);
  for (double& s : scores) {
    s = most == kUnattended ? 0 : std::exp(s - most);
    sum += s;
  }
  if (sink != kUnattended) sum += std::exp(sink - most);
  for (double& s : scores) s /= sum == 0 ? 1 : sum;
}

// The scores of one query, with a copy of them at the stage that is wanted.
class QueryScores {
 public:
  QueryScores(const AttentionWork& work, bool keep)
      : work_(work), keep_(keep), scores_(static_cast<size_t>(work.k.steps)) {}

  const Doubles& Of(int64_t b, int64_t h, int64_t i) {
    const HeadRows &q = work_.q, &k = work_.k;
    const double* query = q.values.data() + q.At(b, h, i);
    const int64_t group = h / (q.heads / k.heads);
    for (int64_t j = 0; j < k.steps; ++j) {
      const double* key = k.values.data() + k.At(b, group, j);
      double sum = 0;
      for (int64_t e = 0; e < q.size; ++e) sum += query[e] * key[e];
      scores_[static_cast<size_t>(j)] = sum * work_.scale;
    }
    Keep(ScoreStage::kProduct);
    for (double& s : scores_) {
      if (work_.softcap > 0) s = work_.softcap * std::tanh(s / work_.softcap);
    }
    Keep(ScoreStage::kCapped);
    for (const ScoreBias& bias : work_.bias) {
      for (int64_t j = 0; j < k.steps; ++j) scores_[static_cast<size_t>(j)] += bias(b, h, i, j);
    }
    Keep(ScoreStage::kBiased);
    Softmax(scores_, work_.sinks.empty() ? kUnattended : work_.sinks[static_cast<size_t>(h)]);
    Keep(ScoreStage::kSoftmax);
    return scores_;
  }

  const Doubles& kept() const { return kept_; }

 private:
  void Keep(ScoreStage stage) {
    if (!keep_ || stage != work_.stage) return;
    for (const double s : scores_) kept_.push_back(s == kUnattended ? work_.unattended : s);
  }

  const AttentionWork& work_;
  bool keep_;
  Doubles scores_, kept_;
};

// Adds the biases that say which keys a query attends by their places: padding (operand 6), later
// ones, and those outside a window. `past` is the number of keys before the first query.
Status LimitKeys(OperatorCall& call, int64_t past, AttentionWork& work) {
  Ints first;  // The key that goes with query 0 of each batch item; empty: `past` for all.
  if (call.Has(6)) {
    AG_LET(const Ints used, call.IntsAt(6));
    if (call.ShapeOf(6) != Shape{work.q.batch} || call.Has(4)) {
      return Err(StatusCode::kInvalidArgument, "input 6: {} does not fit", call.Type(6).ToString());
    }
    for (const int64_t count : used) {
      if (count < 0 || count > work.k.steps) {
        return Err(StatusCode::kOutOfRange, "input 6: {} of {} keys", count, work.k.steps);
      }
      first.push_back(count - work.q.steps);
    }
    work.bias.emplace_back([used](int64_t b, int64_t, int64_t, int64_t key) {
      return key < used[static_cast<size_t>(b)] ? 0 : kUnattended;
    });
  }
  const bool causal = call.Int("is_causal", 0) != 0;
  const int64_t left = call.Int("left_window_size", -1);  // -1: no bound.
  const int64_t right = call.Int("right_window_size", -1);
  if (!causal && left < 0 && right < 0) return OkStatus();
  work.bias.emplace_back([=](int64_t b, int64_t, int64_t query, int64_t key) {
    const int64_t after = key - query - (first.empty() ? past : first[static_cast<size_t>(b)]);
    const bool attends =
        (!causal || after <= 0) && (left < 0 || -after <= left) && (right < 0 || after <= right);
    return attends ? 0 : kUnattended;
  });
  return OkStatus();
}

// Operands: queries, keys, values, a mask, past keys, past values, and since opset 24 the number of
// keys of each batch item that are no padding.
Status RunAttention(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, call.opset() < 24 ? 6 : 7));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  call.Ignore("softmax_precision");
  const int64_t q_heads = call.Int("q_num_heads", 0), kv_heads = call.Int("kv_num_heads", 0);
  AttentionWork work;
  AG_LET(work.q, HeadRowsOf(call, 0, q_heads));
  AG_LET(work.k, HeadRowsOf(call, 1, kv_heads));
  AG_LET(work.v, HeadRowsOf(call, 2, kv_heads));
  AG_LET(const int64_t past, PrependCaches(call, 4, work));
  const double size = static_cast<double>(std::max<int64_t>(work.q.size, 1));
  work.scale = call.Float("scale", 1 / std::sqrt(size));
  work.softcap = call.Float("softcap", 0);
  const int64_t mode = call.Int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) return Err(StatusCode::kInvalidArgument, "output mode {}", mode);
  work.stage = static_cast<ScoreStage>(mode);
  work.form = call.Rank(0) == 3 ? RowForm::kFlat : RowForm::kHeads;
  if (call.Has(3)) {
    const Shape scores = {work.q.batch, work.q.heads, work.q.steps, work.k.steps};
    const auto form = call.opset() < 24 ? ShortBias::kBroadcast : ShortBias::kPad;
    AG_LET(ScoreBias mask, ScoreBiasOf(call, 3, scores, form));
    work.bias.push_back(std::move(mask));
  }
  AG_TRY(LimitKeys(call, past, work));
  AG_TRY(GiveAttention(call, work));
  if (call.Wants(1)) AG_TRY(GiveRows(call, 1, call.TypeOf(1), work.k, RowForm::kHeads));
  if (call.Wants(2)) AG_TRY(GiveRows(call, 2, call.TypeOf(2), work.v, RowForm::kHeads));
  return OkStatus();
}

// Operands: x, cosines, sines, and the rows of these tables; without the latter the tables are
// [batch, steps, half].
Status RunRotaryEmbedding(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 4));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  AG_LET(HeadRows rows, HeadRowsOf(call, 0, call.Int("num_heads", 0)));
  AG_LET(Rotation rotation, RotationOf(call, 1, 2, call.Has(3) ? 2 : 3));
  rotation.interleaved = call.Int("interleaved", 0) != 0;
  const int64_t asked = call.Int("rotary_embedding_dim", 0);
  rotation.half = (asked == 0 ? rows.size : asked) / 2;
  const Shape places = {rows.batch, rows.steps};
  Ints ids;
  if (call.Has(3)) {
    AG_LET(ids, call.IntsAt(3));
  }
  const Shape given(call.ShapeOf(call.Has(3) ? 3 : 1).begin(),
                    call.ShapeOf(call.Has(3) ? 3 : 1).begin() + 2);
  if (given != places) {
    return Err(StatusCode::kInvalidArgument, "angles for {} do not fit {}", ShapeToString(given),
               call.Type(0).ToString());
  }
  rotation.row = [&](int64_t b, int64_t s) {
    const int64_t place = b * rows.steps + s;
    return ids.empty() ? place : ids[static_cast<size_t>(place)];
  };
  AG_TRY(Rotate(rotation, rows));
  const RowForm form = call.Rank(0) == 3 ? RowForm::kFlat : RowForm::kHeads;
  return GiveRows(call, 0, call.TypeOf(0), rows, form);
}

}  // namespace

HeadRows ReadRows(HeadRows sizes, const double* from, const RowLayout& layout) {
  HeadRows& rows = sizes;
  rows.values.resize(static_cast<size_t>(NumElements(rows.shape())));
  if (rows.values.empty()) return sizes;
  for (int64_t b = 0; b < rows.batch; ++b) {
    for (int64_t h = 0; h < rows.heads; ++h) {
      for (int64_t s = 0; s < rows.steps; ++s) {
        const int64_t at =
            layout.first + b * layout.by_batch + h * layout.by_head + s * layout.by_step;
        std::copy_n(from + at, rows.size, rows.values.data() + rows.At(b, h, s));
      }
    }
  }
  return sizes;
}

StatusOr<HeadRows> HeadRowsOf(const OperatorCall& call, size_t i, int64_t heads) {
  const Shape& shape = call.ShapeOf(i);
  const bool flat = shape.size() == 3;
  if ((!flat && shape.size() != 4) || (flat && (heads < 1 || shape[2] % heads != 0))) {
    return Err(StatusCode::kInvalidArgument, "input {}: {} heads of {}", i, heads,
               call.Type(i).ToString());
  }
  const Doubles values = call.In(i).ToDoubles();
  if (!flat) return HeadRows{shape[0], shape[1], shape[2], shape[3], values};
  const int64_t size = shape[2] / heads;
  return ReadRows({shape[0], heads, shape[1], size, {}}, values.data(),
                  {0, shape[1] * shape[2], size, shape[2]});
}

StatusOr<HeadRows> AppendSteps(const HeadRows& past, const HeadRows& now) {
  if (past.batch != now.batch || past.heads != now.heads || past.size != now.size) {
    return Err(StatusCode::kInvalidArgument, "{} does not continue {}", ShapeToString(now.shape()),
               ShapeToString(past.shape()));
  }
  HeadRows all{now.batch, now.heads, past.steps + now.steps, now.size, {}};
  for (int64_t row = 0; row < NumElements(all.shape()) / std::max<int64_t>(all.steps * all.size, 1);
       ++row) {
    for (const HeadRows* part : {&past, &now}) {
      const auto first = part->values.begin() + row * part->steps * part->size;
      all.values.insert(all.values.end(), first, first + part->steps * part->size);
    }
  }
  return all;
}

StatusOr<int64_t> PrependCaches(const OperatorCall& call, size_t first, AttentionWork& work) {
  if (call.Has(first) != call.Has(first + 1)) {
    return Err(StatusCode::kInvalidArgument, "past keys and values need each other");
  }
  if (!call.Has(first)) return 0;
  AG_LET(const HeadRows keys, HeadRowsOf(call, first, 0));
  AG_LET(const HeadRows values, HeadRowsOf(call, first + 1, 0));
  AG_LET(work.k, AppendSteps(keys, work.k));
  AG_LET(work.v, AppendSteps(values, work.v));
  return keys.steps;
}

Status GiveRows(OperatorCall& call, size_t i, DType dtype, const HeadRows& rows, RowForm form) {
  if (form == RowForm::kHeads) return GiveNarrowed(call, i, {dtype, rows.shape()}, rows.values);
  // Reads the heads of a step one after the other.
  const HeadRows flat =
      ReadRows({rows.batch, rows.steps, rows.heads, rows.size, {}}, rows.values.data(),
               {0, rows.heads * rows.steps * rows.size, rows.size, rows.steps * rows.size});
  const Shape shape = {rows.batch, rows.steps, rows.heads * rows.size};
  return GiveNarrowed(call, i, {dtype, shape}, flat.values);
}

StatusOr<ScoreBias> ScoreBiasOf(const OperatorCall& call, size_t i, const Shape& scores,
                                ShortBias form) {
  Shape own = call.ShapeOf(i);
  Shape target = scores;
  if (form == ShortBias::kPad && !own.empty() && own.back() < target.back()) {
    target.back() = own.back();
  }
  const StatusOr<Shape> all = BroadcastShapes(own, target);
  if (!all.ok() || *all != target) {
    return Err(StatusCode::kInvalidArgument, "input {}: {} does not broadcast to {}", i,
               call.Type(i).ToString(), ShapeToString(scores));
  }
  const bool is_choice = call.TypeOf(i) == DType::kBool;
  return ScoreBias([values = call.In(i).ToDoubles(), by = BroadcastStrides(own, target),
                    width = target.back(), is_choice](int64_t b, int64_t h, int64_t q, int64_t k) {
    if (k >= width) return kUnattended;
    const double value = values[static_cast<size_t>(b * by[0] + h * by[1] + q * by[2] + k * by[3])];
    return !is_choice ? value : value != 0 ? 0 : kUnattended;
  });
}

Status GiveAttention(OperatorCall& call, const AttentionWork& work) {
  AG_TRY(CheckAttention(work));
  const HeadRows &q = work.q, &v = work.v;
  HeadRows y{q.batch, q.heads, q.steps, v.size, {}};
  const DType dtype = call.TypeOf(0);
  const size_t at = work.scores_result;
  const Shape scores = {q.batch, q.heads, q.steps, work.k.steps};
  AG_TRY(call.MakeBytes(0, {dtype, y.shape()}));  // Checks the size.
  if (call.Wants(at)) AG_TRY(call.MakeBytes(at, {dtype, scores}));
  y.values.resize(static_cast<size_t>(NumElements(y.shape())));
  const bool is_empty = y.values.empty() && (!call.Wants(at) || NumElements(scores) == 0);
  if (is_empty) return GiveRows(call, 0, dtype, y, work.form);
  QueryScores of_query(work, call.Wants(at));
  for (int64_t row = 0; row < q.batch * q.heads * q.steps; ++row) {
    const int64_t b = row / q.steps / q.heads, h = row / q.steps % q.heads, i = row % q.steps;
    const Doubles& shares = of_query.Of(b, h, i);
    double* to = y.values.data() + row * v.size;
    for (int64_t j = 0; j < v.steps; ++j) {
      const double* value = v.values.data() + v.At(b, h / (q.heads / v.heads), j);
      const double share = shares[static_cast<size_t>(j)];
      for (int64_t e = 0; share != 0 && e < v.size; ++e) to[e] += share * value[e];
    }
  }
  if (call.Wants(at)) AG_TRY(GiveNarrowed(call, at, {dtype, scores}, of_query.kept()));
  return GiveRows(call, 0, dtype, y, work.form);
}

StatusOr<Rotation> RotationOf(const OperatorCall& call, size_t cosines, size_t sines,
                              int64_t rank) {
  AG_TRY(call.CheckRank(cosines, rank));
  if (call.ShapeOf(cosines) != call.ShapeOf(sines)) {
    return Err(StatusCode::kInvalidArgument, "cosines {} and sines {} differ",
               call.Type(cosines).ToString(), call.Type(sines).ToString());
  }
  Rotation rotation;
  rotation.half = rotation.width = call.ShapeOf(cosines).back();
  rotation.cosines = call.In(cosines).ToDoubles();
  rotation.sines = call.In(sines).ToDoubles();
  return rotation;
}

Status Rotate(const Rotation& rotation, HeadRows& rows) {
  const int64_t half = rotation.half;
  if (half < 0 || half > rows.size / 2 || half > rotation.width) {
    return Err(StatusCode::kInvalidArgument, "{} pairs of rows of {}, a table of {} angles a row",
               half, rows.size, rotation.width);
  }
  if (half == 0 || rows.values.empty()) return OkStatus();
  const int64_t table = static_cast<int64_t>(rotation.cosines.size()) / rotation.width;
  for (int64_t b = 0; b < rows.batch; ++b) {
    for (int64_t s = 0; s < rows.steps; ++s) {
      const int64_t angles = rotation.row(b, s);
      if (angles < 0 || angles >= table) {
        return Err(StatusCode::kOutOfRange, "position {} is not in [0, {})", angles, table);
      }
      for (int64_t h = 0; h < rows.heads; ++h) {
        double* row = rows.values.data() + rows.At(b, h, s);
        for (int64_t i = 0; i < half; ++i) {
          const auto at = static_cast<size_t>(angles * rotation.width + i);
          double& real = row[rotation.interleaved ? 2 * i : i];
          double& imaginary = row[rotation.interleaved ? 2 * i + 1 : i + half];
          const double cosine = rotation.cosines[at], sine = rotation.sines[at], x = real;
          real = cosine * x - sine * imaginary;
          imaginary = sine * x + cosine * imaginary;
        }
      }
    }
  }
  return OkStatus();
}

std::span<const OperatorRow> AttentionOperators() {
  static constexpr OperatorRow kRows[] = {
      {"Attention", RunAttention},
      {"RotaryEmbedding", RunRotaryEmbedding},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
