// The C calls of shim.cpp and of the library for Node, with the same interface as the WebAssembly module: addresses are
// numbers, and the engine reads and writes memory by them. Only engine/native.js loads this.
//
// Threads: calls block, so each session has a worker of its own. Callbacks of the library run inside a call, on the
// worker's thread: `hooks` of that thread takes them.
#include <node_api.h>
#include <oriel/advanced.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "../src/shim.h"

namespace {

/// JavaScript's functions that callbacks end in.
enum Hook { kLog, kProgress, kToken, kPart, kLogits, kNumber, kHookCount };
constexpr const char* kHookNames[kHookCount] = {"log",  "progress", "token",
                                                "part", "logits",   "number"};

/// The data for callbacks of this thread's calls.
struct Hooks {
  napi_env env = nullptr;
  napi_ref functions[kHookCount] = {};
};
thread_local Hooks hooks;

napi_value numberOf(napi_env env, double value) {
  napi_value number = nullptr;
  napi_create_double(env, value, &number);
  return number;
}
/// An argument of a hook.
napi_value numberOf(double value) { return numberOf(hooks.env, value); }
double addressAsNumber(const void* at) {
  return static_cast<double>(reinterpret_cast<uintptr_t>(at));
}
napi_value addressOf(const void* at) { return numberOf(addressAsNumber(at)); }

/// Calls a hook; its result, or 0. An exception stays pending and ends the call.
template <size_t n>
int tell(Hook hook, napi_value (&arguments)[n]) {
  const napi_env env = hooks.env;
  napi_value nothing = nullptr;
  napi_value function = nullptr;
  napi_value result = nullptr;
  bool failed = false;
  int32_t number = 0;
  napi_is_exception_pending(env, &failed);
  if (failed || napi_get_undefined(env, &nothing) != napi_ok ||
      napi_get_reference_value(env, hooks.functions[hook], &function) != napi_ok ||
      napi_call_function(env, nothing, function, n, arguments, &result) != napi_ok) {
    return 1;
  }
  return napi_get_value_int32(env, result, &number) == napi_ok ? number : 0;
}

/// Handles that a callback makes are given back at its end: a call may make thousands.
class Scope {
 public:
  Scope() { napi_open_handle_scope(hooks.env, &scope_); }
  ~Scope() { napi_close_handle_scope(hooks.env, scope_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  napi_handle_scope scope_ = nullptr;
};

/// An argument of a call, from a number.
template <typename To>
To argument(napi_env env, napi_value value) {
  double number = 0;
  if (napi_get_value_double(env, value, &number) != napi_ok) {
    napi_throw_type_error(env, nullptr, "an argument is no number");
  }
  if constexpr (std::is_pointer_v<To>) {
    return reinterpret_cast<To>(static_cast<uintptr_t>(number));
  } else if constexpr (std::is_enum_v<To>) {
    return static_cast<To>(static_cast<int>(number));
  } else {
    return static_cast<To>(number);
  }
}

constexpr size_t kMostArguments = 10;

template <typename Result, typename... Arguments, size_t... i>
napi_value callWith(Result (*function)(Arguments...), napi_env env,
                    [[maybe_unused]] const napi_value* values, std::index_sequence<i...>) {
  if constexpr (std::is_void_v<Result>) {
    function(argument<Arguments>(env, values[i])...);
    return nullptr;
  } else if constexpr (std::is_pointer_v<Result>) {
    return numberOf(env, addressAsNumber(function(argument<Arguments>(env, values[i])...)));
  } else {
    return numberOf(env, static_cast<double>(function(argument<Arguments>(env, values[i])...)));
  }
}

template <typename Result, typename... Arguments>
napi_value callWith(Result (*function)(Arguments...), napi_env env, const napi_value* values) {
  static_assert(sizeof...(Arguments) <= kMostArguments);
  return callWith(function, env, values, std::index_sequence_for<Arguments...>());
}

/// A C function as a JavaScript function. Missing arguments are an error.
template <auto function>
napi_value call(napi_env env, napi_callback_info info) {
  napi_value values[kMostArguments] = {};
  size_t count = kMostArguments;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  return callWith(function, env, values);
}

// --- Memory, as engine.js sees it ---------------------------------------------------------------

/// read(at, bytes): a copy.
napi_value readMemory(napi_env env, napi_callback_info info) {
  napi_value values[2] = {};
  size_t count = 2;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  const auto* const from = argument<const uint8_t*>(env, values[0]);
  const auto bytes = argument<size_t>(env, values[1]);
  void* to = nullptr;
  napi_value buffer = nullptr;
  napi_value array = nullptr;
  if (napi_create_arraybuffer(env, bytes, &to, &buffer) != napi_ok) {
    return nullptr;  // the exception is pending
  }
  if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
  napi_create_typedarray(env, napi_uint8_array, bytes, buffer, 0, &array);
  return array;
}

/// text(at, bytes): a text; without bytes one that ends in NUL.
napi_value readText(napi_env env, napi_callback_info info) {
  napi_value values[2] = {};
  napi_value text = nullptr;
  napi_valuetype type = napi_undefined;
  size_t count = 2;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  napi_typeof(env, values[1], &type);
  const auto* const from = argument<const char*>(env, values[0]);
  const size_t bytes = type == napi_undefined ? NAPI_AUTO_LENGTH : argument<size_t>(env, values[1]);
  napi_create_string_utf8(env, from, bytes, &text);
  return text;
}

/// write(at, data): data is a Uint8Array.
napi_value writeMemory(napi_env env, napi_callback_info info) {
  napi_value values[2] = {};
  size_t count = 2;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  auto* const to = argument<uint8_t*>(env, values[0]);
  napi_typedarray_type type = napi_uint8_array;
  size_t bytes = 0;
  void* from = nullptr;
  if (napi_get_typedarray_info(env, values[1], &type, &bytes, &from, nullptr, nullptr) != napi_ok ||
      type != napi_uint8_array) {
    napi_throw_type_error(env, nullptr, "write() takes a Uint8Array");
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
  return nullptr;
}

uint32_t pointerBytes() { return sizeof(void*); }
void* allocate(size_t bytes) { return std::malloc(bytes); }
void release(void* block) { std::free(block); }

/// setHooks(functions): of the thread that calls.
napi_value setHooks(napi_env env, napi_callback_info info) {
  napi_value value = nullptr;
  size_t count = 1;
  napi_get_cb_info(env, info, &count, &value, nullptr, nullptr);
  hooks.env = env;
  for (size_t i = 0; i < kHookCount; ++i) {
    napi_value function = nullptr;
    napi_get_named_property(env, value, kHookNames[i], &function);
    napi_create_reference(env, function, 1, &hooks.functions[i]);
  }
  return nullptr;
}

struct Function {
  const char* name;
  napi_callback call;
};

constexpr Function kFunctions[] = {
    {"read", readMemory},
    {"text", readText},
    {"write", writeMemory},
    {"setHooks", setHooks},
    {"pointerBytes", call<pointerBytes>},
    {"_malloc", call<allocate>},
    {"_free", call<release>},
#define ORIEL_CALL(name) \
  { "_" #name, call<name> }
    ORIEL_CALL(web_plan_describe),
    ORIEL_CALL(web_file_describe),
    ORIEL_CALL(web_snapshot_describe),
    ORIEL_CALL(web_model_load),
    ORIEL_CALL(web_session_create),
    ORIEL_CALL(web_render),
    ORIEL_CALL(web_reply),
    ORIEL_CALL(web_append),
    ORIEL_CALL(web_get_stats),
    ORIEL_CALL(web_snapshot_restore),
    ORIEL_CALL(web_get_tokens),
    ORIEL_CALL(web_go_back),
    ORIEL_CALL(web_resume),
    ORIEL_CALL(web_recover),
    ORIEL_CALL(oriel_version),
    ORIEL_CALL(oriel_status_text),
    ORIEL_CALL(oriel_option_list),
    ORIEL_CALL(oriel_model_describe),
    ORIEL_CALL(oriel_model_free),
    ORIEL_CALL(oriel_session_destroy),
    ORIEL_CALL(oriel_session_reset),
    ORIEL_CALL(oriel_session_cancel),
    ORIEL_CALL(oriel_session_describe),
    ORIEL_CALL(oriel_session_append_text),
    ORIEL_CALL(oriel_session_fork),
    ORIEL_CALL(oriel_session_mark),
    ORIEL_CALL(oriel_session_use_adapters),
    ORIEL_CALL(oriel_chat_add),
    ORIEL_CALL(oriel_chat_add_pictures),
    ORIEL_CALL(oriel_embed),
    ORIEL_CALL(oriel_prefix_set),
    ORIEL_CALL(oriel_snapshot_save),
    ORIEL_CALL(oriel_tokenize),
    ORIEL_CALL(oriel_detokenize),
    ORIEL_CALL(oriel_transcript_export),
    ORIEL_CALL(oriel_trim),
    ORIEL_CALL(oriel_pause),
#undef ORIEL_CALL
};

}  // namespace

// Functions for shim.cpp; in WebAssembly host_library.js has them.
extern "C" {
void oriel_host_log(int level, const char* message) {
  // Lines of threads that the library made have no hooks; a load logs on the thread that called it.
  if (hooks.env == nullptr) {
    return;
  }
  const Scope scope;
  napi_value arguments[] = {numberOf(level), addressOf(message)};
  tell(kLog, arguments);
}
int oriel_host_progress(double done, double total) {
  const Scope scope;
  napi_value arguments[] = {numberOf(done), numberOf(total)};
  return tell(kProgress, arguments);
}
int oriel_host_token(int32_t id, const char* text, size_t bytes, float logprob, uint32_t top_count,
                     const oriel_token_logprob* top) {
  const Scope scope;
  napi_value arguments[] = {numberOf(id),
                            addressOf(text),
                            numberOf(static_cast<double>(bytes)),
                            numberOf(static_cast<double>(logprob)),
                            numberOf(top_count),
                            addressOf(top)};
  return tell(kToken, arguments);
}
int oriel_host_part(int kind, uint32_t index, const char* text, size_t bytes, const char* path) {
  const Scope scope;
  napi_value arguments[] = {numberOf(kind), numberOf(index), addressOf(text),
                            numberOf(static_cast<double>(bytes)), addressOf(path)};
  return tell(kPart, arguments);
}
int oriel_host_logits(double index, const float* logits, size_t count) {
  const Scope scope;
  napi_value arguments[] = {numberOf(index), addressOf(logits),
                            numberOf(static_cast<double>(count))};
  return tell(kLogits, arguments);
}
void oriel_host_number(const char* name, double value) {
  const Scope scope;
  napi_value arguments[] = {addressOf(name), numberOf(value)};
  tell(kNumber, arguments);
}
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */) {
  for (const Function& function : kFunctions) {
    napi_value value = nullptr;
    napi_create_function(env, function.name, NAPI_AUTO_LENGTH, function.call, nullptr, &value);
    napi_set_named_property(env, exports, function.name, value);
  }
  return exports;
}
