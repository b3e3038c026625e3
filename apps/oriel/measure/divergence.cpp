#include "measure/divergence.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "failure.h"
#include "measure/log_sum_exp.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr size_t kPieceTokens = 64;

size_t mostLikely(const float* logits, size_t n_vocab) {
  return static_cast<size_t>(std::max_element(logits, logits + n_vocab) - logits);
}

}  // namespace

void checkIds(const std::vector<int32_t>& ids, uint32_t n_vocab, const std::string& what) {
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<uint32_t>(id) >= n_vocab) {
      throw Failure{kExitFailed, what + " has the token id " + std::to_string(id) +
                                     ", which is outside the vocabulary: use ids from 0 to " +
                                     std::to_string(n_vocab - 1)};
    }
  }
}

double negativeLogLikelihood(const float* logits, size_t n_vocab, int32_t id) {
  return logSumExp(logits, n_vocab) - static_cast<double>(logits[id]);
}

double klDivergence(const float* reference, const float* test, size_t n_vocab) {
  const double reference_sum = logSumExp(reference, n_vocab);
  const double test_sum = logSumExp(test, n_vocab);
  double kl = 0;
  for (size_t i = 0; i < n_vocab; ++i) {
    const double log_p = static_cast<double>(reference[i]) - reference_sum;
    const double log_q = static_cast<double>(test[i]) - test_sum;
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return std::max(kl, 0.0);  // negative values are rounding errors
}

void evaluateRows(const Session& session, const int32_t* ids, size_t count, const RowFn& on_row) {
  const CancelOnInterrupt cancel(session.get());
  const auto pass = [](size_t index, const float* logits, size_t n_vocab, void* user) {
    const bool goes_on = (*static_cast<const RowFn*>(user))(index, logits, n_vocab);
    return goes_on && interrupts() == 0 ? 0 : 1;
  };
  session.check(oriel_session_append(session.get(), ids, count, pass, const_cast<RowFn*>(&on_row)));
  if (interrupts() != 0) {
    throw Failure{kExitCancelled, ""};
  }
}

std::vector<double> scoreTokens(const Session& session, const std::vector<int32_t>& ids,
                                const std::string& label) {
  ProgressBar progress(label, std::chrono::milliseconds(300), ProgressUnit::kTokens);
  std::vector<double> nll;
  nll.reserve(ids.size());
  evaluateRows(session, ids.data(), ids.size(),
               [&](size_t index, const float* logits, size_t n_vocab) {
                 if (index + 1 < ids.size()) {
                   nll.push_back(negativeLogLikelihood(logits, n_vocab, ids[index + 1]));
                 }
                 progress.show(index, ids.size());
                 return true;
               });
  return nll;
}

Divergence measureDivergence(const Session& reference, const Session& test,
                             const std::vector<int32_t>& ids, const RowFn& on_row,
                             const std::string& label) {
  ProgressBar progress(label, std::chrono::milliseconds(300), ProgressUnit::kTokens);
  Divergence result;
  result.reference_nll.reserve(ids.size());
  std::vector<float> rows;
  double kl_sum = 0;
  size_t agreed = 0;
  for (size_t done = 0; done < ids.size(); done += kPieceTokens) {
    const size_t count = std::min(kPieceTokens, ids.size() - done);
    rows.clear();
    evaluateRows(reference, ids.data() + done, count,
                 [&](size_t index, const float* logits, size_t n_vocab) {
                   rows.insert(rows.end(), logits, logits + n_vocab);
                   if (done + index + 1 < ids.size()) {
                     result.reference_nll.push_back(
                         negativeLogLikelihood(logits, n_vocab, ids[done + index + 1]));
                   }
                   return true;
                 });
    bool stopped = false;
    evaluateRows(test, ids.data() + done, count,
                 [&](size_t index, const float* logits, size_t n_vocab) {
                   const float* expected = rows.data() + index * n_vocab;
                   const double kl = klDivergence(expected, logits, n_vocab);
                   kl_sum += kl;
                   result.kl_max = std::max(result.kl_max, kl);
                   agreed += mostLikely(expected, n_vocab) == mostLikely(logits, n_vocab) ? 1 : 0;
                   stopped = on_row && !on_row(done + index, logits, n_vocab);
                   return !stopped;
                 });
    if (stopped) {
      break;
    }
    progress.show(done + count, ids.size());
  }
  result.kl_mean = kl_sum / static_cast<double>(ids.size());
  result.top1_agreement = static_cast<double>(agreed) / static_cast<double>(ids.size());
  return result;
}

CommonOptions asPlanned(const CommonOptions& options, const Json& plan) {
  CommonOptions result = options;
  result.load.erase("min_window");  // callers may request shorter ones
  result.load.erase("min_speed");
  result.load.set("window", numberIn(plan, "window_tokens"));
  result.load.set("sinks", numberIn(plan, "sink_tokens"));
  result.load.set("prefill_batch", numberIn(plan, "chunk_tokens"));
  return result;
}

CommonOptions withFormats(const CommonOptions& options, const Json& plan,
                          const std::string& formats) {
  CommonOptions result = asPlanned(options, plan);
  result.load.set("calibration", "none");  // nothing is left to choose
  result.load.set("kv", formats);
  result.load.set("state", "f32");
  result.load.set("activation_bits", "16");
  return result;
}

}  // namespace cli
