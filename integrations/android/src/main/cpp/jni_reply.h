// What replies need: how they are generated, as Java packs it, and the calls back into Java.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>

#include "jni_support.h"

namespace oriel_jni {

inline jmethodID g_on_text = nullptr;  // set once, by JNI_OnLoad
inline jmethodID g_on_part = nullptr;
inline jmethodID g_on_token = nullptr;
inline jmethodID g_on_progress = nullptr;

/// Calls back into Native.Callbacks. After an exception, which waits to be thrown, or an answer to
/// stop nothing more is called.
struct Caller {
  JNIEnv* env;
  jobject callbacks;
  bool wants_tokens = false;
  bool stopped = false;
  oriel_session* session = nullptr;              ///< of a reply, ...
  const std::atomic<bool>* cancelled = nullptr;  ///< ... which may be cancelled before it has begun

  /// Runs `call`; true when the library should stop.
  template <typename Call>
  bool stops(Call call) {
    stopped = stopped || env->ExceptionCheck() == JNI_TRUE || !call() ||
              env->ExceptionCheck() == JNI_TRUE;
    return stopped;
  }

  /// Calls `call` with the text as byte[]: a reply may be longer than there is room for references.
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
  if (to.cancelled != nullptr && to.cancelled->load()) {
    oriel_session_cancel(to.session);
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
  return to.stopsAfter(part->text, part->text_bytes, [&](jbyteArray text) {
    return to.env->CallBooleanMethod(to.callbacks, g_on_part, static_cast<jint>(part->kind),
                                     static_cast<jint>(part->call), text);
  });
}

inline int onProgress(uint64_t done, uint64_t total, void* user) {
  Caller& to = *static_cast<Caller*>(user);
  return to.stops([&] {
    return to.env->CallBooleanMethod(to.callbacks, g_on_progress, static_cast<jlong>(done),
                                     static_cast<jlong>(total)) == JNI_TRUE;
  });
}

// The orders of OrielSampling's pack...().
enum ReplyNumber {
  kMaxTokens,
  kGreedy,
  kSeed,
  kTopK,
  kIgnoreStop,
  kRepeatWindow,
  kMinTokens,
  kLogprobs,
  kTopLogprobs,
  kToolChoice,
  kWantsParts,
  kWantsTokens,
  kReplyNumberCount
};
enum ReplyFloat {
  kTemperature,
  kTopP,
  kMinP,
  kRepeatPenalty,
  kPresencePenalty,
  kFrequencyPenalty,
  kReplyFloatCount
};
enum ReplyText { kJsonSchema, kGrammar, kTrigger, kFirstStop };

/// Only good while this and `caller` live.
class ReplyOptions {
 public:
  ReplyOptions(JNIEnv* env, jlongArray numbers, jfloatArray floats, jobjectArray texts,
               jintArray bias_ids, jfloatArray biases, Caller* caller)
      : json_schema_(env, texts, kJsonSchema),
        grammar_(env, texts, kGrammar),
        trigger_(env, texts, kTrigger) {
    jlong n[kReplyNumberCount] = {};
    jfloat f[kReplyFloatCount] = {};
    env->GetLongArrayRegion(numbers, 0, kReplyNumberCount, n);
    env->GetFloatArrayRegion(floats, 0, kReplyFloatCount, f);
    options.struct_size = sizeof(options);
    options.max_tokens = u32(n[kMaxTokens]);
    options.greedy = n[kGreedy] != 0;
    options.seed = static_cast<uint64_t>(n[kSeed]);
    options.top_k = u32(n[kTopK]);
    options.ignore_stop = n[kIgnoreStop] != 0;
    options.repeat_window = u32(n[kRepeatWindow]);
    options.min_tokens = u32(n[kMinTokens]);
    options.logprobs = n[kLogprobs] != 0;
    options.top_logprobs = u32(n[kTopLogprobs]);
    options.tool_choice = static_cast<oriel_tool_choice>(n[kToolChoice]);
    options.temperature = f[kTemperature];
    options.top_p = f[kTopP];
    options.min_p = f[kMinP];
    options.repeat_penalty = f[kRepeatPenalty];
    options.presence_penalty = f[kPresencePenalty];
    options.frequency_penalty = f[kFrequencyPenalty];
    options.json_schema = json_schema_.data();
    options.json_schema_bytes = json_schema_.size();
    options.grammar = grammar_.data();
    options.grammar_bytes = grammar_.size();
    options.trigger = trigger_.data();
    if (n[kWantsParts] != 0) {
      options.on_part = onPart;
      options.part_user = caller;
    }
    caller->wants_tokens = n[kWantsTokens] != 0;
    readStops(env, texts);
    readBiases(env, bias_ids, biases);
  }
  ~ReplyOptions() { std::free(biases_); }
  ReplyOptions(const ReplyOptions&) = delete;
  ReplyOptions& operator=(const ReplyOptions&) = delete;

  /// There was no memory for something.
  bool missing() const {
    return missing_ || json_schema_.missing() || grammar_.missing() || trigger_.missing();
  }

  oriel_generate_options options = {};

 private:
  /// One more than oriel.h allows: it says so.
  static constexpr jsize kMostStops = 17;

  void readStops(JNIEnv* env, jobjectArray texts) {
    const jsize count = std::min(env->GetArrayLength(texts) - kFirstStop, kMostStops);
    for (jsize i = 0; i < count; ++i) {
      stops_[i].emplace(env, texts, kFirstStop + i);
      missing_ = missing_ || stops_[i]->missing();
      stop_texts_[i] = stops_[i]->data();
    }
    options.stop = count > 0 ? stop_texts_ : nullptr;
    options.stop_count = static_cast<size_t>(count);
  }

  void readBiases(JNIEnv* env, jintArray bias_ids, jfloatArray biases) {
    const jsize count = env->GetArrayLength(bias_ids);
    if (count == 0) {
      return;
    }
    biases_ = static_cast<oriel_logit_bias*>(
        std::malloc(static_cast<size_t>(count) * sizeof(oriel_logit_bias)));
    if (biases_ == nullptr) {
      missing_ = true;
      return;
    }
    for (jsize i = 0; i < count; ++i) {
      env->GetIntArrayRegion(bias_ids, i, 1, &biases_[i].id);
      env->GetFloatArrayRegion(biases, i, 1, &biases_[i].bias);
    }
    options.logit_bias = biases_;
    options.logit_bias_count = static_cast<size_t>(count);
  }

  Bytes json_schema_;
  Bytes grammar_;
  Bytes trigger_;
  std::optional<Bytes> stops_[kMostStops];
  const char* stop_texts_[kMostStops] = {};
  oriel_logit_bias* biases_ = nullptr;
  bool missing_ = false;
};

}  // namespace oriel_jni
