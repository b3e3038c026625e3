// What JavaScript needs besides the functions of the C API: where the fields of its structs lie, and callbacks with
// the C API's types that end in functions of the host (host_library.js).
#include <oriel/oriel.h>
#include <oriel/sessions.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

extern "C" {
void oriel_host_log(int level, const char* message);
int oriel_host_progress(double done, double total, void* user);
int oriel_host_token(const oriel_token_event* event, void* user);
int oriel_host_part(const oriel_part* part, void* user);
int oriel_host_logits(double index, const float* logits, double count, void* user);
}

namespace {

/// A field as engine.js reads it; the same layout there.
struct Field {
  const char* name;
  uint32_t offset;
  uint32_t kind;   // a letter
  uint32_t count;  // of an array; else 1
  uint32_t bytes;  // of one
  const char* type;
};
struct Struct {
  const char* name;
  uint32_t bytes;
  uint32_t field_count;
  const Field* fields;
};

template <class T>
struct TypeName {
  [[maybe_unused]] static constexpr const char* kName = "";
};
template <>
struct TypeName<oriel_layer_group> {
  [[maybe_unused]] static constexpr const char* kName = "oriel_layer_group";
};
template <>
struct TypeName<oriel_plan_choice> {
  [[maybe_unused]] static constexpr const char* kName = "oriel_plan_choice";
};
template <>
struct TypeName<oriel_tensor_type> {
  [[maybe_unused]] static constexpr const char* kName = "oriel_tensor_type";
};

template <class T>
constexpr uint32_t kindOf() {
  if (std::is_pointer_v<T>) {
    return 'p';
  }
  if (std::is_same_v<T, double>) {
    return 'd';
  }
  if (std::is_same_v<T, float>) {
    return 'f';
  }
  if (std::is_same_v<T, char>) {
    return 's';
  }
  if (std::is_enum_v<T>) {
    return 'i';
  }
  if (std::is_integral_v<T>) {
    return sizeof(T) == 8 ? (std::is_signed_v<T> ? 'l' : 'q') : std::is_signed_v<T> ? 'i' : 'u';
  }
  return 'o';
}

template <class T>
constexpr Field fieldOf(const char* name, size_t offset) {
  using One = std::remove_extent_t<T>;
  return {name,
          static_cast<uint32_t>(offset),
          kindOf<One>(),
          static_cast<uint32_t>(sizeof(T) / sizeof(One)),
          static_cast<uint32_t>(sizeof(One)),
          TypeName<One>::kName};
}

#define FIELD(type, name) fieldOf<decltype(type::name)>(#name, offsetof(type, name))

constexpr Field kOptions[] = {
#define F(name) FIELD(oriel_options, name)
    F(memory_bytes),
    F(window_tokens),
    F(sink_tokens),
    F(pinned_tokens),
    F(chunk_tokens),
    F(k_format),
    F(v_format),
    F(device),
    F(log),
    F(log_user),
    F(progress),
    F(progress_user),
    F(min_window_tokens),
    F(cpu_threads),
    F(calibration_file),
    F(activation_bits),
    F(on_file),
    F(expert_slots),
    F(checkpoints),
    F(state_format),
    F(constraints),
    F(sessions),
    F(prefix_tokens),
    F(system_prompt),
    F(system_prompt_bytes),
    F(transcript_bytes)
#undef F
};
constexpr Field kSessionOptions[] = {
#define F(name) FIELD(oriel_session_options, name)
    F(split_turns), F(chat), F(forget_evicted), F(progress), F(progress_user)
#undef F
};
constexpr Field kChatOptions[] = {
#define F(name) FIELD(oriel_chat_options, name)
    F(chat_template), F(no_thinking),     F(thinking),  F(date),           F(tools), F(tools_bytes),
    F(documents),     F(documents_bytes), F(variables), F(variables_bytes)
#undef F
};
constexpr Field kGenerateOptions[] = {
#define F(name) FIELD(oriel_generate_options, name)
    F(max_tokens),
    F(greedy),
    F(seed),
    F(temperature),
    F(top_k),
    F(top_p),
    F(min_p),
    F(repeat_penalty),
    F(ignore_stop),
    F(stop),
    F(stop_count),
    F(presence_penalty),
    F(frequency_penalty),
    F(repeat_window),
    F(min_tokens),
    F(logprobs),
    F(top_logprobs),
    F(json_schema),
    F(json_schema_bytes),
    F(grammar),
    F(grammar_bytes),
    F(trigger),
    F(tool_choice),
    F(on_part)
#undef F
};
constexpr Field kTokenEvent[] = {
#define F(name) FIELD(oriel_token_event, name)
    F(id),        F(text), F(text_bytes), F(logprob),
    F(top_count), F(top)
#undef F
};
constexpr Field kPart[] = {
#define F(name) FIELD(oriel_part, name)
    F(kind), F(call), F(text), F(text_bytes)
#undef F
};
constexpr Field kGeneration[] = {
#define F(name) FIELD(oriel_generation, name)
    F(stop_reason), F(tokens), F(prompt_tokens), F(time_to_first_token_ms), F(decode_tokens_per_s)
#undef F
};
constexpr Field kLayerGroup[] = {
#define F(name) FIELD(oriel_layer_group, name)
    F(kind), F(layers), F(window_tokens), F(ring_tokens), F(bytes_per_token),
    F(bytes)
#undef F
};
constexpr Field kPlanChoice[] = {
#define F(name) FIELD(oriel_plan_choice, name)
    F(k_format), F(v_format),    F(fits),          F(window_tokens), F(chunk_tokens),
    F(refused),  F(total_bytes), F(minimum_bytes), F(loss_nats)
#undef F
};
constexpr Field kPlan[] = {
#define F(name) FIELD(oriel_plan, name)
    F(fits),
    F(memory_bytes),
    F(total_bytes),
    F(weights_bytes),
    F(kv_bytes),
    F(activation_bytes),
    F(staging_bytes),
    F(host_bytes),
    F(minimum_bytes),
    F(kv_bytes_per_token),
    F(window_tokens),
    F(sink_tokens),
    F(ring_tokens),
    F(chunk_tokens),
    F(context_train_tokens),
    F(k_format),
    F(v_format),
    F(loss_nats),
    F(choice_count),
    F(choices),
    F(calibrated),
    F(group_count),
    F(groups),
    F(on_file_bytes),
    F(state_bytes),
    F(checkpoints),
    F(constraint_bytes),
    F(sessions),
    F(session_bytes),
    F(transcript_bytes)
#undef F
};
constexpr Field kStats[] = {
#define F(name) FIELD(oriel_stats, name)
    F(position),   F(window_used), F(window_capacity),  F(evicted), F(device_bytes),
    F(host_bytes), F(submissions), F(tokens_read_again)
#undef F
};
constexpr Field kView[] = {
#define F(name) FIELD(oriel_view, name)
    F(position), F(first_visible), F(first_stored), F(sinks_used), F(turn_count)
#undef F
};
constexpr Field kModelInfo[] = {
#define F(name) FIELD(oriel_model_info, name)
    F(architecture), F(name),     F(tokenizer),     F(chat_template), F(tensor_types), F(device),
    F(driver),       F(n_layers), F(n_heads),       F(n_kv_heads),    F(head_dim),     F(n_embd),
    F(n_ff),         F(n_vocab),  F(context_train), F(parameters),    F(file_bytes),   F(bos_id),
    F(eos_id),       F(add_bos),  F(rope_scaling),  F(group_count),   F(groups)
#undef F
};
constexpr Field kEmbedOptions[] = {
#define F(name) FIELD(oriel_embed_options, name)
    F(pooling), F(not_normalised)
#undef F
};
constexpr Field kSnapshotInfo[] = {
#define F(name) FIELD(oriel_snapshot_info, name)
    F(version),     F(readable), F(model),        F(architecture),  F(bytes),       F(position),
    F(tokens_held), F(turns),    F(messages),     F(window_tokens), F(sink_tokens), F(chunk_tokens),
    F(k_format),    F(v_format), F(chat_template)
#undef F
};
constexpr Field kRestored[] = {
#define F(name) FIELD(oriel_restored, name)
    F(how), F(rounded), F(tokens_held), F(tokens_dropped), F(tokens_read)
#undef F
};
constexpr Field kTopToken[] = {
#define F(name) FIELD(oriel_token_logprob, name)
    F(id), F(logprob)
#undef F
};

template <class T, size_t n>
constexpr Struct structOf(const char* name, const Field (&fields)[n]) {
  return {name, sizeof(T), n, fields};
}

constexpr Struct kStructs[] = {
    structOf<oriel_options>("oriel_options", kOptions),
    structOf<oriel_session_options>("oriel_session_options", kSessionOptions),
    structOf<oriel_chat_options>("oriel_chat_options", kChatOptions),
    structOf<oriel_generate_options>("oriel_generate_options", kGenerateOptions),
    structOf<oriel_token_event>("oriel_token_event", kTokenEvent),
    structOf<oriel_part>("oriel_part", kPart),
    structOf<oriel_generation>("oriel_generation", kGeneration),
    structOf<oriel_layer_group>("oriel_layer_group", kLayerGroup),
    structOf<oriel_plan_choice>("oriel_plan_choice", kPlanChoice),
    structOf<oriel_plan>("oriel_plan", kPlan),
    structOf<oriel_stats>("oriel_stats", kStats),
    structOf<oriel_view>("oriel_view", kView),
    structOf<oriel_model_info>("oriel_model_info", kModelInfo),
    structOf<oriel_embed_options>("oriel_embed_options", kEmbedOptions),
    structOf<oriel_snapshot_info>("oriel_snapshot_info", kSnapshotInfo),
    structOf<oriel_restored>("oriel_restored", kRestored),
    structOf<oriel_token_logprob>("oriel_token_logprob", kTopToken),
};

void onLog(oriel_log_level level, const char* message, void*) { oriel_host_log(level, message); }
int onProgress(uint64_t done, uint64_t total, void* user) {
  return oriel_host_progress(static_cast<double>(done), static_cast<double>(total), user);
}
int onToken(const oriel_token_event* event, void* user) { return oriel_host_token(event, user); }
int onPart(const oriel_part* part, void* user) { return oriel_host_part(part, user); }
int onLogits(size_t index, const float* logits, size_t n_vocab, void* user) {
  return oriel_host_logits(static_cast<double>(index), logits, static_cast<double>(n_vocab), user);
}

}  // namespace

extern "C" {
const Struct* web_structs() { return kStructs; }
uint32_t web_struct_count() { return sizeof(kStructs) / sizeof(kStructs[0]); }

oriel_log_fn web_on_log() { return &onLog; }
oriel_progress_fn web_on_progress() { return &onProgress; }
oriel_token_fn web_on_token() { return &onToken; }
oriel_part_fn web_on_part() { return &onPart; }
oriel_logits_fn web_on_logits() { return &onLogits; }

/// A double holds every position up to 2^53.
oriel_status web_session_rewind(oriel_session* session, double position) {
  return oriel_session_rewind(session, static_cast<uint64_t>(position));
}
oriel_status web_session_get_tokens(const oriel_session* session, double first, int32_t* ids,
                                    size_t capacity, size_t* needed) {
  return oriel_session_get_tokens(session, static_cast<uint64_t>(first), ids, capacity, needed);
}
}
