// Dense groups as cuDNN's operation graphs.
#include "device/cuda/cudnn_maker.h"
#include "device/cuda/dense_problem.h"

namespace ag::cuda {
namespace {

using Raw = cudnnBackendDescriptor_t;

// Returns a row-major matrix per product of the batch; a shared one has a batch of 1.
CudnnPlace MatrixPlace(int64_t batch, int64_t stride, int64_t rows, int64_t columns) {
  const int64_t count = stride == 0 ? 1 : batch;
  return {{count, rows, columns}, {stride == 0 ? rows * columns : stride, columns, 1}};
}

// The tensors of a matmul, with addend and bias.
struct DenseTensors {
  CudnnPlace d;
  Raw a_tensor = nullptr, b_tensor = nullptr, d_tensor = nullptr;
};

StatusOr<DenseTensors> MakeTensors(const GroupContext& context, const DenseProblem& p,
                                   CudnnMaker* maker, CudnnMaker::Addends* addends) {
  DenseTensors t;
  const auto recipe = [&](Edge edge) {
    return ConstantRecipe{
        .sum = {edge}, .shape = context.graph.type(edge).shape, .stored = p.stored};
  };
  t.d = MatrixPlace(p.batch, p.d_stride, p.m, p.n);
  const CudnnPlace a = MatrixPlace(p.batch, p.a_stride, p.m, p.k);
  const CudnnPlace b = MatrixPlace(p.batch, p.b_stride, p.k, p.n);
  AG_LET(t.a_tensor, maker->Operand(context, p.a, a, recipe(p.a), 2));
  AG_LET(t.b_tensor, maker->Operand(context, p.b, b, recipe(p.b), 2));
  AG_LET(t.d_tensor, maker->Bound(t.d, {.kind = CudnnBinding::Kind::kOutput}, 2));
  if (p.tail.addend) {
    AG_LET(addends->addend,
           maker->Operand(context, *p.tail.addend, t.d, recipe(*p.tail.addend), 2));
  }
  if (!p.tail.vectors.empty()) {
    const CudnnPlace place{{1, 1, p.n}, {p.n, p.n, 1}};
    AG_LET(addends->bias,
           maker->Constant(place, {.sum = p.tail.vectors, .shape = {p.n}, .stored = p.stored}, 2));
  }
  return t;
}

}  // namespace

StatusOr<CudnnGraph> BuildCudnnDense(const GroupContext& context) {
  AG_LET(const DenseProblem p, DenseProblemOf(context));
  AG_LET(CudnnMaker maker, CudnnMaker::For(p.stored));
  CudnnMaker::Addends addends;
  AG_LET(const DenseTensors t, MakeTensors(context, p, &maker, &addends));
  maker.Sign("matmul;");
  DescriptorBuilder form(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matmul");
  form.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  AG_LET(const Raw matmul, maker.Keep(form));
  Raw product = t.d_tensor;
  if (CudnnMaker::HasTail(p.tail, addends)) {
    AG_LET(product, maker.Inner(t.d));
  }
  DescriptorBuilder builder(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul operation");
  builder.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, t.a_tensor)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, t.b_tensor)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, product)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul);
  AG_LET(const Raw operation, maker.Keep(builder));
  AG_LET(CudnnGraph graph,
         std::move(maker).Finish(operation, product, t.d_tensor, t.d, p.tail, addends));
  graph.is_matmul = true;
  graph.product = {.batch = p.batch, .m = p.m, .n = p.n, .k = p.k};
  return graph;
}

}  // namespace ag::cuda
