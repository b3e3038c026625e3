#include "options/option_table.h"

#include <cstdint>

#include "options/settings.h"

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
constexpr OptionWord kFormatWords[] = {
    {"auto", formats(ORIEL_KV_AUTO, ORIEL_KV_AUTO)},
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
constexpr OptionWord kDeviceWords[] = {{"auto", DeviceKind::kAuto},
                                       {"cpu", DeviceKind::kCpu},
                                       {"vulkan", DeviceKind::kVulkan},
                                       {"vulkan:N", DeviceKind::kVulkan},
                                       {"none", DeviceKind::kNone},
                                       {nullptr, 0}};
constexpr OptionWord kTestWords[] = {{"auto", DeviceTest::kAuto},
                                     {"always", DeviceTest::kAlways},
                                     {"never", DeviceTest::kNever},
                                     {nullptr, 0}};
constexpr OptionWord kBitsWords[] = {{"16", 16}, {"8", 8}, {nullptr, 0}};
constexpr OptionWord kCalibrationWords[] = {{"auto", kNullText}, {"none", kEmptyText}, {nullptr, 0}};
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
    {"memory", nullptr, Scope::kLoad, Type::kBytes, Layer::kFront, Store::kU64, LOAD(memory_bytes),
     "half of what is free", 1, kMost64, nullptr,
     "Most memory for the model and its sessions together"},
    {"window", nullptr, Scope::kLoad, Type::kCount, Layer::kFront, Store::kU32, LOAD(window_tokens),
     "as many as fit, up to 8192 and the trained context", 0, kMostTokens, kWindowWords,
     "Tokens that a query sees, besides the sinks; max: the whole trained context"},
    {"sessions", nullptr, Scope::kLoad, Type::kCount, Layer::kFront, Store::kU32, LOAD(sessions),
     "1", 1, kMaxSessions, nullptr, "Conversations that there is memory for"},
    {"device", nullptr, Scope::kLoad, Type::kChoice, Layer::kFront, Store::kDevice, LOAD(device),
     "auto", 0, 0, kDeviceWords, "Where the model runs; auto: the best GPU, else the CPU"},
    {"threads", nullptr, Scope::kLoad, Type::kCount, Layer::kFront, Store::kU32, LOAD(cpu_threads),
     "one per core, at most 8", 0, 1024, nullptr, "Threads that compute on the CPU"},
    {"cache_folder", nullptr, Scope::kLoad, Type::kFile, Layer::kFront, Store::kText, LOAD(cache_dir),
     "none", 0, 0, nullptr, "Folder for compiled kernels and measurements"},
    {"system_prompt", "system", Scope::kLoad, Type::kText, Layer::kFront, Store::kSizedText, LOAD(system_prompt),
     "none", 0, 0, nullptr, "System message that every session begins with, processed once"},
    {"min_speed", nullptr, Scope::kLoad, Type::kNumber, Layer::kAdvanced, Store::kDouble, LOAD(min_tokens_per_s),
     "0", 0, 1e9, nullptr, "Least predicted tokens/s with a full window; needs a device whose speed is known"},
    {"min_window", nullptr, Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(min_window_tokens),
     "0", 0, kMostTokens, nullptr, "Least window; cache formats that cannot hold it are not chosen"},
    {"sinks", nullptr, Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(sink_tokens),
     "4", 0, kMostTokens, kNoneIsMost, "First tokens that are never evicted"},
    {"kv", nullptr, Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kFormats, LOAD(k_format),
     "auto", 0, 0, kFormatWords, "Formats of the cache's keys and values, from large to small"},
    {"state", nullptr, Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kU32, LOAD(state_format),
     "auto", 0, 0, kStateWords, "Format of recurrent layers' states; auto: f32, or f16 where that pays"},
    {"offload", "on-file", Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kU32, LOAD(on_file),
     "auto", 0, 0, kOffloadWords,
     "Weights that stay in the model's file: none, rows of tables, all (experts, too), or experts that do not fit"},
    {"expert_slots", nullptr, Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(expert_slots),
     "as many as fit after the cache", 0, kMost32, nullptr,
     "Experts of each layer in memory while the others stay in the file"},
    {"checkpoints", nullptr, Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(checkpoints),
     "up to 4 where they take little", 0, 32, kNoneIsMost,
     "Earlier states that models with recurrent layers keep, to go back without reading again"},
    {"speculate", "draft", Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(draft_tokens),
     "0", 0, 15, nullptr,
     "Next tokens to guess from the conversation and verify in one step; replies are the same"},
    {"draft_model", nullptr, Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(draft_model),
     "none", 0, 0, nullptr, "GGUF file of a Gemma 4's assistant, which guesses where the conversation gives no guess"},
    {"retrieval", "recall", Scope::kLoad, Type::kBytes, Layer::kAdvanced, Store::kU64, LOAD(recall_bytes),
     "0", 0, kMost64, nullptr,
     "Largest file that keeps evicted turns of a session, to bring back those that a message asks for"},
    {"retrieval_tokens", "recall-tokens", Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(recall_tokens),
     "128, or an eighth of a short context", 0, 1024, nullptr, "Retrieved tokens that are seen at a time"},
    {"retrieval_folder", nullptr, Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(recall_dir),
     "the cache folder", 0, 0, nullptr, "Folder of that file"},
    {"calibration", nullptr, Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(calibration_file),
     "auto", 0, 0, kCalibrationWords, "File of oriel calibrate; auto: the one next to the model; none: published priors"},
    {"prefill_batch", nullptr, Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(chunk_tokens),
     "chosen", 0, kMaxChunk, nullptr, "Prompt tokens that are processed together"},
    {"transcript", nullptr, Scope::kLoad, Type::kBytes, Layer::kAdvanced, Store::kU32, LOAD(transcript_bytes),
     "0", 0, 1073741824, nullptr, "Memory for the text of a session's messages"},
    {"constraints", nullptr, Scope::kLoad, Type::kFlag, Layer::kAdvanced, Store::kU32, LOAD(constraints),
     "false", 0, 1, kFlagWords, "Memory for replies that are held to a schema, a grammar or tools"},
    {"session_windows", nullptr, Scope::kLoad, Type::kList, Layer::kAdvanced, Store::kU32List,
     LOAD_LIST(session_windows, session_window_count, session_windows),
     "all alike", 0, kMostTokens, nullptr, "Windows of the first sessions; 0: as the others"},
    {"prefix_tokens", nullptr, Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(prefix_tokens),
     "0", 0, kMostTokens, nullptr, "Room for a prefix that all sessions share"},
    {"prefix_file", nullptr, Scope::kLoad, Type::kFile, Layer::kAdvanced, Store::kText, LOAD(prefix_file),
     "none", 0, 0, nullptr, "Snapshot, or trained keys and values, that every session begins with"},
    {"activation_bits", "activations", Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kU32, LOAD(activation_bits),
     "16", 0, 0, kBitsWords, "Bits of activations on the CPU; 8: faster prompts, less exact"},
    {"device_timeout_ms", nullptr, Scope::kLoad, Type::kCount, Layer::kAdvanced, Store::kU32, LOAD(device_timeout_ms),
     "60000", 0, kMost32, nullptr, "Longest wait for a Vulkan device, in milliseconds"},
    {"device_test", nullptr, Scope::kLoad, Type::kChoice, Layer::kAdvanced, Store::kU32, LOAD(device_test),
     "auto", 0, 0, kTestWords, "When the kernels of a Vulkan device are tested; auto: once for each driver"},
    {"enable_features", "enable-feature", Scope::kLoad, Type::kText, Layer::kLaboratory, Store::kText, LOAD(enabled_features),
     "none", 0, 0, nullptr, "Features of a Vulkan device to use though they are known to be faulty there"},
    {"disable_features", nullptr, Scope::kLoad, Type::kText, Layer::kLaboratory, Store::kText, LOAD(disabled_features),
     "none", 0, 0, nullptr, "Optional Vulkan features not to use"},
    {"window_shares", nullptr, Scope::kLoad, Type::kList, Layer::kLaboratory, Store::kByteList,
     LOAD_LIST(window_shares, window_share_count, window_shares),
     "all of it", 0, 255, nullptr, "256ths of the window that each layer sees; 0: all of it"},
    {"f16_layers", nullptr, Scope::kLoad, Type::kList, Layer::kLaboratory, Store::kByteList,
     LOAD_LIST(f16_layers, f16_layer_count, f16_layers),
     "none", 0, 1, nullptr, "1 for each layer whose cache stays in f16, 0 for the others"},

    // ---- A session ----
    {"template", nullptr, Scope::kSession, Type::kText, Layer::kFront, Store::kText, SESSION(chat.chat_template),
     "the model's own", 0, 0, nullptr, "Name of a chat format, or the text of a Jinja template"},
    {"thinking", nullptr, Scope::kSession, Type::kChoice, Layer::kFront, Store::kThinking, SESSION(chat.thinking),
     "auto", 0, 0, kThinkingWords, "Whether a model that can think first is told to; auto: the template decides"},
    {"tools", nullptr, Scope::kSession, Type::kText, Layer::kFront, Store::kSizedText, SESSION(chat.tools),
     "none", 0, 0, nullptr, "JSON list of tools that the model may call, in the OpenAI form"},
    {"documents", nullptr, Scope::kSession, Type::kText, Layer::kAdvanced, Store::kSizedText, SESSION(chat.documents),
     "none", 0, 0, nullptr, "JSON list of documents to answer from, as the template wants them"},
    {"template_variables", nullptr, Scope::kSession, Type::kText, Layer::kAdvanced, Store::kSizedText, SESSION(chat.variables),
     "none", 0, 0, nullptr, "JSON object with more variables of the template"},
    {"date", nullptr, Scope::kSession, Type::kCount, Layer::kAdvanced, Store::kU32, SESSION(chat.date),
     "20240726", 0, 99991231, nullptr, "Date for templates that tell one: year * 10000 + month * 100 + day"},
    {"evict", nullptr, Scope::kSession, Type::kChoice, Layer::kAdvanced, Store::kU32, SESSION(split_turns),
     "turns", 0, 0, kEvictWords, "What a full window evicts at once: a turn, or a token"},
    {"forget", nullptr, Scope::kSession, Type::kFlag, Layer::kAdvanced, Store::kU32, SESSION(forget_evicted),
     "false", 0, 1, kFlagWords, "Models with recurrent layers reply from what is in the window alone"},
    {"session_window", nullptr, Scope::kSession, Type::kCount, Layer::kAdvanced, Store::kU32, SESSION(window_tokens),
     "the longest", 0, kMostTokens, nullptr, "Takes the free session with the shortest window of at least N tokens"},

    {"assumed_tokens", nullptr, Scope::kSession, Type::kCount, Layer::kLaboratory, Store::kU64, SESSION(assumed_tokens),
     "0", 0, 4611686018427387904.0, nullptr, "Begins after N tokens of zeros, to measure speed at a depth"},
    {"first_position", nullptr, Scope::kSession, Type::kCount, Layer::kTests, Store::kU64, SESSION(first_position),
     "0", 0, 4611686018427387904.0, nullptr, "Rotary position of the first token"},

    // ---- A reply ----
    {"max_tokens", "tokens", Scope::kReply, Type::kCount, Layer::kFront, Store::kU32, REPLY(max_tokens),
     "until a stop token", 0, kMost32, nullptr, "Most tokens of the reply; 0: until a stop token"},
    {"temperature", nullptr, Scope::kReply, Type::kNumber, Layer::kFront, Store::kTemperature, REPLY(temperature),
     "0.7", 0, 100, nullptr, "Spread of the choice of a token; 0: always the most likely one"},
    {"seed", nullptr, Scope::kReply, Type::kCount, Layer::kFront, Store::kU64, REPLY(seed),
     "0", 0, kMost64, nullptr, "The same number gives the same text; 0: another each time"},
    {"schema", nullptr, Scope::kReply, Type::kText, Layer::kFront, Store::kSizedText, REPLY(json_schema),
     "none", 0, 0, nullptr, "JSON schema that the reply is valid by"},
    {"grammar", nullptr, Scope::kReply, Type::kText, Layer::kFront, Store::kSizedText, REPLY(grammar),
     "none", 0, 0, nullptr, "GBNF grammar that the reply is a text of"},
    {"tool_choice", nullptr, Scope::kReply, Type::kChoice, Layer::kFront, Store::kU32, REPLY(tool_choice),
     "free", 0, 0, kToolWords, "How the reply may call tools: as it likes, with valid arguments, it must, or not at all"},
    {"greedy", nullptr, Scope::kReply, Type::kFlag, Layer::kFront, Store::kU32, REPLY(greedy),
     "false", 0, 1, kFlagWords, "Always the most likely token"},
    {"top_k", nullptr, Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(top_k),
     "40", 0, kMost32, kNoneIsMost, "Choose among the K most likely tokens; 0: all"},
    {"top_p", nullptr, Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(top_p),
     "0.95", 0.0001, 1, nullptr, "Choose among the most likely tokens with probability P together; 1: all"},
    {"min_p", nullptr, Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(min_p),
     "0.05", 0, 1, kNoneIsMinus, "Leave out tokens less than P times as likely as the most likely; 0: none"},
    {"repeat_penalty", nullptr, Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(repeat_penalty),
     "1", 0.01, 100, nullptr, "Above 1 the last tokens are less likely; 1: off"},
    {"presence_penalty", nullptr, Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(presence_penalty),
     "0", -10, 10, nullptr, "Taken from the logit of each of the last tokens"},
    {"frequency_penalty", nullptr, Scope::kReply, Type::kNumber, Layer::kAdvanced, Store::kFloat, REPLY(frequency_penalty),
     "0", -10, 10, nullptr, "Taken from it for each time that the token occurs"},
    {"repeat_window", nullptr, Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(repeat_window),
     "64", 1, 256, nullptr, "Tokens that the three penalties look back"},
    {"min_tokens", nullptr, Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kU32, REPLY(min_tokens),
     "0", 0, kMost32, nullptr, "Least tokens of the reply"},
    {"ignore_stop", nullptr, Scope::kReply, Type::kFlag, Layer::kAdvanced, Store::kU32, REPLY(ignore_stop),
     "false", 0, 1, kFlagWords, "Generate stop tokens like any other"},
    {"stop", nullptr, Scope::kReply, Type::kList, Layer::kFront, Store::kTextList, REPLY_LIST(stop),
     "none", 1, 256, nullptr, "Texts of 1 to 256 bytes that end the reply and are not shown; give the name once for each"},
    {"logit_bias", nullptr, Scope::kReply, Type::kList, Layer::kAdvanced, Store::kBiasList, REPLY_LIST(logit_bias),
     "none", 0, kMost32, nullptr, "ID:VALUE, added to a token's logit; -inf: never"},
    {"trigger", nullptr, Scope::kReply, Type::kText, Layer::kAdvanced, Store::kText, REPLY(trigger),
     "none", 0, 0, nullptr, "The schema or grammar holds only after this text"},
    {"top_logprobs", "logprobs", Scope::kReply, Type::kCount, Layer::kAdvanced, Store::kLogprobs, REPLY(top_logprobs),
     "0", 0, 20, nullptr, "Most likely tokens whose log-probabilities events carry"},
    {"draft", nullptr, Scope::kReply, Type::kChoice, Layer::kLaboratory, Store::kU32, REPLY(draft),
     "auto", 0, 0, kDraftWords, "When guesses are verified; auto: where that is faster"},
};
// clang-format on
const size_t kOptionCount = sizeof(kOptions) / sizeof(kOptions[0]);

const char* scopeName(OptionScope scope) {
  return scope == OptionScope::kLoad ? "load" : scope == OptionScope::kSession ? "session" : "reply";
}

const char* typeName(OptionType type) {
  static const char* const kNames[] = {"bytes", "count", "number", "choice",
                                       "flag",  "text",  "list",   "file"};
  return kNames[static_cast<size_t>(type)];
}

const char* layerName(OptionLayer layer) {
  static const char* const kNames[] = {"front", "advanced", "laboratory"};
  return kNames[static_cast<size_t>(layer)];
}

}  // namespace oriel_internal
