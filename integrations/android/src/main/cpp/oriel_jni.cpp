// Native.java's other side, over the public C API. Every function is one C call with its arguments
// copied in and its results copied out; threads and lifetimes are OrielSession.java's. Text crosses
// as byte[] in UTF-8.
#include <jni.h>
#include <oriel/oriel.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "jni_support.h"

namespace oriel_jni {
namespace {

jmethodID g_on_text = nullptr;  // set once, by JNI_OnLoad
jmethodID g_on_progress = nullptr;

struct Handle {
  Log log;
  oriel_model* model = nullptr;
  oriel_session* session = nullptr;
  ~Handle() {
    oriel_session_destroy(session);
    oriel_model_free(model);
  }
};

void release(JNIEnv* env, Handle* handle) {
  const jobject listener = handle->log.listener;
  delete handle;
  env->DeleteGlobalRef(listener);
}

Handle* handleOf(jlong handle) { return reinterpret_cast<Handle*>(static_cast<intptr_t>(handle)); }

// ---- Callbacks ----------------------------------------------------------------------------------

/// Calls back into Native.Callbacks. After an exception, which waits to be thrown, or an answer to
/// stop nothing more is called.
struct Caller {
  JNIEnv* env;
  jobject callbacks;
  bool stopped = false;

  /// Runs `call`; true when the library should stop.
  template <typename Call>
  bool stops(Call call) {
    stopped = stopped || env->ExceptionCheck() == JNI_TRUE || !call() ||
              env->ExceptionCheck() == JNI_TRUE;
    return stopped;
  }
};

int onText(const oriel_token_event* event, void* user) {
  Caller& to = *static_cast<Caller*>(user);
  if (event->text_bytes == 0) {
    return 0;
  }
  return to.stops([&] {
    const jbyteArray bytes = newBytes(to.env, event->text, event->text_bytes);
    if (bytes == nullptr) {
      return false;
    }
    const bool go_on = to.env->CallBooleanMethod(to.callbacks, g_on_text, bytes) == JNI_TRUE;
    to.env->DeleteLocalRef(bytes);  // a reply may be longer than there is room for references
    return go_on;
  });
}

int onProgress(uint64_t done, uint64_t total, void* user) {
  Caller& to = *static_cast<Caller*>(user);
  return to.stops([&] {
    return to.env->CallBooleanMethod(to.callbacks, g_on_progress, static_cast<jlong>(done),
                                     static_cast<jlong>(total)) == JNI_TRUE;
  });
}

// ---- Without a session --------------------------------------------------------------------------

void setPlan(JNIEnv* env, jlongArray to, const oriel_plan& plan) {
  jlong loss = 0;
  std::memcpy(&loss, &plan.loss_nats, sizeof(loss));
  const auto number = [](uint64_t value) { return static_cast<jlong>(value); };
  // The order of OrielPlan's constructor.
  const jlong n[] = {plan.fits,
                     number(plan.memory_bytes),
                     number(plan.total_bytes),
                     number(plan.weights_bytes),
                     number(plan.kv_bytes),
                     number(plan.activation_bytes),
                     number(plan.staging_bytes),
                     number(plan.host_bytes),
                     number(plan.minimum_bytes),
                     number(plan.kv_bytes_per_token),
                     plan.window_tokens,
                     plan.sink_tokens,
                     plan.chunk_tokens,
                     plan.context_train_tokens,
                     plan.k_format,
                     plan.v_format,
                     loss};
  env->SetLongArrayRegion(to, 0, sizeof(n) / sizeof(n[0]), n);
}

jbyteArray version(JNIEnv* env, jclass) {
  return newBytes(env, oriel_version(), std::strlen(oriel_version()));
}

jint planFile(JNIEnv* env, jclass, jbyteArray path, jlongArray numbers, jobject listener,
              jlongArray result, jobjectArray error) {
  Log log;
  log.listener = listener;
  const Bytes file(env, path);
  const Options with(env, numbers, nullptr, &log);
  oriel_plan plan = {};
  plan.struct_size = sizeof(plan);
  const oriel_status status = file.missing() ? ORIEL_ERROR_OUT_OF_MEMORY
                                             : oriel_plan_file(file.data(), &with.options, &plan);
  if (status == ORIEL_OK) {
    setPlan(env, result, plan);
  }
  return finish(env, status, &log, error);
}

jint inspect(JNIEnv* env, jclass, jbyteArray path, jlongArray numbers, jobjectArray texts,
             jobjectArray error) {
  Log log;
  const Bytes file(env, path);
  oriel_options options = {};
  options.struct_size = sizeof(options);
  options.log = onLog;
  options.log_user = &log;
  oriel_file_info info = {};
  info.struct_size = sizeof(info);
  const oriel_status status =
      file.missing() ? ORIEL_ERROR_OUT_OF_MEMORY : oriel_inspect(file.data(), &options, &info);
  if (status == ORIEL_OK) {
    // The order of OrielFileInfo's constructor.
    const char* all[] = {info.architecture, info.name,      info.size_label,
                         info.license,      info.tokenizer, info.chat_template};
    jsize at = 0;
    for (const char* text : all) {
      setText(env, texts, at++, text);
    }
    for (uint32_t i = 0; i < info.missing_count; ++i) {
      setText(env, texts, at++, info.missing[i]);
    }
    const jlong n[] = {info.n_layers,
                       info.n_vocab,
                       info.context_train,
                       static_cast<jlong>(info.parameters),
                       static_cast<jlong>(info.file_bytes),
                       info.runs,
                       info.missing_count};
    if (env->ExceptionCheck() == JNI_FALSE) {
      env->SetLongArrayRegion(numbers, 0, sizeof(n) / sizeof(n[0]), n);
    }
  }
  return finish(env, status, &log, error);
}

/// What the system message takes at the start of a session, as the model's tokenizer counts it.
jint countPinned(JNIEnv* env, jclass, jbyteArray path, jlongArray numbers,
                 jobjectArray option_texts, jobject listener, jbyteArray system, jintArray tokens,
                 jobjectArray error) {
  Log log;
  log.listener = listener;
  const Bytes file(env, path);
  const Bytes text(env, system);
  Options with(env, numbers, option_texts, &log);
  with.options.device = ORIEL_DEVICE_NONE;
  oriel_model* model = nullptr;
  size_t count = 0;
  oriel_status status = ORIEL_ERROR_OUT_OF_MEMORY;
  if (!file.missing() && !text.missing() && !with.missing()) {
    status = oriel_model_load(file.data(), &with.options, &model);
  }
  if (status == ORIEL_OK) {
    const oriel_message message = {"system", text.data(), text.size()};
    status =
        oriel_render_tokens(model, &with.chat, &message, 1, 0, ORIEL_TEXT_BOS, nullptr, 0, &count);
    status = status == ORIEL_ERROR_BUFFER_TOO_SMALL ? ORIEL_OK : status;
    oriel_model_free(model);
  }
  const jint result = static_cast<jint>(count);
  env->SetIntArrayRegion(tokens, 0, 1, &result);
  return finish(env, status, &log, error);
}

// ---- Sessions -----------------------------------------------------------------------------------

jint open(JNIEnv* env, jclass, jbyteArray path, jlongArray numbers, jobjectArray option_texts,
          jobject callbacks, jobject listener, jlongArray result, jobjectArray error) {
  Log none;
  Handle* handle = new (std::nothrow) Handle;
  if (handle == nullptr) {
    return finish(env, ORIEL_ERROR_OUT_OF_MEMORY, &none, error);
  }
  if (listener != nullptr) {
    handle->log.listener = env->NewGlobalRef(listener);
  }
  const Bytes file(env, path);
  Options with(env, numbers, option_texts, &handle->log);
  Caller caller{env, callbacks};
  if (callbacks != nullptr) {
    with.options.progress = onProgress;
    with.options.progress_user = &caller;
  }
  oriel_status status = ORIEL_ERROR_OUT_OF_MEMORY;
  if (!file.missing() && !with.missing()) {
    status = oriel_model_load(file.data(), &with.options, &handle->model);
  }
  if (status == ORIEL_OK) {
    oriel_session_options session_options = {};
    session_options.struct_size = sizeof(session_options);
    session_options.chat = &with.chat;
    status = oriel_session_create(handle->model, &session_options, &handle->session);
  }
  if (status != ORIEL_OK || env->ExceptionCheck() == JNI_TRUE) {
    const jint code = finish(env, status, &handle->log, error);
    release(env, handle);
    return code;
  }
  const jlong value = static_cast<jlong>(reinterpret_cast<intptr_t>(handle));
  env->SetLongArrayRegion(result, 0, 1, &value);
  return ORIEL_OK;
}

void closeHandle(JNIEnv* env, jclass, jlong handle) { release(env, handleOf(handle)); }

void cancel(JNIEnv*, jclass, jlong handle) { oriel_session_cancel(handleOf(handle)->session); }

jint describe(JNIEnv* env, jclass, jlong handle, jlongArray plan_numbers, jobjectArray texts,
              jobjectArray error) {
  Handle* on = handleOf(handle);
  oriel_plan plan = {};
  oriel_model_info info = {};
  plan.struct_size = sizeof(plan);
  info.struct_size = sizeof(info);
  oriel_status status = oriel_model_get_plan(on->model, &plan);
  if (status == ORIEL_OK) {
    status = oriel_model_get_info(on->model, &info);
  }
  if (status == ORIEL_OK) {
    setPlan(env, plan_numbers, plan);
    setText(env, texts, 0, info.device);
    setText(env, texts, 1, info.driver);
  }
  return finish(env, status, &on->log, error);
}

jint chatAdd(JNIEnv* env, jclass, jlong handle, jbyteArray role, jbyteArray text,
             jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes who(env, role);
  const Bytes what(env, text);
  const oriel_status status =
      who.missing() || what.missing()
          ? ORIEL_ERROR_OUT_OF_MEMORY
          : oriel_chat_add(on->session, who.data(), what.data(), what.size());
  return finish(env, status, &on->log, error);
}

jint append(JNIEnv* env, jclass, jlong handle, jbyteArray text, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes what(env, text);
  const oriel_status status =
      what.missing()
          ? ORIEL_ERROR_OUT_OF_MEMORY
          : oriel_session_append_text(on->session, what.data(), what.size(), ORIEL_TEXT_SPECIAL);
  return finish(env, status, &on->log, error);
}

oriel_generate_options replyOptions(JNIEnv* env, jlongArray numbers, jfloatArray floats) {
  jlong n[4] = {};
  jfloat f[4] = {};
  env->GetLongArrayRegion(numbers, 0, 4, n);
  env->GetFloatArrayRegion(floats, 0, 4, f);
  oriel_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_tokens = u32(n[0]);
  options.greedy = n[1] != 0;
  options.seed = static_cast<uint64_t>(n[2]);
  options.top_k = u32(n[3]);
  options.temperature = f[0];
  options.top_p = f[1];
  options.min_p = f[2];
  options.repeat_penalty = f[3];
  return options;
}

jint generate(JNIEnv* env, jclass, jlong handle, jboolean chat, jlongArray numbers,
              jfloatArray floats, jobject callbacks, jdoubleArray reply, jobjectArray error) {
  Handle* on = handleOf(handle);
  const oriel_generate_options options = replyOptions(env, numbers, floats);
  oriel_generation result = {};
  result.struct_size = sizeof(result);
  Caller caller{env, callbacks};
  const oriel_status status = (chat == JNI_TRUE ? oriel_chat_reply : oriel_session_generate)(
      on->session, &options, onText, &caller, &result);
  if (env->ExceptionCheck() == JNI_FALSE) {
    const jdouble n[] = {static_cast<jdouble>(result.stop_reason),
                         static_cast<jdouble>(result.tokens),
                         static_cast<jdouble>(result.prompt_tokens), result.time_to_first_token_ms,
                         result.decode_tokens_per_s};
    env->SetDoubleArrayRegion(reply, 0, sizeof(n) / sizeof(n[0]), n);
  }
  return finish(env, status, &on->log, error);
}

jint reset(JNIEnv* env, jclass, jlong handle, jobjectArray error) {
  Handle* on = handleOf(handle);
  return finish(env, oriel_session_reset(on->session), &on->log, error);
}

jint rewindTo(JNIEnv* env, jclass, jlong handle, jlong position, jobjectArray error) {
  Handle* on = handleOf(handle);
  return finish(env, oriel_session_rewind(on->session, static_cast<uint64_t>(position)), &on->log,
                error);
}

jint save(JNIEnv* env, jclass, jlong handle, jbyteArray path, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes file(env, path);
  return finish(env,
                file.missing() ? ORIEL_ERROR_OUT_OF_MEMORY
                               : oriel_session_save_file(on->session, file.data()),
                &on->log, error);
}

jint restore(JNIEnv* env, jclass, jlong handle, jbyteArray path, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes file(env, path);
  return finish(env,
                file.missing() ? ORIEL_ERROR_OUT_OF_MEMORY
                               : oriel_session_restore_file(on->session, file.data()),
                &on->log, error);
}

jint stats(JNIEnv* env, jclass, jlong handle, jlongArray numbers, jobjectArray error) {
  Handle* on = handleOf(handle);
  oriel_stats stats = {};
  stats.struct_size = sizeof(stats);
  const oriel_status status = oriel_session_get_stats(on->session, &stats);
  // The order of OrielStats's constructor.
  const jlong n[] = {static_cast<jlong>(stats.position),
                     stats.window_used,
                     stats.window_capacity,
                     static_cast<jlong>(stats.evicted),
                     static_cast<jlong>(stats.device_bytes),
                     static_cast<jlong>(stats.host_bytes)};
  env->SetLongArrayRegion(numbers, 0, sizeof(n) / sizeof(n[0]), n);
  return finish(env, status, &on->log, error);
}

jint tokenize(JNIEnv* env, jclass, jlong handle, jbyteArray text, jobjectArray result,
              jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes what(env, text);
  int32_t* ids = nullptr;
  size_t count = 0;
  oriel_status status = ORIEL_ERROR_OUT_OF_MEMORY;
  if (!what.missing()) {
    status = oriel_tokenize(on->model, what.data(), what.size(), 0, nullptr, 0, &count);
  }
  if (status == ORIEL_OK || status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    ids = static_cast<int32_t*>(std::malloc(count * sizeof(int32_t) + 1));
    status = ids == nullptr
                 ? ORIEL_ERROR_OUT_OF_MEMORY
                 : oriel_tokenize(on->model, what.data(), what.size(), 0, ids, count, &count);
  }
  if (status == ORIEL_OK) {
    const jintArray array = env->NewIntArray(static_cast<jsize>(count));
    if (array != nullptr) {
      env->SetIntArrayRegion(array, 0, static_cast<jsize>(count), ids);
      env->SetObjectArrayElement(result, 0, array);
    }
  }
  std::free(ids);
  return finish(env, status, &on->log, error);
}

jint detokenize(JNIEnv* env, jclass, jlong handle, jintArray tokens, jobjectArray result,
                jobjectArray error) {
  Handle* on = handleOf(handle);
  const size_t count = static_cast<size_t>(env->GetArrayLength(tokens));
  int32_t* ids = static_cast<int32_t*>(std::malloc(count * sizeof(int32_t) + 1));
  char* text = nullptr;
  size_t bytes = 0;
  oriel_status status = ORIEL_ERROR_OUT_OF_MEMORY;
  if (ids != nullptr) {
    env->GetIntArrayRegion(tokens, 0, static_cast<jsize>(count), ids);
    status = oriel_detokenize(on->model, ids, count, 0, nullptr, 0, &bytes);
  }
  if (status == ORIEL_OK || status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text = static_cast<char*>(std::malloc(bytes + 1));
    status = text == nullptr ? ORIEL_ERROR_OUT_OF_MEMORY
                             : oriel_detokenize(on->model, ids, count, 0, text, bytes, &bytes);
  }
  if (status == ORIEL_OK) {
    setBytes(env, result, 0, text, bytes);
  }
  std::free(text);
  std::free(ids);
  return finish(env, status, &on->log, error);
}

template <typename Function>
JNINativeMethod native(const char* name, const char* signature, Function function) {
  // The field types of JNINativeMethod are not const in every jni.h.
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace
}  // namespace oriel_jni

// Registering by name and signature: a mismatch fails when the library is loaded, not when it is
// called.
extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  using namespace oriel_jni;
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK) {
    return JNI_ERR;
  }
  const jclass callbacks = env->FindClass("dev/oriel/Native$Callbacks");
  if (callbacks == nullptr) {
    return JNI_ERR;
  }
  g_on_text = env->GetMethodID(callbacks, "onText", "([B)Z");
  if (g_on_text == nullptr) {
    return JNI_ERR;
  }
  g_on_progress = env->GetMethodID(callbacks, "onProgress", "(JJ)Z");
  if (g_on_progress == nullptr) {
    return JNI_ERR;
  }
  const jclass log = env->FindClass("dev/oriel/Native$Log");
  if (log == nullptr) {
    return JNI_ERR;
  }
  g_on_log = env->GetMethodID(log, "onLog", "(I[B)V");
  if (g_on_log == nullptr) {
    return JNI_ERR;
  }
  g_vm = vm;
  const jclass natives = env->FindClass("dev/oriel/Native");
  if (natives == nullptr) {
    return JNI_ERR;
  }
  const JNINativeMethod methods[] = {
      native("version", "()[B", version),
      native("plan", "([B[JLdev/oriel/Native$Log;[J[[B)I", planFile),
      native("inspect", "([B[J[[B[[B)I", inspect),
      native("countPinned", "([B[J[[BLdev/oriel/Native$Log;[B[I[[B)I", countPinned),
      native("open", "([B[J[[BLdev/oriel/Native$Callbacks;Ldev/oriel/Native$Log;[J[[B)I", open),
      native("close", "(J)V", closeHandle),
      native("cancel", "(J)V", cancel),
      native("describe", "(J[J[[B[[B)I", describe),
      native("chatAdd", "(J[B[B[[B)I", chatAdd),
      native("append", "(J[B[[B)I", append),
      native("generate", "(JZ[J[FLdev/oriel/Native$Callbacks;[D[[B)I", generate),
      native("reset", "(J[[B)I", reset),
      native("rewind", "(JJ[[B)I", rewindTo),
      native("save", "(J[B[[B)I", save),
      native("restore", "(J[B[[B)I", restore),
      native("stats", "(J[J[[B)I", stats),
      native("tokenize", "(J[B[[I[[B)I", tokenize),
      native("detokenize", "(J[I[[B[[B)I", detokenize),
  };
  const jint count = static_cast<jint>(sizeof(methods) / sizeof(methods[0]));
  return env->RegisterNatives(natives, methods, count) == JNI_OK ? JNI_VERSION_1_6 : JNI_ERR;
}
