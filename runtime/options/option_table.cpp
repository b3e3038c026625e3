#include "options/settings.h"

#include <cstdint>
#include <cstring>

namespace oriel_internal {
namespace {

using Scope = OptionScope;
using Type = OptionType;
using Layer = OptionLayer;
using Store = OptionStore;

constexpr double kMostTokens = 4194304;
constexpr double kMost32 = UINT32_MAX;
constexpr double kMost64 = 18446744073709551615.0;

constexpr OptionWord kFlagWords[] = {{"true", 1}, {"false", 0}, {"1", 1}, {"0", 0}, {nullptr, 0}};
constexpr OptionWord kNoneIsMost[] = {{"0", kMost32}, {nullptr, 0}};
constexpr OptionWord kNoneIsMinus[] = {{"0", -1}, {nullptr, 0}};
constexpr OptionWord kWindowWords[] = {{"max", ORIEL_WINDOW_MAX}, {nullptr, 0}};
constexpr double formats(int keys, int values) { return keys * 256.0 + values; }
constexpr OptionWord kFormatWords[] = {{"auto", formats(ORIEL_KV_AUTO, ORIEL_KV_AUTO)},
                                       {"f16", formats(ORIEL_KV_F16, ORIEL_KV_F16)},
                                       {"k8v8", formats(ORIEL_KV_INT8, ORIEL_KV_INT8)},
                                       {"k8v4", formats(ORIEL_KV_INT8, ORIEL_KV_INT4)},
                                       {"k4v4", formats(ORIEL_KV_INT4, ORIEL_KV_INT4)},
                                       {nullptr, 0}};
constexpr OptionWord kStateWords[] = {{"auto", StateChoice::kAuto},
                                      {"f32", StateChoice::kF32},
                                      {"f16", StateChoice::kF16},
                                      {"int8", StateChoice::kInt8},
                                      {nullptr, 0}};
constexpr OptionWord kOffloadWords[] = {{"auto", Offload::kAuto},
                                        {"none", Offload::kNone},
                                        {"rows", Offload::kRows},
                                        {"all", Offload::kAll},
                                        {nullptr, 0}};
constexpr OptionWord kDeviceWords[] = {
    {"auto", DeviceKind::kAuto},       {"cpu", DeviceKind::kCpu},   {"vulkan", DeviceKind::kVulkan},
    {"vulkan:N", DeviceKind::kVulkan}, {"none", DeviceKind::kNone}, {nullptr, 0}};
constexpr OptionWord kTestWords[] = {{"auto", DeviceTest::kAuto},
                                     {"always", DeviceTest::kAlways},
                                     {"never", DeviceTest::kNever},
                                     {nullptr, 0}};
constexpr OptionWord kBitsWords[] = {{"auto", 0}, {"16", 16}, {"8", 8}, {nullptr, 0}};
constexpr OptionWord kCalibrationWords[] = {
    {"auto", kNullText}, {"none", kEmptyText}, {nullptr, 0}};
constexpr OptionWord kEvictWords[] = {{"turns", 0}, {"tokens", 1}, {nullptr, 0}};
constexpr OptionWord kThinkingWords[] = {{"auto", 0}, {"on", 1}, {"off", 2}, {nullptr, 0}};
constexpr OptionWord kDraftWords[] = {{"auto", DraftChoice::kAuto},
                                      {"always", DraftChoice::kAlways},
                                      {"never", DraftChoice::kNever},
                                      {nullptr, 0}};
constexpr OptionWord kToolWords[] = {{"free", ToolChoice::kFree},
                                     {"checked", ToolChoice::kChecked},
                                     {"required", ToolChoice::kRequired},
                                     {"none", ToolChoice::kNone},
                                     {nullptr, 0}};

#define TEXTS(name, flag, standard, help) name "\0" flag "\0" standard "\0" help
#define LOAD(field) offsetof(LoadOptions, field), 0, 0
#define LOAD_LIST(field, count, room) \
  offsetof(LoadOptions, field), offsetof(LoadOptions, count), offsetof(LoadLists, room)
#define SESSION(field) offsetof(SessionSettings, field), 0, 0
#define REPLY(field) offsetof(ReplyChoices, field), 0, 0
#define REPLY_LIST(field) offsetof(ReplyChoices, field), offsetof(ReplyChoices, field##_count), 0

}  // namespace

// clang-format off
const OptionRow kOptions[] = {
    // ---- A model ----
    {TEXTS("memory", "", "half of the free memory, on a graphics card 80 %", "Most memory for the model and its sessions together"),
     Scope::kLoad, Type::kBytes, Layer::kFront, Store::kU64, LOAD(memory_bytes), 1, kMost64, nullptr},
    {TEXTS("window", "", "as many as fit, up to 8192 and the trained context",
           "Tokens that a query sees, besides the sinks; max: the whole trained context"),
     Scope::kLoad, Type::kCount, Layer::kFront, Store::kU32, LOAD(window_tokens), 0, kMostTokens, kWindowWords},
    {TEXTS("sessions", "", "1", "Conversations that there is memory for"),
     Scope::kLoad, Type::kCount, Layer::kFront, Store::kU32, LOAD(sessions), 1, kMaxSessions, nullptr},
    {TEXTS("device", "", "auto", "Device of the model; auto: the best GPU, else the CPU"),
     Scope::kLoad, Type::kChoice, Layer::kFront, Store::kDevice, LOAD(device), 0, 0, kDeviceWords},
    {TEXTS("threads", "", "one per core, at most 8", "Threads that compute on the CPU"),
     Scope::kLoad, Type::kCount, Layer::kFront, Store::kU32, LOAD(cpu_threads), 1, kMostThreads, nullptr},
    {TEXTS("cache_folder", "-", "none", "Folder for compiled kernels and measurements"),
     Scope::kLoad, Type::kFile, Layer::kFront, Store::kText, LOAD(cache_dir), 0, 0, nullptr},
    {TEXTS("prepared_dir", "", "none",
           "Folder for weights in the kernels' order: written by the first load, mapped by later ones (CPU)"),
     Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(prepared_dir), 0, 0, nullptr},
    {TEXTS("prepared_bytes", "", "8 GiB", "Most bytes of prepared weights in that folder; the oldest go first"),
     Scope::kLoad, Type::kBytes, Layer::kAdvanced, Store::kU64, LOAD(prepared_bytes), 1, kMost64, nullptr},
    {TEXTS("system_prompt", "system", "none", "System message that every session begins with, processed once"),
     Scope::kLoad, Type::kText, Layer::kFront, Store::kSizedText, LOAD(system_prompt), 0, 0, nullptr},
    {TEXTS("min_speed", "", "0",
           "Least predicted tokens/s with a full window; needs a device whose speed is known"),
     Scope::kLoad, Type::kNumber, Layer::kAdvanced, Store::kDouble, LOAD(min_tokens_per_s), 0, 1e9, nullptr},
    {TEXTS("min_window", "", "0", "Least window; cache formats that cannot hold it are not chosen"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(min_window_tokens), 0, kMostTokens, nullptr},
    {TEXTS("sinks", "", "4", "First tokens that are never evicted"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(sink_tokens), 0, kMostTokens, kNoneIsMost},
    {TEXTS("kv", "", "auto", "Formats of the cache's keys and values, from large to small"),
     Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kFormats, LOAD(k_format), 0, 0, kFormatWords},
    {TEXTS("state", "", "auto", "Format of recurrent layers' states; auto: f32, or f16 where that pays"),
     Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kU32, LOAD(state_format), 0, 0, kStateWords},
    {TEXTS("offload", "on-file", "auto",
           "Weights that stay in the model's file: none, rows of tables, all (experts, too), or experts that do not fit"),
     Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kU32, LOAD(on_file), 0, 0, kOffloadWords},
    {TEXTS("expert_slots", "", "as many as fit after the cache",
           "Experts of each layer in memory while the others stay in the file"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(expert_slots), 0, kMost32, nullptr},
    {TEXTS("checkpoints", "", "up to 4 where they take little",
           "Earlier states that models with recurrent layers keep, to go back without reading again"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(checkpoints), 0, 32, kNoneIsMost},
    {TEXTS("speculate", "draft", "0",
           "Next tokens to guess and verify in one step; replies are the same"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(draft_tokens), 0, 15, nullptr},
    {TEXTS("draft_model", "", "none",
           "GGUF file of a Gemma 4's assistant, which guesses where the conversation gives no guess"),
     Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(draft_model), 0, 0, nullptr},
    {TEXTS("mmproj", "", "none", "GGUF file of the model's encoder of pictures"),
     Scope::kLoad, Type::kFile, Layer::kFront, Store::kText, LOAD(mmproj), 0, 0, nullptr},
    {TEXTS("image_tokens", "", "280 for Gemma 4, 1024 for Qwen",
           "Most tokens of a picture; more show more detail. LFM2-VL and SmolVLM have a fixed number"),
     Scope::kLoad, Type::kCount, Layer::kFront, Store::kU32, LOAD(image_tokens), 0, 16384, nullptr},
    {TEXTS("lora", "", "none",
           "LoRA adapter, a GGUF file; :SCALE at the end multiplies it (1). May be given several times"),
     Scope::kLoad, Type::kFiles, Layer::kFront, Store::kTexts, LOAD_LIST(lora, lora_count, lora), 0, 0, nullptr},
    {TEXTS("control_vector", "", "none",
           "Control vector, a GGUF file; :SCALE multiplies it (1). May be given several times"),
     Scope::kLoad, Type::kFiles, Layer::kAdvanced, Store::kTexts, LOAD_LIST(control_vectors, control_vector_count, control_vectors), 0, 0, nullptr},
    {TEXTS("control_layers", "", "all", "First and last layer that control vectors steer, as 10,20"),
     Scope::kLoad, Type::kList, Layer::kAdvanced, Store::kU32List, LOAD_LIST(control_layers, control_layer_count, control_layers), 0, kMaxLayers, nullptr},
    {TEXTS("retrieval", "recall", "0",
           "Limit of a session's file of evicted turns, which messages can recall"),
     Scope::kLoad, Type::kBytes, Layer::kAdvanced, Store::kU64, LOAD(recall_bytes), 0, kMost64, nullptr},
    {TEXTS("retrieval_tokens", "recall-tokens", "128, or an eighth of a short context",
           "Retrieved tokens that are seen at a time"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(recall_tokens), 0, 1024, nullptr},
    {TEXTS("retrieval_folder", "recall-folder", "the cache folder", "Folder of that file"),
     Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(recall_dir), 0, 0, nullptr},
    {TEXTS("calibration", "", "auto",
           "File of oriel calibrate; auto: the one next to the model; none: published priors"),
     Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(calibration_file), 0, 0, kCalibrationWords},
    {TEXTS("prefill_batch", "", "chosen", "Prompt tokens that are processed together"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(chunk_tokens), 0, kMaxChunk, nullptr},
    {TEXTS("transcript", "", "32KiB", "Memory for the text of a session's messages"),
     Scope::kLoad, Type::kBytes, Layer::kAdvanced, Store::kU32, LOAD(transcript_bytes), 4096, 1073741824, nullptr},
    {TEXTS("constraints", "", "false", "Memory for replies that are held to a schema, a grammar or tools"),
     Scope::kLoad, Type::kFlag, Layer::kAdvanced, Store::kU32, LOAD(constraints), 0, 1, kFlagWords},
    {TEXTS("session_windows", "", "all alike", "Windows of the first sessions; 0: as the others"),
     Scope::kLoad, Type::kList, Layer::kAdvanced, Store::kU32List, LOAD_LIST(session_windows, session_window_count, session_windows), 0, kMostTokens, nullptr},
    {TEXTS("prefix_tokens", "", "0", "Room for a prefix that all sessions share"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(prefix_tokens), 0, kMostTokens, nullptr},
    {TEXTS("prefix_file", "", "none", "Snapshot, or trained keys and values, that every session begins with"),
     Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(prefix_file), 0, 0, nullptr},
    {TEXTS("activation_bits", "activations", "auto",
           "Bits of activations on the CPU; auto: 8 for weights below 6 bits with AVX-512 VNNI, else 16"),
     Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kU32, LOAD(activation_bits), 0, 0, kBitsWords},
    {TEXTS("device_timeout_ms", "", "60000", "Longest wait for a Vulkan device, in milliseconds"),
     Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(device_timeout_ms), 0, kMost32, nullptr},
    {TEXTS("device_test", "", "auto", "When the kernels of a Vulkan device are tested; auto: once for each driver"),
     Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kU32, LOAD(device_test), 0, 0, kTestWords},
    {TEXTS("enable_features", "enable-feature", "none",
           "Features of a Vulkan device to use though they are known to be faulty there"),
     Scope::kLoad, Type::kText, Layer::kLaboratory, Store::kText, LOAD(enabled_features), 0, 0, nullptr},
    {TEXTS("disable_features", "", "none", "Optional Vulkan features not to use"),
     Scope::kLoad, Type::kText, Layer::kLaboratory, Store::kText, LOAD(disabled_features), 0, 0, nullptr},
    {TEXTS("window_shares", "", "all of it", "256ths of the window that each layer sees; 0: all of it"),
     Scope::kLoad, Type::kList, Layer::kLaboratory, Store::kByteList, LOAD_LIST(window_shares, window_share_count, window_shares), 0, 255, nullptr},
    {TEXTS("f16_layers", "", "none", "1 for each layer whose cache stays in f16, 0 for the others"),
     Scope::kLoad, Type::kList, Layer::kLaboratory, Store::kByteList, LOAD_LIST(f16_layers, f16_layer_count, f16_layers), 0, 1, nullptr},

    // ---- A session ----
    {TEXTS("template", "", "the model's own", "Name of a chat format, or the text of a Jinja template"),
     Scope::kSession, Type::kText, Layer::kFront, Store::kText, SESSION(chat.chat_template), 0, 0, nullptr},
    {TEXTS("thinking", "-", "auto", "Let a thinking model think first; auto: the template decides"),
     Scope::kSession, Type::kChoice, Layer::kFront, Store::kThinking, SESSION(chat.thinking), 0, 0, kThinkingWords},
    {TEXTS("tools", "", "none", "JSON list of tools that the model may call, in the OpenAI form"),
     Scope::kSession, Type::kText, Layer::kFront, Store::kSizedText, SESSION(chat.tools), 0, 0, nullptr},
    {TEXTS("documents", "", "none", "JSON list of documents to answer from, as the template wants them"),
     Scope::kSession, Type::kText, Layer::kAdvanced, Store::kSizedText, SESSION(chat.documents), 0, 0, nullptr},
    {TEXTS("template_variables", "", "none", "JSON object with more variables of the template"),
     Scope::kSession, Type::kText, Layer::kAdvanced, Store::kSizedText, SESSION(chat.variables), 0, 0, nullptr},
    {TEXTS("date", "", "20240726", "Date for templates that tell one: year * 10000 + month * 100 + day"),
     Scope::kSession, Type::kCount, Layer::kAdvanced, Store::kU32, SESSION(chat.date), 0, 99991231, nullptr},
    {TEXTS("adapters", "-", "all loaded adapters",
           "Adapters of the session by name or number from 0, as style,sql:0.5; none: without them"),
     Scope::kSession, Type::kText, Layer::kFront, Store::kText, SESSION(adapters), 0, 0, nullptr},
    {TEXTS("evict", "", "turns", "Unit of eviction from a full window: a turn, or a token"),
     Scope::kSession, Type::kChoice, Layer::kAdvanced, Store::kU32, SESSION(split_turns), 0, 0, kEvictWords},
    {TEXTS("forget", "", "false", "Models with recurrent layers reply from the window alone"),
     Scope::kSession, Type::kFlag, Layer::kAdvanced, Store::kU32, SESSION(forget_evicted), 0, 1, kFlagWords},
    {TEXTS("follow_template", "-", "false",
           "Reads a reply again as the template writes it once the next message comes, without thoughts"),
     Scope::kSession, Type::kFlag, Layer::kAdvanced, Store::kU32, SESSION(follow_template), 0, 1, kFlagWords},
    {TEXTS("session_window", "-", "the longest",
           "Takes the free session with the shortest window of at least N tokens"),
     Scope::kSession, Type::kCount, Layer::kAdvanced, Store::kU32, SESSION(window_tokens), 0, kMostTokens, nullptr},

    {TEXTS("max_tokens_per_s", "", "0", "Most tokens that replies write in a second, to keep a phone cool; 0: no limit"),
     Scope::kSession, Type::kNumber, Layer::kAdvanced, Store::kDouble, SESSION(max_tokens_per_s), 0, 1e9, nullptr},
    {TEXTS("duty", "", "1", "Share of the time in which the device may work, in prompts and replies"),
     Scope::kSession, Type::kNumber, Layer::kAdvanced, Store::kDouble, SESSION(duty), 0.01, 1, nullptr},
    {TEXTS("assumed_tokens", "", "0", "Begins after N tokens of zeros, to measure speed at a depth"),
     Scope::kSession, Type::kCount, Layer::kLaboratory, Store::kU64, SESSION(assumed_tokens), 0, 4611686018427387904.0, nullptr},
    {TEXTS("first_position", "", "0", "Rotary position of the first token"),
     Scope::kSession, Type::kCount, Layer::kTests, Store::kU64, SESSION(first_position), 0, 4611686018427387904.0, nullptr},

    // ---- A reply ----
    {TEXTS("max_tokens", "tokens", "until a stop token", "Most tokens of the reply; 0: until a stop token"),
     Scope::kReply, Type::kCount, Layer::kFront, Store::kU32, REPLY(max_tokens), 0, kMost32, nullptr},
    {TEXTS("max_thought_tokens", "", "no limit",
           "Most tokens of thoughts; then Oriel ends the thought and the answer begins. 0: no thought"),
     Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(max_thought_tokens), 0, kMostTokens, kNoneIsMost},
    {TEXTS("temperature", "", "0.7", "Spread of the choice of a token; 0: always the most likely one"),
     Scope::kReply, Type::kNumber, Layer::kFront, Store::kTemperature, REPLY(temperature), 0, 100, nullptr},
    {TEXTS("seed", "", "0", "The same number gives the same text; 0: another each time"),
     Scope::kReply, Type::kCount, Layer::kFront, Store::kU64, REPLY(seed), 0, kMost64, nullptr},
    {TEXTS("schema", "", "none", "JSON schema that the reply is valid by"),
     Scope::kReply, Type::kText, Layer::kFront, Store::kSizedText, REPLY(json_schema), 0, 0, nullptr},
    {TEXTS("grammar", "", "none", "GBNF grammar that the reply is a text of"),
     Scope::kReply, Type::kText, Layer::kFront, Store::kSizedText, REPLY(grammar), 0, 0, nullptr},
    {TEXTS("tool_choice", "", "free",
           "How the reply may call tools: as it likes, with valid arguments, it must, or not at all"),
     Scope::kReply, Type::kChoice, Layer::kFront, Store::kU32, REPLY(tool_choice), 0, 0, kToolWords},
    {TEXTS("greedy", "", "false", "Always the most likely token"),
     Scope::kReply, Type::kFlag, Layer::kFront, Store::kU32, REPLY(greedy), 0, 1, kFlagWords},
    {TEXTS("top_k", "", "40", "Choose among the K most likely tokens; 0: all"),
     Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(top_k), 0, kMost32, kNoneIsMost},
    {TEXTS("top_p", "", "0.95", "Choose among the most likely tokens with probability P together; 1: all"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(top_p), 0.0001, 1, nullptr},
    {TEXTS("min_p", "", "0.05", "Leave out tokens less than P times as likely as the most likely; 0: none"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(min_p), 0, 1, kNoneIsMinus},
    {TEXTS("repeat_penalty", "", "1", "Above 1 the last tokens are less likely; 1: off"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(repeat_penalty), 0.01, 100, nullptr},
    {TEXTS("presence_penalty", "", "0", "Taken from the logit of each of the last tokens"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(presence_penalty), -10, 10, nullptr},
    {TEXTS("frequency_penalty", "", "0", "Taken from it for each time that the token occurs"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(frequency_penalty), -10, 10, nullptr},
    {TEXTS("repeat_window", "", "64", "Tokens that the three penalties look back"),
     Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(repeat_window), 1, 256, nullptr},
    {TEXTS("typical_p", "", "1", "Choose among the tokens of the most usual surprise with probability P together; 1: all"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(typical_p), 0.0001, 1, nullptr},
    {TEXTS("top_n_sigma", "", "0", "Leave out logits more than N standard deviations below the best; 0: none"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(top_n_sigma), 0, 100, nullptr},
    {TEXTS("xtc_probability", "", "0", "How often XTC leaves out the most likely tokens; 0: never"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(xtc_probability), 0, 1, nullptr},
    {TEXTS("xtc_threshold", "", "0.1", "Probability of the tokens that XTC leaves out, but the last of them; above 0.5: none"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(xtc_threshold), 0.0001, 1, nullptr},
    {TEXTS("dry_multiplier", "", "0", "Strength of the DRY penalty of tokens that repeat a sequence; 0: off"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(dry_multiplier), 0, 100, nullptr},
    {TEXTS("dry_base", "", "1.75", "Factor of the DRY penalty for each further token of the sequence"),
     Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(dry_base), 1, 10, nullptr},
    {TEXTS("dry_allowed_length", "", "2", "Shorter sequences may be repeated"),
     Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(dry_allowed_length), 1, 256, nullptr},
    {TEXTS("dry_window", "", "256", "Tokens in which DRY looks for the sequence"),
     Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(dry_window), 1, 256, nullptr},
    {TEXTS("dry_breakers", "dry-breaker", "line end, colon, quote and asterisk",
           "Texts of 1 to 32 bytes with which sequences of DRY end; give the name once for each"),
     Scope::kReply, Type::kList, Layer::kAdvanced, Store::kTextList, REPLY_LIST(dry_breakers), 1, 32, nullptr},
    {TEXTS("min_tokens", "", "0", "Least tokens of the reply"),
     Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(min_tokens), 0, kMost32, nullptr},
    {TEXTS("ignore_stop", "", "false", "Generate stop tokens like any other"),
     Scope::kReply, Type::kFlag, Layer::kAdvanced, Store::kU32, REPLY(ignore_stop), 0, 1, kFlagWords},
    {TEXTS("stop", "", "none",
           "Texts of 1 to 256 bytes that end the reply and are not shown; give the name once for each"),
     Scope::kReply, Type::kList, Layer::kFront, Store::kTextList, REPLY_LIST(stop), 1, 256, nullptr},
    {TEXTS("logit_bias", "", "none", "ID:VALUE, added to a token's logit; -inf: never"),
     Scope::kReply, Type::kList, Layer::kAdvanced, Store::kBiasList, REPLY_LIST(logit_bias), 0, kMost32, nullptr},
    {TEXTS("strict_schema", "", "false", "Refuse schemas with unknown keywords and formats instead of ignoring these"),
     Scope::kReply, Type::kFlag, Layer::kAdvanced, Store::kU32, REPLY(strict_schema), 0, 1, kFlagWords},
    {TEXTS("open_objects", "", "false", "Objects without additionalProperties take further properties"),
     Scope::kReply, Type::kFlag, Layer::kAdvanced, Store::kU32, REPLY(open_objects), 0, 1, kFlagWords},
    {TEXTS("value_parts", "-", "false", "Also report the values of a JSON answer as they grow, each with its path"),
     Scope::kReply, Type::kFlag, Layer::kAdvanced, Store::kU32, REPLY(value_parts), 0, 1, kFlagWords},
    {TEXTS("trigger", "-", "none", "The schema or grammar holds only after this text"),
     Scope::kReply, Type::kText, Layer::kAdvanced, Store::kText, REPLY(trigger), 0, 0, nullptr},
    {TEXTS("top_logprobs", "logprobs", "0", "Most likely tokens whose log-probabilities events carry"),
     Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kLogprobs, REPLY(top_logprobs), 0, 20, nullptr},
    {TEXTS("draft", "-", "auto", "When guesses are verified; auto: if that is faster"),
     Scope::kReply, Type::kChoice, Layer::kLaboratory, Store::kU32, REPLY(draft), 0, 0, kDraftWords},
};
// clang-format on
const size_t kOptionCount = sizeof(kOptions) / sizeof(kOptions[0]);

const char* OptionRow::text(uint32_t number) const {
  const char* at = texts;
  for (; number != 0; --number) {
    at += std::strlen(at) + 1;
  }
  return at;
}

const char* scopeName(OptionScope scope) {
  return scope == OptionScope::kLoad      ? "load"
         : scope == OptionScope::kSession ? "session"
                                          : "reply";
}

const char* typeName(OptionType type) {
  static const char* const kNames[] = {"bytes", "count", "number", "choice", "flag",
                                       "text",  "list",  "file",   "files"};
  return kNames[static_cast<size_t>(type)];
}

const char* layerName(OptionLayer layer) {
  static const char* const kNames[] = {"front", "advanced", "laboratory"};
  return kNames[static_cast<size_t>(layer)];
}

}  // namespace oriel_internal
