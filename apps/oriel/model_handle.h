// Reads the library's JSON descriptions.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <oriel/oriel.h>
#include <oriel/tools.h>
#include <oriel/oriel.hpp>

#include "options.h"
#include "output.h"
#include "pictures.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {

/// Returns the output of `call(text, capacity, needed)`, of any length. `*json` is null on failure.
template <typename Call>
oriel_status described(Json* json, const Call& call) {
  std::string text(1 << 14, '\0');
  size_t needed = 0;
  oriel_status status = call(text.data(), text.size(), &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text.resize(needed);
    status = call(text.data(), text.size(), &needed);
  }
  *json = status == ORIEL_OK ? jsonFrom(text.c_str()) : Json();
  return status;
}

/// A numeric field; 0 if unknown.
inline uint64_t numberIn(const Json& object, const char* field) {
  const Json& value = object.at(field);
  return value.is_number() ? value.get<uint64_t>() : 0;
}
inline uint32_t countIn(const Json& object, const char* field) {
  return static_cast<uint32_t>(numberIn(object, field));
}
inline double realIn(const Json& object, const char* field) {
  const Json& value = object.at(field);
  return value.is_number() ? value.get<double>() : 0;
}
/// "" if missing.
inline std::string textIn(const Json& object, const char* field) {
  const Json& value = object.at(field);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// Owns the library's objects and converts errors to Failure.

/// Keeps the error line of the last failed call, from the library's log callback.
class Diagnostics {
 public:
  explicit Diagnostics(bool verbose, bool warns = true, const std::string& progress = "loading");
  Diagnostics(const Diagnostics&) = delete;
  Diagnostics& operator=(const Diagnostics&) = delete;

  /// Directs the options' errors here, and shows a progress bar that Ctrl-C stops.
  void listen(oriel_options* options) const;
  void watch(oriel_options* options) const;
  /// For oriel_log_fn; `user` is the object.
  static void onLog(oriel_log_level level, const char* message, void* user);
  /// For oriel_progress_fn: draws the bar, and stops the call after Ctrl-C.
  static int onProgress(uint64_t done, uint64_t total, void* user);

  /// The cause of an invalid argument: the user's options (exit code 2) or the input data (1).
  enum class Blame { kOptions, kData };
  /// Throws unless `status` is ORIEL_OK.
  void check(oriel_status status, Blame blame = Blame::kData) const;
  /// Hides warnings, for attempts that may fail.
  void hush(bool on) { hushed_ = on; }
  /// Prints a warning like the library's.
  void warn(const std::string& message) const;
  /// "WHAT HAPPENED: WHAT TO DO".
  std::string reason(oriel_status status) const;

 private:
  bool verbose_;
  bool shows_warnings_;
  bool hushed_ = false;
  mutable std::mutex lock_;  ///< several threads may use a model
  std::string last_error_;
  mutable ProgressBar progress_;  ///< shown until the call is checked
};

enum class Load {
  kText,    ///< header and tokenizer only; needs no device
  kGlance,  ///< the same without warnings, before the file is loaded completely
  kDevice,  ///< everything a session needs
};

class Model {
 public:
  Model(const CommonOptions& options, Load load, uint32_t pinned_tokens = 0);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Frees the model and loads it with other options. Close everything made from it first.
  void loadAgain(const CommonOptions& options, uint32_t pinned_tokens);

  /// oriel_session_recover, on any working device; info() names it.
  oriel_status recover(oriel_session* session);

  oriel_model* get() const { return model_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }
  /// Hides the library's eviction warning, which the program replaces by a better one.
  void hush(bool on) { diagnostics_.hush(on); }
  /// The JSON of oriel_model_describe.
  const Json& info() const { return info_; }
  uint32_t number(const char* field) const { return countIn(info_, field); }
  std::string text(const char* field) const { return textIn(info_, field); }
  /// Only with Load::kDevice: the numbers and the JSON.
  const oriel_plan& plan() const { return plan_; }
  const Json& wholePlan() const { return info_["plan"]; }
  double loadMs() const { return load_ms_; }
  /// Name of the conversations' format; "none" without one.
  std::string chatFormat(const Settings& session) const;

  /// `flags` are ORIEL_TEXT_...
  std::vector<int32_t> tokenize(std::string_view text, uint32_t flags) const;
  std::string detokenize(const std::vector<int32_t>& ids, uint32_t flags) const;
  /// For messages as a JSON list. `flags` are ORIEL_RENDER_...
  std::string render(const Settings& session, const Json& messages, uint32_t flags) const;
  /// Compiles a reply's form and tools without a session. *result: {"error", "unchecked_tools"}, see ORIEL_RENDER_CHECK.
  oriel_status compileForm(const Settings& session, const Settings& reply, Json* result) const;
  /// Throws Failure for a form or tools that cannot be enforced, before a prompt is read. `file`: their source, for the
  /// error.
  void checkForm(const Settings& session, const Settings& reply, const std::string& file) const;
  /// The ids of the rendered messages. Recognises control tokens of the template, but not inside a message. With
  /// ORIEL_TEXT_BOS: the ids that a new session reads for these messages.
  std::vector<int32_t> renderedIds(const Settings& session, const Json& messages,
                                   uint32_t flags) const;

 private:
  void load(const CommonOptions& options, Load load, uint32_t pinned_tokens);
  void describe();

  Diagnostics diagnostics_;
  oriel_model* model_ = nullptr;
  Json info_;
  oriel_plan plan_ = ORIEL_PLAN_INIT;
  double load_ms_ = 0;
};

class Session {
 public:
  explicit Session(const Model& model, const Settings& options = {});
  /// Continues from the other's position (oriel_session_fork). Throws Failure.
  struct Fork {
    const Session& of;
  };
  explicit Session(Fork fork);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void close();
  /// Opens a new session of the model, which may have been reloaded.
  void open(const Model& model, const Settings& options);

  oriel_session* get() const { return session_; }
  void reset();
  void append(const int32_t* ids, size_t count);
  /// Goes back; false: text visible at that position is gone.
  bool tryGoBack(uint64_t position);
  oriel_stats stats() const;
  /// The ids of the first stored tokens; -1 for a picture's rows.
  std::vector<int32_t> tokens() const;
  /// The JSON of oriel_session_describe.
  Json describe() const;
  void check(oriel_status status, Diagnostics::Blame blame = Diagnostics::Blame::kData) const {
    diagnostics_.check(status, blame);
  }
  /// Runs `call()` on the session; ORIEL_ERROR_CANCELLED if Ctrl-C was pressed before.
  template <typename Call>
  oriel_status cancellable(const Call& call) const {
    const oriel_status status = cancelPending() ? ORIEL_ERROR_CANCELLED : call();
    reading_->reset();
    return status;
  }
  std::string reason(oriel_status status) const { return diagnostics_.reason(status); }

 private:
  /// Progress of reading in the running call. A fork's calls report to its source session.
  using Reading = std::optional<ProgressBar>;
  static int onReading(uint64_t done, uint64_t total, void* user);

  const Diagnostics& diagnostics_;
  oriel_session* session_ = nullptr;
  std::shared_ptr<Reading> reading_ = std::make_shared<Reading>();
};

/// Rates of the options' device for a file or a shape: measured, or from the user's cache folder. `again` ignores stored
/// ones, since the device's state may have changed. Throws Failure.
oriel_speed deviceSpeed(const CommonOptions& options, const char* path, const char* shape,
                        bool again = false);

/// [{"list", "op", "count", "ms"}]: the device's times of a model's ops at a depth. Throws Failure.
Json opTimes(const CommonOptions& options, const std::string& path, uint64_t depth,
             uint32_t repeat);

/// The user's cache folder, created if missing. Empty with --no-cache, or if it cannot be created.
std::string cacheFolder(const CommonOptions& options);

/// oriel_picture_rows with the encoder of the options.
void pictureRows(const CommonOptions& options, const DecodedPicture& picture,
                 oriel_picture_rows_fn on_rows, void* user);
/// The same, not created: holds verdicts about drivers.
std::string driverFolder(const CommonOptions& options);

}  // namespace cli
