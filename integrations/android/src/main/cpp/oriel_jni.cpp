// The functions of Native.java. Each makes one call of the C API and copies arguments and results.
// ModelHandle.java and SessionHandle.java manage threads and lifetimes. Text is byte[] in UTF-8.
// Errors are thrown.
#include <new>

#include "jni_support.h"

namespace oriel_jni {
namespace {

struct Model {
  Log log;
  oriel_model* model = nullptr;
};

Model* modelOf(jlong handle) { return reinterpret_cast<Model*>(static_cast<intptr_t>(handle)); }

Session* sessionOf(jlong handle) {
  return reinterpret_cast<Session*>(static_cast<intptr_t>(handle));
}

jlong handleOf(void* object) { return static_cast<jlong>(reinterpret_cast<intptr_t>(object)); }

oriel_options loadOptions(Log* log) {
  oriel_options options = ORIEL_OPTIONS_INIT;
  options.log = onLog;
  options.log_user = log;
  return options;
}

jdoubleArray newPlan(JNIEnv* env, const oriel_plan& plan) {
  // The order of OrielPlan's constructor.
  return newNumbers(
      env,
      {number(plan.fits), number(plan.memory_bytes), number(plan.total_bytes),
       number(plan.weights_bytes), number(plan.kv_bytes), number(plan.activation_bytes),
       number(plan.staging_bytes), number(plan.host_bytes), number(plan.minimum_bytes),
       number(plan.kv_bytes_per_token), number(plan.window_tokens), number(plan.sink_tokens),
       number(plan.prefill_batch_tokens), number(plan.sessions), number(plan.context_train_tokens),
       number(plan.k_format), number(plan.v_format), plan.loss_nats});
}

// ---- Without a model ----------------------------------------------------------------------------

jbyteArray version(JNIEnv* env, jclass) {
  return newBytes(env, oriel_version(), std::strlen(oriel_version()));
}

jdoubleArray planFile(JNIEnv* env, jclass, jbyteArray path, jbyteArray settings, jobject listener) {
  Log log{listener};
  const Bytes file(env, path);
  const Settings given(env, settings);
  const oriel_options options = given.in(loadOptions(&log));
  oriel_plan plan = ORIEL_PLAN_INIT;
  const oriel_status status = file.missing() || given.missing()
                                  ? ORIEL_ERROR_OUT_OF_MEMORY
                                  : oriel_plan_file(file.data(), &options, &plan);
  return worked(env, status, log) ? newPlan(env, plan) : nullptr;
}

// The order of the constants of Native, from PLAN.
enum What { kPlan, kFile, kDevices, kForgottenDevices, kSnapshot, kOptions };

jbyteArray describe(JNIEnv* env, jclass, jint what, jbyteArray path, jbyteArray settings,
                    jobject listener) {
  Log log{listener};
  const Bytes file(env, path);
  const Settings given(env, settings);
  const oriel_options options = given.in(loadOptions(&log));
  return newText(env, log, 1, [&](char* json, size_t capacity, size_t* needed) {
    if (file.missing() || given.missing()) {
      return ORIEL_ERROR_OUT_OF_MEMORY;
    }
    switch (what) {
      case kPlan:
        return oriel_plan_describe(file.data(), &options, json, capacity, needed);
      case kFile:
        return oriel_file_describe(file.data(), &options, json, capacity, needed);
      case kDevices:
        return oriel_device_describe(&options, 0, json, capacity, needed);
      case kForgottenDevices:
        return oriel_device_describe(&options, ORIEL_DEVICE_FORGET, json, capacity, needed);
      case kSnapshot:
        return oriel_snapshot_describe(file.data(), nullptr, 0, &options, json, capacity, needed);
      default:
        return oriel_option_list(json, capacity, needed);
    }
  });
}

// ---- Models -------------------------------------------------------------------------------------

void freeModel(JNIEnv* env, jclass, jlong handle) {
  Model* const on = modelOf(handle);
  oriel_model_free(on->model);
  env->DeleteGlobalRef(on->log.listener);
  t_line.log = nullptr;  // another log may get this address
  delete on;
}

jlong load(JNIEnv* env, jclass type, jbyteArray path, jbyteArray settings, jobject progress,
           jobject listener) {
  Log none;
  Model* const on = new (std::nothrow) Model;
  if (on == nullptr) {
    worked(env, ORIEL_ERROR_OUT_OF_MEMORY, none);
    return 0;
  }
  on->log.listener = listener == nullptr ? nullptr : env->NewGlobalRef(listener);
  const Bytes file(env, path);
  const Settings given(env, settings);
  Caller caller{env, progress};
  oriel_options options = given.in(loadOptions(&on->log));
  options.progress = progress == nullptr ? nullptr : onProgress;
  options.progress_user = &caller;
  const oriel_status status = file.missing() || given.missing()
                                  ? ORIEL_ERROR_OUT_OF_MEMORY
                                  : oriel_model_load(file.data(), &options, &on->model);
  if (worked(env, status, on->log)) {
    return handleOf(on);
  }
  const jthrowable error = env->ExceptionOccurred();
  env->ExceptionClear();
  freeModel(env, type, handleOf(on));
  env->Throw(error);
  return 0;
}

jdoubleArray modelPlan(JNIEnv* env, jclass, jlong handle) {
  Model* const on = modelOf(handle);
  oriel_plan plan = ORIEL_PLAN_INIT;
  return worked(env, oriel_model_get_plan(on->model, &plan), on->log) ? newPlan(env, plan)
                                                                      : nullptr;
}

jbyteArray describeModel(JNIEnv* env, jclass, jlong handle) {
  Model* const on = modelOf(handle);
  return newText(env, on->log, 1, [&](char* json, size_t capacity, size_t* needed) {
    return oriel_model_describe(on->model, json, capacity, needed);
  });
}

void trim(JNIEnv* env, jclass, jlong handle, jint level, jbyteArray folder) {
  Model* const on = modelOf(handle);
  const Bytes where(env, folder);
  worked(env,
         where.missing()
             ? ORIEL_ERROR_OUT_OF_MEMORY
             : oriel_trim(on->model, static_cast<oriel_trim_level>(level), where.data()),
         on->log);
}

void pause(JNIEnv* env, jclass, jlong handle) {
  Model* const on = modelOf(handle);
  worked(env, oriel_pause(on->model), on->log);
}

void resume(JNIEnv* env, jclass, jlong handle, jobject progress) {
  Model* const on = modelOf(handle);
  Caller caller{env, progress};
  worked(env, oriel_resume(on->model, onProgress, &caller), on->log);
}

jintArray tokenize(JNIEnv* env, jclass, jlong handle, jbyteArray text) {
  Model* const on = modelOf(handle);
  const Bytes what(env, text);
  return newIds(env, on->log, [&](int32_t* ids, size_t capacity, size_t* needed) {
    return what.missing()
               ? ORIEL_ERROR_OUT_OF_MEMORY
               : oriel_tokenize(on->model, what.data(), what.size(), 0, ids, capacity, needed);
  });
}

jbyteArray detokenize(JNIEnv* env, jclass, jlong handle, jintArray tokens) {
  Model* const on = modelOf(handle);
  const size_t count = static_cast<size_t>(env->GetArrayLength(tokens));
  int32_t* const ids = static_cast<int32_t*>(std::malloc(count * sizeof(int32_t) + 1));
  if (ids != nullptr) {
    env->GetIntArrayRegion(tokens, 0, static_cast<jsize>(count), ids);
  }
  const jbyteArray result =
      newText(env, on->log, 0, [&](char* text, size_t capacity, size_t* needed) {
        return ids == nullptr ? ORIEL_ERROR_OUT_OF_MEMORY
                              : oriel_detokenize(on->model, ids, count, 0, text, capacity, needed);
      });
  std::free(ids);
  return result;
}

jbyteArray render(JNIEnv* env, jclass, jlong handle, jbyteArray settings, jbyteArray json,
                  jboolean prompt) {
  Model* const on = modelOf(handle);
  const Bytes what(env, json);
  const Settings given(env, settings);
  const oriel_session_options options = given.in(ORIEL_SESSION_OPTIONS_INIT);
  return newText(env, on->log, 0, [&](char* text, size_t capacity, size_t* needed) {
    return what.missing() || given.missing()
               ? ORIEL_ERROR_OUT_OF_MEMORY
               : oriel_render(on->model, &options, what.data(), what.size(),
                              prompt == JNI_TRUE ? ORIEL_RENDER_PROMPT : 0, text, capacity, needed);
  });
}

jintArray renderTokens(JNIEnv* env, jclass, jlong handle, jbyteArray settings, jbyteArray json,
                       jboolean prompt) {
  Model* const on = modelOf(handle);
  const Bytes what(env, json);
  const Settings given(env, settings);
  const oriel_session_options options = given.in(ORIEL_SESSION_OPTIONS_INIT);
  return newIds(env, on->log, [&](int32_t* ids, size_t capacity, size_t* needed) {
    return what.missing() || given.missing()
               ? ORIEL_ERROR_OUT_OF_MEMORY
               : oriel_render_tokens(on->model, &options, what.data(), what.size(),
                                     prompt == JNI_TRUE ? ORIEL_RENDER_PROMPT : 0, ids, capacity,
                                     needed);
  });
}

void parseReply(JNIEnv* env, jclass, jlong handle, jbyteArray settings, jboolean inside_thought,
                jbyteArray text, jobject callbacks) {
  Model* const on = modelOf(handle);
  const Bytes what(env, text);
  const Settings given(env, settings);
  const oriel_session_options options = given.in(ORIEL_SESSION_OPTIONS_INIT);
  Caller caller{env, callbacks};
  worked(env,
         what.missing() || given.missing()
             ? ORIEL_ERROR_OUT_OF_MEMORY
             : oriel_parse_reply(on->model, &options, inside_thought == JNI_TRUE ? 1 : 0,
                                 what.data(), what.size(), onPart, &caller),
         on->log);
}

/// The session's content becomes the prefix; 0 removes it.
void setPrefix(JNIEnv* env, jclass, jlong handle, jlong session) {
  Model* const on = modelOf(handle);
  worked(env, oriel_prefix_set(on->model, session == 0 ? nullptr : sessionOf(session)->session),
         on->log);
}

// ---- Sessions -----------------------------------------------------------------------------------

void destroySession(JNIEnv* env, jclass, jlong handle) {
  Session* const on = sessionOf(handle);
  oriel_session_destroy(on->session);
  if (on->reading->users.fetch_sub(1) == 1) {
    env->DeleteGlobalRef(on->reading->callbacks);
    delete on->reading;
  }
  delete on;
}

/// Wraps `session`. 0: an exception is pending.
jlong newSession(JNIEnv* env, jclass type, oriel_status status, oriel_session* session,
                 Listener* reading, const Log& log) {
  Session* const on = new (std::nothrow) Session;
  if (on == nullptr) {
    oriel_session_destroy(session);
    worked(env, ORIEL_ERROR_OUT_OF_MEMORY, log);
    return 0;
  }
  on->session = session;
  on->log = &log;
  on->reading = reading;
  if (worked(env, status, log)) {
    return handleOf(on);
  }
  const jthrowable error = env->ExceptionOccurred();
  env->ExceptionClear();
  destroySession(env, type, handleOf(on));
  env->Throw(error);
  return 0;
}

jlong createSession(JNIEnv* env, jclass type, jlong handle, jbyteArray settings,
                    jobject callbacks) {
  Model* const on = modelOf(handle);
  const Settings given(env, settings);
  Listener* const reading = new (std::nothrow) Listener;
  if (reading == nullptr || given.missing()) {
    delete reading;
    worked(env, ORIEL_ERROR_OUT_OF_MEMORY, on->log);
    return 0;
  }
  reading->callbacks = callbacks == nullptr ? nullptr : env->NewGlobalRef(callbacks);
  oriel_session_options options = given.in(ORIEL_SESSION_OPTIONS_INIT);
  options.progress = onReading;
  options.progress_user = reading;
  oriel_session* session = nullptr;
  const oriel_status status = oriel_session_create(on->model, &options, &session);
  return newSession(env, type, status, session, reading, on->log);
}

jlong forkSession(JNIEnv* env, jclass type, jlong handle) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  oriel_session* fork = nullptr;
  const oriel_status status = oriel_session_fork(on->session, &fork);
  on->reading->users.fetch_add(1);
  return newSession(env, type, status, fork, on->reading, *on->log);
}

void spare(JNIEnv*, jclass, jlong handle) { sessionOf(handle)->cancelled.store(false); }

void cancel(JNIEnv*, jclass, jlong handle) {
  Session* const on = sessionOf(handle);
  on->cancelled.store(true);
  oriel_session_cancel(on->session);
}

jbyteArray describeSession(JNIEnv* env, jclass, jlong handle) {
  Session* const on = sessionOf(handle);
  return newText(env, *on->log, 1, [&](char* json, size_t capacity, size_t* needed) {
    return oriel_session_describe(on->session, json, capacity, needed);
  });
}

jdoubleArray stats(JNIEnv* env, jclass, jlong handle) {
  Session* const on = sessionOf(handle);
  oriel_stats stats = ORIEL_STATS_INIT;
  if (!worked(env, oriel_session_get_stats(on->session, &stats), *on->log)) {
    return nullptr;
  }
  // The order of OrielStats's constructor.
  return newNumbers(
      env, {number(stats.position), number(stats.evicted), number(stats.first_visible),
            number(stats.first_stored), number(stats.sinks_used), number(stats.window_used),
            number(stats.window_capacity), number(stats.turn_count), number(stats.device_bytes),
            number(stats.host_bytes)});
}

/// `role` null: the text is JSON.
void add(JNIEnv* env, jclass, jlong handle, jbyteArray role, jbyteArray text) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Bytes who(env, role);
  const Bytes what(env, text);
  worked(env,
         who.missing() || what.missing()
             ? ORIEL_ERROR_OUT_OF_MEMORY
             : oriel_chat_add(on->session, who.data(), what.data(), what.size()),
         *on->log);
}

/// `pixels`: direct buffers; `shapes`: width, height, stride and order of each picture.
void addPictures(JNIEnv* env, jclass, jlong handle, jbyteArray json, jobjectArray pixels,
                 jintArray shapes) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Bytes what(env, json);
  const jsize count = env->GetArrayLength(pixels);
  auto* const pictures = static_cast<oriel_picture*>(
      std::calloc(static_cast<size_t>(count) + 1, sizeof(oriel_picture)));
  for (jsize i = 0; pictures != nullptr && i < count; ++i) {
    jint shape[4] = {};
    env->GetIntArrayRegion(shapes, i * 4, 4, shape);
    const jobject buffer = env->GetObjectArrayElement(pixels, i);
    pictures[i] = {env->GetDirectBufferAddress(buffer), static_cast<uint32_t>(shape[0]),
                   static_cast<uint32_t>(shape[1]), static_cast<size_t>(shape[2]),
                   static_cast<oriel_pixel_order>(shape[3])};
    env->DeleteLocalRef(buffer);
  }
  const bool missing = what.missing() || pictures == nullptr;
  worked(env,
         missing ? ORIEL_ERROR_OUT_OF_MEMORY
                 : oriel_chat_add_pictures(on->session, what.data(), what.size(), pictures,
                                           static_cast<size_t>(count)),
         *on->log);
  std::free(pictures);
}

void append(JNIEnv* env, jclass, jlong handle, jbyteArray text) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Bytes what(env, text);
  worked(env,
         what.missing()
             ? ORIEL_ERROR_OUT_OF_MEMORY
             : oriel_session_append_text(on->session, what.data(), what.size(), ORIEL_TEXT_SPECIAL),
         *on->log);
}

/// A cancelled reply is a result, not an error.
jdoubleArray generate(JNIEnv* env, jclass, jlong handle, jboolean chat, jbyteArray settings,
                      jobject callbacks, jboolean wants_tokens) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Settings given(env, settings);
  Caller caller{env, callbacks};
  caller.wants_tokens = wants_tokens == JNI_TRUE;
  oriel_reply_options options = given.in(ORIEL_REPLY_OPTIONS_INIT);
  options.on_part = chat == JNI_TRUE ? onPart : nullptr;
  options.part_user = &caller;
  oriel_generation result = ORIEL_INIT(oriel_generation);
  const auto call = chat == JNI_TRUE ? oriel_chat_reply : oriel_session_generate;
  oriel_status status = given.missing() ? ORIEL_ERROR_OUT_OF_MEMORY
                                        : call(on->session, &options, onText, &caller, &result);
  if (status == ORIEL_ERROR_CANCELLED) {
    result.stop_reason = ORIEL_STOP_CANCELLED;
    status = ORIEL_OK;
  }
  if (!worked(env, status, *on->log)) {
    return nullptr;
  }
  // The order of OrielReply's constructor.
  return newNumbers(env, {number(result.stop_reason), number(result.tokens),
                          number(result.prompt_tokens), number(result.prompt_tokens_evicted),
                          number(result.tokens_drafted), number(result.tokens_accepted),
                          result.time_to_first_token_ms, result.decode_tokens_per_s});
}

jfloatArray embed(JNIEnv* env, jclass, jlong handle, jint pooling, jboolean raw, jbyteArray text,
                  jintArray tokens) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Bytes what(env, text);
  uint32_t read = 0;
  float* values = nullptr;
  size_t count = 0;
  const oriel_status status =
      fill(&values, &count, [&](float* vector, size_t capacity, size_t* needed) {
        return what.missing() ? ORIEL_ERROR_OUT_OF_MEMORY
                              : oriel_embed(on->session, static_cast<oriel_pooling>(pooling),
                                            raw == JNI_TRUE ? ORIEL_EMBED_RAW : 0, what.data(),
                                            what.size(), vector, capacity, needed, &read);
      });
  jfloatArray array = nullptr;
  if (worked(env, status, *on->log)) {
    const jint n = static_cast<jint>(read);
    env->SetIntArrayRegion(tokens, 0, 1, &n);
    array = env->NewFloatArray(static_cast<jsize>(count));
  }
  if (array != nullptr) {
    env->SetFloatArrayRegion(array, 0, static_cast<jsize>(count), values);
  }
  std::free(values);
  return array;
}

void reset(JNIEnv* env, jclass, jlong handle) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  worked(env, oriel_session_reset(on->session), *on->log);
}

/// `mark` may be null.
void goBack(JNIEnv* env, jclass, jlong handle, jint target, jlong to, jbyteArray mark,
            jboolean read_again) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Bytes name(env, mark);
  worked(env,
         name.missing() ? ORIEL_ERROR_OUT_OF_MEMORY
                        : oriel_session_go_back(on->session, static_cast<oriel_back>(target),
                                                static_cast<uint64_t>(to), name.data(),
                                                read_again == JNI_TRUE ? ORIEL_READ_AGAIN : 0),
         *on->log);
}

void mark(JNIEnv* env, jclass, jlong handle, jbyteArray name) {
  Session* const on = sessionOf(handle);
  const Bytes text(env, name);
  worked(env,
         text.missing() ? ORIEL_ERROR_OUT_OF_MEMORY : oriel_session_mark(on->session, text.data()),
         *on->log);
}

/// `adapters` may be null.
void useAdapters(JNIEnv* env, jclass, jlong handle, jbyteArray adapters) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Bytes text(env, adapters);
  worked(env,
         text.missing() ? ORIEL_ERROR_OUT_OF_MEMORY
                        : oriel_session_use_adapters(on->session, text.data()),
         *on->log);
}

/// The device's name; `numbers` in the order of OrielRecovered's constructor.
jbyteArray recover(JNIEnv* env, jclass, jlong handle, jobject progress, jdoubleArray numbers) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  Caller caller{env, progress};
  oriel_recovered result = ORIEL_INIT(oriel_recovered);
  const oriel_status status =
      oriel_session_recover(on->session, nullptr, 0, onProgress, &caller, &result);
  if (!worked(env, status, *on->log)) {
    return nullptr;
  }
  const double all[] = {number(result.on_cpu),      number(result.same_device),
                        number(result.exact),       number(result.tokens_held),
                        number(result.tokens_read), number(result.tokens_dropped)};
  env->SetDoubleArrayRegion(numbers, 0, sizeof(all) / sizeof(all[0]), all);
  return newBytes(env, result.device_name, std::strlen(result.device_name));
}

void save(JNIEnv* env, jclass, jlong handle, jbyteArray path, jint flags) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Bytes file(env, path);
  worked(env,
         file.missing()
             ? ORIEL_ERROR_OUT_OF_MEMORY
             : oriel_session_save(on->session, file.data(), static_cast<uint32_t>(flags)),
         *on->log);
}

jdoubleArray restore(JNIEnv* env, jclass, jlong handle, jbyteArray path, jint flags) {
  Session* const on = sessionOf(handle);
  const Turn turn(on);
  const Bytes file(env, path);
  oriel_restored result = ORIEL_INIT(oriel_restored);
  const oriel_status status =
      file.missing()
          ? ORIEL_ERROR_OUT_OF_MEMORY
          : oriel_session_restore(on->session, file.data(), static_cast<uint32_t>(flags), &result);
  if (!worked(env, status, *on->log)) {
    return nullptr;
  }
  // The order of OrielRestored's constructor.
  return newNumbers(env, {number(result.how), number(result.rounded), number(result.tokens_held),
                          number(result.tokens_dropped), number(result.tokens_read)});
}

template <typename Function>
JNINativeMethod native(const char* name, const char* signature, Function function) {
  // The field types of JNINativeMethod are not const in every jni.h.
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

bool findMethods(JNIEnv* env) {
  const jclass callbacks = env->FindClass("dev/oriel/Native$Callbacks");
  const jclass log = callbacks != nullptr ? env->FindClass("dev/oriel/Native$Log") : nullptr;
  const jclass error = log != nullptr ? env->FindClass("dev/oriel/OrielException") : nullptr;
  if (error == nullptr) {
    return false;
  }
  g_exception = static_cast<jclass>(env->NewGlobalRef(error));
  const struct {
    jmethodID* to;
    jclass of;
    const char* name;
    const char* signature;
  } methods[] = {{&g_new_exception, error, "<init>", "(I[B)V"},
                 {&g_on_log, log, "onLog", "(I[B)V"},
                 {&g_on_text, callbacks, "onText", "([B)Z"},
                 {&g_on_part, callbacks, "onPart", "(II[B[B)Z"},
                 {&g_on_token, callbacks, "onToken", "(I[BF[I[F)Z"},
                 {&g_on_progress, callbacks, "onProgress", "(JJ)Z"}};
  for (const auto& method : methods) {
    *method.to = env->GetMethodID(method.of, method.name, method.signature);
    if (*method.to == nullptr) {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace oriel_jni

// Registers by name and signature, so that a mismatch fails when the library is loaded.
extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  using namespace oriel_jni;
  JNIEnv* env = nullptr;
  if (vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK || !findMethods(env)) {
    return JNI_ERR;
  }
  g_vm = vm;
  const jclass natives = env->FindClass("dev/oriel/Native");
  if (natives == nullptr) {
    return JNI_ERR;
  }
#define JNI_CALLBACKS "Ldev/oriel/Native$Callbacks;"
#define JNI_LOG "Ldev/oriel/Native$Log;"
  const JNINativeMethod methods[] = {
      native("version", "()[B", version),
      native("plan", "([B[B" JNI_LOG ")[D", planFile),
      native("describe", "(I[B[B" JNI_LOG ")[B", describe),
      native("load", "([B[B" JNI_CALLBACKS JNI_LOG ")J", load),
      native("free", "(J)V", freeModel),
      native("modelPlan", "(J)[D", modelPlan),
      native("describeModel", "(J)[B", describeModel),
      native("trim", "(JI[B)V", trim),
      native("pause", "(J)V", pause),
      native("resume", "(J" JNI_CALLBACKS ")V", resume),
      native("tokenize", "(J[B)[I", tokenize),
      native("detokenize", "(J[I)[B", detokenize),
      native("render", "(J[B[BZ)[B", render),
      native("renderTokens", "(J[B[BZ)[I", renderTokens),
      native("parseReply", "(J[BZ[B" JNI_CALLBACKS ")V", parseReply),
      native("setPrefix", "(JJ)V", setPrefix),
      native("session", "(J[B" JNI_CALLBACKS ")J", createSession),
      native("fork", "(J)J", forkSession),
      native("destroy", "(J)V", destroySession),
      native("spare", "(J)V", spare),
      native("cancel", "(J)V", cancel),
      native("describeSession", "(J)[B", describeSession),
      native("stats", "(J)[D", stats),
      native("add", "(J[B[B)V", add),
      native("addPictures", "(J[B[Ljava/nio/ByteBuffer;[I)V", addPictures),
      native("append", "(J[B)V", append),
      native("generate", "(JZ[B" JNI_CALLBACKS "Z)[D", generate),
      native("embed", "(JIZ[B[I)[F", embed),
      native("reset", "(J)V", reset),
      native("goBack", "(JIJ[BZ)V", goBack),
      native("mark", "(J[B)V", mark),
      native("useAdapters", "(J[B)V", useAdapters),
      native("recover", "(J" JNI_CALLBACKS "[D)[B", recover),
      native("save", "(J[BI)V", save),
      native("restore", "(J[BI)[D", restore),
  };
  const jint count = static_cast<jint>(sizeof(methods) / sizeof(methods[0]));
  return env->RegisterNatives(natives, methods, count) == JNI_OK ? JNI_VERSION_1_6 : JNI_ERR;
}
