// Defines the opaque types of oriel.h and declares the readers of its option structs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>
#include <type_traits>

#include "api/model_parts.h"
#include "api/struct_fields.h"
#include "base/arena.h"
#include "base/descriptions.h"
#include "budget/budget.h"
#include "budget/loss.h"
#include "budget/speed.h"
#include "chat/chat_template.h"
#include "chat/template_run.h"
#include "exec/executor.h"
#include "exec/guard.h"
#include "exec/load_weights.h"
#include "exec/session.h"
#include "gguf/gguf.h"
#include "options/settings.h"
#include "oriel/advanced.h"
#include "os/os.h"
#include "reply/forms.h"
#include "text/tokenizer.h"

struct oriel_model;

namespace oriel_internal {

// Field boundaries of a C API struct that begins with struct_size.
struct StructShape {
  const uint16_t* ends;
  uint32_t n;
  uint32_t bytes;
};
template <typename T>
constexpr StructShape shapeOf() {
  return {FieldEnds<T>::list, std::size(FieldEnds<T>::list), sizeof(T)};
}

// True when the size ends between two fields. Accepts the struct of this library, of an earlier and of a later one. No
// struct exceeds 64 KiB, so most uninitialised sizes are refused.
bool validSize(size_t struct_size, StructShape shape);
// Copies the whole fields of a caller's struct over zeros. Returns false if struct_size was not set, if it ends inside
// a field, or if a newer app set a field that this library does not know.
bool readStruct(const void* given, StructShape shape, void* out);
// Copies a result to a caller's struct, up to the fields that the caller knows.
void writeStruct(const void* result, StructShape shape, void* out);

template <typename T>
bool readOptions(const T* given, T* options) {
  static_assert(std::is_trivially_copyable<T>::value, "a C struct");
  return readStruct(given, shapeOf<T>(), options);
}

// The number in an enum field that an app filled. Reading a value outside the enum as the enum would be undefined
// behaviour.
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
// False if the number is not a format. AUTO is not a format.
bool readFormat(int wanted, KvFormat* format);

template <typename T>
void writeResult(const T& result, T* out) {
  writeStruct(&result, shapeOf<T>(), out);
}

template <typename T>
bool validResult(const T* out) {
  return out != nullptr && validSize(out->struct_size, shapeOf<T>());
}

// Logs why a struct's size or its unknown fields were refused. `type` is the struct's name.
Status refuseStruct(const char* type, size_t struct_size, StructShape shape, const Log& log);

// readOptions() that logs the reason of a refusal.
template <typename T>
Status takeOptions(const T* given, const char* type, const Log& log, T* options) {
  return readOptions(given, options) ? kOk
                                     : refuseStruct(type, given->struct_size, shapeOf<T>(), log);
}

// validResult() that logs the reason of a refusal, except for null.
template <typename T>
Status checkResult(const T* out, const char* type, const Log& log) {
  return out == nullptr     ? Status(ORIEL_ERROR_ARGUMENT)
         : validResult(out) ? kOk
                            : refuseStruct(type, out->struct_size, shapeOf<T>(), log);
}

// The options of a call: front fields and settings. `lists` owns the arrays that the options point to.
struct CallOptions : LoadOptions {
  LoadLists lists;
};
// Sets error_line to "". Null gives all defaults. Logs a line for ORIEL_ERROR_ARGUMENT.
Status takeModelOptions(const oriel_options* given, CallOptions* options);
Status takeSessionOptions(const oriel_session_options* given, const Log& log,
                          SessionSettings* settings);

// The call's log, which also fills error_line. It must not outlive `options`.
Log logOf(const LoadOptions& options);
inline bool wantsLine(const LoadOptions& options) {
  return options.error_line != nullptr && options.error_line_bytes != 0;
}

// Maps an empty folder name to null ("no folder"); otherwise file names would be joined to the root folder.
inline const char* folderOrNone(const char* folder) {
  return folder != nullptr && folder[0] != '\0' ? folder : nullptr;
}

inline const oriel_allocator& allocatorOf(const LoadOptions& options) {
  return options.allocator != nullptr ? *options.allocator : defaultAllocator();
}

// Truncates at the last byte that fits; always NUL-terminated.
template <size_t N>
void copyText(const char* text, size_t bytes, char (&out)[N]) {
  const size_t n = std::min(bytes, N - 1);
  std::memcpy(out, text, n);
  out[n] = '\0';
}

inline GroupKind publicKind(ViewKind kind) {
  switch (kind) {
    case ViewKind::kSession:
    case ViewKind::kText:
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

// Kinds, layers and windows. The description of an unknown model has no groups.
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

// The meaning of positions, for ModelInfo and FileInfo.
template <typename Info>
void describeContext(const ModelDesc& desc, Info* info) {
  const char* const scaling = ropeScalingName(desc.rope_scaling);
  copyText(scaling, std::strlen(scaling), info->rope_scaling);
  describeGroups(desc, info);
  info->window_train = desc.window_train;
}

// Facts about a file's chat template, learned once per load.
struct TemplateOnce {
  bool known = false;
  LearnedTemplate facts;
};

// A file that was opened and checked, with all decisions that need no device.
struct PreparedModel {
  ModelFile source;
  ModelFile draft_source;  ///< open if desc.draft has layers
  AdapterFiles adapters;   ///< part of desc and tensors, if there are any
  PictureFile pictures;
  PictureInput picture_input;  ///< desc.pictures, if there are any
  ModelDesc desc;
  TensorIndex tensors;
  PlanTotals totals;
  bool weights_unknown = false;     // only the shape is known; `totals` then counts 0 bytes
  uint64_t model_host_bytes = 0;    // oriel_model and everything it owns
  uint64_t text_host_bytes = 0;     // the part for oriel_model itself, its tokenizer and template
  uint64_t session_host_bytes = 0;  // bytes per session, without the token ids
  SessionWindows sessions;          // requested
  uint32_t prefix_tokens = 0;
  TemplateOnce learned;           // filled when the prefix was counted
  uint32_t drafts = 0;            // requested
  uint32_t activation_bits = 16;  // chosen
  uint64_t draft_host_bytes = 0;  // the part of the host bytes that drafting needs
  bool constraints = false;       // replies can be constrained by a grammar
  uint64_t trie_bytes = 0;        // the part of model_host_bytes for the token trie
  uint64_t constraint_bytes = 0;  // trie and sessions
  uint64_t transcript_bytes = 0;  // the part of a session's host bytes for its transcript
  RecallSettings recall;          // for evicted turns
  uint64_t memory_bytes = 0;      ///< the cap, default applied
  bool maps_weights = false;      ///< "prepared_dir" is given and the device is the CPU
  uint64_t file_hash = 0;         ///< of the model file's header, if maps_weights
  PreparedText text;              ///< open if maps_weights and its file was found
  bool calibrated = false;        ///< the budget weighs measured constants
  CalibrationFile measured;       // set if `calibrated`
  DeviceSpeed speed;              ///< with options.speed only
  WorkShape work;
  Budget budget;
};

// Reads the budgeter's request from the options, with defaults applied. The caller sets host_bytes and kv.
Status readRequest(const LoadOptions& options, const Log& log, BudgetRequest* request);

// Reads calibration, rates and the layers that stay in f16, once the model is known. findCalibration() has set
// prepared->calibrated and ->measured. The request points into `prepared`.
Status readModelRequest(const LoadOptions& options, const Log& log, PreparedModel* prepared,
                        BudgetRequest* request);

// BudgetRequest::drafts of a plan with `on_file` weights.
uint32_t draftsOf(const PreparedModel& prepared, const OnFile& on_file);

// The app's choices for turning a conversation into text.
struct ChatChoice {
  ChatTemplate chat;
  TemplateSettings settings;  ///< points to the model and to the app's texts
  LearnedTemplate learned;
  bool thinks = false;   ///< replies may begin with a thought
  ReplyForms forms = 0;  // forms of thoughts and calls in replies
};
ReplyForms replyFormsOf(const ChatTemplate& chat);
// Applies all defaults except `learned`.
Status readChat(const oriel_model& model, const ChatSettings& wanted, ChatChoice* choice);
// For calls that write turns: runs an app's own template a few times to learn its behaviour.
Status learnChoice(const oriel_model& model, ChatChoice* choice);

// The error of calls that need a device, for a model loaded with DeviceKind::kNone.
oriel_status withoutWeights(const oriel_model& model);

// Records a lost device after a call that used it, so that session recovery sees it. Returns `status`.
Status noteLoss(const oriel_model& model, Status status);

// Hash of the file's metadata without its tensors. With the weights that are read it identifies a model
// (oriel_model.hash).
uint64_t headerHash(const GgufFile& file, const ModelDesc& desc);

// The same for a draft model. Its weights do not change results.
uint64_t draftHash(const GgufFile& file);

// Identifies the prepared file of the tokenizer.
PreparedId textId(const PreparedModel& prepared);

/// "bpe (smollm)", "spm".
void describeTokenizer(const Tokenizer& tokenizer, char (&out)[64]);
void describeFill(const GgufFile& file, const Tokenizer& tokenizer, int32_t (&ids)[3]);

// ORIEL_ERROR_ARGUMENT if the allocator lacks a function.
Status checkAllocator(const LoadOptions& options, const Log& log);

/// Opens, checks and budgets. A budget that is too small is not an error here. With DeviceKind::kNone stops
/// after the tokenizer. `path` and the options' allocator must outlive `prepared`.
Status prepareModel(const char* path, const LoadOptions& options, PreparedModel* prepared,
                    const StopCheck& stop = {});
// Weights, work and host bytes with `on_file` weights left in the file, and the best plan for them.
Status planWith(const OnFile& on_file, const char* path, const LoadOptions& options, const Log& log,
                PreparedModel* prepared, BudgetRequest* request);
// Warns when a session's window exceeds the trained context of the model.
void warnBeyondTraining(const PreparedModel& prepared, const Log& log);
// If the budget gives layers different windows, copies the plan's windows into the description.
void takeWindowProfile(PreparedModel* prepared);
PlanResult planResult(const PreparedModel& prepared);

// The prefix facts that getters report; the prefix itself is on the device.
struct PrefixSeen {
  uint32_t tokens = 0;
  bool trained = false;
};
// Updates prefix_seen. For the call that changed the prefix.
void showPrefix(oriel_model* model);

/// The chat template of a file, and the forms of its replies.
Status buildChat(const GgufFile& file, const StopCheck& stop, const Log& log, Arena* arena,
                 oriel_model* model, TemplateOnce* learned);
// oriel_render_tokens with checked arguments.
oriel_status renderIds(const oriel_model* model, const ChatSettings& chat, const char* json,
                       size_t bytes, bool generation, uint32_t flags, int32_t* ids, size_t capacity,
                       size_t* needed);

// Fills the executor's part of the model info.
void describeDevice(oriel_model* model);

// The purpose of an executor.
enum class ExecutorUse : uint8_t {
  kModel,           // untested kernels are tested first, if the options allow it
  kProbe,           ///< a measurement
  kSelfTestBegins,  // tests every feature the device reports: the first executor of a self-test
  kSelfTest,
};

constexpr uint32_t sinksOf(const LoadOptions& options) {
  return options.sink_tokens == 0            ? kDefaultSinks
         : options.sink_tokens == UINT32_MAX ? 0
                                             : options.sink_tokens;
}

/// Bits of activations if the model runs on the CPU: as asked, else 8 where that was measured to pay
/// (notes/performance.md, "Activations of 8 bits"). Encoders use 16: their results are compared with each other.
uint32_t activationBits(const LoadOptions& options, const WorkShape& work);
// Checks device_test and the feature names; ORIEL_ERROR_ARGUMENT if one is wrong.
Status checkDeviceTrust(const LoadOptions& options, const Log& log);

/// The default memory limit of a model on the device that the options select.
struct DeviceMemory {
  uint64_t bytes = 0;  ///< 0: unknown, or the device is the CPU
  bool is_discrete = false;
  bool is_own = false;  ///< the device has its own memory, and its driver reports the free part
};
DeviceMemory deviceMemory(const LoadOptions& options);

/// Parts of an executor that belong to others.
struct SharedParts {
  ExpertFetch* experts = nullptr;       ///< null: the plan holds all of them
  PreparedWeights* prepared = nullptr;  ///< null: weights are written
  const Executor* beside = nullptr;  ///< as in ExecutorOptions; decides between the CPU and Vulkan
  uint32_t activation_bits = 0;      ///< PreparedModel::activation_bits; 0: as asked, else 16
};

/// On the device that the options name.
Status createExecutor(const LoadOptions& options, ExecutorUse use, const Plan& plan,
                      const ExecutorMemory& memory, const oriel_allocator& allocator,
                      const SharedParts& shared, const Log& log, const StopCheck* stop,
                      Executor** executor);

// Creates the encoder's executor, after ModelPictures::handOver(). `beside`: the text model's executor, which must live
// until leavePictures(); null: none. A no-op without pictures.
Status loadPictures(const LoadOptions& options, ExecutorUse use, const oriel_allocator& allocator,
                    const Executor* beside, const Log& log, const StopCheck* stop,
                    ModelPictures* pictures);

}  // namespace oriel_internal

namespace oriel_internal {

// A running model's parts in its host block, without its texts.
struct ModelParts {
  Plan plan;
  Prefix* prefix = nullptr;               // null: no room for a prefix
  ModelSource source;                     // to read the weights again
  ModelSource draft_source;               // the same for the draft model
  AdapterFiles::Kept adapters;            // null: none
  ModelPictures* pictures = nullptr;      // null: the model takes none
  PictureInput* picture_input = nullptr;  // the same
  DeviceWish wish;                        // the allowed devices
  RecallSettings recall;                  // for every session
  WeightsOnFile* on_file = nullptr;       ///< null: all weights are held
  ExecutorMemory executor_memory;         // for every executor the model ever has
};

// The shape that the plan is made for.
struct PlanShape {
  const CacheShape& cache;
  const CacheFormats& formats;
  uint32_t chunk;
};

// The only list of those parts: a measuring arena counts them, and the model's block holds them. `desc` must stay
// valid.
Status layOutModel(PreparedModel& prepared, const ModelDesc& desc, const PlanShape& shape,
                   const char* path, const LoadOptions& options, const Log& log, Arena* arena,
                   ModelParts* parts);

}  // namespace oriel_internal

/// Lives at the start of its own host block.
struct oriel_model : oriel_internal::ModelParts {
  oriel_internal::Log log;
  oriel_allocator allocator = {};
  uint64_t host_bytes = 0;          // size of the block
  uint64_t session_host_bytes = 0;  // bytes per session, without the token ids
  uint64_t transcript_bytes = 0;    // the part for transcripts
  uint64_t hash = 0;                // of the file's metadata, for snapshots
  uint64_t fingerprint =
      0;  // of its weights in any quantisation; set for models with a prefix file
  oriel_internal::ModelDesc desc;
  oriel_internal::Tokenizer* tokenizer = nullptr;
  oriel_internal::TokenTrie* trie = nullptr;  ///< null: loaded without constraints
  oriel_internal::ChatTemplate chat;
  oriel_internal::LearnedTemplate learned;       // facts about the template
  oriel_internal::ReplyForms reply_forms = 0;    // of the model's own template
  oriel_internal::PreparedWeights prepared;      // not open: the executor holds the weights
  oriel_internal::Executor* executor = nullptr;  // null for DeviceKind::kNone, otherwise always set
  oriel_internal::NoExecutor no_device;          // stands in while one device replaces another
  mutable std::atomic<bool> device_lost{false};
  bool prefix_exact = true;                   // Rebuilt::exact of the prefix
  mutable oriel_internal::DeviceShare share;  // shares the executor among sessions
  bool stops_early = true;                    // see SessionContext
  oriel_internal::ModelInfo info = {};
  oriel_internal::PlanResult plan_result = {};
  // Also protects what getters read: executor, info, trimmed.level and prefix_seen change under its lock.
  mutable oriel_internal::Guard guard;
  oriel_internal::Trimmed trimmed;
  oriel_internal::PrefixSeen prefix_seen;
  // Keeps the planned bytes stable.
  uint8_t unused[256 + sizeof(std::mutex) - 136 - sizeof(char*) -
                 sizeof(oriel_internal::PreparedWeights)] = {};
  oriel_internal::ErrorLine last_error;    // lines of `log`, for calls on the model itself
  oriel_internal::DeviceLog device_log;    // wraps device_error:
  oriel_internal::ErrorLine device_error;  // device and file errors, shared by all sessions
};

/// Lives at the start of its own host block.
struct oriel_session {
  oriel_model* model = nullptr;
  oriel_internal::Session* session = nullptr;
  uint64_t host_bytes = 0;
  uint64_t chat_hash = 0;                         // hash of the options that shape turns
  oriel_internal::SessionTexts* texts = nullptr;  ///< null: all defaults
  std::atomic<bool> lost{false};                  // the device failed: only host data is readable
  std::atomic<bool> unread{false};                // Transcript::hasUnread() after the last call
  // 1: another thread recreated the cache with zeros. The session's next call applies it.
  std::atomic<uint32_t> cache_lost{0};
  oriel_internal::Log log;  // the model's log, with a last error of its own
  oriel_internal::ErrorLine last_error;
  uint8_t unused[8 + sizeof(void*)] = {};  // keeps the planned bytes stable
  uint32_t index = 0;                      // among the model's sessions
  mutable uint32_t errors_before = 0;      // lines of last_error from before the current call
};
