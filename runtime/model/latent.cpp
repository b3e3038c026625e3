#include "model/latent.h"

#include <cinttypes>

#include "model/keys.h"

namespace oriel {
namespace {

Status readWidth(const GgufFile& file, const Architecture& architecture, const char* suffix,
                 Need need, uint32_t maximum, const Log& log, uint32_t* width) {
  const KeyName key(architecture, suffix);
  if (!file.has(key.text)) {
    return need == Need::kRequired ? missingKey(key.text, log) : kOk;
  }
  uint64_t value = 0;
  ORIEL_TRY(readCount(file, key.text, log, &value));
  ORIEL_TRY(checkRange(key.text, value, 1, maximum, log));
  *width = static_cast<uint32_t>(value);
  return kOk;
}

bool hasTensor(const GgufFile& file, const char* name) {
  GgufTensor tensor;
  return file.findTensor(name, &tensor);
}

/// Files whose matrices of keys and values are tensors of their own state the widths of heads under names of their own;
/// what others call so is then the memory's.
Status readHeads(const GgufFile& file, const Architecture& architecture, const Log& log,
                 LayerKind* kind, const ModelDesc& desc) {
  const bool own_names = file.has(KeyName(architecture, "attention.key_length_mla").text);
  kind->value_dim = desc.n_embd / desc.n_heads;
  ORIEL_TRY(readWidth(file, architecture,
                      own_names ? "attention.key_length_mla" : "attention.key_length",
                      Need::kRequired, kMaxHeadDim, log, &kind->head_dim));
  return readWidth(
      file, architecture, own_names ? "attention.value_length_mla" : "attention.value_length",
      own_names ? Need::kRequired : Need::kOptional, kMaxHeadDim, log, &kind->value_dim);
}

}  // namespace

Status readLatent(const GgufFile& file, const Architecture& architecture, const Log& log,
                  LayerKind* kind, ModelDesc* desc) {
  ORIEL_TRY(readHeads(file, architecture, log, kind, *desc));
  ORIEL_TRY(readWidth(file, architecture, "attention.kv_lora_rank", Need::kRequired, kMaxLatentDim,
                      log, &kind->latent_dim));
  ORIEL_TRY(readWidth(file, architecture, "rope.dimension_count", Need::kRequired,
                      kMaxLatentRopeDim, log, &kind->rope_dim));
  // Files of DeepSeek-V2-Lite may state a width that the model does not have.
  if (!hasTensor(file, "blk.0.attn_q.weight")) {
    ORIEL_TRY(readWidth(file, architecture, "attention.q_lora_rank", Need::kRequired, kMaxEmbedding,
                        log, &kind->query_latent_dim));
  }
  kind->joined_latent =
      hasTensor(file, "blk.0.attn_kv_b.weight") && !hasTensor(file, "blk.0.attn_k_b.weight");
  if (kind->rope_dim >= kind->head_dim || kind->rope_dim % 2 != 0 || kind->latent_dim % 2 != 0 ||
      kind->value_dim == 0) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model has latents of %" PRIu32 " values, of heads of %" PRIu32
                    " and %" PRIu32 ", of which %" PRIu32
                    " are rotated; this build runs even latents and rotates an even part of a "
                    "head: use another model",
                    kind->latent_dim, kind->head_dim, kind->value_dim, kind->rope_dim);
  }
  desc->head_dim = kind->head_dim;
  desc->n_kv_heads = 1;
  desc->ropes[kMainRope].dims = kind->rope_dim;
  return kOk;
}

}  // namespace oriel
