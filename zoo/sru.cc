#include <cmath>

#include "zoo/networks.h"

namespace ag {

void BuildSru(ZooBuilder& b, int64_t batch, const SruSize& size) {
  const TensorType type{DType::kFloat32, {batch, size.hidden}};
  const double deviation = 1 / std::sqrt(static_cast<double>(size.hidden));
  const auto weight = [&] { return b.Random({size.hidden, size.hidden}, deviation); };
  const Edge w = weight(), w_forget = weight(), w_reset = weight();
  std::vector<Edge> xs;
  for (int64_t t = 0; t < size.steps; ++t) xs.push_back(b.Input(fmt::format("x{}", t), type));
  Edge c = b.Input("c", type);
  for (int64_t t = 0; t < size.steps; ++t) {
    const Edge x = xs[t];
    const Edge candidate = b.MatMul(x, w);
    const Edge forget = b.Op(OpKind::kSigmoid, {b.MatMul(x, w_forget)});
    const Edge reset = b.Op(OpKind::kSigmoid, {b.MatMul(x, w_reset)});
    c = b.Add(b.Mul(forget, c), b.Mul(forget, candidate));
    b.Output(b.Add(b.Mul(reset, c), b.Mul(reset, x)), fmt::format("h{}", t));
  }
  b.Output(c, "c_last");
}

}  // namespace ag
