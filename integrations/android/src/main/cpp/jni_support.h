// Helpers of oriel_jni.cpp: copies of arguments and results, errors, and callbacks into Java.
#pragma once

#include <jni.h>
#include <oriel/advanced.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace oriel_jni {

inline JavaVM* g_vm = nullptr;  // JNI_OnLoad sets all of these
inline jclass g_exception = nullptr;
inline jmethodID g_new_exception = nullptr;
inline jmethodID g_on_log = nullptr;
inline jmethodID g_on_text = nullptr;
inline jmethodID g_on_part = nullptr;
inline jmethodID g_on_token = nullptr;
inline jmethodID g_on_progress = nullptr;

// ---- Arguments ----------------------------------------------------------------------------------

/// A copy of a byte[], with a NUL at the end. A null array gives null.
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
  /// True: out of memory.
  bool missing() const { return missing_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  bool missing_ = false;
};

/// Options by name, as OrielSettings.pack() joins them: name, NUL, value, NUL, and so on.
class Settings {
 public:
  Settings(JNIEnv* env, jbyteArray joined) : text_(env, joined) {
    const char* const end = text_.data() + text_.size();
    for (const char* at = text_.data(); at != end; at += std::strlen(at) + 1) {
      ++count_;
    }
    count_ /= 2;
    all_ = static_cast<oriel_setting*>(std::malloc(count_ * sizeof(oriel_setting) + 1));
    const char* at = text_.data();
    for (size_t i = 0; all_ != nullptr && i < count_; ++i) {
      all_[i].name = at;
      all_[i].value = at + std::strlen(at) + 1;
      at = all_[i].value + std::strlen(all_[i].value) + 1;
    }
  }
  ~Settings() { std::free(all_); }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  bool missing() const { return text_.missing() || all_ == nullptr; }

  /// Adds the settings to the options of a scope.
  template <typename Options>
  Options in(Options options) const {
    options.settings = all_;
    options.setting_count = count_;
    return options;
  }

 private:
  Bytes text_;
  oriel_setting* all_ = nullptr;
  size_t count_ = 0;
};

// ---- Results ------------------------------------------------------------------------------------

/// Null if Java is out of memory or an exception is pending; then an exception is pending.
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

/// The fields of a small struct, in the order of the constructor that reads them.
inline jdoubleArray newNumbers(JNIEnv* env, std::initializer_list<double> numbers) {
  if (env->ExceptionCheck() == JNI_TRUE) {
    return nullptr;
  }
  const jsize count = static_cast<jsize>(numbers.size());
  const jdoubleArray array = env->NewDoubleArray(count);
  if (array != nullptr) {
    env->SetDoubleArrayRegion(array, 0, count, numbers.begin());
  }
  return array;
}

template <typename Integer>
double number(Integer value) {
  return static_cast<double>(value);
}

// ---- Errors -------------------------------------------------------------------------------------

/// The log of a model and its sessions.
struct Log {
  jobject listener = nullptr;  // Native.Log, for errors and warnings; may be null
};

/// The latest error line of a thread, for the exception. Calls in parallel have lines of their own.
struct Line {
  const Log* log = nullptr;  // the log of the line; null: no line
  char text[1024] = "";
};
inline thread_local Line t_line;

/// The library calls this on the calling thread, a thread of Java.
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
  env->ExceptionClear();  // a failing listener does not end the call
  env->DeleteLocalRef(line);
}

/// Ends a call. False: an exception is pending, from a callback or with the error line.
inline bool worked(JNIEnv* env, oriel_status status, const Log& log) {
  const bool said = t_line.log == &log;
  t_line.log = said ? nullptr : t_line.log;
  if (env->ExceptionCheck() == JNI_TRUE) {
    return false;
  }
  if (status == ORIEL_OK) {
    return true;
  }
  const char* const text = said ? t_line.text : oriel_status_text(status);
  const jbyteArray line = newBytes(env, text, std::strlen(text));
  if (line != nullptr) {
    const jobject error =
        env->NewObject(g_exception, g_new_exception, static_cast<jint>(status), line);
    if (error != nullptr) {
      env->Throw(static_cast<jthrowable>(error));
    }
  }
  return false;
}

/// Calls `call(elements, capacity, &needed)` with a buffer of the needed size. The caller frees *all.
template <typename Element, typename Call>
oriel_status fill(Element** all, size_t* count, Call call) {
  *all = nullptr;
  *count = 0;
  oriel_status status = call(nullptr, size_t{0}, count);
  do {  // it may have grown meanwhile
    if (status != ORIEL_OK && status != ORIEL_ERROR_BUFFER_TOO_SMALL) {
      break;
    }
    std::free(*all);
    *all = static_cast<Element*>(std::malloc(*count * sizeof(Element) + 1));
    status = *all == nullptr ? ORIEL_ERROR_OUT_OF_MEMORY : call(*all, *count, count);
  } while (status == ORIEL_ERROR_BUFFER_TOO_SMALL);
  return status;
}

template <typename Call>
jintArray newIds(JNIEnv* env, const Log& log, Call call) {
  int32_t* ids = nullptr;
  size_t count = 0;
  jintArray array = nullptr;
  if (worked(env, fill(&ids, &count, call), log)) {
    array = env->NewIntArray(static_cast<jsize>(count));
  }
  if (array != nullptr) {
    env->SetIntArrayRegion(array, 0, static_cast<jsize>(count), ids);
  }
  std::free(ids);
  return array;
}

/// `nuls`: NULs at the end of the text, which are left out.
template <typename Call>
jbyteArray newText(JNIEnv* env, const Log& log, size_t nuls, Call call) {
  char* text = nullptr;
  size_t bytes = 0;
  jbyteArray array = nullptr;
  if (worked(env, fill(&text, &bytes, call), log)) {
    array = newBytes(env, text, bytes - nuls);
  }
  std::free(text);
  return array;
}

// ---- Calls back into Java -----------------------------------------------------------------------

/// Progress callbacks of a session and its forks.
struct Listener {
  jobject callbacks = nullptr;  // may be null
  std::atomic<int> users{1};
};

struct Session {
  oriel_session* session = nullptr;
  const Log* log = nullptr;
  Listener* reading = nullptr;
  // The current call of Java is cancelled. The library itself drops a cancel while no call runs.
  std::atomic<bool> cancelled{false};
};

/// The session of the current call on this thread. Forks share callbacks, so these need it.
inline thread_local Session* t_session = nullptr;

class Turn {
 public:
  explicit Turn(Session* session) : before_(t_session) { t_session = session; }
  ~Turn() { t_session = before_; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Session* const before_;
};

/// Calls Native.Callbacks, until an exception is pending or a callback returns false.
struct Caller {
  JNIEnv* env;
  jobject callbacks;
  bool wants_tokens = false;
  bool stopped = false;

  /// Runs `call`; true when the library should stop.
  template <typename Call>
  bool stops(Call call) {
    stopped = stopped || env->ExceptionCheck() == JNI_TRUE || !call() ||
              env->ExceptionCheck() == JNI_TRUE;
    return stopped;
  }

  /// Calls `call` with the text as byte[], and deletes the local reference: a reply may need many.
  template <typename Call>
  bool stopsAfter(const char* text, size_t bytes, Call call) {
    return stops([&] {
      const jbyteArray array = newBytes(env, text, bytes);
      if (array == nullptr) {
        return false;
      }
      const bool go_on = call(array) == JNI_TRUE;
      env->DeleteLocalRef(array);
      return go_on;
    });
  }
};

inline bool callOnToken(Caller& to, const oriel_token_event& event) {
  JNIEnv* const env = to.env;
  const jsize count = static_cast<jsize>(event.top_count);
  return to.stopsAfter(event.text, event.text_bytes, [&](jbyteArray text) -> jboolean {
    const jintArray ids = env->NewIntArray(count);
    const jfloatArray logprobs = ids != nullptr ? env->NewFloatArray(count) : nullptr;
    if (logprobs == nullptr) {
      return JNI_FALSE;
    }
    for (jsize i = 0; i < count; ++i) {
      const jint id = event.top[i].id;
      env->SetIntArrayRegion(ids, i, 1, &id);
      env->SetFloatArrayRegion(logprobs, i, 1, &event.top[i].logprob);
    }
    const jboolean go_on =
        env->CallBooleanMethod(to.callbacks, g_on_token, static_cast<jint>(event.id), text,
                               static_cast<jfloat>(event.logprob), ids, logprobs);
    env->DeleteLocalRef(logprobs);
    env->DeleteLocalRef(ids);
    return go_on;
  });
}

inline int onText(const oriel_token_event* event, void* user) {
  Caller& to = *static_cast<Caller*>(user);
  if (t_session->cancelled.load()) {
    oriel_session_cancel(t_session->session);
  }
  if (to.wants_tokens && callOnToken(to, *event)) {
    return 1;
  }
  if (event->text_bytes == 0) {
    return 0;
  }
  return to.stopsAfter(event->text, event->text_bytes, [&](jbyteArray text) {
    return to.env->CallBooleanMethod(to.callbacks, g_on_text, text);
  });
}

inline int onPart(const oriel_part* part, void* user) {
  Caller& to = *static_cast<Caller*>(user);
  JNIEnv* const env = to.env;
  return to.stopsAfter(part->text, part->text_bytes, [&](jbyteArray text) -> jboolean {
    jbyteArray path = nullptr;
    if (part->path != nullptr &&
        (path = newBytes(env, part->path, std::strlen(part->path))) == nullptr) {
      return JNI_FALSE;
    }
    const jboolean go_on =
        env->CallBooleanMethod(to.callbacks, g_on_part, static_cast<jint>(part->kind),
                               static_cast<jint>(part->call), text, path);
    env->DeleteLocalRef(path);
    return go_on;
  });
}

inline int onProgress(uint64_t done, uint64_t total, void* user) {
  Caller& to = *static_cast<Caller*>(user);
  return to.stops([&] {
    return to.env->CallBooleanMethod(to.callbacks, g_on_progress, static_cast<jlong>(done),
                                     static_cast<jlong>(total)) == JNI_TRUE;
  });
}

/// Progress of a session's call, on the calling thread, a thread of Java.
inline int onReading(uint64_t done, uint64_t total, void* user) {
  if (t_session != nullptr && t_session->cancelled.load()) {
    return 1;
  }
  Caller to{nullptr, static_cast<const Listener*>(user)->callbacks};
  if (to.callbacks == nullptr) {
    return 0;
  }
  return g_vm->GetEnv(reinterpret_cast<void**>(&to.env), JNI_VERSION_1_6) == JNI_OK
             ? onProgress(done, total, &to)
             : 1;
}

}  // namespace oriel_jni
