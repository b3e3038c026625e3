// ln(sum of exp(logits)), fast enough to score every position of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model_handle.h"
#include "options.h"

namespace cli {

/// For `count` >= 1 logits; NaN if one is NaN or the largest is infinite. Each exponential has a relative error of at
/// most 3e-7; the sum is in double.
double logSumExp(const float* logits, size_t count);

// "Did you mean" suggestions.

/// The word in `known` that `typed` most likely means: at most two edits away, or a word it is a prefix of. Empty: none.
std::string nearest(const std::string& typed, const std::vector<std::string>& known);

// The divergence of a model from itself with another cache.

/// Throws for an id outside the vocabulary, before scoring; the library's own check comes later.
void checkIds(const std::vector<int32_t>& ids, uint32_t n_vocab, const std::string& what);

/// -ln p(id) under the softmax of the logits, by log-sum-exp in double.
double negativeLogLikelihood(const float* logits, size_t n_vocab, int32_t id);

/// KL(reference || test) in nats, of the softmax of both.
double klDivergence(const float* reference, const float* test, size_t n_vocab);

/// Gets the logits after token `index`. False: stop.
using RowFn = std::function<bool(size_t index, const float* logits, size_t n_vocab)>;

/// Feeds the ids to the session and passes the logits of every position. Throws after Ctrl-C.
void evaluateRows(const Session& session, const int32_t* ids, size_t count, const RowFn& on_row);

/// For each token except the first, given those before it.
std::vector<double> scoreTokens(const Session& session, const std::vector<int32_t>& ids,
                                const std::string& label);

struct Divergence {
  double kl_mean = 0;  ///< nats, over the distributions after every token
  double kl_max = 0;
  double top1_agreement = 0;          ///< share of positions with the same most likely token
  std::vector<double> reference_nll;  ///< as from scoreTokens()
};

/// Feeds the same ids to two empty sessions of one vocabulary, in pieces of 64 tokens, so that only 64 rows of logits
/// are in memory. `on_row` (may be empty) gets the rows of `test`.
Divergence measureDivergence(const Session& reference, const Session& test,
                             const std::vector<int32_t>& ids, const RowFn& on_row,
                             const std::string& label);

/// Options that reproduce the plan: window, sinks and batch are fixed; memory and formats remain free.
CommonOptions asPlanned(const CommonOptions& options, const Json& plan);
/// The same model file with a cache in these formats ("k8v4"), everything else as in `plan`.
CommonOptions withFormats(const CommonOptions& options, const Json& plan,
                          const std::string& formats);

// Reports evicted text at the time of eviction.

/// Reports on stderr that `lost` of `tokens` tokens of `what` are evicted, and the options with which a window of
/// `window_tokens` would hold all of them.
void tellLoss(const std::string& what, uint64_t lost, uint64_t tokens, uint64_t window_tokens,
              const CommonOptions& options, const oriel_plan& plan);

/// Turn starts of a conversation, and the visible turns.
struct TurnsSeen {
  std::vector<uint64_t> starts;
  uint64_t position = 0;
  uint64_t first_seen = 0;  ///< after the sinks
  uint64_t sinks = 0;
};
TurnsSeen turnsSeen(const Session& session);

/// The difference between two states: "2 turns dropped", "part of a turn dropped", "" for none.
std::string forgottenText(const TurnsSeen& before, const TurnsSeen& now);
/// Tokens of the longest turn that was completely evicted between two states, including its reply; 0: none.
uint64_t longestForgotten(const TurnsSeen& before, const TurnsSeen& now);

}  // namespace cli
