/*
 * Oriel for C++17: owners, std::string_view and callables around oriel/oriel.h. Header only.
 *
 *   oriel::Options options;
 *   options.memory_bytes = 300u << 20;
 *   options.set("kv", "k8v4");
 *   oriel::Model model = oriel::Model::load("model.gguf", options).value();
 *   oriel::Session session = model.session().value();
 *   session.add("user", "Hello!").value();
 *   session.reply([](std::string_view text) { std::cout << text; }).value();
 *
 *  - Calls return a Result: value() gives the value or throws oriel::Error. An app without exceptions tests the Result and
 *    reads status() and error(); value() of a failed Result then ends the program.
 *  - A Session keeps its Model alive. A Model keeps the callables of its options alive.
 *  - An exception from a callable of reply() ends the reply and is thrown again. Callables of other calls must not throw.
 *  - The thread rules of oriel.h hold. Session::cancel may be called from any thread.
 */
#ifndef ORIEL_ORIEL_HPP_
#define ORIEL_ORIEL_HPP_
#include <oriel/advanced.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace oriel {
struct Error : std::runtime_error {
  Error(oriel_status code, const std::string &line) : std::runtime_error(line), status(code) {}
  oriel_status status;
};
struct Done {}; /* the value of calls without one */
/* A value, or a status with an error line. */
template <typename T = Done>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(oriel_status status, const char *line)
      : status_(status), error_(line != nullptr && *line != '\0' ? line : oriel_status_text(status)) {}
  explicit operator bool() const { return value_.has_value(); }
  oriel_status status() const { return status_; }
  const std::string &error() const { return error_; }
  T *operator->() { return &*value_; }
  T value() && { return std::move(check()); }
  T &value() & { return check(); }

 private:
  T &check() {
    if (!value_.has_value()) {
#if defined(__cpp_exceptions)
      throw Error(status_, error_);
#else
      std::fprintf(stderr, "%s\n", error_.c_str());
      std::abort();
#endif
    }
    return *value_;
  }
  std::optional<T> value_;
  oriel_status status_ = ORIEL_OK;
  std::string error_;
};

using LogFunction = std::function<void(oriel_log_level, std::string_view)>;
using ProgressFunction = std::function<bool(uint64_t done, uint64_t total)>; /* false cancels */
/* A C struct of options that owns its settings. Its public fields may be set as in C. */
template <typename Struct>
class OptionsOf : public Struct {
 public:
  OptionsOf() : Struct() { this->struct_size = sizeof(Struct); }
  OptionsOf(const OptionsOf &other) : Struct(other), texts_(other.texts_), kept_(other.kept_) { bind(); }
  OptionsOf &operator=(const OptionsOf &other) {
    static_cast<Struct &>(*this) = other;
    texts_ = other.texts_;
    kept_ = other.kept_;
    return bind();
  }
  /* Sets an option by name, in text form. Replaces an earlier value; NULL: back to the default. */
  OptionsOf &set(std::string_view name, std::string_view value) {
    return set(name, static_cast<const char *>(nullptr)).add(name, value);
  }
  OptionsOf &set(std::string_view name, const char *value) {
    texts_.erase(std::remove_if(texts_.begin(), texts_.end(), [&](const auto &one) { return one.first == name; }),
                 texts_.end());
    return value != nullptr ? add(name, value) : bind();
  }
  template <typename Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  OptionsOf &set(std::string_view name, Number value) {
    if constexpr (std::is_integral_v<Number>) { /* a bool is 1 or 0 */
      return set(name, std::string_view(std::to_string(value)));
    }
    char text[64];
    std::snprintf(text, sizeof(text), "%.17g", static_cast<double>(value));
    std::replace(text, text + sizeof(text), ',', '.'); /* some locales' decimal point */
    return set(name, std::string_view(text));
  }
  OptionsOf &add(std::string_view name, std::string_view value) { /* one more element of a list */
    texts_.emplace_back(name, value);
    return bind();
  }
  OptionsOf &onLog(LogFunction function) { /* lives as long as the object that is made with these options */
    this->log = [](oriel_log_level level, const char *line, void *user) {
      (*static_cast<LogFunction *>(user))(level, line);
    };
    this->log_user = keep(std::move(function));
    return *this;
  }
  OptionsOf &onProgress(ProgressFunction function) {
    this->progress = [](uint64_t done, uint64_t total, void *user) -> int {
      return (*static_cast<ProgressFunction *>(user))(done, total) ? 0 : 1;
    };
    this->progress_user = keep(std::move(function));
    return *this;
  }
  const std::vector<std::shared_ptr<void>> &kept() const { return kept_; }

 private:
  template <typename Function>
  void *keep(Function function) {
    kept_.push_back(std::make_shared<Function>(std::move(function)));
    return kept_.back().get();
  }
  OptionsOf &bind() {
    view_.clear();
    for (const auto &[name, value] : texts_) {
      view_.push_back({name.c_str(), value.c_str()});
    }
    this->settings = view_.data();
    this->setting_count = view_.size();
    return *this;
  }
  std::vector<std::pair<std::string, std::string>> texts_;
  std::vector<oriel_setting> view_;
  std::vector<std::shared_ptr<void>> kept_;
};
using Options = OptionsOf<oriel_options>;
using SessionOptions = OptionsOf<oriel_session_options>;
/* Changes the logits of a step before its token is chosen. false ends the reply. */
using LogitsFunction = std::function<bool(const oriel_step_logits &step)>;
struct ReplyOptions : OptionsOf<oriel_reply_options> {
  LogitsFunction logits;
};
template <typename T>
Result<T> resultOf(oriel_status status, T value, const char *line) {
  return status == ORIEL_OK ? Result<T>(std::move(value)) : Result<T>(status, line);
} /* The text of a call that fills a buffer. */
template <typename Object>
Result<std::string> textOf(oriel_status (*call)(const Object *, char *, size_t, size_t *), const Object *object,
                           const char *(*last_error)(const Object *)) {
  std::string text;
  size_t needed = 0;
  oriel_status status = call(object, nullptr, 0, &needed);
  while (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text.resize(needed);
    status = call(object, text.data(), text.size(), &needed);
  }
  text.resize(status == ORIEL_OK ? needed - 1 : 0);
  return resultOf(status, std::move(text), last_error(object));
}
template <typename Struct, typename Object>
Struct filled(oriel_status (*call)(const Object *, Struct *), const Object *object) {
  Struct result = ORIEL_INIT(Struct);
  (void)call(object, &result);
  return result;
}
/* 0 if the app's callable returns true, else 1. Keeps its exception. */
template <typename Callable>
int answerOf(Callable callable, [[maybe_unused]] std::exception_ptr *thrown) {
#if defined(__cpp_exceptions)
  try {
    return callable() ? 0 : 1;
  } catch (...) {
    *thrown = std::current_exception();
    return 1;
  }
#else
  return callable() ? 0 : 1;
#endif
}

class Session {
 public:
  explicit Session(std::shared_ptr<oriel_model> model = nullptr, oriel_session *session = nullptr,
                   std::vector<std::shared_ptr<void>> kept = {})
      : session_(session, Destroy{std::move(model), std::move(kept)}) {}
  oriel_session *get() const { return session_.get(); }
  Result<> add(std::string_view role, std::string_view text) {
    return done(oriel_chat_add(get(), std::string(role).c_str(), text.data(), text.size()));
  }
  Result<> addJson(std::string_view json, const std::vector<oriel_picture> &pictures = {}) { /* parts name them */
    return done(oriel_chat_add_pictures(get(), json.data(), json.size(), pictures.data(), pictures.size()));
  }
  /* on_text takes std::string_view and returns void, or bool: false ends the reply. */
  template <typename OnText>
  Result<oriel_generation> reply(OnText &&on_text, const ReplyOptions &options = {}) {
    struct Call {
      std::remove_reference_t<OnText> &on_text;
      const LogitsFunction &logits;
      std::exception_ptr thrown;
    } call{on_text, options.logits, nullptr};
    oriel_generation result = ORIEL_INIT(oriel_generation);
    const auto on_token = [](const oriel_token_event *event, void *user) {
      Call &now = *static_cast<Call *>(user);
      const auto show = [&now, text = std::string_view(event->text, event->text_bytes)] {
        if constexpr (std::is_void_v<std::invoke_result_t<OnText &, std::string_view>>) {
          return now.on_text(text), true;
        } else {
          return now.on_text(text);
        }
      };
      return answerOf(show, &now.thrown);
    };
    oriel_reply_options given = options;
    if (options.logits) {
      given.logits_user = &call;
      given.on_logits = [](const oriel_step_logits *step, void *user) {
        Call &now = *static_cast<Call *>(user);
        return answerOf([&] { return now.logits(*step); }, &now.thrown);
      };
    }
    const oriel_status status = oriel_chat_reply(get(), &given, on_token, &call, &result);
    if (call.thrown) {
      std::rethrow_exception(call.thrown);
    }
    return done(status, result);
  }
  void cancel() { oriel_session_cancel(get()); }
  Result<> reset() { return done(oriel_session_reset(get())); }
  Result<> undoTurns(uint64_t turns) {
    return done(oriel_session_go_back(get(), ORIEL_BACK_BY_TURNS, turns, nullptr, ORIEL_READ_AGAIN));
  }
  Result<> save(const std::string &path, uint32_t flags = 0) {
    return done(oriel_session_save(get(), path.c_str(), flags));
  }
  Result<oriel_restored> restore(const std::string &path, uint32_t flags = 0) {
    oriel_restored result = ORIEL_INIT(oriel_restored);
    return done(oriel_session_restore(get(), path.c_str(), flags, &result), result);
  }
  oriel_stats stats() const { return filled(oriel_session_get_stats, get()); }
  Result<std::string> describe() const {
    return textOf<oriel_session>(oriel_session_describe, get(), oriel_session_last_error);
  }

 private:
  struct Destroy { /* keeps what the session needs until it is gone */
    std::shared_ptr<oriel_model> model;
    std::vector<std::shared_ptr<void>> kept;
    void operator()(oriel_session *session) const { oriel_session_destroy(session); }
  };
  template <typename T = Done>
  Result<T> done(oriel_status status, const T &value = {}) {
    return resultOf(status, value, oriel_session_last_error(get()));
  }
  std::unique_ptr<oriel_session, Destroy> session_;
};

class Model {
 public:
  static Result<Model> load(const std::string &path, Options options = {}) {
    char line[1024] = "";
    if (options.error_line == nullptr) {
      options.error_line = line;
      options.error_line_bytes = sizeof(line);
    }
    oriel_model *model = nullptr;
    const oriel_status status = oriel_model_load(path.c_str(), &options, &model);
    return resultOf(status, Model(model, options.kept()), options.error_line);
  }
  oriel_model *get() const { return model_.get(); }
  Result<Session> session(const SessionOptions &options = {}) {
    oriel_session *session = nullptr;
    const oriel_status status = oriel_session_create(get(), &options, &session);
    return resultOf(status, Session(model_, session, options.kept()), oriel_model_last_error(get()));
  }
  oriel_plan plan() const { return filled(oriel_model_get_plan, get()); }
  Result<std::string> describe() const {
    return textOf<oriel_model>(oriel_model_describe, get(), oriel_model_last_error);
  }
  Result<> trim(oriel_trim_level level, const std::string &folder = {}) {
    return done(oriel_trim(get(), level, folder.empty() ? nullptr : folder.c_str()));
  }
  Result<> resume() { return done(oriel_resume(get(), nullptr, nullptr)); }

 private:
  Model(oriel_model *model, std::vector<std::shared_ptr<void>> kept)
      : model_(model, [kept = std::move(kept)](oriel_model *one) { oriel_model_free(one); }) {}
  Result<> done(oriel_status status) { return resultOf(status, Done{}, oriel_model_last_error(get())); }
  std::shared_ptr<oriel_model> model_;
};
}  // namespace oriel
#endif  // ORIEL_ORIEL_HPP_
