// Sessions of a chosen window against the float64 pass. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/api.h"
#include "support/float64_model.h"
#include "support/golden.h"

namespace oriel_internal::test {

/// `sinks` 0: none. `chunk` 0: the library's choice.
inline Options windowOptions(uint32_t sinks, uint32_t window, uint32_t chunk,
                             oriel_kv_format k = ORIEL_KV_F16, oriel_kv_format v = ORIEL_KV_F16) {
  Options options = makeOptions();
  options.memory_bytes = 256u << 20;
  options.set("sinks", sinks);
  options.window_tokens = window;
  options.set("prefill_batch", chunk);
  setFormats(&options, k, v);
  return options;
}

/// Closer scores of experts may swap when keys and values are rounded to f16.
constexpr double kLeastMargin = 1e-3;

/// The largest effect on logits of rounding keys and values to f16.
inline double inherentError(const std::string& path, uint32_t sinks, uint32_t window,
                            const std::vector<int32_t>& ids) {
  Float64Model exact(path);
  Float64Model rounded(path, true);
  double most = 0;
  for (const int32_t id : ids) {
    most = worse(most, relativeL2(rounded.step(id, sinks, window), exact.step(id, sinks, window)));
  }
  return most;
}

/// Compares the logits after each of `ids`; `tolerance` is a relative L2 distance, raised to 1.2 times the inherent
/// error if that is larger.
inline void expectReference(const std::string& path, uint32_t sinks, uint32_t window,
                            uint32_t chunk, const std::vector<int32_t>& ids, double tolerance,
                            uint64_t first_position = 0) {
  const Loaded loaded = load(path, windowOptions(sinks, window, chunk), first_position);
  ASSERT_TRUE(loaded.session);
  const auto rows = evaluate(loaded, ids);
  ASSERT_EQ(ids.size(), rows.size());
  Float64Model reference(path);
  double worst = 0;
  size_t compared = 0;
  for (const int32_t id : ids) {
    const std::vector<double> exact = reference.step(id, sinks, window);
    if (reference.leastMargin() < kLeastMargin) {
      break;  // from here on another expert may be correct
    }
    worst = worse(worst, relativeL2(rows[compared++], exact));
  }
  EXPECT_GE(3 * compared, ids.size()) << path << ": too few choices are clear, take another seed";
  if (worst >= tolerance) {
    tolerance = std::max(tolerance, 1.2 * inherentError(path, sinks, window, ids));
  }
  EXPECT_LT(worst, tolerance) << path << " sinks " << sinks << " window " << window << " chunk "
                              << chunk;
}

}  // namespace oriel_internal::test
