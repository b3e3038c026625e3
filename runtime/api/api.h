// What stands behind the opaque handles of oriel.h, and how its option structs are read.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>
#include <type_traits>

#include "api/adapters.h"
#include "api/device_wish.h"
#include "api/on_file.h"
#include "api/session_texts.h"
#include "api/struct_fields.h"
#include "api/trim.h"
#include "base/descriptions.h"
#include "base/workspace.h"
#include "budget/budget.h"
#include "budget/calibration_file.h"
#include "budget/speed.h"
#include "chat/chat_template.h"
#include "chat/template_run.h"
#include "exec/guard.h"
#include "exec/no_executor.h"
#include "exec/session.h"
#include "gguf/model_file.h"
#include "options/settings.h"
#include "oriel/advanced.h"
#include "os/os.h"
#include "reply/forms.h"
#include "text/tokenizer.h"

struct oriel_model;

namespace oriel_internal {

/// A struct of the C API, which begins with its struct_size: where its fields end.
struct StructShape {
  const uint16_t* ends;
  uint32_t n;
  uint32_t bytes;
};
template <typename T>
constexpr StructShape shapeOf() {
  return {FieldEnds<T>::list, std::size(FieldEnds<T>::list), sizeof(T)};
}

/// It is a size, and ends between two fields: that of this library's struct, of an earlier or of a later one. No struct is
/// or will be longer than 64 KiB, and a number of another meaning is mostly longer still.
bool validSize(size_t struct_size, StructShape shape);
/// Copies a caller's struct over zeros: whole fields. An app newer than this library may have set fields that are not
/// known here: false if one of those is not zero, if struct_size was forgotten, or if it ends inside a field.
bool readStruct(const void* given, StructShape shape, void* out);
/// Copies a result to a caller's struct, as much of it as the caller knows.
void writeStruct(const void* result, StructShape shape, void* out);

template <typename T>
bool readOptions(const T* given, T* options) {
  static_assert(std::is_trivially_copyable<T>::value, "a C struct");
  return readStruct(given, shapeOf<T>(), options);
}

/// The number in an enum field that an app filled: it may be none of the enum's, and reading it as the enum
/// would then be undefined.
template <typename T>
int rawEnum(const T& field) {
  static_assert(sizeof(T) == sizeof(int), "C enums are ints");
  int value;
  std::memcpy(&value, &field, sizeof(value));
  return value;
}

inline bool validTextFlags(uint32_t flags) {
  return (flags & ~(ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS)) == 0;
}
inline bool validBackFlags(uint32_t flags) { return (flags & ~ORIEL_READ_AGAIN) == 0; }

oriel_kv_format publicFormat(KvFormat format);
/// False for a number that names no format; AUTO is none.
bool readFormat(int wanted, KvFormat* format);

template <typename T>
void writeResult(const T& result, T* out) {
  writeStruct(&result, shapeOf<T>(), out);
}

template <typename T>
bool validResult(const T* out) {
  return out != nullptr && validSize(out->struct_size, shapeOf<T>());
}

/// Says why a struct's size or its unknown fields were refused. `type` is its name.
Status refuseStruct(const char* type, size_t struct_size, StructShape shape, const Log& log);

/// readOptions() with a reason.
template <typename T>
Status takeOptions(const T* given, const char* type, const Log& log, T* options) {
  return readOptions(given, options) ? kOk
                                     : refuseStruct(type, given->struct_size, shapeOf<T>(), log);
}

/// validResult() with a reason; null is refused without.
template <typename T>
Status checkResult(const T* out, const char* type, const Log& log) {
  return out == nullptr     ? Status(ORIEL_ERROR_ARGUMENT)
         : validResult(out) ? kOk
                            : refuseStruct(type, out->struct_size, shapeOf<T>(), log);
}

/// What a call was given: front fields and settings. `lists` holds what the options point to.
struct CallOptions : LoadOptions {
  LoadLists lists;
};
/// Makes error_line "". Null: all defaults. ORIEL_ERROR_ARGUMENT with a line.
Status takeModelOptions(const oriel_options* given, CallOptions* options);
Status takeSessionOptions(const oriel_session_options* given, const Log& log,
                          SessionSettings* settings);

/// The call's: it fills error_line, too, and must not be kept longer than `options`.
Log logOf(const LoadOptions& options);
inline bool wantsLine(const LoadOptions& options) {
  return options.error_line != nullptr && options.error_line_bytes != 0;
}

/// Null: there is none. A name that is empty would be the root's folder, with what comes behind it.
inline const char* folderOrNone(const char* folder) {
  return folder != nullptr && folder[0] != '\0' ? folder : nullptr;
}

inline const oriel_allocator& allocatorOf(const LoadOptions& options) {
  return options.allocator != nullptr ? *options.allocator : defaultAllocator();
}

/// Cuts at the last byte that fits; always NUL-terminated.
template <size_t N>
void copyText(const char* text, size_t bytes, char (&out)[N]) {
  const size_t n = std::min(bytes, N - 1);
  std::memcpy(out, text, n);
  out[n] = '\0';
}

inline GroupKind publicKind(ViewKind kind) {
  switch (kind) {
    case ViewKind::kSession:
      return GroupKind::kSession;
    case ViewKind::kSliding:
      return GroupKind::kSliding;
    case ViewKind::kColumns:
      return GroupKind::kConvolution;
    case ViewKind::kState:
      return GroupKind::kState;
  }
  return GroupKind::kSession;
}

/// Kinds, layers and windows; a description of no model has no groups.
template <typename Info>
void describeGroups(const ModelDesc& desc, Info* info) {
  static_assert(kMostGroups == kMaxViews, "a group for each view");
  info->group_count = desc.n_kinds != 0 ? desc.n_views : 0;
  for (uint32_t i = 0; i < info->group_count; ++i) {
    info->groups[i].kind = publicKind(desc.views[i].kind);
    info->groups[i].window_tokens = desc.views[i].window;
  }
  for (uint32_t layer = 0; layer < desc.n_layers && desc.n_kinds != 0; ++layer) {
    ++info->groups[desc.kind(layer).view].layers;
    if (desc.kind(layer).mixer == Mixer::kParallel) {
      ++info->groups[desc.kind(layer).state_view].layers;
    }
  }
}

/// What positions mean to a model, for ModelInfo and FileInfo.
template <typename Info>
void describeContext(const ModelDesc& desc, Info* info) {
  const char* const scaling = ropeScalingName(desc.rope_scaling);
  copyText(scaling, std::strlen(scaling), info->rope_scaling);
  describeGroups(desc, info);
  info->window_train = desc.window_train;
}

/// What a load finds out about a file's chat template, once.
struct TemplateOnce {
  bool known = false;
  LearnedTemplate facts;
};

/// A file that was opened and checked, with everything decided that needs no device.
struct PreparedModel {
  ModelFile source;
  ModelFile draft_source;  ///< open if desc.draft has layers
  AdapterFiles adapters;   ///< part of desc and tensors, if there are any
  ModelDesc desc;
  TensorIndex tensors;
  PlanTotals totals;
  bool weights_unknown = false;     ///< only of a known shape; `totals` then counts none
  uint64_t model_host_bytes = 0;    ///< of oriel_model and all it owns
  uint64_t text_host_bytes = 0;     ///< of them, oriel_model itself, its tokenizer and template
  uint64_t session_host_bytes = 0;  ///< of each, but for the ids of its tokens
  SessionWindows sessions;          ///< that were asked for
  uint32_t prefix_tokens = 0;
  TemplateOnce learned;           ///< where the prefix was counted
  uint32_t drafts = 0;            ///< guesses that were asked for
  uint32_t activation_bits = 16;  ///< that were asked for
  uint64_t draft_host_bytes = 0;  ///< of the host bytes, what those take
  bool constraints = false;       ///< replies can be held to a grammar
  uint64_t trie_bytes = 0;        ///< of model_host_bytes, what that takes
  uint64_t constraint_bytes = 0;  ///< of both
  uint64_t transcript_bytes = 0;  ///< of a session's host bytes, its transcript
  RecallSettings recall;          ///< of turns that left the window
  uint64_t memory_bytes = 0;      ///< the cap, default applied
  bool calibrated = false;        ///< the budget weighs measured constants
  CalibrationFile measured;       ///< those, if so
  DeviceSpeed speed;              ///< with options.speed only
  WorkShape work;
  Budget budget;
};

/// What the options ask of the budgeter, defaults applied; host_bytes and kv are the caller's.
Status readRequest(const LoadOptions& options, const Log& log, BudgetRequest* request);

/// Calibration, rates and layers that stay in f16, once the model is known. Of prepared->calibrated and ->measured
/// what findCalibration() said. The request points into `prepared`.
Status readModelRequest(const LoadOptions& options, const Log& log, PreparedModel* prepared,
                        BudgetRequest* request);

/// BudgetRequest::drafts of a plan with these weights on file.
uint32_t draftsOf(const PreparedModel& prepared, const OnFile& on_file);

/// How a conversation becomes text, as an app chose it.
struct ChatChoice {
  ChatTemplate chat;
  TemplateSettings settings;  ///< points to the model and to the app's texts
  LearnedTemplate learned;
  bool thinks = false;   ///< replies may begin with a thought
  ReplyForms forms = 0;  ///< in which its replies think and call
};
ReplyForms replyFormsOf(const ChatTemplate& chat);
/// Defaults applied, but for `learned`.
Status readChat(const oriel_model& model, const ChatSettings& wanted, ChatChoice* choice);
/// For calls that write turns: an app's own template is run some times, to learn about it.
Status learnChoice(const oriel_model& model, ChatChoice* choice);

/// What calls that need a device say of a model that was loaded with DeviceKind::kNone.
oriel_status withoutWeights(const oriel_model& model);

/// Of a call that used the device: whoever recovers a session has to know that it is lost. Gives `status` back.
Status noteLoss(const oriel_model& model, Status status);

/// What a file says besides tensors, for oriel_model.hash: tells models apart, with all weights that are read.
uint64_t headerHash(const GgufFile& file, const ModelDesc& desc);

/// The same of a model that guesses for another: its weights change no result.
uint64_t draftHash(const GgufFile& file);

/// "bpe (smollm)", "spm".
void describeTokenizer(const Tokenizer& tokenizer, char (&out)[64]);
void describeFill(const GgufFile& file, const Tokenizer& tokenizer, int32_t (&ids)[3]);

/// ORIEL_ERROR_ARGUMENT for one that lacks a function.
Status checkAllocator(const LoadOptions& options, const Log& log);

/// Opens, checks and budgets. A budget that is too small is not an error here. With DeviceKind::kNone stops
/// after the tokenizer. `path` and the options' allocator must outlive `prepared`.
Status prepareModel(const char* path, const LoadOptions& options, PreparedModel* prepared,
                    const StopCheck& stop = {});
/// Weights, work and host bytes with these weights in the file, and the best plan for that.
Status planWith(const OnFile& on_file, const char* path, const LoadOptions& options, const Log& log,
                PreparedModel* prepared, BudgetRequest* request);
/// A warning where the window of a session is longer than the context that the model was trained on.
void warnBeyondTraining(const PreparedModel& prepared, const Log& log);
/// Where the budget shares the window out: makes the description that of the plan.
void takeWindowProfile(PreparedModel* prepared);
PlanResult planResult(const PreparedModel& prepared);

/// What getters say of the prefix, which lies with the device.
struct PrefixSeen {
  uint32_t tokens = 0;
  bool trained = false;
};
/// After the prefix has changed, for the call that changed it.
void showPrefix(oriel_model* model);

/// The chat template of a file, and the forms of its replies.
Status buildChat(const GgufFile& file, const StopCheck& stop, const Log& log, Arena* arena,
                 oriel_model* model, TemplateOnce* learned);
/// As oriel_render_tokens, of checked arguments.
oriel_status renderIds(const oriel_model* model, const ChatSettings& chat, const char* json,
                       size_t bytes, bool generation, uint32_t flags, int32_t* ids, size_t capacity,
                       size_t* needed);

/// What info says of the model's executor.
void describeDevice(oriel_model* model);

/// What an executor is for.
enum class ExecutorUse : uint8_t {
  kModel,           ///< kernels that nobody has tested are tested first, if the options allow it
  kProbe,           ///< a measurement
  kSelfTestBegins,  ///< tests whatever the device says it has: the first of its executors
  kSelfTest,
};

constexpr uint32_t sinksOf(const LoadOptions& options) {
  return options.sink_tokens == 0            ? kDefaultSinks
         : options.sink_tokens == UINT32_MAX ? 0
                                             : options.sink_tokens;
}

constexpr uint32_t activationBits(const LoadOptions& options) {
  return options.activation_bits != 0 ? options.activation_bits : 16;
}
/// Of device_test and the names of features. ORIEL_ERROR_ARGUMENT.
Status checkDeviceTrust(const LoadOptions& options, const Log& log);

/// On the device that the options name. `experts`: null for plans that hold all of them.
Status createExecutor(const LoadOptions& options, ExecutorUse use, const Plan& plan,
                      const ExecutorMemory& memory, const oriel_allocator& allocator,
                      ExpertFetch* experts, const Log& log, const StopCheck* stop,
                      Executor** executor);

}  // namespace oriel_internal

namespace oriel_internal {

/// What a model that runs takes of its host block, beside its texts.
struct ModelParts {
  Plan plan;
  Prefix* prefix = nullptr;          ///< null: no room for one
  ModelSource source;                ///< to read weights from again
  ModelSource draft_source;          ///< likewise, of a model that guesses
  AdapterFiles::Kept adapters;       ///< null: none
  DeviceWish wish;                   ///< which devices may be
  RecallSettings recall;             ///< of every session
  WeightsOnFile* on_file = nullptr;  ///< null: all weights are held
  ExecutorMemory executor_memory;    ///< of all executors that the model ever has
};

/// What its plan is made for.
struct PlanShape {
  const CacheShape& cache;
  const CacheFormats& formats;
  uint32_t chunk;
};

/// The one list of those parts: a measuring arena counts them, the model's block holds them. `desc` stays.
Status layOutModel(const PreparedModel& prepared, const ModelDesc& desc, const PlanShape& shape,
                   const char* path, const LoadOptions& options, const Log& log, Arena* arena,
                   ModelParts* parts);

}  // namespace oriel_internal

/// Lives at the start of its own host block.
struct oriel_model : oriel_internal::ModelParts {
  oriel_internal::Log log;
  oriel_allocator allocator = {};
  uint64_t host_bytes = 0;          ///< of the block
  uint64_t session_host_bytes = 0;  ///< of each, but for the ids of its tokens
  uint64_t transcript_bytes = 0;    ///< of these
  uint64_t hash = 0;                ///< of what the file says, for snapshots
  uint64_t fingerprint =
      0;  ///< of its weights, however quantised; of models with a prefix from a file
  oriel_internal::ModelDesc desc;
  oriel_internal::Tokenizer* tokenizer = nullptr;
  oriel_internal::TokenTrie* trie = nullptr;  ///< null: loaded without constraints
  oriel_internal::ChatTemplate chat;
  oriel_internal::LearnedTemplate learned;     ///< about it
  oriel_internal::ReplyForms reply_forms = 0;  ///< of its own template
  oriel_internal::Executor* executor =
      nullptr;                           ///< null for DeviceKind::kNone; else there always is one
  oriel_internal::NoExecutor no_device;  ///< the executor between two devices
  mutable std::atomic<bool> device_lost{false};
  bool prefix_exact = true;                   ///< as Rebuilt::exact, of the prefix
  mutable oriel_internal::DeviceShare share;  ///< of the executor, among the sessions
  bool stops_early = true;                    ///< as in SessionContext
  oriel_internal::ModelInfo info = {};
  oriel_internal::PlanResult plan_result = {};
  /// Also of what getters read: executor, info, trimmed.level and prefix_seen change under its lock.
  mutable oriel_internal::Guard guard;
  oriel_internal::Trimmed trimmed;
  oriel_internal::PrefixSeen prefix_seen;
  uint8_t unused[256 + sizeof(std::mutex) - 48] = {};  ///< keeps the planned bytes as they were
  oriel_internal::ErrorLine last_error;                ///< of `log`: calls on the model itself
  oriel_internal::DeviceLog device_log;                ///< in front of this:
  oriel_internal::ErrorLine device_error;  ///< of the device and the file, which all sessions use
};

/// Lives at the start of its own host block.
struct oriel_session {
  oriel_model* model = nullptr;
  oriel_internal::Session* session = nullptr;
  uint64_t host_bytes = 0;
  uint64_t chat_hash = 0;                         ///< of the options that turns are written by
  oriel_internal::SessionTexts* texts = nullptr;  ///< null: all defaults
  std::atomic<bool> lost{false};    // the device failed: nothing but what the host knows can be had
  std::atomic<bool> unread{false};  // as Transcript::hasUnread() was between two calls
  // 1: the cache was made anew, of zeros. Set by whoever made it; the session is another thread's, so its next call says
  // so to it.
  std::atomic<uint32_t> cache_lost{0};
  oriel_internal::Log log;  ///< the model's, with a last error of its own
  oriel_internal::ErrorLine last_error;
  uint8_t unused[8 + sizeof(void*)] = {};  ///< keeps the planned bytes as they were
  uint32_t index = 0;                      ///< among the model's
  mutable uint32_t errors_before = 0;      ///< lines of last_error that are not the running call's
};
