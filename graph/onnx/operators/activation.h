// Activation functions by name, as LSTM, GRU, RNN and com.microsoft's fused operators name them.
// Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace ag::onnx_operators {

using Activation = std::function<double(double)>;

// The scaling values of activation functions, consumed in the order of the functions by those that
// take one.
struct ActivationScales {
  std::vector<float> alpha, beta;
  size_t next_alpha = 0, next_beta = 0;

  double Alpha(double otherwise) {
    return next_alpha < alpha.size() ? alpha[next_alpha++] : otherwise;
  }
  double Beta(double otherwise) { return next_beta < beta.size() ? beta[next_beta++] : otherwise; }
};

// Returns the function of this name, in any case. kInvalidArgument: there is none.
StatusOr<Activation> ActivationOf(std::string name, ActivationScales& scales);

}  // namespace ag::onnx_operators
