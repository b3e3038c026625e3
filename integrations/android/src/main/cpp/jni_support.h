// What every function of oriel_jni.cpp needs: arguments copied in, results copied out, errors.
#pragma once

#include <jni.h>
#include <oriel/oriel.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace oriel_jni {

/// A copy of a byte[], with a NUL behind it; null for a null array.
class Bytes {
 public:
  Bytes(JNIEnv* env, jbyteArray from) { copy(env, from); }
  /// Of an element of a byte[][], to which no reference stays.
  Bytes(JNIEnv* env, jobjectArray array, jsize index) {
    const jobject from = env->GetObjectArrayElement(array, index);
    copy(env, static_cast<jbyteArray>(from));
    env->DeleteLocalRef(from);
  }
  ~Bytes() { std::free(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  /// There was no memory for the copy.
  bool missing() const { return missing_; }

 private:
  void copy(JNIEnv* env, jbyteArray from) {
    if (from == nullptr) {
      return;
    }
    const jsize size = env->GetArrayLength(from);
    data_ = static_cast<char*>(std::malloc(static_cast<size_t>(size) + 1));
    if (data_ == nullptr) {
      missing_ = true;
      return;
    }
    size_ = static_cast<size_t>(size);
    env->GetByteArrayRegion(from, 0, size, reinterpret_cast<jbyte*>(data_));
    data_[size_] = '\0';
  }

  char* data_ = nullptr;
  size_t size_ = 0;
  bool missing_ = false;
};

/// Null, with an exception that waits, where Java has no memory for it, or had none before.
inline jbyteArray newBytes(JNIEnv* env, const char* text, size_t bytes) {
  if (env->ExceptionCheck() == JNI_TRUE) {
    return nullptr;
  }
  const jbyteArray array = env->NewByteArray(static_cast<jsize>(bytes));
  if (array != nullptr) {
    env->SetByteArrayRegion(array, 0, static_cast<jsize>(bytes),
                            reinterpret_cast<const jbyte*>(text));
  }
  return array;
}

inline void setBytes(JNIEnv* env, jobjectArray array, jsize index, const char* text, size_t bytes) {
  const jbyteArray element = newBytes(env, text, bytes);
  if (element != nullptr) {
    env->SetObjectArrayElement(array, index, element);
    env->DeleteLocalRef(element);
  }
}

inline void setText(JNIEnv* env, jobjectArray array, jsize index, const char* text) {
  setBytes(env, array, index, text, std::strlen(text));
}

inline JavaVM* g_vm = nullptr;  // these two set once, by JNI_OnLoad
inline jmethodID g_on_log = nullptr;

/// What the library logs.
struct Log {
  jobject listener = nullptr;  // Native.Log, told of errors and warnings; may be null
};

/// This thread's latest error, kept for the exception that will carry it: of calls that overlap each has its own.
struct Line {
  const Log* log = nullptr;  // that it was given to; null: there is none
  char text[1024] = "";
};
inline thread_local Line t_line;

/// The library calls this on the thread that called it, which is one of Java's.
inline void onLog(oriel_log_level level, const char* message, void* user) {
  const Log* log = static_cast<const Log*>(user);
  if (level == ORIEL_LOG_ERROR) {
    t_line.log = log;
    std::snprintf(t_line.text, sizeof(t_line.text), "%s", message);
  }
  JNIEnv* env = nullptr;
  if (level > ORIEL_LOG_WARNING || log->listener == nullptr ||
      g_vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK ||
      env->ExceptionCheck() == JNI_TRUE) {
    return;
  }
  const jbyteArray line = newBytes(env, message, std::strlen(message));
  if (line != nullptr) {
    const Line kept = t_line;  // the listener may make other calls
    env->CallVoidMethod(log->listener, g_on_log, static_cast<jint>(level), line);
    t_line = kept;
  }
  env->ExceptionClear();  // whatever happened to the line, the call goes on
  env->DeleteLocalRef(line);
}

/// Ends a call: its status, with the line that explains it in error[0]. What a callback threw goes
/// first.
inline jint finish(JNIEnv* env, oriel_status status, const Log* log, jobjectArray error) {
  const bool said = t_line.log == log;
  if (status != ORIEL_OK && env->ExceptionCheck() == JNI_FALSE) {
    setText(env, error, 0, said ? t_line.text : oriel_status_text(status));
  }
  if (said) {
    t_line.log = nullptr;
  }
  return status;
}

/// Bits of a double that Java reads with Double.longBitsToDouble.
inline jlong bitsOf(double value) {
  jlong bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline uint32_t u32(jlong value) { return static_cast<uint32_t>(value); }

// The order of OrielOptions.pack().
enum Option {
  kMemoryBytes,
  kWindow,
  kSinks,
  kPinned,
  kChunk,
  kKeyFormat,
  kValueFormat,
  kDevice,
  kTimeout,
  kMinWindow,
  kThreads,
  kNoThinking,
  kDate,
  kThinking,
  kStateFormat,
  kOnFile,
  kExpertSlots,
  kCheckpoints,
  kConstraints,
  kSplitTurns,
  kForgetEvicted,
  kDeviceTest,
  kActivationBits,
  kDraftTokens,
  kRecallBytes,
  kRecallTokens,
  kTranscriptBytes,
  kOptionCount
};

// The order of OrielOptions.packTexts().
enum OptionText {
  kCacheDir,
  kTemplate,
  kDisabledFeatures,
  kCalibrationFile,
  kTools,
  kDocuments,
  kVariables,
  kEnabledFeatures,
  kDraftModel,
  kOptionTextCount
};

/// Options as Java packs them. Only good while this lives, and a session reads the chat's texts for as
/// long as it is there.
class Options {
 public:
  Options(JNIEnv* env, jlongArray numbers, jobjectArray texts, Log* log)
      : cache_dir_(env, texts, kCacheDir),
        template_(env, texts, kTemplate),
        disabled_features_(env, texts, kDisabledFeatures),
        calibration_file_(env, texts, kCalibrationFile),
        tools_(env, texts, kTools),
        documents_(env, texts, kDocuments),
        variables_(env, texts, kVariables),
        enabled_features_(env, texts, kEnabledFeatures),
        draft_model_(env, texts, kDraftModel) {
    jlong n[kOptionCount] = {};
    env->GetLongArrayRegion(numbers, 0, kOptionCount, n);
    options.struct_size = sizeof(options);
    options.memory_bytes = static_cast<uint64_t>(n[kMemoryBytes]);
    options.window_tokens = u32(n[kWindow]);
    options.sink_tokens = u32(n[kSinks]);
    options.pinned_tokens = u32(n[kPinned]);
    options.chunk_tokens = u32(n[kChunk]);
    options.k_format = static_cast<oriel_kv_format>(n[kKeyFormat]);
    options.v_format = static_cast<oriel_kv_format>(n[kValueFormat]);
    options.device = static_cast<oriel_device_kind>(n[kDevice]);
    options.device_timeout_ms = u32(n[kTimeout]);
    options.min_window_tokens = u32(n[kMinWindow]);
    options.cpu_threads = u32(n[kThreads]);
    options.activation_bits = u32(n[kActivationBits]);
    options.cache_dir = cache_dir_.data();
    options.log = onLog;
    options.log_user = log;
    options.disabled_features = disabled_features_.data();
    options.enabled_features = enabled_features_.data();
    options.device_test = static_cast<oriel_device_test>(n[kDeviceTest]);
    options.calibration_file = calibration_file_.data();
    options.on_file = static_cast<oriel_on_file>(n[kOnFile]);
    options.expert_slots = u32(n[kExpertSlots]);
    options.checkpoints = u32(n[kCheckpoints]);
    options.draft_tokens = u32(n[kDraftTokens]);
    options.recall_bytes = static_cast<uint64_t>(n[kRecallBytes]);
    options.recall_tokens = u32(n[kRecallTokens]);
    options.transcript_bytes = u32(n[kTranscriptBytes]);
    options.draft_model = draft_model_.data();
    options.state_format = static_cast<oriel_state_format>(n[kStateFormat]);
    options.constraints = n[kConstraints] != 0;
    session.struct_size = sizeof(session);
    session.split_turns = n[kSplitTurns] != 0;
    session.forget_evicted = n[kForgetEvicted] != 0;
    chat.struct_size = sizeof(chat);
    chat.chat_template = template_.data();
    chat.no_thinking = n[kNoThinking] != 0;
    chat.date = u32(n[kDate]);
    chat.thinking = n[kThinking] != 0;
    chat.tools = tools_.data();
    chat.tools_bytes = tools_.size();
    chat.documents = documents_.data();
    chat.documents_bytes = documents_.size();
    chat.variables = variables_.data();
    chat.variables_bytes = variables_.size();
  }

  bool missing() const {
    return cache_dir_.missing() || template_.missing() || disabled_features_.missing() ||
           calibration_file_.missing() || tools_.missing() || documents_.missing() ||
           variables_.missing() || enabled_features_.missing() || draft_model_.missing();
  }

  oriel_options options = {};
  oriel_session_options session = {};
  oriel_chat_options chat = {};

 private:
  Bytes cache_dir_;
  Bytes template_;
  Bytes disabled_features_;
  Bytes calibration_file_;
  Bytes tools_;
  Bytes documents_;
  Bytes variables_;
  Bytes enabled_features_;
  Bytes draft_model_;
};

}  // namespace oriel_jni
