// The JSON of the describe calls (docs/reference/describe.md).
#pragma once

#include "api/api.h"
#include "json/json.h"

namespace oriel_internal {

/// `name` is null for the outermost object.
void writePlanObject(const char* name, const PlanResult& plan, JsonWriter* out);
// `with_bytes`: true for a plan, false for a file.
void writeGroups(const LayerGroup* groups, uint32_t count, bool with_bytes, JsonWriter* out);
// Writes the members common to ModelInfo and FileInfo into the open object.
template <typename Info>
void writeFileInfo(const Info& info, JsonWriter* out) {
  out->text("architecture", info.architecture);
  out->text("name", info.name);
  out->text("tokenizer", info.tokenizer);
  out->text("chat_template", info.chat_template);
  out->text("rope_scaling", info.rope_scaling);
  out->whole("n_layers", info.n_layers);
  out->whole("n_heads", info.n_heads);
  out->whole("n_kv_heads", info.n_kv_heads);
  out->whole("head_dim", info.head_dim);
  out->whole("n_embd", info.n_embd);
  out->whole("n_ff", info.n_ff);
  out->whole("n_vocab", info.n_vocab);
  out->whole("context_train", info.context_train);
  out->whole("window_train", info.window_train);
  out->whole("parameters", info.parameters);
  out->whole("file_bytes", info.file_bytes);
  info.bos_id < 0 ? out->null("bos_id") : out->signedWhole("bos_id", info.bos_id);
  info.eos_id < 0 ? out->null("eos_id") : out->signedWhole("eos_id", info.eos_id);
  out->flag("add_bos", info.add_bos != 0);
  static constexpr const char* kFillNames[] = {"fill_prefix_id", "fill_suffix_id",
                                               "fill_middle_id"};
  for (uint32_t i = 0; i < 3; ++i) {
    const int32_t id = info.fill_ids[i];
    id < 0 ? out->null(kFillNames[i]) : out->signedWhole(kFillNames[i], id);
  }
  writeGroups(info.groups, info.group_count, false, out);
}
const char* kvFormatText(oriel_kv_format format);
const char* trimLevelText(oriel_trim_level level);
// True if (text, capacity, needed) can be filled.
inline bool validBuffer(const char* text, size_t capacity, const size_t* needed) {
  return needed != nullptr && (text != nullptr || capacity == 0);
}
// The numbers that apps decide by.
oriel_plan publicPlan(const PlanResult& plan);

}  // namespace oriel_internal
