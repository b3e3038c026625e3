#include "budget/loss.h"

#include <cmath>

namespace oriel {

double LossModel::expected(const CacheFormats& formats, uint32_t n_layers, uint64_t visible,
                           uint32_t context_train) const {
  double rounding = 0;
  for (uint32_t layer = 0; layer < n_layers; ++layer) {
    rounding += keys(formats.keys(layer)) + values(formats.values(layer));
  }
  double loss = forget_scale * std::pow(static_cast<double>(visible), -forget_power) +
                rounding / n_layers;
  if (context_train != 0 && visible > context_train) {
    loss += beyond_trained * std::log2(static_cast<double>(visible) / context_train);
  }
  return loss;
}

}  // namespace oriel
