// The library's objects, owned, with errors as Failure.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <oriel/tools.h>
#include <oriel/oriel.hpp>

#include "described.h"
#include "options.h"
#include "output.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {

/// Keeps the reason of the last failed call, which the library gives to its log callback.
class Diagnostics {
 public:
  explicit Diagnostics(bool verbose, bool warns = true, const std::string& progress = "loading");
  Diagnostics(const Diagnostics&) = delete;
  Diagnostics& operator=(const Diagnostics&) = delete;

  /// The call with these options tells it what goes wrong, and shows a bar that Ctrl-C stops.
  void listen(oriel_options* options) const;
  void watch(oriel_options* options) const;
  /// For oriel_log_fn; `user` is the object.
  static void onLog(oriel_log_level level, const char* message, void* user);
  /// For oriel_progress_fn; draws the bar, and stops what is going on after Ctrl-C.
  static int onProgress(uint64_t done, uint64_t total, void* user);

  /// What a bad argument means: the person's options (exit code 2) or the data being worked on (1).
  enum class Blame { kOptions, kData };
  /// Throws unless `status` is ORIEL_OK.
  void check(oriel_status status, Blame blame = Blame::kData) const;
  /// Warnings are not shown: what is tried may fail.
  void hush(bool on) { hushed_ = on; }
  /// As the library's warnings: where somebody sees it.
  void warn(const std::string& message) const;
  /// "WHAT HAPPENED: WHAT TO DO".
  std::string reason(oriel_status status) const;

 private:
  bool verbose_;
  bool shows_warnings_;
  bool hushed_ = false;
  mutable std::mutex lock_;  ///< several threads may use a model
  std::string last_error_;
  mutable ProgressBar progress_;  ///< until the call is checked
};

enum class Load {
  kText,    ///< header and tokenizer only; needs no device
  kGlance,  ///< the same without warnings: the file is about to be loaded as a whole
  kDevice,  ///< everything that a session needs
};

class Model {
 public:
  Model(const CommonOptions& options, Load load, uint32_t pinned_tokens = 0);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Frees it, and loads with options that may be others. What was made of it must be closed.
  void loadAgain(const CommonOptions& options, uint32_t pinned_tokens);

  /// oriel_session_recover, on whatever device works; info() says which.
  oriel_status recover(oriel_session* session);

  oriel_model* get() const { return model_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }
  /// While a prompt is read whose loss the program tells itself, with the options that would hold all of it.
  void hush(bool on) { diagnostics_.hush(on); }
  /// As oriel_model_describe has it: numbers, texts and all.
  const Json& info() const { return info_; }
  uint32_t number(const char* field) const { return countIn(info_, field); }
  std::string text(const char* field) const { return textIn(info_, field); }
  /// Only with Load::kDevice: the numbers, and all.
  const oriel_plan& plan() const { return plan_; }
  const Json& wholePlan() const { return info_["plan"]; }
  double loadMs() const { return load_ms_; }
  /// Name of the format that conversations get; "none" without one.
  std::string chatFormat(const Settings& session) const;

  /// `flags` are ORIEL_TEXT_...
  std::vector<int32_t> tokenize(std::string_view text, uint32_t flags) const;
  std::string detokenize(const std::vector<int32_t>& ids, uint32_t flags) const;
  /// Of messages as a JSON list. `flags` are ORIEL_RENDER_...
  std::string render(const Settings& session, const Json& messages, uint32_t flags) const;
  /// Compiles a reply's form and tools, without a session. *result: {"error", "unchecked_tools"}, see ORIEL_RENDER_CHECK.
  oriel_status compileForm(const Settings& session, const Settings& reply, Json* result) const;
  /// Throws Failure for a form or tools that replies cannot be held to, before any prompt is read. `file`: where they
  /// come from, for the error.
  void checkForm(const Settings& session, const Settings& reply, const std::string& file) const;
  /// The ids: the template's control tokens are recognised, those that somebody wrote inside a message are not. With
  /// ORIEL_TEXT_BOS what a new session reads for these messages.
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
  /// Goes on from where the other is (oriel_session_fork). Throws Failure.
  struct Fork {
    const Session& of;
  };
  explicit Session(Fork fork);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void close();
  /// A new one, of the model that the first was of, which may have been loaded again since.
  void open(const Model& model, const Settings& options);

  oriel_session* get() const { return session_; }
  void reset();
  void append(const int32_t* ids, size_t count);
  /// Goes back; false: what the text before sees is gone.
  bool tryGoBack(uint64_t position);
  oriel_stats stats() const;
  /// As oriel_session_describe has it.
  Json describe() const;
  void check(oriel_status status, Diagnostics::Blame blame = Diagnostics::Blame::kData) const {
    diagnostics_.check(status, blame);
  }
  /// `call()` on the session, unless Ctrl-C was pressed before it: then ORIEL_ERROR_CANCELLED.
  template <typename Call>
  oriel_status cancellable(const Call& call) const {
    const oriel_status status = cancelPending() ? ORIEL_ERROR_CANCELLED : call();
    reading_->reset();
    return status;
  }
  std::string reason(oriel_status status) const { return diagnostics_.reason(status); }

 private:
  /// Of what the running call reads. A fork's calls tell that of the first session.
  using Reading = std::optional<ProgressBar>;
  static int onReading(uint64_t done, uint64_t total, void* user);

  const Diagnostics& diagnostics_;
  oriel_session* session_ = nullptr;
  std::shared_ptr<Reading> reading_ = std::make_shared<Reading>();
};

/// Rates of the device that the options name for a file, or for a shape: measured, or kept in the user's cache folder. Not
/// kept ones, if `again`: the device may be warmer or busier than it was then. Throws Failure.
oriel_speed deviceSpeed(const CommonOptions& options, const char* path, const char* shape,
                        bool again = false);

/// [{"list", "op", "count", "ms"}]: the device's times of a model's ops at a depth. Throws Failure.
Json opTimes(const CommonOptions& options, const std::string& path, uint64_t depth,
             uint32_t repeat);

/// The user's cache folder, made if need be; empty when there is none to be had, or --no-cache says so.
std::string cacheFolder(const CommonOptions& options);
/// The same, not made: where verdicts about drivers are.
std::string driverFolder(const CommonOptions& options);

}  // namespace cli
