// The divergence of a model from itself with another cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model_handle.h"

namespace cli {

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

}  // namespace cli
