// Written for auto-vectorisation: lanes are elements of small arrays, without branches.
#include "measure/divergence.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "output.h"
#include "plan/plan_report.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr size_t kLanes = 16;

// expOf of a NaN may look like a number, so NaNs are checked here.
bool areNumbers(const float* logits, size_t count) {
  uint32_t others = 0;
  for (size_t i = 0; i < count; ++i) {
    others |= std::isnan(logits[i]) ? 1u : 0u;
  }
  return others == 0;
}

float largest(const float* logits, size_t count) {
  float most[kLanes];
  std::fill_n(most, kLanes, logits[0]);
  const size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      most[k] = logits[i + k] > most[k] ? logits[i + k] : most[k];
    }
  }
  return std::max(*std::max_element(most, most + kLanes),
                  whole < count ? *std::max_element(logits + whole, logits + count) : logits[0]);
}

// exp(x) for x <= 0. 2^t is 2^n times 2^r with r in [-1/2, 1/2]; the polynomial is the Taylor series of 2^r, whose next
// term is below 1.6e-7.
inline float expOf(float x) {
  constexpr float kLog2E = 1.44269504089f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to integers
  const float t = std::max(x, -80.0f) * kLog2E;
  const float shifted = t + kRound;
  const float n = shifted - kRound;
  const float r = t - n;
  float p = 1.540353039e-4f;
  p = p * r + 1.333355815e-3f;
  p = p * r + 9.618129108e-3f;
  p = p * r + 5.550410866e-2f;
  p = p * r + 2.402265070e-1f;
  p = p * r + 6.931471806e-1f;
  p = p * r + 1.0f;
  uint32_t exponent;  // n, in the lowest bits; undefined for NaN
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  uint32_t bits;
  std::memcpy(&bits, &p, sizeof(bits));
  bits += exponent << 23;
  std::memcpy(&p, &bits, sizeof(p));
  return p;
}

}  // namespace

double logSumExp(const float* logits, size_t count) {
  const float most = largest(logits, count);
  if (!areNumbers(logits, count) || std::isinf(most)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double sums[kLanes] = {};
  const size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    float values[kLanes];
    for (size_t k = 0; k < kLanes; ++k) {
      values[k] = expOf(logits[i + k] - most);
    }
    for (size_t k = 0; k < kLanes; ++k) {
      sums[k] += static_cast<double>(values[k]);
    }
  }
  double sum = 0;
  for (const double part : sums) {
    sum += part;
  }
  for (size_t i = whole; i < count; ++i) {
    sum += static_cast<double>(expOf(logits[i] - most));
  }
  return static_cast<double>(most) + std::log(sum);
}

namespace {

/// Insertions, deletions, substitutions and transpositions (optimal string alignment).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> least(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1,
                              least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
      }
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string nearest(const std::string& typed, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // longer than every option and command
  if (typed.size() > kLongest) {
    return {};
  }
  std::string lower = typed;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t letters = lower.size() - std::min(lower.find_first_not_of("-/"), lower.size());
  std::string best;
  size_t least = std::min<size_t>(letters / 3, 2) + 1;
  for (const std::string& word : known) {
    const bool begins = letters >= 3 && word.compare(0, lower.size(), lower) == 0;
    const size_t apart = begins ? 1 : distance(lower, word);
    if (apart < least) {
      least = apart;
      best = word;
    }
  }
  return best;
}

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

namespace {

/// " (--window 3300 --memory 14.2MiB holds all of it)"; for a text longer than the trained context " (--window max holds
/// 8192, all that the model was trained on)"; "" if no options help.
std::string remedy(const CommonOptions& options, const oriel_plan& plan, uint64_t window_tokens) {
  const uint32_t trained = plan.context_train_tokens;
  const bool fits_training = trained == 0 || plan.sink_tokens + window_tokens <= trained;
  const uint64_t longest = trained - std::min(trained, plan.sink_tokens);
  if (window_tokens > UINT32_MAX || (!fits_training && plan.window_tokens >= longest)) {
    return "";
  }
  CommonOptions longer = options;
  longer.load.set("window", fits_training ? window_tokens : longest);
  longer.load.set("sinks", plan.sink_tokens);
  longer.load.erase("min_window");
  const Json found = PlanSource::ofFile(modelPath(options)).tryPlan(memoryOptions(longer));
  if (found.is_null()) {
    return "";
  }
  const uint64_t least = numberIn(found, "minimum_bytes");
  const std::string memory = least <= plan.memory_bytes ? "" : " --memory " + suggestSize(least);
  return fits_training
             ? " (--window " + std::to_string(window_tokens) + memory + " holds all of it)"
             : " (--window max" + memory + " holds " + grouped(trained) +
                   ", all that the model was trained on)";
}

}  // namespace

void tellLoss(const std::string& what, uint64_t lost, uint64_t tokens, uint64_t window_tokens,
              const CommonOptions& options, const oriel_plan& plan) {
  tellText("oriel: warning: " + what + " has " + countOf(tokens, "token") +
           ", and the model no longer sees " + grouped(lost) + " of them: the context holds " +
           grouped(uint64_t{plan.sink_tokens} + plan.window_tokens) +
           remedy(options, plan, window_tokens) + "\n");
}

TurnsSeen turnsSeen(const Session& session) {
  const Json now = session.describe();
  TurnsSeen seen;
  seen.position = numberIn(now, "position");
  seen.first_seen = numberIn(now, "first_visible");
  seen.sinks = numberIn(now, "sinks_used");
  seen.starts = now["turns"].get<std::vector<uint64_t>>();
  return seen;
}

std::string forgottenText(const TurnsSeen& before, const TurnsSeen& now) {
  // A turn is evicted when its successor contains the first visible token.
  uint64_t turns = 0;
  bool part = false;
  for (size_t i = 0; i < now.starts.size(); ++i) {
    const uint64_t begin = std::max(now.starts[i], now.sinks);
    const uint64_t end = i + 1 < now.starts.size() ? now.starts[i + 1] : now.position;
    const bool was_seen = before.first_seen < end;
    if (begin < end && was_seen && now.first_seen >= end) {
      ++turns;
    } else if (begin < now.first_seen && now.first_seen < end &&
               before.first_seen < now.first_seen) {
      part = true;
    }
  }
  if (turns != 0) {
    return std::to_string(turns) + (turns == 1 ? " turn dropped" : " turns dropped");
  }
  return part ? "part of a turn dropped" : "";
}

uint64_t longestForgotten(const TurnsSeen& before, const TurnsSeen& now) {
  uint64_t longest = 0;
  for (size_t i = 0; i + 1 < now.starts.size(); ++i) {
    const uint64_t end = now.starts[i + 1];
    if (before.first_seen < end && now.first_seen >= end) {
      longest = std::max(longest, end - now.starts[i]);
    }
  }
  return longest;
}

}  // namespace cli
