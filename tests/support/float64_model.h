// Forward passes in float64, from the definitions: one token at a time, keys kept before RoPE, cache positions assigned
// at every step (as in StreamingLLM). Windowed layers see the last tokens at their own positions; short convolutions
// and states see every token. Shares only the GGUF reader with the library: architectures are implemented a second time
// here. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/half.h"
#include "support/float64_layers.h"
#include "support/float64_states.h"
#include "support/float64_weights.h"

namespace oriel_internal::test {

class Float64Model {
 public:
  /// `rounds_cache`: rounds keys and values to f16, like the best cache. This error is inherent in any implementation
  /// with such a cache.
  explicit Float64Model(const std::string& path, bool rounds_cache = false)
      : weights_(path), rounds_(rounds_cache) {
    const size_t n_blocks = weights_.number("block_count");
    n_layers_ = n_blocks - weights_.number("nextn_predict_layers", 0);
    n_heads_ = weights_.number("attention.head_count", 0);
    n_embd_ = weights_.number("embedding_length");
    if (n_heads_ != 0) {
      n_kv_heads_ = weights_.numbers("attention.head_count_kv", n_blocks);
      head_dim_ = weights_.number("attention.key_length", n_embd_ / n_heads_);
    }
    eps_ = weights_.real("attention.layer_norm_rms_epsilon", 1e-5);
    windows_ = float64Windows(weights_, n_layers_);
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const bool slides = windows_[layer] != 0;
      heads_.push_back(slides ? weights_.number("attention.key_length_swa", head_dim_) : head_dim_);
      ropes_.emplace_back(&weights_, layer, n_layers_, heads_[layer], slides);
    }
    readMultipliers();
    keys_.resize(n_layers_);
    values_.resize(n_layers_);
    columns_.resize(n_layers_);
    states_ = std::make_unique<Float64States>(&weights_, n_layers_);
  }

  /// Merges an adapter (Float64Weights).
  void adapt(const std::string& adapter, double scale) { weights_.adapt(adapter, scale); }

  const Float64States& states() const { return *states_; }

  /// Smallest margin of the router's choices so far (support/float64_layers.h).
  double leastMargin() const { return experts_.leastMargin(); }

  /// Output of the last norm for the latest token.
  const std::vector<double>& lastNorm() const { return last_norm_; }

  // For drafting (support/float64_model.h).

  /// A token's embedding row as input to the first layer.
  std::vector<double> embedded(int32_t id) {
    std::vector<double> x =
        part(weights_["token_embd.weight"], static_cast<size_t>(id) * n_embd_, n_embd_);
    scale(&x, embedding_scale_);
    return x;
  }
  /// Unrotated keys, and values, that the next token would see.
  struct Kept {
    size_t layer = 0;
    size_t n_heads = 0;
    size_t first = 0;  ///< position of the oldest
    std::vector<std::vector<double>> keys, values;
  };
  /// For the last layer that slides, or the last that does not.
  Kept keptForNext(bool slides, size_t sinks, size_t window) const {
    size_t layer = n_layers_ - 1;
    while ((windows_[layer] != 0) != slides) {
      --layer;
    }
    Kept kept;
    kept.layer = memoryOf(layer);
    kept.n_heads = n_kv_heads_[kept.layer];
    kept.keys = keys_[kept.layer];
    kept.values = values_[kept.layer];
    const size_t kept_sinks = slides ? 0 : sinks;
    const size_t most = slides ? std::min(windows_[layer], sinks + window) : sinks + window;
    while (kept.keys.size() + 1 > most) {
      kept.keys.erase(kept.keys.begin() + static_cast<std::ptrdiff_t>(kept_sinks));
      kept.values.erase(kept.values.begin() + static_cast<std::ptrdiff_t>(kept_sinks));
    }
    kept.first = slides ? n_tokens_ - kept.keys.size() : 0;
    return kept;
  }
  std::vector<double> rotatedKey(const Kept& kept, size_t index, size_t head) const {
    const size_t dim = heads_[kept.layer];
    return ropes_[kept.layer].rotated(part(kept.keys[index], head * dim, dim), kept.first + index);
  }

  size_t nVocab() { return weights_["token_embd.weight"].size() / n_embd_; }

  /// From the next step on these layers see at most this many tokens of the window, by layer; 0: all. Positions follow
  /// the tokens seen by the other layers.
  void seeLess(const std::vector<size_t>& windows) { shorter_ = windows; }

  /// Logits after one more token that sees the first `sinks` and the last `window` tokens. The window may change between
  /// steps; a token that was hidden once stays hidden.
  std::vector<double> step(int32_t id, size_t sinks, size_t window) {
    seen_ = std::min(seen_ + 1, sinks + window);
    const std::vector<double>& embedding = weights_["token_embd.weight"];
    std::vector<double> x = part(embedding, static_cast<size_t>(id) * n_embd_, n_embd_);
    scale(&x, embedding_scale_);
    const std::vector<double> inputs = layerInputs(id, x);
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const std::vector<double> u = normUnlessPost(x, prefix + "attn_norm.weight");
      std::vector<double> mixed(n_embd_);
      if (weights_.has(prefix + "attn_output.weight")) {
        add(&mixed, attention(layer, prefix, u, sinks, window));
      } else if (weights_.has(prefix + "shortconv.conv.weight")) {
        add(&mixed, convolution(layer, prefix, u));
      }
      if (states_->in(prefix)) {
        add(&mixed, states_->step(layer, prefix, u));
      }
      if (!is("qwen35")) {  // other architectures name the FFN's norm this way
        mixed = normIfThere(mixed, prefix + "post_attention_norm.weight");
      }
      scale(&mixed, residual_scale_);
      add(&x, mixed);
      if (is("mamba2")) {
        continue;
      }
      const std::vector<double> z =
          normUnlessPost(x, prefix + (is("qwen35")      ? "post_attention_norm.weight"
                                      : is("falcon-h1") ? "ffn_norm"
                                                        : "ffn_norm.weight"));
      std::vector<double> fed =
          experts_.in(prefix) ? experts_.sum(prefix, z) : feedForward(prefix, z);
      fed = normIfThere(fed, prefix + "post_ffw_norm.weight");
      scale(&fed, residual_scale_);
      add(&x, fed);
      if (!inputs.empty()) {
        add(&x, layerInput(prefix, x, part(inputs, layer * input_, input_)));
      }
      if (weights_.has(prefix + "layer_output_scale.weight")) {
        scale(&x, weights_[prefix + "layer_output_scale.weight"][0]);
      }
    }
    ++n_tokens_;
    const std::string last_norm =
        is("lfm2") || is("lfm2moe") ? "token_embd_norm.weight" : "output_norm.weight";
    const bool untied = weights_.has("output.weight");
    last_norm_ = norm(x, last_norm);
    std::vector<double> logits =
        product(untied ? "output.weight" : "token_embd.weight", last_norm_);
    scale(&logits, logit_factor_);
    for (double& logit : logits) {
      logit = capped(logit, logit_cap_);
    }
    return logits;
  }

 private:
  // A key's or value's number as stored.
  double stored(double value) const {
    return rounds_ ? static_cast<double>(halfToFloat(floatToHalf(static_cast<float>(value))))
                   : value;
  }

  using Vector = std::vector<double>;

  bool is(const char* name) const { return weights_.architecture() == name; }

  void readMultipliers() {
    const auto n = static_cast<double>(n_embd_);
    const auto givenOr = [&](const std::string& key, double otherwise) {
      const double value = weights_.real(key, 0);
      return value != 0 ? value : otherwise;
    };
    score_scale_ = 1 / std::sqrt(static_cast<double>(head_dim_));
    if (is("gemma3") || is("gemma2") || is("gemma4")) {
      embedding_scale_ = std::sqrt(n);
    }
    if (is("gemma4")) {
      score_scale_ = 1;
      logit_cap_ = weights_.real("final_logit_softcapping", 30);
      input_ = weights_.number("embedding_length_per_layer_input");
    }
    if (is("gemma2")) {
      score_cap_ = weights_.real("attn_logit_softcapping", 50);
      logit_cap_ = weights_.real("final_logit_softcapping", 30);
      if (n_layers_ == 46) {  // 27B
        score_scale_ = 1 / std::sqrt(n / static_cast<double>(n_heads_));
      }
    }
    if (is("granite") || is("granitemoe") || is("granitehybrid")) {
      embedding_scale_ = givenOr("embedding_scale", 1);
      residual_scale_ = givenOr("residual_scale", 1);
      score_scale_ = givenOr("attention.scale", score_scale_);
      logit_factor_ = 1 / givenOr("logit_scale", 1);
    }
    if (is("minicpm3")) {
      embedding_scale_ = 12;
      residual_scale_ = 1.4 / std::sqrt(static_cast<double>(n_layers_));
      logit_factor_ = 256 / n;
    }
    if (is("minicpm")) {
      embedding_scale_ = weights_.real("embedding_scale", 12);
      residual_scale_ =
          weights_.real("residual_scale", 1.4 / std::sqrt(static_cast<double>(n_layers_)));
      logit_factor_ = 1 / weights_.real("logit_scale", n / 256);
    }
    if (is("mistral3")) {
      temperature_scale_ = weights_.real("attention.temperature_scale", 0);
      temperature_tokens_ = weights_.number("rope.scaling.original_context_length",
                                            weights_.number("context_length"));
    }
  }

  // ---- Inputs of the layers' own (Gemma 4) -------------------------------------------------------

  // [layer][input_]; empty: none.
  Vector layerInputs(int32_t id, const Vector& x) {
    if (input_ == 0) {
      return {};
    }
    const size_t all = input_ * n_layers_;
    Vector rows = part(weights_["per_layer_token_embd.weight"], static_cast<size_t>(id) * all, all);
    scale(&rows, std::sqrt(static_cast<double>(input_)));
    Vector projected = product("per_layer_model_proj.weight", x);
    scale(&projected, 1 / std::sqrt(static_cast<double>(n_embd_)));
    Vector inputs;
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      const Vector of = norm(part(projected, layer * input_, input_), "per_layer_proj_norm.weight");
      inputs.insert(inputs.end(), of.begin(), of.end());
    }
    add(&inputs, rows);
    scale(&inputs, 1 / std::sqrt(2.0));
    return inputs;
  }

  Vector layerInput(const std::string& prefix, const Vector& x, const Vector& input) {
    Vector gate = product(prefix + "inp_gate.weight", x);
    for (size_t i = 0; i < input_; ++i) {
      gate[i] = activation(gate[i]) * input[i];
    }
    return norm(product(prefix + "proj.weight", gate), prefix + "post_norm.weight");
  }

  // ---- Mixers ------------------------------------------------------------------------------------

  Vector attention(size_t layer, const std::string& prefix, const Vector& u, size_t sinks,
                   size_t window) {
    if (latents_.there()) {
      return latentAttention(layer, prefix, u, sinks, window);
    }
    const size_t n_kv = n_kv_heads_[layer];
    Vector q = projection(prefix, "attn_q", u, 0, n_heads_);
    Vector gates;
    if (is("qwen35")) {  // for each head its query, then its gate
      Vector queries;
      for (size_t at = 0; at < q.size(); at += 2 * head_dim_) {
        const auto begin = q.begin() + static_cast<std::ptrdiff_t>(at);
        const auto middle = begin + static_cast<std::ptrdiff_t>(head_dim_);
        queries.insert(queries.end(), begin, middle);
        gates.insert(gates.end(), middle, middle + static_cast<std::ptrdiff_t>(head_dim_));
      }
      q = queries;
    }
    if (const size_t source = memoryOf(layer); source != layer) {
      q = headsNormed(q, prefix + "attn_q_norm.weight", heads_[layer]);
      const size_t seen = keys_[source].size();
      const bool slides = windows_[layer] != 0;
      return product(prefix + "attn_output.weight",
                     attend(layer, prefix, q, slides ? n_tokens_ + 1 - seen : 0, slides ? 0 : sinks,
                            slides ? 0 : seen_ - seen));
    }
    Vector k = projection(prefix, "attn_k", u, n_heads_, n_kv);
    Vector v = k;
    if (weights_.has(prefix + "attn_v.weight") || weights_.has(prefix + "attn_qkv.weight")) {
      v = projection(prefix, "attn_v", u, n_heads_ + n_kv, n_kv);
    }
    if (is("gemma4")) {
      v = headsNormed(v, "", heads_[layer]);
    }
    if (is("olmo2") || is("olmoe")) {  // over the whole row
      q = norm(q, prefix + "attn_q_norm.weight");
      k = norm(k, prefix + "attn_k_norm.weight");
    } else if (!is("hunyuan-dense")) {  // this architecture norms after rotation
      q = headsNormed(q, prefix + "attn_q_norm.weight", heads_[layer]);
      k = headsNormed(k, prefix + "attn_k_norm.weight", heads_[layer]);
    }
    keys_[layer].push_back(k);
    values_[layer].push_back(v);
    const size_t own = windows_[layer];
    const size_t kept_sinks = own != 0 ? 0 : sinks;
    const size_t kept = own != 0 ? std::min(own, sinks + window) : sinks + partOf(layer, window);
    while (keys_[layer].size() > kept) {
      keys_[layer].erase(keys_[layer].begin() + static_cast<std::ptrdiff_t>(kept_sinks));
      values_[layer].erase(values_[layer].begin() + static_cast<std::ptrdiff_t>(kept_sinks));
    }
    // Position of the oldest key: in the cache, or where it was read.
    const size_t first = own != 0 ? n_tokens_ + 1 - keys_[layer].size() : 0;
    const size_t gap = own != 0 ? 0 : seen_ - keys_[layer].size();
    Vector attended = attend(layer, prefix, q, first, kept_sinks, gap);
    for (size_t i = 0; i < gates.size(); ++i) {
      attended[i] /= 1 + std::exp(-gates[i]);
    }
    return product(prefix + "attn_output.weight", attended);
  }

  size_t partOf(size_t layer, size_t window) const {
    return shorter_.empty() || shorter_[layer] == 0 ? window : std::min(window, shorter_[layer]);
  }

  // A token's memory: its latent, then its key, which is rotated when seen.
  Vector latentAttention(size_t layer, const std::string& prefix, const Vector& u, size_t sinks,
                         size_t window) {
    Vector q =
        weights_.has(prefix + "attn_q.weight")
            ? product(prefix + "attn_q.weight", u)
            : product(prefix + "attn_q_b.weight", norm(product(prefix + "attn_q_a.weight", u),
                                                       prefix + "attn_q_a_norm.weight"));
    Vector vector = product(prefix + "attn_kv_a_mqa.weight", u);
    const Vector latent =
        norm(part(vector, 0, latents_.latentCols()), prefix + "attn_kv_a_norm.weight");
    std::copy(latent.begin(), latent.end(), vector.begin());
    keys_[layer].push_back(vector);
    while (keys_[layer].size() > sinks + window) {
      keys_[layer].erase(keys_[layer].begin() + static_cast<std::ptrdiff_t>(sinks));
    }
    return product(prefix + "attn_output.weight",
                   latents_.attend(prefix, q, keys_[layer], ropes_[layer], rounds_));
  }

  // The layer whose keys and values it reads: itself, or the last earlier one of its sort with memory.
  size_t memoryOf(size_t layer) const {
    const size_t owners =
        n_layers_ - (is("gemma4") ? weights_.number("attention.shared_kv_layers", 0) : 0);
    if (layer < owners) {
      return layer;
    }
    size_t source = owners - 1;
    while ((windows_[source] != 0) != (windows_[layer] != 0)) {
      --source;
    }
    return source;
  }

  // The oldest key is at position `first`. With norms after RoPE, scores do not depend on distances alone: window keys
  // are scored at their original positions, and sinks from the query's position in the cache. `gap`: tokens after the
  // sinks that only other layers see.
  Vector attend(size_t layer, const std::string& prefix, const Vector& query, size_t first,
                size_t sinks, size_t gap = 0) {
    const size_t head_dim = heads_[layer];
    const std::vector<Vector>& kept_keys = keys_[memoryOf(layer)];
    const std::vector<Vector>& kept_values = values_[memoryOf(layer)];
    const size_t n = kept_keys.size();
    const size_t shift = is("hunyuan-dense") ? n_tokens_ + 1 - first - n - gap : 0;
    const size_t n_kv = n_kv_heads_[layer];
    const size_t now = first + n + gap - 1;
    const std::string key_norm = prefix + "attn_k_norm.weight";
    std::vector<std::vector<Vector>> keys(n_kv);
    for (size_t kv = 0; kv < n_kv; ++kv) {
      for (size_t j = 0; j < n; ++j) {
        keys[kv].push_back(placed(layer, kept_keys[j], kv,
                                  j < sinks ? first + j : first + j + gap + shift, key_norm));
        for (double& value : keys[kv].back()) {
          value = stored(value);
        }
      }
    }
    Vector out(n_heads_ * head_dim);
    for (size_t h = 0; h < n_heads_; ++h) {
      const size_t kv = h / (n_heads_ / n_kv);
      Vector q = placed(layer, query, h, now, prefix + "attn_q_norm.weight");
      Vector ring_q =
          shift == 0 ? q : placed(layer, query, h, now + shift, prefix + "attn_q_norm.weight");
      if (temperature_scale_ != 0) {
        const auto contexts = static_cast<double>(now / temperature_tokens_);
        scale(&q, 1 + temperature_scale_ * std::log(contexts + 1));
        scale(&ring_q, 1 + temperature_scale_ * std::log(contexts + 1));
      }
      Vector scores(n);
      for (size_t j = 0; j < n; ++j) {
        const double* const asked = (j < sinks ? q : ring_q).data();
        const double* const key = keys[kv][j].data();
        double score = 0;
        for (size_t c = 0; c < head_dim; ++c) {
          score += asked[c] * key[c];
        }
        scores[j] = capped(score * score_scale_, score_cap_);
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) {
        score = std::exp(score - most);
        sum += score;
      }
      double* const to = out.data() + h * head_dim;
      for (size_t j = 0; j < n; ++j) {
        const double share = scores[j] / sum;
        const double* const value = kept_values[j].data() + kv * head_dim;
        for (size_t c = 0; c < head_dim; ++c) {
          to[c] += share * stored(value[c]);
        }
      }
    }
    return out;
  }

  // One head of a query or key, rotated to its position.
  Vector placed(size_t layer, const Vector& heads, size_t head, size_t position,
                const std::string& norm_name) {
    const Vector rotated =
        ropes_[layer].rotated(part(heads, head * heads_[layer], heads_[layer]), position);
    return is("hunyuan-dense") ? norm(rotated, norm_name) : rotated;
  }

  // out_proj(c * sum over the last columns of taps * (b * x)); the first tap is the oldest column's.
  Vector convolution(size_t layer, const std::string& prefix, const Vector& u) {
    const Vector bcx = product(prefix + "shortconv.in_proj.weight", u);
    const Vector& taps = weights_[prefix + "shortconv.conv.weight"];
    const size_t n_taps = weights_.number("shortconv.l_cache");
    std::deque<Vector>& columns = columns_[layer];
    columns.resize(n_taps - 1, Vector(n_embd_));  // zeros before the first token
    Vector column(n_embd_);
    for (size_t i = 0; i < n_embd_; ++i) {
      column[i] = bcx[i] * bcx[2 * n_embd_ + i];
    }
    columns.push_back(column);
    Vector y(n_embd_);
    for (size_t i = 0; i < n_embd_; ++i) {
      for (size_t j = 0; j < n_taps; ++j) {
        y[i] += taps[i * n_taps + j] * columns[j][i];
      }
      y[i] *= bcx[n_embd_ + i];
    }
    columns.pop_front();
    return product(prefix + "shortconv.out_proj.weight", y);
  }

  Vector feedForward(const std::string& prefix, const Vector& z) {
    Vector gate;
    Vector up = product(prefix + "ffn_up.weight", z);
    if (weights_.has(prefix + "ffn_gate.weight")) {
      gate = product(prefix + "ffn_gate.weight", z);
    } else {  // phi3: gate, then up
      gate = part(up, 0, up.size() / 2);
      up = part(up, up.size() / 2, up.size() / 2);
    }
    for (size_t i = 0; i < gate.size(); ++i) {
      gate[i] = activation(gate[i]) * up[i];
    }
    return product(prefix + "ffn_down.weight", gate);
  }

  // ---- Vectors -----------------------------------------------------------------------------------

  static void add(Vector* x, const Vector& y) {
    for (size_t i = 0; i < x->size(); ++i) {
      (*x)[i] += y[i];
    }
  }
  static void scale(Vector* x, double factor) {
    for (double& value : *x) {
      value *= factor;
    }
  }
  static double capped(double x, double cap) { return cap != 0 ? cap * std::tanh(x / cap) : x; }

  double activation(double x) const {
    if (!is("gemma3") && !is("gemma2") && !is("gemma4")) {
      return x / (1 + std::exp(-x));
    }
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  }

  Vector product(const std::string& name, const Vector& x) { return weights_.product(name, x); }

  // Some heads of attn_q, attn_k or attn_v; in fused matrices they begin at head `first`.
  Vector projection(const std::string& prefix, const std::string& name, const Vector& u,
                    size_t first, size_t heads) {
    Vector out =
        weights_.has(prefix + "attn_qkv.weight")
            ? part(product(prefix + "attn_qkv.weight", u), first * head_dim_, heads * head_dim_)
            : product(prefix + name + ".weight", u);
    if (weights_.has(prefix + name + ".bias")) {
      add(&out, weights_[prefix + name + ".bias"]);
    }
    return out;
  }

  // `name` empty: a weight of 1.
  Vector norm(const Vector& x, const std::string& name) {
    const double* const w = name.empty() ? nullptr : weights_[name].data();
    double sum = 0;
    for (const double v : x) {
      sum += v * v;
    }
    const double length = std::sqrt(sum / static_cast<double>(x.size()) + eps_);
    Vector y(x);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] *= (w != nullptr ? w[i] : 1) / length;
    }
    return y;
  }
  Vector normIfThere(const Vector& x, const std::string& name) {
    return weights_.has(name) ? norm(x, name) : x;
  }
  Vector normUnlessPost(const Vector& x, const std::string& name) {
    return is("exaone4") || is("olmo2") ? x : norm(x, name);
  }
  Vector headsNormed(const Vector& heads, const std::string& name, size_t head_dim) {
    Vector out;
    for (size_t at = 0; at < heads.size(); at += head_dim) {
      const Vector one = part(heads, at, head_dim);
      const Vector head = name.empty() ? norm(one, name) : normIfThere(one, name);
      out.insert(out.end(), head.begin(), head.end());
    }
    return out;
  }

  Float64Weights weights_;
  Float64Experts experts_{&weights_};
  Float64Latent latents_{&weights_};
  const bool rounds_;
  size_t n_layers_ = 0, n_heads_ = 0, n_embd_ = 0, head_dim_ = 0;
  std::vector<size_t> n_kv_heads_;  ///< by layer
  size_t input_ = 0;                ///< values of a layer's own input
  std::vector<size_t> heads_;       ///< head size, by layer
  size_t seen_ = 0;                 ///< tokens seen by layers with the whole window
  std::vector<size_t> shorter_;     ///< by layer, see seeLess()
  std::vector<size_t> windows_;     ///< by layer; 0: the session's
  std::vector<Float64Rope> ropes_;  ///< by layer
  double eps_ = 0;
  double embedding_scale_ = 1, residual_scale_ = 1, score_scale_ = 1, logit_factor_ = 1;
  double score_cap_ = 0, logit_cap_ = 0;  ///< 0: none
  double temperature_scale_ = 0;          ///< of queries beyond the trained context
  size_t temperature_tokens_ = 1;
  size_t n_tokens_ = 0;
  std::vector<std::vector<Vector>> keys_, values_;
  std::vector<std::deque<Vector>> columns_;  ///< of short convolutions, oldest first
  std::vector<double> last_norm_;
  std::unique_ptr<Float64States> states_;
};

// Drafts of a Gemma 4 assistant in float64, from the definition of its layers: queries only, over the target's keys and
// values. Shares only the target's float64 pass and the GGUF reader. Tests only.

class Float64Draft {
 public:
  explicit Float64Draft(const std::string& path) : weights_(path) {
    n_layers_ = weights_.number("block_count");
    n_heads_ = weights_.number("attention.head_count");
    eps_ = weights_.real("attention.layer_norm_rms_epsilon", 0);
    const std::vector<bool> slides = weights_.flags("attention.sliding_window_pattern");
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      slides_.push_back(slides[layer]);
      heads_.push_back(
          weights_.number(slides[layer] ? "attention.key_length_swa" : "attention.key_length"));
      ropes_.emplace_back(&weights_, layer, n_layers_, heads_[layer], slides[layer]);
    }
  }

  /// Logits of consecutive drafts. The first is computed from `id`, which follows the target's tokens, and the vector
  /// after the target's last norm; each next one from the previous draft and its vector. All have the position of `id`,
  /// which has no key of its own.
  std::vector<std::vector<double>> guesses(Float64Model* target, int32_t id, size_t count,
                                           size_t sinks, size_t window) {
    std::vector<std::vector<double>> all;
    Vector hidden = target->lastNorm();
    while (all.size() < count) {
      Vector in = target->embedded(id);
      in.insert(in.end(), hidden.begin(), hidden.end());
      Vector x = product("nextn.pre_projection.weight", in);
      for (size_t layer = 0; layer < n_layers_; ++layer) {
        const std::string prefix = "blk." + std::to_string(layer) + ".";
        const Vector mixed =
            attention(target, layer, prefix, norm(x, prefix + "attn_norm.weight"), sinks, window);
        x = sum(x, norm(mixed, prefix + "post_attention_norm.weight"));
        const Vector fed = feedForward(prefix, norm(x, prefix + "ffn_norm.weight"));
        x = sum(x, norm(fed, prefix + "post_ffw_norm.weight"));
        for (double& value : x) {
          value *= weights_[prefix + "layer_output_scale.weight"][0];
        }
      }
      const Vector last = norm(x, "output_norm.weight");
      hidden = product("nextn.post_projection.weight", last);
      all.push_back(product("token_embd.weight", last));
      id = static_cast<int32_t>(std::max_element(all.back().begin(), all.back().end()) -
                                all.back().begin());
    }
    return all;
  }

 private:
  using Vector = std::vector<double>;

  Vector attention(Float64Model* target, size_t layer, const std::string& prefix, const Vector& u,
                   size_t sinks, size_t window) {
    const size_t dim = heads_[layer];
    const Float64Model::Kept kept = target->keptForNext(slides_[layer], sinks, window);
    const size_t n = kept.keys.size();
    Vector query = product(prefix + "attn_q.weight", u);
    Vector out(n_heads_ * dim);
    for (size_t h = 0; h < n_heads_; ++h) {
      const size_t kv = h / (n_heads_ / kept.n_heads);
      const Vector head = ropes_[layer].rotated(
          norm(part(query, h * dim, dim), prefix + "attn_q_norm.weight"), kept.first + n);
      Vector scores(n);
      for (size_t j = 0; j < n; ++j) {
        const Vector key = target->rotatedKey(kept, j, kv);
        for (size_t c = 0; c < dim; ++c) {
          scores[j] += head[c] * key[c];
        }
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double all = 0;
      for (double& score : scores) {
        score = std::exp(score - most);
        all += score;
      }
      for (size_t j = 0; j < n; ++j) {
        for (size_t c = 0; c < dim; ++c) {
          out[h * dim + c] += scores[j] / all * kept.values[j][kv * dim + c];
        }
      }
    }
    return product(prefix + "attn_output.weight", out);
  }

  Vector feedForward(const std::string& prefix, const Vector& z) {
    Vector gate = product(prefix + "ffn_gate.weight", z);
    const Vector up = product(prefix + "ffn_up.weight", z);
    for (size_t i = 0; i < gate.size(); ++i) {
      const double x = gate[i];
      gate[i] = 0.5 * x *
                (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))) *
                up[i];
    }
    return product(prefix + "ffn_down.weight", gate);
  }

  static Vector sum(Vector x, const Vector& y) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] += y[i];
    }
    return x;
  }
  Vector product(const std::string& name, const Vector& x) { return weights_.product(name, x); }
  Vector norm(Vector x, const std::string& name) {
    double squares = 0;
    for (const double value : x) {
      squares += value * value;
    }
    const double by = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps_);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] *= by * weights_[name][i];
    }
    return x;
  }

  Float64Weights weights_;
  size_t n_layers_ = 0, n_heads_ = 0;
  double eps_ = 0;
  std::vector<bool> slides_;
  std::vector<size_t> heads_;
  std::vector<Float64Rope> ropes_;
};

// The prediction block of a qwen35 file in float64 (`nextn_predict_layers` 1): one full-attention layer after the
// model's own, with keys and values of its own. Sources: docs/decisions/015-speculation.md. Shares only the GGUF reader
// with the library. Tests only.

class Float64Prediction {
 public:
  /// `rounds_cache`: as in Float64Model.
  explicit Float64Prediction(const std::string& path, bool rounds_cache = false)
      : weights_(path), rounds_(rounds_cache) {
    const size_t layer = weights_.number("block_count") - 1;
    prefix_ = "blk." + std::to_string(layer) + ".";
    n_embd_ = weights_.number("embedding_length");
    n_heads_ = weights_.number("attention.head_count");
    n_kv_ = weights_.numbers("attention.head_count_kv", layer + 1)[layer];
    dim_ = weights_.number("attention.key_length", n_embd_ / n_heads_);
    eps_ = weights_.real("attention.layer_norm_rms_epsilon", 1e-5);
    rope_ = std::make_unique<Float64Rope>(&weights_, layer, layer + 1, dim_, false);
    before_.resize(n_embd_);
  }

  /// Reads one token of the text. `last_norm`: the model's vector after its last norm at this token. Keeps a key and a
  /// value, from this token and the vector at the token before it (zeros before the first).
  void read(int32_t id, const std::vector<double>& last_norm) {
    keep(input(id, before_));
    before_ = last_norm;
  }

  /// The next token is read as if it were the first.
  void forgetVector() { before_.assign(n_embd_, 0); }

  /// Logits of `count` guesses in a row after `id`, the token chosen next. They see the first `sinks` and the last
  /// `window` tokens, themselves included. Keeps nothing.
  std::vector<std::vector<double>> guesses(int32_t id, size_t count, size_t sinks, size_t window) {
    std::vector<std::vector<double>> all;
    const std::vector<Vector> keys = keys_;
    const std::vector<Vector> values = values_;
    Vector hidden = before_;
    while (all.size() < count) {
      hidden = layer(input(id, hidden), sinks, window);
      const std::string head = prefix_ + "nextn.shared_head_head.weight";
      all.push_back(weights_.product(weights_.has(head)              ? head
                                     : weights_.has("output.weight") ? "output.weight"
                                                                     : "token_embd.weight",
                                     hidden));
      id = static_cast<int32_t>(std::max_element(all.back().begin(), all.back().end()) -
                                all.back().begin());
    }
    keys_ = keys;
    values_ = values;
    return all;
  }

 private:
  using Vector = std::vector<double>;

  // The embedding comes first.
  Vector input(int32_t id, const Vector& hidden) {
    const std::string own = prefix_ + "nextn.embed_tokens.weight";
    const Vector& embedding = weights_[weights_.has(own) ? own : "token_embd.weight"];
    Vector both = norm(part(embedding, static_cast<size_t>(id) * n_embd_, n_embd_), "nextn.enorm");
    const Vector second = norm(hidden, "nextn.hnorm");
    both.insert(both.end(), second.begin(), second.end());
    return product("nextn.eh_proj", both);
  }

  void keep(const Vector& x) {
    const Vector u = norm(x, "attn_norm");
    keys_.push_back(headsNormed(product("attn_k", u), "attn_k_norm"));
    values_.push_back(product("attn_v", u));
  }

  // From the block's input to the vector after its norm, which is also the next guess's vector.
  Vector layer(Vector x, size_t sinks, size_t window) {
    keep(x);
    while (keys_.size() > sinks + window) {
      keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(sinks));
      values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(sinks));
    }
    addTo(&x, product("attn_output", attend(product("attn_q", norm(x, "attn_norm")))));
    const Vector z = norm(x, "post_attention_norm");
    Vector gate = product("ffn_gate", z);
    const Vector up = product("ffn_up", z);
    for (size_t i = 0; i < gate.size(); ++i) {
      gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    }
    addTo(&x, product("ffn_down", gate));
    const bool own = weights_.has(prefix_ + "nextn.shared_head_norm.weight");
    return normBy(x,
                  weights_[own ? prefix_ + "nextn.shared_head_norm.weight" : "output_norm.weight"]);
  }

  // `rows`: for each head its query, then its gate. The newest key is the query's own.
  Vector attend(const Vector& rows) {
    const size_t n = keys_.size();
    Vector out(n_heads_ * dim_);
    for (size_t h = 0; h < n_heads_; ++h) {
      const size_t first = h / (n_heads_ / n_kv_) * dim_;
      const Vector query =
          rope_->rotated(headsNormed(part(rows, 2 * h * dim_, dim_), "attn_q_norm"), n - 1);
      Vector shares(n);
      for (size_t j = 0; j < n; ++j) {
        const Vector key = rope_->rotated(part(keys_[j], first, dim_), j);
        for (size_t c = 0; c < dim_; ++c) {
          shares[j] += query[c] * stored(key[c]) / std::sqrt(static_cast<double>(dim_));
        }
      }
      const double most = *std::max_element(shares.begin(), shares.end());
      double sum = 0;
      for (double& share : shares) {
        share = std::exp(share - most);
        sum += share;
      }
      for (size_t c = 0; c < dim_; ++c) {
        for (size_t j = 0; j < n; ++j) {
          out[h * dim_ + c] += shares[j] / sum * stored(values_[j][first + c]);
        }
        out[h * dim_ + c] /= 1 + std::exp(-rows[(2 * h + 1) * dim_ + c]);
      }
    }
    return out;
  }

  double stored(double value) const {
    return rounds_ ? static_cast<double>(halfToFloat(floatToHalf(static_cast<float>(value))))
                   : value;
  }
  Vector product(const char* name, const Vector& x) {
    return weights_.product(prefix_ + name + ".weight", x);
  }
  Vector norm(const Vector& x, const char* name) {
    return normBy(x, weights_[prefix_ + name + ".weight"]);
  }
  Vector normBy(Vector x, const Vector& weight) const {
    double squares = 0;
    for (const double value : x) {
      squares += value * value;
    }
    const double by = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps_);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] *= by * weight[i];
    }
    return x;
  }
  Vector headsNormed(const Vector& heads, const char* name) {
    Vector out;
    for (size_t at = 0; at < heads.size(); at += dim_) {
      const Vector head = norm(part(heads, at, dim_), name);
      out.insert(out.end(), head.begin(), head.end());
    }
    return out;
  }
  static void addTo(Vector* x, const Vector& y) {
    for (size_t i = 0; i < x->size(); ++i) {
      (*x)[i] += y[i];
    }
  }

  Float64Weights weights_;
  const bool rounds_;
  std::string prefix_;
  size_t n_embd_ = 0, n_heads_ = 0, n_kv_ = 0, dim_ = 0;
  double eps_ = 0;
  std::unique_ptr<Float64Rope> rope_;
  std::vector<Vector> keys_, values_;  ///< unrotated
  Vector before_;                      ///< after the model's last norm, of the latest token
};

}  // namespace oriel_internal::test
