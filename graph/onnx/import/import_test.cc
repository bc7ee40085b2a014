#include <gtest/gtest.h>

#include <set>

#include "base/blobs.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/import/node_import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/text_form.h"

namespace ag {
namespace {

using testing::ModelFromText;

StatusOr<ImportedModel> Import(std::string_view text, int opset,
                               const ImportOptions& options = {}) {
  static const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  return ImportOnnx(ModelFromText(text, opset), options, *blobs);
}

struct ImportCase {
  const char* name;
  int opset;
  const char* onnx;
  const char* expected;  // In our own text form.
};

class ImportTest : public ::testing::TestWithParam<ImportCase> {};

TEST_P(ImportTest, GivesTheGraph) {
  const ImportCase& c = GetParam();
  const auto imported = Import(c.onnx, c.opset);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  const auto expected = ParseGraph(c.expected);
  ASSERT_TRUE(expected.ok()) << ToString(expected.status());
  EXPECT_EQ(FormatGraph(imported->graph), FormatGraph(*expected));
}

const ImportCase kPlain[] = {
    {"plain", 17, "g (float[2] x) => (float[2] y) { y = LeakyRelu<alpha = 0.1>(x) }",
     "input x f32[2]\n output \"y\" = leaky_relu(x) alpha=0.1"},
    {"negative axis", 17, "g (float[2,3] x) => (float[2,6] y) { y = Concat<axis = -1>(x, x) }",
     "input x f32[2,3]\n output \"y\" = concat(x, x) axis=1"},
    {"identity", 17, "g (float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }",
     "input x f32[2]\n output \"y\" = relu(x)"},
    {"unsorted nodes", 17, "g (float[2] x) => (float[2] y) { y = Relu(a) a = Exp(x) }",
     "input x f32[2]\n output \"y\" = relu(exp(x))"},
    {"dropout", 13, "g (float[2] x) => (float[2] y) { a = Dropout(x) y = Relu(a) }",
     "input x f32[2]\n output \"y\" = relu(x)"},
    {"layer norm without a bias", 17,
     "g (float[2,4] x) => (float[2,4] y) <float[4] s = {1, 2, 3, 4}>"
     "{ y = LayerNormalization(x, s) }",
     "input x f32[2,4]\n s = const f32[4] {1, 2, 3, 4}\n z = const f32[4] {0, 0, 0, 0}\n"
     "output \"y\" = layer_norm(x, s, z) axis=1"},
    {"batch norm of elements", 7,
     "g (float[2,1,2] x, float[1,2] s, float[1,2] b, float[1,2] m, float[1,2] v) =>"
     "(float[2,1,2] y) { y = BatchNormalization<spatial = 0>(x, s, b, m, v) }",
     "input x f32[2,1,2]\n input s f32[1,2]\n input b f32[1,2]\n input m f32[1,2]\n"
     "input v f32[1,2]\n t = reshape(s) shape=[2]\n c = reshape(b) shape=[2]\n"
     "n = reshape(m) shape=[2]\n w = reshape(v) shape=[2]\n"
     "output \"y\" = reshape(batch_norm(reshape(x) shape=[2,2], t, c, n, w)) shape=[2,1,2]"},
    {"sum of three", 17, "g (float[2] x, float[2] z) => (float[2] y) { y = Sum(x, z, x) }",
     "input x f32[2]\n input z f32[2]\n output \"y\" = add(add(x, z), x)"},
    {"mean", 17, "g (float[2] x, float[2] z) => (float[2] y) { y = Mean(x, z) }",
     "input x f32[2]\n input z f32[2]\n n = const f32[] {2}\n output \"y\" = div(add(x, z), n)"},
    {"gemm", 17,
     "g (float[2,3] x, float[4,3] w, float[4] c) => (float[2,4] y)"
     "{ y = Gemm<transB = 1, alpha = 0.5>(x, w, c) }",
     "input x f32[2,3]\n input w f32[4,3]\n input c f32[4]\n h = const f32[] {0.5}\n"
     "output \"y\" = add(mul(matmul(x, transpose(w) perm=[1,0]), h), c)"},
    {"matmul of vectors", 17, "g (float[3] x, float[3] w) => (float y) { y = MatMul(x, w) }",
     "input x f32[3]\n input w f32[3]\n"
     "a = reshape(x) shape=[1,3]\n b = reshape(w) shape=[3,1]\n"
     "output \"y\" = reshape(matmul(a, b)) shape=[]"},
    {"clip bounds", 17, "g (float[2] x) => (float[2] y) <float hi = {6.0}> { y = Clip(x,,hi) }",
     "input x f32[2]\n output \"y\" = clip(x) max=6"},
    {"clip by values", 17, "g (float[2] x, float lo) => (float[2] y) { y = Clip(x, lo) }",
     "input x f32[2]\n input lo f32[]\n output \"y\" = max(x, lo)"},
    {"clip by what no double holds", 17,
     "g (int64[2] x) => (int64[2] y) <int64 lo = {1}, int64 hi = {9007199254740993}> "
     "{ y = Clip(x, lo, hi) }",
     "input x i64[2]\n lo = const i64[] {1}\n hi = const i64[] {9007199254740993}\n"
     "output \"y\" = min(max(x, lo), hi)"},
    {"pow casts", 17, "g (float[2] x) => (float[2] y) <int64 two = {2}> { y = Pow(x, two) }",
     "input x f32[2]\n two = const f32[] {2}\n output \"y\" = pow(x, two)"},
    {"greater or equal", 17,
     "g (float[2] x, float[2] z) => (bool[2] y) { y = GreaterOrEqual(x, z) }",
     "input x f32[2]\n input z f32[2]\n output \"y\" = or(greater(x, z), equal(x, z))"},
};

const ImportCase kShapes[] = {
    {"reshape 0 and -1", 17,
     "g (float[2,3,4] x) => (float[2,12] y) <int64[2] s = {0, -1}> { y = Reshape(x, s) }",
     "input x f32[2,3,4]\n output \"y\" = reshape(x) shape=[2,12]"},
    {"flatten", 17, "g (float[2,3,4] x) => (float[6,4] y) { y = Flatten<axis = 2>(x) }",
     "input x f32[2,3,4]\n output \"y\" = reshape(x) shape=[6,4]"},
    {"the number of elements", 17,
     "g (float[2,3] x) => (float[6] y) { s = Shape(x) n = ReduceProd(s) y = Reshape(x, n) }",
     "input x f32[2,3]\n output \"y\" = reshape(x) shape=[6]"},
    {"no axes", 18,
     "g (float[2] x) => (float[2] y) { y = ReduceSumSquare<noop_with_empty_axes = 1>(x) }",
     "input x f32[2]\n output \"y\" = mul(x, x)"},
    {"squeeze 11", 11, "g (float[1,3,1] x) => (float[3,1] y) { y = Squeeze<axes = [0]>(x) }",
     "input x f32[1,3,1]\n output \"y\" = reshape(x) shape=[3,1]"},
    {"squeeze all", 13, "g (float[1,3,1] x) => (float[3] y) { y = Squeeze(x) }",
     "input x f32[1,3,1]\n output \"y\" = reshape(x) shape=[3]"},
    {"unsqueeze 13", 13,
     "g (float[3] x) => (float[1,3,1] y) <int64[2] a = {0, -1}> { y = Unsqueeze(x, a) }",
     "input x f32[3]\n output \"y\" = reshape(x) shape=[1,3,1]"},
    {"shape chain", 17,
     "g (float[2,3,4] x) => (float[2,12] y) <int64[1] i = {0}, int64[1] m = {-1}>"
     "{ s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(d, m) y = Reshape(x, t) }",
     "input x f32[2,3,4]\n output \"y\" = reshape(x) shape=[2,12]"},
    {"split 11", 11,
     "g (float[5] x) => (float[2] y, float[3] z)"
     "{ y, z = Split<split = [2,3]>(x) }",
     "input x f32[5]\n p, q = split(x) axis=0 sizes=[2,3]\n output \"y\" = p\n output \"z\" = q"},
    {"slice to the end", 17,
     "g (float[4,6] x) => (float[4,3] y) <int64[1] s = {-3}, int64[1] e = {9223372036854775807},"
     "int64[1] a = {1}> { y = Slice(x, s, e, a) }",
     "input x f32[4,6]\n output \"y\" = slice(x) axes=[1] starts=[3] ends=[6] steps=[1]"},
    {"slice backwards", 17,
     "g (float[4] x) => (float[4] y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775807},"
     "int64[1] a = {0}, int64[1] t = {-1}> { y = Slice(x, s, e, a, t) }",
     "input x f32[4]\n output \"y\" = slice(x) axes=[0] starts=[3] ends=[-5] steps=[-1]"},
    {"tile", 17, "g (float[2,3] x) => (float[2,6] y) <int64[2] r = {1, 2}> { y = Tile(x, r) }",
     "input x f32[2,3]\n a = reshape(x) shape=[1,2,1,3]\n b = expand(a) shape=[1,2,2,3]\n"
     "output \"y\" = reshape(b) shape=[2,6]"},
    {"triangle of ones", 17,
     "g (float[2,2] x) => (float[2,2] y) <int64[2] s = {2, 2}>"
     "{ c = ConstantOfShape<value = float[1] {1.0}>(s) t = Trilu<upper = 0>(c) y = Mul(x, t) }",
     "input x f32[2,2]\n t = const f32[2,2] {1, 0, 1, 1}\n output \"y\" = mul(x, t)"},
    {"scatter", 17,
     "g (float[2,2] x) => (float[2,2] y) <float[2,2] d = {1,2,3,4}, int64[1,1] i = {-1},"
     "float[1,2] u = {5,6}> { t = ScatterND(d, i, u) y = Mul(x, t) }",
     "input x f32[2,2]\n t = const f32[2,2] {1, 2, 5, 6}\n output \"y\" = mul(x, t)"},
    {"constant of shape", 17,
     "g (float[2] x) => (float[2] y) <int64[1] s = {2}>"
     "{ c = ConstantOfShape<value = float[1] {3.0}>(s) y = Add(x, c) }",
     "input x f32[2]\n c = const f32[2] {3, 3}\n output \"y\" = add(x, c)"},
};

const ImportCase kWindows[] = {
    {"conv without bias", 17,
     "g (float[1,2,5,5] x, float[3,2,3,3] w) => (float[1,3,5,5] y)"
     "{ y = Conv<auto_pad = \"SAME_UPPER\">(x, w) }",
     "input x f32[1,2,5,5]\n input w f32[3,2,3,3]\n b = const f32[3] {0, 0, 0}\n"
     "output \"y\" = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]"},
    {"conv of one axis", 17,
     "g (float[1,2,5] x, float[3,2,3] w, float[3] b) => (float[1,3,3] y) { y = Conv(x, w, b) }",
     "input x f32[1,2,5]\n input w f32[3,2,3]\n input b f32[3]\n"
     "v = reshape(x) shape=[1,2,1,5]\n k = reshape(w) shape=[3,2,1,3]\n"
     "z = conv(v, k, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]\n"
     "output \"y\" = reshape(z) shape=[1,3,3]"},
    {"pointwise conv of three axes", 17,
     "g (float[1,2,4,5,6] x, float[3,2,1,1,1] w, float[3] b) => (float[1,3,4,5,6] y)"
     "{ y = Conv(x, w, b) }",
     "input x f32[1,2,4,5,6]\n input w f32[3,2,1,1,1]\n input b f32[3]\n"
     "v = reshape(x) shape=[1,2,4,30]\n k = reshape(w) shape=[3,2,1,1]\n"
     "z = conv(v, k, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]\n"
     "output \"y\" = reshape(z) shape=[1,3,4,5,6]"},
    {"einsum of heads", 17,
     "g (float[2,8,3,5] q, float[2,8,7,5] k) => (float[2,8,3,7] y)"
     "{ y = Einsum<equation = \"bhid, bhjd -> bhij\">(q, k) }",
     "input q f32[2,8,3,5]\n input k f32[2,8,7,5]\n"
     "t = transpose(k) perm=[0,1,3,2]\n output \"y\" = matmul(q, t)"},
    {"einsum with axes in another order", 17,
     "g (float[2,3,4] x, float[4,5,3] w) => (float[5,2] y)"
     "{ y = Einsum<equation = \"abc,cdb->da\">(x, w) }",
     "input x f32[2,3,4]\n input w f32[4,5,3]\n"
     "s = transpose(w) perm=[2,0,1]\n v = reshape(x) shape=[2,12]\n"
     "k = reshape(s) shape=[12,5]\n p = matmul(v, k)\n"
     "output \"y\" = transpose(p) perm=[1,0]"},
    {"einsum of one axis each", 17,
     "g (float[3] a, float[4] b) => (float[3,4] y) { y = Einsum<equation = \"i,j\">(a, b) }",
     "input a f32[3]\n input b f32[4]\n c = reshape(a) shape=[3,1]\n"
     "d = reshape(b) shape=[1,4]\n output \"y\" = mul(c, d)"},
    {"global average pool", 17,
     "g (float[1,2,5,5] x) => (float[1,2,1,1] y) { y = GlobalAveragePool(x) }",
     "input x f32[1,2,5,5]\n output \"y\" = reduce_mean(x) axes=[2,3]"},
    {"softmax before 13", 11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }",
     "input x f32[2,3,4]\n m = softmax(reshape(x) shape=[2,12]) axis=1\n"
     "output \"y\" = reshape(m) shape=[2,3,4]"},
    {"softmax from 13", 13, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }",
     "input x f32[2,3,4]\n output \"y\" = softmax(x) axis=2"},
    {"rms norm", 17,
     "g (float[2,3] x) => (float[2,3] y) <float[3] s = {1,2,3}>"
     "{ y = RMSNormalization<axis = -1, epsilon = 0.5>(x, s) }",
     "input x f32[2,3]\n s = const f32[3] {1,2,3}\n output \"y\" = rms_norm(x, s) axis=1 "
     "epsilon=0.5"},
    {"rms norm of onnxruntime", 17,
     "g (float[2,3] x) => (float[2,3] y) <float[2,3] s = {1,2,3,4,5,6}>"
     "{ y = SimplifiedLayerNormalization<axis = 0, stash_type = 1>(x, s) }",
     "input x f32[2,3]\n s = const f32[2,3] {1,2,3,4,5,6}\n output \"y\" = rms_norm(x, s) "
     "axis=0"},
    {"reduce all", 17, "g (float[2,3] x) => (float y) { y = ReduceMean<keepdims = 0>(x) }",
     "input x f32[2,3]\n output \"y\" = reduce_mean(x) axes=[0,1] keepdims=0"},
    {"reduce by input", 13,
     "g (float[2,3] x) => (float[2,1] y) <int64[1] a = {-1}> { y = ReduceSum(x, a) }",
     "input x f32[2,3]\n output \"y\" = reduce_sum(x) axes=[1]"},
    {"reduce nothing", 13,
     "g (float[2,3] x) => (float[2,3] y)"
     "{ a = ReduceSum<noop_with_empty_axes = 1>(x) y = Relu(a) }",
     "input x f32[2,3]\n output \"y\" = relu(x)"},
};

const ImportCase kResizes[] = {
    {"resize to sizes", 13,
     "g (float[1,2,3,4] x) => (float[1,2,6,5] y) <int64[4] s = {1, 2, 6, 5}>"
     "{ y = Resize<mode = \"linear\">(x,,,s) }",
     "input x f32[1,2,3,4]\n output \"y\" = resize(x) sizes=[1,2,6,5] mode=linear"},
    {"resize by scales", 13,
     "g (float[1,2,3,4] x) => (float[1,2,6,6] y) <float[4] s = {1.0, 1.0, 2.0, 1.6}>"
     "{ y = Resize<coordinate_transformation_mode = \"asymmetric\", nearest_mode = "
     "\"floor\">(x,,s) }",
     "input x f32[1,2,3,4]\n output \"y\" = resize(x) sizes=[1,2,6,6] scales=[1,1,1,1,2,1,8,5]"
     " coordinate_transformation_mode=asymmetric nearest_mode=floor"},
    {"resize 11", 11,
     "g (float[4] x) => (float[2] y) <float[0] n = {}, int64[1] s = {2}>"
     "{ y = Resize<mode = \"cubic\", cubic_coeff_a = -0.5, exclude_outside = 1,"
     "coordinate_transformation_mode = \"align_corners\">(x, n, n, s) }",
     "input x f32[4]\n output \"y\" = resize(x) sizes=[2] mode=cubic cubic_coeff_a=-0.5"
     " exclude_outside=1 coordinate_transformation_mode=align_corners"},
    {"resize to a computed size", 13,
     "g (float[1,2,3,4] x) => (float[1,2,6,8] y) <int64[1] z = {0}, int64[1] t = {2},"
     "int64[1] f = {4}, int64[2] k = {6, 8}>"
     "{ h = Shape(x) b = Slice(h, z, t) s = Concat<axis = 0>(b, k) y = Resize(x,,,s) }",
     "input x f32[1,2,3,4]\n output \"y\" = resize(x) sizes=[1,2,6,8]"},
    {"resize to the same", 13,
     "g (float[3,4] x) => (float[3,4] y) <float[2] s = {1.0, 1.2}>"
     "{ a = Resize<mode = \"cubic\">(x,,s) y = Relu(a) }",
     "input x f32[3,4]\n output \"y\" = relu(x)"},
};

std::string ImportCaseName(const ::testing::TestParamInfo<ImportCase>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Plain, ImportTest, ::testing::ValuesIn(kPlain), ImportCaseName);
INSTANTIATE_TEST_SUITE_P(Shapes, ImportTest, ::testing::ValuesIn(kShapes), ImportCaseName);
INSTANTIATE_TEST_SUITE_P(Windows, ImportTest, ::testing::ValuesIn(kWindows), ImportCaseName);
INSTANTIATE_TEST_SUITE_P(Resizes, ImportTest, ::testing::ValuesIn(kResizes), ImportCaseName);

struct ErrorCase {
  const char* name;
  const char* onnx;
  const char* expected;
};

constexpr char kRelu[] = "{ y = Relu(x) }";

TEST(ImportErrorsTest, NameWhatIsWrong) {
  const ErrorCase cases[] = {
      {"sizes that do not go together",
       "g (float[batch,8] x, float[batch,q] w) => (float[batch,q] y) { y = MatMul(x, w) }",
       "INVALID_ARGUMENT: node 0 (MatMul): matmul: inner dims differ: 8 vs 1 (the model leaves "
       "sizes open, these were chosen: --shape x=1x8 --shape w=1x1; 7 other sets of sizes fit no "
       "better: give them)"},
      {"missing weight", "g (float[2] x) => (float[2] y) { y = Add(x, w) }",
       "INVALID_ARGUMENT: node 0 (Add): nothing defines its input \"w\""},
      {"cycle", "g (float[2] x) => (float[2] y) { a = Add(x, y) y = Relu(a) }",
       "INVALID_ARGUMENT: node 0 (Add) waits for its own output: the model has a cycle"},
      {"two producers", "g (float[2] x) => (float[2] y) { y = Exp(x) y = Relu(x) }",
       "INVALID_ARGUMENT: tensor \"y\" is an output of node 0 (Exp) and of node 1 (Relu)"},
      {"shadowed input", "g (float[2] x) => (float[2] x) { x = Relu(x) }",
       "INVALID_ARGUMENT: node 0 (Relu) waits for its own output: the model has a cycle"},
      {"no such output", "g (float[2] x) => (float[2] z) { y = Relu(x) }",
       "INVALID_ARGUMENT: output \"z\" is never computed"},
      {"types differ", "g (float[2] x, int64[2] i) => (float[2] y) { y = Add(x, i) }",
       "INVALID_ARGUMENT: node 0 (Add): add: element types differ: f32 and i64"},
      {"shapes differ", "g (float[2,3] x, float[2,3] w) => (float[2,2] y) { y = MatMul(x, w) }",
       "INVALID_ARGUMENT: node 0 (MatMul): matmul: inner dims differ: 3 vs 2"},
      {"stated type", "g (float[2] x) => (int64[2] y) { y = Relu(x) }",
       "INVALID_ARGUMENT: output \"y\": the model says i64, its nodes give f32"},
      {"unknown operator", "g (float[2] x) => (float[2] y) { a = Nonsense(x) y = Relu(a) }",
       "UNIMPLEMENTED: node 0 (Nonsense): the operator is not known, and it cannot be kept: the "
       "model does not state the type of \"a\" (as value_info)"},
      {"a typo", "g (float[2] x) => (float[2] y) { a = Sigmiod(x) y = Relu(a) }",
       "UNIMPLEMENTED: node 0 (Sigmiod): the operator is not known, and it cannot be kept: the "
       "model does not state the type of \"a\" (as value_info); did you mean 'Sigmoid'?"},
      {"several obstacles",
       "g (float[2] x, float[3] w) => (float[2] y)"
       "{ a = Nonsense(x) b = Nonsense(x) c = Add(x, w) d = Other(a) e = Relu(b) y = Add(d, e) }",
       "UNIMPLEMENTED: 3 obstacles: (1) node 0 (Nonsense): the operator is not known, and it "
       "cannot be kept: the model does not state the type of \"a\" (as value_info) (and 1 more "
       "like it); "
       "(2) "
       "node 2 (Add): add: [2] and [3] do not broadcast; (3) node 3 (Other): the operator is not "
       "known, and it cannot be kept: the model does not state the type of \"d\" (as value_info)"},
      {"bomb",
       "g (float[2] x) => (float[2] y) <int64[1] s = {10000000000000}>"
       "{ a = ConstantOfShape(s) y = Add(x, a) }",
       "RESOURCE_EXHAUSTED: node 0 (ConstantOfShape): f32[10000000000000] has more than 2^40 "
       "elements"},
      {"large",
       "g (float[2] x) => (float[2] y) <int64[1] s = {10000000000}>"
       "{ a = ConstantOfShape(s) y = Add(x, a) }",
       "RESOURCE_EXHAUSTED: node 0 (ConstantOfShape): f32[10000000000] has 40000000000 bytes, "
       "the limit is 4294967296 a tensor"},
      {"wrong attribute", "g (float[2] x) => (float[2] y) { y = LeakyRelu<alpha = 1>(x) }",
       "INVALID_ARGUMENT: node 0 (LeakyRelu): attribute \"alpha\": expected type 1, got type 2"},
      {"arity", "g (float[2] x) => (float[2] y) { y = Relu(x, x) }",
       "INVALID_ARGUMENT: node 0 (Relu): expected 1 inputs, got 2"},
      {"neither sizes nor scales", "g (float[2] x) => (float[4] y) { y = Resize(x) }",
       "INVALID_ARGUMENT: node 0 (Resize): expected scales or sizes, got neither"},
      {"scale of nothing",
       "g (float[2] x) => (float[4] y) <float[1] s = {0.0}> { y = Resize(x,,s) }",
       "INVALID_ARGUMENT: node 0 (Resize): scale 0 of axis 0 is not above 0"},
      {"too few scales",
       "g (float[2,2] x) => (float[4,4] y) <float[1] s = {2.0}> { y = Resize(x,,s) }",
       "INVALID_ARGUMENT: node 0 (Resize): scales: expected 2 values, got 1"},
      {"opset 29", "<ir_version: 8, opset_import: [\"\" : 29]> g (float[2] x) => (float[2] y) {}",
       "UNIMPLEMENTED: opset 29 is outside 1 to 28: export the model again for opset 28"},
      {"ir 15", "<ir_version: 15, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) {}",
       "UNIMPLEMENTED: ir_version 15 is outside 3 to 14: export for opset 28"},
  };
  for (const ErrorCase& c : cases) {
    EXPECT_EQ(ToString(Import(c.onnx, 17).status()), c.expected) << c.name;
  }
}

// Some take any number of inputs.
TEST(ImportErrorsTest, EveryOperatorCountsItsInputs) {
  const std::set<std::string_view> any = {"Concat", "Einsum", "Max", "Mean", "Min", "Sum"};
  std::string inputs = "x";
  for (int i = 1; i < 40; ++i) inputs += ", x";
  for (const auto& rows :
       {ShapeImporters(), ArithmeticImporters(), WindowImporters(), EinsumImporters(),
        ResizeImporters(), NormImporters(), ConstantImporters()}) {
    for (const NodeImporterRow& row : rows) {
      const Status status =
          Import(
              fmt::format("g (float[2,2] x) => (float[2,2] y) {{ y = {}({}) }}", row.name, inputs),
              17)
              .status();
      const bool said = Message(status).find("inputs, got 40") != std::string::npos;
      EXPECT_EQ(said, !any.contains(row.name)) << row.name << ": " << ToString(status);
    }
  }
}

TEST(ImportErrorsTest, Shapes) {
  const std::string text = std::string("g (float[n,2] x, float[n] z) => (float[n,2] y) ") + kRelu;
  const auto error = [&](std::map<std::string, Shape> shapes) {
    return Message(Import(text, 17, {.shapes = std::move(shapes)}).status());
  };
  EXPECT_EQ(error({{"x", {3, 2}}}), "");  // z shares n.
  EXPECT_EQ(error({{"q", {3, 2}}}), "--shape names \"q\", the inputs are \"x\", \"z\"");
  EXPECT_EQ(error({{"x", {3}}}), "input \"x\" has rank 2, --shape gives [3]");
  EXPECT_EQ(error({{"x", {3, 5}}}), "input \"x\": dimension 1 is 2 in the model, --shape gives 5");
  EXPECT_EQ(error({{"x", {3, 2}}, {"z", {4}}}),
            "input \"z\": dimension 0 (\"n\") is 4 here, 3 before");
}

TEST(ImportTestOnly, DefaultsOfInputsAreConstant) {
  const auto imported =
      Import("g (float[2] x, float[2] b = {1, 2}) => (float[2] y) { y = Add(x, b) }", 17);
  ASSERT_TRUE(imported.ok());
  EXPECT_EQ(imported->warnings,
            std::vector<std::string>{"input \"b\" has a default value and is taken as constant"});
  EXPECT_EQ(imported->graph.inputs().size(), 1u);
  EXPECT_EQ(imported->weight_bytes, 8);
}

TEST(ImportTestOnly, UnknownOperatorsAreKept) {
  const auto imported =
      Import("g (float[2,3] x) => (float[2,3] y) { a = CumSum(x, i) y = Relu(a) }", 17);
  EXPECT_FALSE(imported.ok());
  const auto kept =
      Import("g (float[2,3] x, int64 i) => (float[2,3] y) { a = CumSum(x, i) y = Relu(a) }", 17);
  ASSERT_TRUE(kept.ok()) << ToString(kept.status());
  const Node& node = kept->graph.node(kept->graph.outputs()[0].edge.node - 1);
  EXPECT_EQ(node.op, OpKind::kOpaque);
  EXPECT_EQ(node.outputs[0].ToString(), "f32[2,3]");
}

constexpr char kOtherDomain[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"my.dom\" : 1]> "
    "g (float[2,3] x) => (float[n,m] y) { a = Relu(x) b = my.dom.Foo(a) y = Exp(b) }";

// Another runtime may know what a node of another domain gives: the graph ends before it.
TEST(ImportTestOnly, AnOperatorWithoutAKnownTypeStaysBehind) {
  const auto imported = Import(kOtherDomain, 17);
  ASSERT_EQ(ToString(imported.status()), "OK");
  EXPECT_EQ(FormatGraph(imported->graph), "input x f32[2,3]\nv1 = relu(x)\noutput \"a\" = v1\n");
  const DynamicPart& part = imported->origin.dynamic;
  EXPECT_EQ(part.nodes.size(), 2u);
  EXPECT_EQ(part.no_kernel, "node 1 (Foo)");
  EXPECT_EQ(imported->warnings,
            std::vector<std::string>{
                "2 of 3 nodes stay behind what is optimized, and only ONNX Runtime can run them: "
                "node 1 (Foo) has no kernel here; node 1 (Foo): the operator is not known, and it "
                "cannot be kept: the model does not state the type of \"b\" (as value_info)"});
  EXPECT_EQ(DecodeOrigin(EncodeOrigin(imported->origin))->dynamic.no_kernel, part.no_kernel);
}

// What waits for such a node is looked at all the same.
TEST(ImportTestOnly, ATypoBehindIsAnObstacle) {
  std::string text = kOtherDomain;
  text.replace(text.find("Exp"), 3, "Exxp");
  EXPECT_EQ(ToString(Import(text, 17).status()),
            "UNIMPLEMENTED: node 2 (Exxp): the operator is not known, and it cannot be kept: the "
            "model does not state the type of \"y\" (as value_info); did you mean 'Exp'?");
}

// A Sum of 10^6 operands in 3 MB took the job's 4 GiB and 95 s for 2 s of budget.
TEST(ImportTestOnly, TheOperatorsThatANodeStandsForAreCounted) {
  ImportOptions options;
  options.limits.nodes_max = 10;
  const auto sum_of = [&](int operands) {
    std::string list = "x";
    for (int i = 1; i < operands; ++i) list += ", x";
    return ToString(
        Import("g (float[2] x) => (float[2] y) { y = Sum(" + list + ") }", 13, options).status());
  };
  EXPECT_EQ(sum_of(11), "OK");
  EXPECT_EQ(sum_of(12),
            "RESOURCE_EXHAUSTED: node 0 (Sum): the model stands for more than 10 operators");
}

TEST(ImportTestOnly, ATypoOfAKnownTypeIsSaid) {
  const auto kept = Import("g (float[2,3] x) => (float[2,3] y) { y = Rellu(x) }", 17);
  ASSERT_EQ(ToString(kept.status()), "OK");
  EXPECT_EQ(kept->warnings,
            std::vector<std::string>{"no operator of ONNX that is known here is called \"Rellu\"; "
                                     "did you mean 'Relu'?"});
}

// Where the IR's kernels, which compute in double precision, would give another result.
TEST(ImportTestOnly, IntegersThatWrapAroundAreKept) {
  const char* const texts[] = {
      "g (uint8[2] x) => (uint8[2] y) { y = Add(x, x) }",
      "g (int32[2] x) => (int8[2] y) { y = Cast<to = 3>(x) }",
      "g (int64[2] x) => (uint64[2] y) { y = Cast<to = 13>(x) }",
      "g (float[2,0] x) => (float[2] y) { y = ReduceMax<axes = [1], keepdims = 0>(x) }",
      "g (uint8[1,2,4,4] x) => (uint8[1,2,3,3] y) { y = MaxPool<kernel_shape = [2, 2]>(x) }",
  };
  for (const char* const text : texts) {
    const auto kept = Import(text, 17);
    ASSERT_EQ(ToString(kept.status()), "OK") << text;
    EXPECT_EQ(kept->graph.node(kept->graph.outputs()[0].edge.node).op, OpKind::kOpaque) << text;
  }
  const auto native = Import("g (int64[2] x) => (int32[2] y) { y = Cast<to = 6>(x) }", 17);
  ASSERT_EQ(ToString(native.status()), "OK");
  EXPECT_EQ(native->graph.node(native->graph.outputs()[0].edge.node).op, OpKind::kCast);
}

TEST(ImportTestOnly, FormsThatWeLackAreKept) {
  const char* const texts[] = {
      "g (float[2,3,4] x, float[3,1] s) => (float[2,3,4] y) { y = LayerNormalization<axis = 1>(x, "
      "s) }",
      "g (float[1,1,4] x) => (float[1,1,1] y)"
      "{ y = MaxPool<kernel_shape = [5], strides = [2], ceil_mode = 1>(x) }",
  };
  for (const char* const text : texts) {
    const auto kept = Import(text, 17);
    ASSERT_EQ(ToString(kept.status()), "OK") << text;
    EXPECT_EQ(kept->graph.node(kept->graph.outputs()[0].edge.node).op, OpKind::kOpaque) << text;
  }
}

// ONNX's inference gives 4 for the second axis: it counts a window that begins in the padding.
TEST(ImportTestOnly, AKeptPoolHasTheSizeOfItsKernel) {
  const auto kept = Import(
      "g (float[2,3,8,5,5] x) => (float[2,3,9,4,2] y) { y = MaxPool<ceil_mode = 1, kernel_shape = "
      "[3, 2, 3], pads = [1, 1, 0, 2, 1, 0], strides = [1, 2, 2]>(x) }",
      12);
  ASSERT_EQ(ToString(kept.status()), "OK");
  EXPECT_EQ(kept->graph.type(kept->graph.outputs()[0].edge).ToString(), "f32[2,3,9,3,2]");
}

// Further outputs that somebody reads.
TEST(ImportTestOnly, OperatorsWithOutputsThatWeLackAreKept) {
  const char* const texts[] = {
      "g (float[1,2,4,4] x) => (float[1,2,3,3] y, int64[1,2,3,3] i)"
      "{ y, i = MaxPool<kernel_shape = [2, 2]>(x) }",
      "g (float[2,4] x, float[4] s) => (float[2,4] y, float[2,1] m)"
      "{ y, m = LayerNormalization(x, s) }",
      "g (float[2,4] x, float[4] s, float[4] b, float[4] m, float[4] v) => (float[2,4] y, "
      "float[4] n, float[4] o)"
      "{ y, n, o = BatchNormalization<training_mode = 1>(x, s, b, m, v) }",
  };
  for (const char* const text : texts) {
    const auto kept = Import(text, 17);
    ASSERT_EQ(ToString(kept.status()), "OK") << text;
    const NodeId last = kept->graph.outputs()[0].edge.node;
    EXPECT_EQ(kept->graph.node(last).op, OpKind::kOpaque) << text;
  }
}

}  // namespace
}  // namespace ag
