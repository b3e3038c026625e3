#include "model/latent.h"

#include <cinttypes>
#include <cstdio>

#include "model/keys.h"

namespace oriel_internal {
namespace {

bool hasTensor(const GgufFile& file, uint32_t layer, const char* part) {
  char name[kMaxTensorNameBytes + 1];
  std::snprintf(name, sizeof(name), "blk.%" PRIu32 ".%s.weight", layer, part);
  GgufTensor tensor;
  return file.findTensor(name, &tensor);
}

/// Files with separate key and value matrices state the head widths under other keys (_mla). The usual keys then give
/// the widths of the KV cache.
Status readHeads(const GgufFile& file, const Architecture& architecture, const Log& log,
                 LayerKind* kind, const ModelDesc& desc) {
  const bool own_names = file.has(KeyName(architecture, "attention.key_length_mla").text);
  kind->value_dim = desc.n_embd / desc.n_heads;
  ORIEL_TRY(readModelCount(file, architecture,
                           own_names ? "attention.key_length_mla" : "attention.key_length",
                           Need::kRequired, 1, kMaxHeadDim, log, &kind->head_dim));
  return readModelCount(
      file, architecture, own_names ? "attention.value_length_mla" : "attention.value_length",
      own_names ? Need::kRequired : Need::kOptional, 1, kMaxHeadDim, log, &kind->value_dim);
}

}  // namespace

Status readLatent(const GgufFile& file, const Architecture& architecture, uint32_t layer,
                  const Log& log, LayerKind* kind, ModelDesc* desc) {
  ORIEL_TRY(readHeads(file, architecture, log, kind, *desc));
  ORIEL_TRY(readModelCount(file, architecture, "attention.kv_lora_rank", Need::kRequired, 1,
                           kMaxLatentDim, log, &kind->latent_dim));
  ORIEL_TRY(readModelCount(file, architecture, "rope.dimension_count", Need::kRequired, 1,
                           kMaxLatentRopeDim, log, &kind->rope_dim));
  // Some files of DeepSeek-V2-Lite state a width that the model does not use.
  if (!hasTensor(file, layer, "attn_q")) {
    ORIEL_TRY(readModelCount(file, architecture, "attention.q_lora_rank", Need::kRequired, 1,
                             kMaxEmbedding, log, &kind->query_latent_dim));
  }
  kind->joined_latent = hasTensor(file, layer, "attn_kv_b") && !hasTensor(file, layer, "attn_k_b");
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

}  // namespace oriel_internal
