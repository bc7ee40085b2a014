// Attention of domain com.microsoft: with its own projections, masks and caches.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/onnx/operators/attention.h"
#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/matrix.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

// Adds what makes later keys count nothing, even where the mask adds a finite number.
void AddCausal(int64_t past, AttentionWork& work) {
  work.bias.emplace_back([past](int64_t, int64_t, int64_t query, int64_t key) {
    return key <= query + past ? 0.0 : static_cast<double>(std::numeric_limits<float>::lowest());
  });
}

// Reads what the operators have in common: attributes, and operand `bias` that is added to scores.
Status ReadAttention(OperatorCall& call, size_t bias, int64_t past, AttentionWork& work) {
  const double size = static_cast<double>(std::max<int64_t>(work.q.size, 1));
  const double scale = call.Float("scale", 0);
  work.scale = scale == 0 ? 1 / std::sqrt(size) : scale;
  work.form = RowForm::kFlat;
  if (call.Int("unidirectional", 0) != 0) AddCausal(past, work);
  if (!call.Has(bias)) return OkStatus();
  const Shape scores = {work.q.batch, work.q.heads, work.q.steps, work.k.steps};
  AG_LET(ScoreBias added, ScoreBiasOf(call, bias, scores, ShortBias::kBroadcast));
  work.bias.push_back(std::move(added));
  return OkStatus();
}

// Adds the mask in operand `i`, in one of its forms: the number of keys of each batch item; its end
// and then its start; a flag for each key, for each query and key, or for the whole square of
// places. What it excludes gets mask_filter_value.
Status AddMask(OperatorCall& call, size_t i, int64_t past, AttentionWork& work) {
  const double filter = call.Float("mask_filter_value", -10000);
  if (!call.Has(i)) return OkStatus();
  AG_LET(const Ints mask, call.IntsAt(i));
  const Shape& own = call.ShapeOf(i);
  const int64_t batch = work.q.batch, queries = work.q.steps, keys = work.k.steps;
  const auto add = [&](auto keeps) {
    work.bias.emplace_back([=](int64_t b, int64_t, int64_t query, int64_t key) {
      return keeps(mask, b, query, key) ? 0 : filter;
    });
    return OkStatus();
  };
  if (own == Shape{batch}) {
    return add([](const Ints& ends, int64_t b, int64_t, int64_t key) { return key < ends[b]; });
  }
  if (own == Shape{2 * batch}) {
    return add([batch](const Ints& places, int64_t b, int64_t, int64_t key) {
      return key < places[b] && key >= places[b + batch];
    });
  }
  if (own == Shape{batch, keys}) {
    return add([keys](const Ints& flags, int64_t b, int64_t, int64_t key) {
      return flags[b * keys + key] > 0;
    });
  }
  if (own == Shape{batch, queries, keys}) {
    return add([=](const Ints& flags, int64_t b, int64_t query, int64_t key) {
      return flags[(b * queries + query) * keys + key] > 0;
    });
  }
  if (own.size() == 4 && own[0] == batch && own[1] == 1 && own[2] == own[3] && own[2] >= keys) {
    const int64_t most = own[2];
    return add([=](const Ints& flags, int64_t b, int64_t query, int64_t key) {
      return flags[(b * most + past + query) * most + key] > 0;
    });
  }
  return Err(own.size() > 1 ? StatusCode::kInvalidArgument : StatusCode::kUnimplemented,
             "input {}: a mask {} for {} queries and {} keys", i, call.Type(i).ToString(), queries,
             keys);
}

// The widths of the projections to queries, keys and values.
StatusOr<Ints> ProjectionWidths(OperatorCall& call, int64_t width, int64_t heads) {
  Ints widths = call.IntList("qkv_hidden_sizes").value_or(Ints());
  if (widths.empty()) widths.assign(3, width / 3);
  bool fits = heads >= 1 && widths.size() == 3;
  int64_t sum = 0;
  for (const int64_t w : widths) {
    fits = fits && w >= 0 && w <= width && w % heads == 0;
    sum += fits ? w : 0;
  }
  if (fits && sum == width) return widths;
  return Err(StatusCode::kInvalidArgument, "{} heads: weights of {} columns do not split", heads,
             width);
}

// Joins a cache [2, batch, heads, steps, size] with the rows of now, and makes the new cache.
Status JoinCache(OperatorCall& call, AttentionWork& work) {
  if (call.Has(4)) {
    AG_TRY(call.CheckRank(4, 5));
    const Shape& s = call.ShapeOf(4);
    const Doubles past = call.In(4).ToDoubles();
    const auto half = static_cast<ptrdiff_t>(past.size() / 2);
    if (s[0] != 2) return Err(StatusCode::kInvalidArgument, "input 4: expected keys and values");
    const HeadRows keys{s[1], s[2], s[3], s[4], Doubles(past.begin(), past.begin() + half)};
    const HeadRows values{s[1], s[2], s[3], s[4], Doubles(past.begin() + half, past.end())};
    AG_LET(work.k, AppendSteps(keys, work.k));
    AG_LET(work.v, AppendSteps(values, work.v));
  }
  if (!call.Wants(1)) return OkStatus();
  if (work.k.shape() != work.v.shape()) {
    return Err(StatusCode::kInvalidArgument, "keys {} and values {} do not make one cache",
               ShapeToString(work.k.shape()), ShapeToString(work.v.shape()));
  }
  Shape shape = work.k.shape();
  shape.insert(shape.begin(), 2);
  Doubles both = work.k.values;
  both.insert(both.end(), work.v.values.begin(), work.v.values.end());
  return GiveNarrowed(call, 1, {call.TypeOf(0), shape}, both);
}

// Operands: x, weights of the three projections side by side, their biases, a mask, a cache, a bias
// of the scores. Results: y, the new cache.
Status RunProjectedAttention(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 7));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  AG_TRY(call.CheckRank(0, 3));
  AG_TRY(call.CheckRank(1, 2));
  if (call.Int("do_rotary", 0) != 0 || call.Int("past_present_share_buffer", 0) != 0) {
    return Err(StatusCode::kUnimplemented, "rotations and shared caches are not supported");
  }
  call.Ignore("rotary_embedding_dim");
  const Shape x = call.ShapeOf(0);
  const int64_t heads = call.Int("num_heads", 0), width = call.ShapeOf(1)[1];
  AG_LET(const Ints widths, ProjectionWidths(call, width, heads));
  AG_LET(Matrix rows, MultiplyMatrices(call, DType::kFloat64, {x, call.In(0).ToDoubles()},
                                       {call.ShapeOf(1), call.In(1).ToDoubles()}));
  if (call.Has(2)) {
    AG_LET(const Doubles bias, SpreadOf(call, 2, rows.shape));
    for (size_t i = 0; i < bias.size(); ++i) rows.values[i] += bias[i];
  }
  AttentionWork work;
  int64_t first = 0;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t size = widths[i] / heads;
    HeadRows& part = i == 0 ? work.q : i == 1 ? work.k : work.v;
    part = ReadRows({x[0], heads, x[1], size, {}}, rows.values.data(),
                    {first, x[1] * width, size, width});
    first += widths[i];
  }
  AG_TRY(JoinCache(call, work));
  const int64_t past = work.k.steps - x[1];
  AG_TRY(ReadAttention(call, 5, past, work));
  AG_TRY(AddMask(call, 3, past, work));
  return GiveAttention(call, work);
}

// Reads queries, keys and values of MultiHeadAttention: three operands; queries and packed keys and
// values [batch, steps, heads, 2, size]; or all packed [batch, steps, heads, 3, size].
Status ReadPacked(const OperatorCall& call, int64_t heads, AttentionWork& work) {
  const auto part = [&](size_t i, int64_t at, int64_t parts) -> StatusOr<HeadRows> {
    const Shape& s = call.ShapeOf(i);
    if (s.size() != 5 || s[2] != heads || s[3] != parts) {
      return Err(StatusCode::kInvalidArgument, "input {}: {} is not packed for {} heads", i,
                 call.Type(i).ToString(), heads);
    }
    const int64_t size = s[4], row = heads * parts * size;
    const Doubles values = call.In(i).ToDoubles();
    return ReadRows({s[0], heads, s[1], size, {}}, values.data(),
                    {at * size, s[1] * row, parts * size, row});
  };
  if (call.Rank(0) == 5) {
    AG_LET(work.q, part(0, 0, 3));
    AG_LET(work.k, part(0, 1, 3));
    AG_LET(work.v, part(0, 2, 3));
    return OkStatus();
  }
  AG_TRY(call.CheckRank(0, 3));
  AG_LET(work.q, HeadRowsOf(call, 0, heads));
  if (!call.Has(1)) return Err(StatusCode::kInvalidArgument, "input 1 is missing");
  if (call.Rank(1) == 5) {
    AG_LET(work.k, part(1, 0, 2));
    AG_LET(work.v, part(1, 1, 2));
    return OkStatus();
  }
  if (!call.Has(2)) return Err(StatusCode::kInvalidArgument, "input 2 is missing");
  AG_LET(work.k, HeadRowsOf(call, 1, heads));
  AG_LET(work.v, HeadRowsOf(call, 2, heads));
  return OkStatus();
}

// Adds operand 3, the biases of queries, keys and values one after the other. Keys and values that
// come with their heads already have them.
Status AddProjectionBias(const OperatorCall& call, AttentionWork& work) {
  if (!call.Has(3)) return OkStatus();
  const Doubles bias = call.In(3).ToDoubles();
  const bool all = !call.Has(1) || call.Rank(1) != 4;
  const int64_t heads = work.q.heads;
  if (static_cast<int64_t>(bias.size()) != heads * (2 * work.q.size + work.v.size)) {
    return Err(StatusCode::kInvalidArgument, "input 3: {} does not fit", call.Type(3).ToString());
  }
  int64_t first = 0;
  for (HeadRows* part : {&work.q, &work.k, &work.v}) {
    for (int64_t row = 0; part->size > 0 && (all || part == &work.q) &&
                          row < static_cast<int64_t>(part->values.size()) / part->size;
         ++row) {
      const int64_t h = row / part->steps % heads;
      for (int64_t e = 0; e < part->size; ++e) {
        part->values[row * part->size + e] += bias[first + h * part->size + e];
      }
    }
    first += heads * part->size;
  }
  return OkStatus();
}

// Operands: queries, keys, values, biases of the projections, a mask, a bias of the scores, caches
// of keys and values. Results: y, the new caches, the scores.
Status RunMultiHeadAttention(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 10));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  if (call.Has(8) || call.Has(9)) {
    return Err(StatusCode::kUnimplemented, "shared caches are not supported");
  }
  AttentionWork work;
  AG_TRY(ReadPacked(call, call.Int("num_heads", 0), work));
  AG_TRY(AddProjectionBias(call, work));
  AG_LET(const int64_t past, PrependCaches(call, 6, work));
  work.stage = ScoreStage::kBiased;
  AG_TRY(ReadAttention(call, 5, past, work));
  AG_TRY(AddMask(call, 4, past, work));
  AG_TRY(GiveAttention(call, work));
  if (call.Wants(1)) AG_TRY(GiveRows(call, 1, call.TypeOf(0), work.k, RowForm::kHeads));
  if (call.Wants(2)) AG_TRY(GiveRows(call, 2, call.TypeOf(0), work.v, RowForm::kHeads));
  return OkStatus();
}

// Operands: x, the positions of its steps or the first position of all, cosines, sines.
Status RunPositionedRotary(OperatorCall& call) {
  AG_TRY(call.CheckInputs(4, 4));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  call.Ignore("scale");
  call.Ignore("is_packed_batching");
  AG_LET(Rotation rotation, RotationOf(call, 2, 3, 2));
  int64_t heads = call.Int("num_heads", 0);
  const int64_t asked = call.Int("rotary_embedding_dim", 0);
  if (heads == 0 && call.Rank(0) == 3) {  // The tables say the size of a head.
    heads = call.ShapeOf(0)[2] / std::max<int64_t>(2 * rotation.width, 1);
  }
  AG_LET(HeadRows rows, HeadRowsOf(call, 0, heads));
  rotation.half = (asked == 0 ? rows.size : asked) / 2;
  rotation.interleaved = call.Int("interleaved", 0) != 0;
  AG_LET(const Ints ids, call.IntsAt(1));
  const bool is_first = ids.size() == 1;
  if (is_first && (ids[0] < 0 || ids[0] > kElementsMax)) {
    return Err(StatusCode::kOutOfRange, "input 1: position {}", ids[0]);
  }
  if (!is_first && call.ShapeOf(1) != Shape{rows.batch, rows.steps}) {
    return Err(StatusCode::kInvalidArgument, "input 1: {} positions do not fit {}",
               call.Type(1).ToString(), call.Type(0).ToString());
  }
  rotation.row = [&](int64_t b, int64_t s) {
    return is_first ? ids[0] + s : ids[static_cast<size_t>(b * rows.steps + s)];
  };
  AG_TRY(Rotate(rotation, rows));
  const RowForm form = call.Rank(0) == 3 ? RowForm::kFlat : RowForm::kHeads;
  return GiveRows(call, 0, call.TypeOf(0), rows, form);
}

// A call of GroupQueryAttention: `steps` new tokens of each batch item, after those in the cache.
struct CachedCall {
  int64_t steps = 0, total = 0;  // total: the most tokens of a batch item, new ones too.
  int64_t capacity = 0;          // Rows of the new cache.
  Ints first;                    // The place of the first new token of each batch item.
};

Status RefuseCacheForms(OperatorCall& call) {
  call.Ignore("kv_cache_bit_width");
  for (const char* const name : {"k_norm_epsilon", "q_norm_epsilon", "qk_norm_epsilon"}) {
    call.Ignore(name);
  }
  bool plain = call.Int("sliding_window_cache", 0) == 0;
  for (const char* const name : {"k_quant_type", "v_quant_type"}) {
    plain = plain && call.String(name, "NONE") == "NONE";
  }
  for (size_t i = 12; i < call.size(); ++i) plain = plain && !call.Has(i);
  if (plain) return OkStatus();
  return Err(StatusCode::kUnimplemented,
             "caches that are quantized or slide, and norms of heads, are not supported");
}

// Reads operands 5 and 6: of each batch item the place of its last token, and the most tokens.
StatusOr<CachedCall> ReadPlaces(const OperatorCall& call, int64_t batch, int64_t steps,
                                int64_t cached) {
  AG_LET(const Ints last, call.IntsAt(5));
  CachedCall cache{.steps = steps};
  AG_LET(cache.total, call.IntAt(6));
  cache.capacity = std::max(cached, cache.total);
  if (static_cast<int64_t>(last.size()) != batch || cache.total < steps) {
    return Err(StatusCode::kInvalidArgument, "input 5: {}, {} new tokens of {}",
               call.Type(5).ToString(), steps, cache.total);
  }
  for (const int64_t place : last) {
    const bool known = place >= 0 && place < cache.total;
    const int64_t first = steps == cache.total || !known ? 0 : place + 1 - steps;
    if (!known || first < 0 || first > cached) {
      return Err(StatusCode::kOutOfRange, "input 5: the last of {} new tokens is at {}, {} in all",
                 steps, place, cache.total);
    }
    cache.first.push_back(first);
  }
  return cache;
}

// Returns the new cache: rows of `past`, then those of `now`, from their first place on, then
// zeros.
HeadRows UpdateCache(const HeadRows& past, const HeadRows& now, const CachedCall& cache) {
  HeadRows rows{now.batch, now.heads, cache.capacity, now.size, {}};
  rows.values.resize(static_cast<size_t>(NumElements(rows.shape())));
  for (int64_t row = 0; now.size > 0 && row < now.batch * now.heads; ++row) {
    const int64_t b = row / now.heads, h = row % now.heads;
    const int64_t first = cache.first[static_cast<size_t>(b)];
    if (first > 0) {
      std::copy_n(past.values.data() + past.At(b, h, 0), first * past.size,
                  rows.values.data() + rows.At(b, h, 0));
    }
    std::copy_n(now.values.data() + now.At(b, h, 0), now.steps * now.size,
                rows.values.data() + rows.At(b, h, first));
  }
  return rows;
}

// Reads queries, keys and values: three operands, or one with the heads of all of them in a row.
Status ReadGroups(OperatorCall& call, AttentionWork& work) {
  const int64_t heads = call.Int("num_heads", 0), groups = call.Int("kv_num_heads", 0);
  constexpr int64_t kMost = 1 << 20;
  if (heads < 1 || groups < 1 || heads > kMost || groups > kMost) {
    return Err(StatusCode::kInvalidArgument, "{} heads in {} groups", heads, groups);
  }
  AG_TRY(call.CheckRank(0, 3));
  if (call.Has(1) != call.Has(2)) {
    return Err(StatusCode::kInvalidArgument, "keys and values need each other");
  }
  if (call.Has(1)) {
    AG_LET(work.q, HeadRowsOf(call, 0, heads));
    AG_LET(work.k, HeadRowsOf(call, 1, groups));
    AG_LET(work.v, HeadRowsOf(call, 2, groups));
    return OkStatus();
  }
  AG_LET(const HeadRows all, HeadRowsOf(call, 0, heads + 2 * groups));
  const auto part = [&](int64_t first, int64_t count) {
    const int64_t by_head = all.steps * all.size;
    return ReadRows({all.batch, count, all.steps, all.size, {}}, all.values.data(),
                    {first * by_head, all.heads * by_head, by_head, all.size});
  };
  work.q = part(0, heads);
  work.k = part(heads, groups);
  work.v = part(heads + groups, groups);
  return OkStatus();
}

// Rotates queries and new keys by their places, or by those of operand 9.
Status RotateGroups(OperatorCall& call, const CachedCall& cache, AttentionWork& work) {
  const bool interleaved = call.Int("rotary_interleaved", 0) != 0;
  if (call.Int("do_rotary", 0) == 0) return OkStatus();
  AG_TRY(call.CheckInputs(1, call.size()));
  if (!call.Has(7) || !call.Has(8)) {
    return Err(StatusCode::kInvalidArgument, "rotations need inputs 7 and 8");
  }
  AG_LET(Rotation rotation, RotationOf(call, 7, 8, 2));
  rotation.interleaved = interleaved;
  Ints ids;
  if (call.Has(9)) {
    AG_LET(ids, call.IntsAt(9));
    if (call.ShapeOf(9) != Shape{work.q.batch, work.q.steps}) {
      return Err(StatusCode::kInvalidArgument, "input 9: {} does not fit", call.Type(9).ToString());
    }
  }
  rotation.row = [&](int64_t b, int64_t s) {
    return ids.empty() ? cache.first[static_cast<size_t>(b)] + s
                       : ids[static_cast<size_t>(b * work.q.steps + s)];
  };
  AG_TRY(Rotate(rotation, work.q));
  return Rotate(rotation, work.k);
}

// Adds what limits the keys of a query: their places, a window, and operand 10.
Status LimitGroups(OperatorCall& call, const CachedCall& cache, AttentionWork& work) {
  const bool causal = call.Int("causal", 1) != 0;
  const int64_t window = call.Int("local_window_size", -1);
  AG_LET(const Ints last, call.IntsAt(5));
  work.bias.emplace_back([=, first = cache.first](int64_t b, int64_t, int64_t query, int64_t key) {
    const int64_t place = first[static_cast<size_t>(b)] + query;
    const bool attends = key <= last[static_cast<size_t>(b)] && (!causal || key <= place) &&
                         (window <= 0 || key > place - window);
    return attends ? 0 : -std::numeric_limits<double>::infinity();
  });
  if (!call.Has(10)) return OkStatus();
  const Shape scores = {work.q.batch, work.q.heads, work.q.steps, cache.total};
  AG_LET(ScoreBias added, ScoreBiasOf(call, 10, scores, ShortBias::kBroadcast));
  work.bias.push_back(std::move(added));
  return OkStatus();
}

// Reads what shapes the scores: their scale and cap, operand 11 (the scores of sinks), and which
// scores are result 3.
Status ReadScores(OperatorCall& call, AttentionWork& work) {
  const double size = static_cast<double>(std::max<int64_t>(work.q.size, 1));
  const double scale = call.Float("scale", 0);
  work.scale = scale == 0 ? 1 / std::sqrt(size) : scale;
  work.softcap = call.Float("softcap", 0);
  work.form = RowForm::kFlat;
  work.stage = call.Int("qk_output", 0) == 2 ? ScoreStage::kSoftmax : ScoreStage::kBiased;
  work.unattended = 0;
  if (call.Int("smooth_softmax", -1) > 0) work.sinks.assign(static_cast<size_t>(work.q.heads), 0);
  if (!call.Has(11)) return OkStatus();
  work.sinks = call.In(11).ToDoubles();
  if (static_cast<int64_t>(work.sinks.size()) == work.q.heads) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input 11: {} for {} heads", call.Type(11).ToString(),
             work.q.heads);
}

// Operands: queries, keys, values, caches of keys and values, the last places, the most tokens,
// cosines, sines, places, a bias of the scores, scores of sinks. Results: y, the new caches,
// scores.
Status RunGroupQueryAttention(OperatorCall& call) {
  for (const size_t i : {0, 5, 6}) {
    if (!call.Has(i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
  }
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  AG_TRY(RefuseCacheForms(call));
  AttentionWork work;
  AG_TRY(ReadGroups(call, work));
  HeadRows past_k{work.k.batch, work.k.heads, 0, work.k.size, {}}, past_v = past_k;
  if (call.Has(3) != call.Has(4)) {
    return Err(StatusCode::kInvalidArgument, "past keys and values need each other");
  }
  if (call.Has(3)) {
    AG_LET(past_k, HeadRowsOf(call, 3, 0));
    AG_LET(past_v, HeadRowsOf(call, 4, 0));
  }
  for (const HeadRows* rows : {&work.k, &work.v, &past_k, &past_v}) {
    const bool is_past = rows == &past_k || rows == &past_v;
    if (rows->batch == work.q.batch && rows->heads == work.k.heads && rows->size == work.q.size &&
        rows->steps == (is_past ? past_k.steps : work.q.steps)) {
      continue;
    }
    return Err(StatusCode::kInvalidArgument, "{} does not go with queries {}",
               ShapeToString(rows->shape()), ShapeToString(work.q.shape()));
  }
  AG_LET(const CachedCall cache, ReadPlaces(call, work.q.batch, work.q.steps, past_k.steps));
  AG_TRY(RotateGroups(call, cache, work));
  const Shape whole = {work.k.batch, work.k.heads, cache.capacity, work.k.size};
  AG_TRY(call.MakeBytes(1, {call.TypeOf(0), whole}));  // Checks the size.
  const HeadRows keys = UpdateCache(past_k, work.k, cache);
  const HeadRows values = UpdateCache(past_v, work.v, cache);
  const RowLayout all{0, keys.heads * keys.steps * keys.size, keys.steps * keys.size, keys.size};
  const HeadRows used{keys.batch, keys.heads, cache.total, keys.size, {}};
  work.k = ReadRows(used, keys.values.data(), all);
  work.v = ReadRows(used, values.values.data(), all);
  AG_TRY(ReadScores(call, work));
  AG_TRY(LimitGroups(call, cache, work));
  AG_TRY(GiveAttention(call, work));
  if (call.Wants(1)) AG_TRY(GiveRows(call, 1, call.TypeOf(0), keys, RowForm::kHeads));
  if (call.Wants(2)) AG_TRY(GiveRows(call, 2, call.TypeOf(0), values, RowForm::kHeads));
  return OkStatus();
}

}  // namespace

std::span<const OperatorRow> MicrosoftAttentionOperators() {
  static constexpr OperatorRow kRows[] = {
      {"com.microsoft.Attention", RunProjectedAttention},
      {"com.microsoft.MultiHeadAttention", RunMultiHeadAttention},
      {"com.microsoft.RotaryEmbedding", RunPositionedRotary},
      {"com.microsoft.GroupQueryAttention", RunGroupQueryAttention, FromOperands({6})},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
