// Native.java's other side, over the public C API. Every function is one C call with its arguments
// copied in and its results copied out; threads and lifetimes are OrielSession.java's. Text crosses
// as byte[] in UTF-8.
#include <jni.h>
#include <oriel/oriel.h>
#include <oriel/sessions.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "jni_reply.h"

namespace oriel_jni {
namespace {

struct Handle {
  Handle(JNIEnv* env, jlongArray numbers, jobjectArray texts) : with(env, numbers, texts, &log) {}
  ~Handle() {
    oriel_session_destroy(session);
    oriel_model_free(model);
  }
  Log log;
  Options with;
  jobject reading_again = nullptr;  // Native.Callbacks; may be null
  // The call that Java has begun is to end: the library knows of it only from its first step on.
  std::atomic<bool> cancelled{false};
  oriel_model* model = nullptr;
  oriel_session* session = nullptr;
};

void release(JNIEnv* env, Handle* handle) {
  const jobject listener = handle->log.listener;
  const jobject reading_again = handle->reading_again;
  delete handle;
  t_line.log = nullptr;  // another log may come to lie there
  env->DeleteGlobalRef(listener);
  env->DeleteGlobalRef(reading_again);
}

/// On the thread of the call that reads, which is one of Java's.
int onReading(uint64_t done, uint64_t total, void* user) {
  const Handle& handle = *static_cast<const Handle*>(user);
  if (handle.cancelled.load() || handle.reading_again == nullptr) {
    return handle.cancelled.load() ? 1 : 0;
  }
  Caller to{nullptr, handle.reading_again};
  return g_vm->GetEnv(reinterpret_cast<void**>(&to.env), JNI_VERSION_1_6) == JNI_OK
             ? onProgress(done, total, &to)
             : 1;
}

Handle* handleOf(jlong handle) { return reinterpret_cast<Handle*>(static_cast<intptr_t>(handle)); }

// ---- Without a session --------------------------------------------------------------------------

void setPlan(JNIEnv* env, jlongArray to, const oriel_plan& plan) {
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
                     bitsOf(plan.loss_nats),
                     number(plan.on_file_bytes),
                     plan.expert_slots,
                     plan.expert_count,
                     bitsOf(plan.expert_hit_rate),
                     number(plan.state_bytes),
                     plan.state_slots,
                     plan.checkpoints,
                     plan.state_format,
                     number(plan.constraint_bytes),
                     number(plan.trim_bytes[ORIEL_TRIM_SCRATCH]),
                     number(plan.trim_bytes[ORIEL_TRIM_WEIGHTS]),
                     number(plan.trim_bytes[ORIEL_TRIM_CACHE]),
                     number(plan.trim_bytes[ORIEL_TRIM_ALL]),
                     number(plan.draft_bytes),
                     plan.draft_tokens,
                     plan.recall_tokens,
                     number(plan.recall_file_bytes),
                     number(plan.recall_file_tokens),
                     number(plan.draft_weights_bytes),
                     number(plan.transcript_bytes)};
  env->SetLongArrayRegion(to, 0, sizeof(n) / sizeof(n[0]), n);
}

jbyteArray version(JNIEnv* env, jclass) {
  return newBytes(env, oriel_version(), std::strlen(oriel_version()));
}

jint planFile(JNIEnv* env, jclass, jbyteArray path, jlongArray numbers, jobjectArray option_texts,
              jobject listener, jlongArray result, jobjectArray error) {
  Log log;
  log.listener = listener;
  const Bytes file(env, path);
  const Options with(env, numbers, option_texts, &log);
  oriel_plan plan = {};
  plan.struct_size = sizeof(plan);
  const oriel_status status = file.missing() || with.missing()
                                  ? ORIEL_ERROR_OUT_OF_MEMORY
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

jint forgetDevices(JNIEnv* env, jclass, jbyteArray folder, jobjectArray error) {
  Log log;
  const Bytes dir(env, folder);
  oriel_options options = {};
  options.struct_size = sizeof(options);
  options.cache_dir = dir.data();
  options.log = onLog;
  options.log_user = &log;
  const oriel_status status =
      dir.missing() ? ORIEL_ERROR_OUT_OF_MEMORY : oriel_device_forget(&options);
  return finish(env, status, &log, error);
}

// ---- Sessions -----------------------------------------------------------------------------------

jint open(JNIEnv* env, jclass, jbyteArray path, jlongArray numbers, jobjectArray option_texts,
          jobject callbacks, jobject reading_again, jobject listener, jlongArray result,
          jobjectArray error) {
  Log none;
  Handle* handle = new (std::nothrow) Handle(env, numbers, option_texts);
  if (handle == nullptr) {
    return finish(env, ORIEL_ERROR_OUT_OF_MEMORY, &none, error);
  }
  if (listener != nullptr) {
    handle->log.listener = env->NewGlobalRef(listener);
  }
  if (reading_again != nullptr) {
    handle->reading_again = env->NewGlobalRef(reading_again);
  }
  handle->with.session.progress = onReading;
  handle->with.session.progress_user = handle;
  const Bytes file(env, path);
  Caller caller{env, callbacks};
  if (callbacks != nullptr) {
    handle->with.options.progress = onProgress;
    handle->with.options.progress_user = &caller;
  }
  oriel_status status = ORIEL_ERROR_OUT_OF_MEMORY;
  if (!file.missing() && !handle->with.missing()) {
    status = oriel_model_load(file.data(), &handle->with.options, &handle->model);
  }
  if (status == ORIEL_OK) {
    handle->with.session.chat = &handle->with.chat;
    status = oriel_session_create(handle->model, &handle->with.session, &handle->session);
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

void spare(JNIEnv*, jclass, jlong handle) { handleOf(handle)->cancelled.store(false); }

void cancel(JNIEnv*, jclass, jlong handle) {
  Handle* on = handleOf(handle);
  on->cancelled.store(true);
  oriel_session_cancel(on->session);
}

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

jint chatAddJson(JNIEnv* env, jclass, jlong handle, jbyteArray json, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes what(env, json);
  const oriel_status status = what.missing()
                                  ? ORIEL_ERROR_OUT_OF_MEMORY
                                  : oriel_chat_add_json(on->session, what.data(), what.size());
  return finish(env, status, &on->log, error);
}

jint generate(JNIEnv* env, jclass, jlong handle, jboolean chat, jlongArray numbers,
              jfloatArray floats, jobjectArray texts, jintArray bias_ids, jfloatArray biases,
              jobject callbacks, jdoubleArray reply, jobjectArray error) {
  Handle* on = handleOf(handle);
  Caller caller{env, callbacks};
  caller.session = on->session;
  caller.cancelled = &on->cancelled;
  const ReplyOptions how(env, numbers, floats, texts, bias_ids, biases, &caller);
  oriel_generation result = {};
  result.struct_size = sizeof(result);
  const auto call = chat == JNI_TRUE ? oriel_chat_reply : oriel_session_generate;
  const oriel_status status = how.missing()
                                  ? ORIEL_ERROR_OUT_OF_MEMORY
                                  : call(on->session, &how.options, onText, &caller, &result);
  if (env->ExceptionCheck() == JNI_FALSE) {
    const jdouble n[] = {static_cast<jdouble>(result.stop_reason),
                         static_cast<jdouble>(result.tokens),
                         static_cast<jdouble>(result.prompt_tokens), result.time_to_first_token_ms,
                         result.decode_tokens_per_s};
    env->SetDoubleArrayRegion(reply, 0, sizeof(n) / sizeof(n[0]), n);
  }
  return finish(env, status, &on->log, error);
}

jint parseReply(JNIEnv* env, jclass, jlong handle, jboolean inside_thought, jbyteArray text,
                jobject callbacks, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes what(env, text);
  Caller caller{env, callbacks};
  const oriel_status status =
      what.missing()
          ? ORIEL_ERROR_OUT_OF_MEMORY
          : oriel_parse_reply(on->model, &on->with.chat, inside_thought == JNI_TRUE ? 1 : 0,
                              what.data(), what.size(), onPart, &caller);
  return finish(env, status, &on->log, error);
}

jint embed(JNIEnv* env, jclass, jlong handle, jint pooling, jboolean normalised, jbyteArray text,
           jobjectArray values, jintArray tokens, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes what(env, text);
  oriel_embed_options options = {};
  options.struct_size = sizeof(options);
  options.pooling = static_cast<oriel_pooling>(pooling);
  options.not_normalised = normalised == JNI_TRUE ? 0 : 1;
  size_t count = 0;
  uint32_t n_tokens = 0;
  float* vector = nullptr;
  oriel_status status = ORIEL_ERROR_OUT_OF_MEMORY;
  if (!what.missing()) {
    status =
        oriel_embed(on->session, &options, what.data(), what.size(), nullptr, 0, &count, nullptr);
  }
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    vector = static_cast<float*>(std::malloc(count * sizeof(float)));
    status = vector == nullptr ? ORIEL_ERROR_OUT_OF_MEMORY
                               : oriel_embed(on->session, &options, what.data(), what.size(),
                                             vector, count, &count, &n_tokens);
  }
  if (status == ORIEL_OK) {
    const jint n = static_cast<jint>(n_tokens);
    env->SetIntArrayRegion(tokens, 0, 1, &n);
    const jfloatArray array = env->NewFloatArray(static_cast<jsize>(count));
    if (array != nullptr) {
      env->SetFloatArrayRegion(array, 0, static_cast<jsize>(count), vector);
      env->SetObjectArrayElement(values, 0, array);
    }
  }
  std::free(vector);
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

jint recover(JNIEnv* env, jclass, jlong handle, jobject callbacks, jobjectArray device,
             jobjectArray error) {
  Handle* on = handleOf(handle);
  Caller caller{env, callbacks};
  oriel_recover_options options = {};
  options.struct_size = sizeof(options);
  options.progress = onProgress;
  options.progress_user = &caller;
  oriel_recovered recovered = {};
  recovered.struct_size = sizeof(recovered);
  const oriel_status status = oriel_session_recover(on->session, &options, &recovered);
  if (status == ORIEL_OK) {
    const jbyteArray name =
        newBytes(env, recovered.device_name, std::strlen(recovered.device_name));
    if (name != nullptr) {
      env->SetObjectArrayElement(device, 0, name);
    }
  }
  return finish(env, status, &on->log, error);
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
                     static_cast<jlong>(stats.host_bytes),
                     static_cast<jlong>(stats.submissions),
                     static_cast<jlong>(stats.expert_hits),
                     static_cast<jlong>(stats.expert_misses),
                     static_cast<jlong>(stats.rows_wanted),
                     static_cast<jlong>(stats.rows_read),
                     static_cast<jlong>(stats.tokens_read_again),
                     static_cast<jlong>(stats.tokens_drafted),
                     static_cast<jlong>(stats.tokens_accepted),
                     static_cast<jlong>(stats.tokens_kept),
                     static_cast<jlong>(stats.tokens_recalled)};
  env->SetLongArrayRegion(numbers, 0, sizeof(n) / sizeof(n[0]), n);
  return finish(env, status, &on->log, error);
}

/// Ids that `call(ids, capacity, &needed)` gives, in result[0].
template <typename Call>
oriel_status giveIds(JNIEnv* env, jobjectArray result, Call call) {
  size_t count = 0;
  oriel_status status = call(nullptr, size_t{0}, &count);
  if (status != ORIEL_OK && status != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return status;
  }
  int32_t* const ids = static_cast<int32_t*>(std::malloc(count * sizeof(int32_t) + 1));
  status = ids == nullptr ? ORIEL_ERROR_OUT_OF_MEMORY : call(ids, count, &count);
  if (status == ORIEL_OK) {
    const jintArray array = env->NewIntArray(static_cast<jsize>(count));
    if (array != nullptr) {
      env->SetIntArrayRegion(array, 0, static_cast<jsize>(count), ids);
      env->SetObjectArrayElement(result, 0, array);
    }
  }
  std::free(ids);
  return status;
}

/// Text that `call(text, capacity, &needed)` gives, in result[0].
template <typename Call>
oriel_status giveText(JNIEnv* env, jobjectArray result, Call call) {
  size_t bytes = 0;
  oriel_status status = call(nullptr, size_t{0}, &bytes);
  if (status != ORIEL_OK && status != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return status;
  }
  char* const text = static_cast<char*>(std::malloc(bytes + 1));
  status = text == nullptr ? ORIEL_ERROR_OUT_OF_MEMORY : call(text, bytes, &bytes);
  if (status == ORIEL_OK) {
    setBytes(env, result, 0, text, bytes);
  }
  std::free(text);
  return status;
}

jint render(JNIEnv* env, jclass, jlong handle, jbyteArray json, jboolean prompt,
            jobjectArray result, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes what(env, json);
  const oriel_status status =
      what.missing()
          ? ORIEL_ERROR_OUT_OF_MEMORY
          : giveText(env, result, [&](char* text, size_t capacity, size_t* needed) {
              return oriel_render_json(on->model, &on->with.chat, what.data(), what.size(),
                                       prompt == JNI_TRUE ? 1 : 0, text, capacity, needed);
            });
  return finish(env, status, &on->log, error);
}

jint renderTokens(JNIEnv* env, jclass, jlong handle, jbyteArray json, jboolean prompt,
                  jobjectArray result, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes what(env, json);
  const oriel_status status =
      what.missing()
          ? ORIEL_ERROR_OUT_OF_MEMORY
          : giveIds(env, result, [&](int32_t* ids, size_t capacity, size_t* needed) {
              return oriel_render_json_tokens(on->model, &on->with.chat, what.data(), what.size(),
                                              prompt == JNI_TRUE ? 1 : 0, 0, ids, capacity, needed);
            });
  return finish(env, status, &on->log, error);
}

jint tokenize(JNIEnv* env, jclass, jlong handle, jbyteArray text, jobjectArray result,
              jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes what(env, text);
  const oriel_status status =
      what.missing()
          ? ORIEL_ERROR_OUT_OF_MEMORY
          : giveIds(env, result, [&](int32_t* ids, size_t capacity, size_t* needed) {
              return oriel_tokenize(on->model, what.data(), what.size(), 0, ids, capacity, needed);
            });
  return finish(env, status, &on->log, error);
}

jint detokenize(JNIEnv* env, jclass, jlong handle, jintArray tokens, jobjectArray result,
                jobjectArray error) {
  Handle* on = handleOf(handle);
  const size_t count = static_cast<size_t>(env->GetArrayLength(tokens));
  int32_t* const ids = static_cast<int32_t*>(std::malloc(count * sizeof(int32_t) + 1));
  oriel_status status = ORIEL_ERROR_OUT_OF_MEMORY;
  if (ids != nullptr) {
    env->GetIntArrayRegion(tokens, 0, static_cast<jsize>(count), ids);
    status = giveText(env, result, [&](char* text, size_t capacity, size_t* needed) {
      return oriel_detokenize(on->model, ids, count, 0, text, capacity, needed);
    });
  }
  std::free(ids);
  return finish(env, status, &on->log, error);
}

// ---- Memory given back ---------------------------------------------------------------------------

// On any thread, beside a call of the session.

jint trim(JNIEnv* env, jclass, jlong handle, jint level, jbyteArray folder, jobjectArray error) {
  Handle* on = handleOf(handle);
  const Bytes where(env, folder);
  const oriel_status status =
      where.missing() ? ORIEL_ERROR_OUT_OF_MEMORY
                      : oriel_trim(on->model, static_cast<oriel_trim_level>(level), where.data());
  return finish(env, status, &on->log, error);
}

jint resume(JNIEnv* env, jclass, jlong handle, jobject callbacks, jobjectArray error) {
  Handle* on = handleOf(handle);
  Caller caller{env, callbacks};
  const oriel_status status = oriel_resume(on->model, onProgress, &caller);
  return finish(env, status, &on->log, error);
}

jint pause(JNIEnv* env, jclass, jlong handle, jobjectArray error) {
  Handle* on = handleOf(handle);
  return finish(env, oriel_pause(on->model), &on->log, error);
}

jint resident(JNIEnv* env, jclass, jlong handle, jlongArray numbers, jobjectArray error) {
  Handle* on = handleOf(handle);
  oriel_resident resident = {};
  resident.struct_size = sizeof(resident);
  const oriel_status status = oriel_model_get_resident(on->model, &resident);
  const jlong n[] = {resident.level, resident.paused, static_cast<jlong>(resident.total_bytes)};
  env->SetLongArrayRegion(numbers, 0, sizeof(n) / sizeof(n[0]), n);
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
  g_on_part = env->GetMethodID(callbacks, "onPart", "(II[B)Z");
  if (g_on_part == nullptr) {
    return JNI_ERR;
  }
  g_on_token = env->GetMethodID(callbacks, "onToken", "(I[BF[I[F)Z");
  if (g_on_token == nullptr) {
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
      native("plan", "([B[J[[BLdev/oriel/Native$Log;[J[[B)I", planFile),
      native("inspect", "([B[J[[B[[B)I", inspect),
      native("forgetDevices", "([B[[B)I", forgetDevices),
      native("countPinned", "([B[J[[BLdev/oriel/Native$Log;[B[I[[B)I", countPinned),
      native("open",
             "([B[J[[BLdev/oriel/Native$Callbacks;Ldev/oriel/Native$Callbacks;"
             "Ldev/oriel/Native$Log;[J[[B)I",
             open),
      native("close", "(J)V", closeHandle),
      native("spare", "(J)V", spare),
      native("cancel", "(J)V", cancel),
      native("describe", "(J[J[[B[[B)I", describe),
      native("chatAdd", "(J[B[B[[B)I", chatAdd),
      native("append", "(J[B[[B)I", append),
      native("chatAddJson", "(J[B[[B)I", chatAddJson),
      native("generate", "(JZ[J[F[[B[I[FLdev/oriel/Native$Callbacks;[D[[B)I", generate),
      native("parseReply", "(JZ[BLdev/oriel/Native$Callbacks;[[B)I", parseReply),
      native("render", "(J[BZ[[B[[B)I", render),
      native("renderTokens", "(J[BZ[[I[[B)I", renderTokens),
      native("embed", "(JIZ[B[[F[I[[B)I", embed),
      native("reset", "(J[[B)I", reset),
      native("rewind", "(JJ[[B)I", rewindTo),
      native("save", "(J[B[[B)I", save),
      native("restore", "(J[B[[B)I", restore),
      native("stats", "(J[J[[B)I", stats),
      native("trim", "(JI[B[[B)I", trim),
      native("recover", "(JLdev/oriel/Native$Callbacks;[[B[[B)I", recover),
      native("resume", "(JLdev/oriel/Native$Callbacks;[[B)I", resume),
      native("pause", "(J[[B)I", pause),
      native("resident", "(J[J[[B)I", resident),
      native("tokenize", "(J[B[[I[[B)I", tokenize),
      native("detokenize", "(J[I[[B[[B)I", detokenize),
  };
  const jint count = static_cast<jint>(sizeof(methods) / sizeof(methods[0]));
  return env->RegisterNatives(natives, methods, count) == JNI_OK ? JNI_VERSION_1_6 : JNI_ERR;
}
