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

/// The latest error line of the library, kept for the exception that will carry it.
struct ErrorLine {
  char text[1024] = "";
};

inline void onLog(oriel_log_level level, const char* message, void* user) {
  if (level == ORIEL_LOG_ERROR) {
    ErrorLine* line = static_cast<ErrorLine*>(user);
    std::snprintf(line->text, sizeof(line->text), "%s", message);
  }
}

/// A copy of a byte[], with a NUL behind it; null for a null array.
class Bytes {
 public:
  Bytes(JNIEnv* env, jbyteArray from) {
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
  ~Bytes() { std::free(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  /// There was no memory for the copy.
  bool missing() const { return missing_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  bool missing_ = false;
};

inline jbyteArray newBytes(JNIEnv* env, const char* text, size_t bytes) {
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

/// The element of a byte[][]; null where it has none.
inline jbyteArray element(JNIEnv* env, jobjectArray array, jsize index) {
  return static_cast<jbyteArray>(env->GetObjectArrayElement(array, index));
}

/// Ends a call: its status, with the line that explains it in error[0]. What a callback threw goes
/// first.
inline jint finish(JNIEnv* env, oriel_status status, ErrorLine* line, jobjectArray error) {
  if (status != ORIEL_OK && env->ExceptionCheck() == JNI_FALSE) {
    setText(env, error, 0, line->text[0] != '\0' ? line->text : oriel_status_text(status));
  }
  line->text[0] = '\0';
  return status;
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
  kOptionCount
};

/// Options as Java packs them; `texts` (cache folder, chat format) may be null. Only good while
/// this lives.
class Options {
 public:
  Options(JNIEnv* env, jlongArray numbers, jobjectArray texts, ErrorLine* line)
      : cache_dir_(env, texts == nullptr ? nullptr : element(env, texts, 0)),
        template_(env, texts == nullptr ? nullptr : element(env, texts, 1)) {
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
    options.cache_dir = cache_dir_.data();
    options.log = onLog;
    options.log_user = line;
    chat.struct_size = sizeof(chat);
    chat.chat_template = template_.data();
    chat.no_thinking = n[kNoThinking] != 0;
    chat.date = u32(n[kDate]);
  }

  bool missing() const { return cache_dir_.missing() || template_.missing(); }

  oriel_options options = {};
  oriel_chat_options chat = {};

 private:
  Bytes cache_dir_;
  Bytes template_;
};

}  // namespace oriel_jni
