// Small random models with sessions of several layouts, loaded once a program. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "oriel/advanced.h"
#include "support/allocators.h"
#include "support/describe.h"
#include "support/options.h"
#include "support/random_families.h"

namespace oriel_internal::fuzz {

using test::Options;
using test::ReplyOptions;
using test::SessionOptions;

/// A model's window, formats, and what its sessions begin with.
struct SmallLayout {
  uint32_t window;
  uint32_t chunk;
  uint32_t sinks;
  oriel_kv_format k;
  oriel_kv_format v;
  uint32_t transcript_bytes;
  const char* state = "auto";
  const char* chat = nullptr;  ///< null: the model's own
  uint32_t sessions = 1;
  uint32_t prefix = 0;         ///< tokens, held once for all sessions
  uint32_t recall_tokens = 0;  ///< slots for recalled tokens
};
constexpr SmallLayout kSmallLayouts[] = {
    {24, 8, 4, ORIEL_KV_F16, ORIEL_KV_F16, 8192},
    {40, 4, 4, ORIEL_KV_INT8, ORIEL_KV_INT4, 4096, "int8"},
    {12, 8, 0, ORIEL_KV_INT4, ORIEL_KV_INT4, 4096, "f16"},
    {24, 8, 9, ORIEL_KV_INT8, ORIEL_KV_INT8, 16384, "f32", nullptr, 2},
    {24, 8, 4, ORIEL_KV_F16, ORIEL_KV_F16, 8192, "f32", "plain"},
    {24, 8, 4, ORIEL_KV_F16, ORIEL_KV_F16, 4096, "f32", nullptr, 1, 3},
    {64, 8, 4, ORIEL_KV_INT8, ORIEL_KV_INT4, 4096, "f32", nullptr, 1, 0, 32}};
constexpr size_t kSmallLayoutCount = sizeof(kSmallLayouts) / sizeof(kSmallLayouts[0]);
/// Keys and values, windows by layer, columns, states, latents.
constexpr size_t kSmallModelCount = 5;

/// A session for calls; they use its log.
class SmallSession {
 public:
  SmallSession(const std::string& path, const SmallLayout& layout) {
    Options options;
    options.device = "cpu";
    options.threads = 1;
    options.memory_bytes = 64u << 20;
    options.window_tokens = layout.window;
    options.sessions = layout.sessions;
    options.allocator = ledger_.allocator();
    test::setFormats(&options, layout.k, layout.v);
    options.set("prefill_batch", layout.chunk).set("sinks", layout.sinks);
    options.set("state", layout.state).set("prefix_tokens", layout.prefix);
    options.set("transcript", layout.transcript_bytes);
    if (layout.recall_tokens != 0) {
      options.set("retrieval", 1u << 20).set("retrieval_tokens", layout.recall_tokens);
      options.set("retrieval_folder", std::filesystem::temp_directory_path().string());
    }
    options.log = [](oriel_log_level level, const char* message, void* user) {
      SmallSession& self = *static_cast<SmallSession*>(user);
      if (self.watch_ != nullptr) {
        const Log log = self.watch_->log();
        log.callback(level, message, log.user);
      }
    };
    options.log_user = this;
    oriel_model* model = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &model)) << path;
    loaded_.model.reset(model);
    SessionOptions session_options;
    session_options.chat_template = layout.chat;
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
    loaded_.session.reset(session);
    if (layout.prefix != 0) {
      beginWith(layout.prefix);
      EXPECT_EQ(ORIEL_OK, oriel_prefix_set(model, get()));
      begun_.clear();
    }
  }
  SmallSession(const SmallSession&) = delete;
  SmallSession& operator=(const SmallSession&) = delete;

  oriel_session* get() const { return loaded_.session.get(); }
  oriel_model* model() const { return loaded_.model.get(); }
  /// Receives its lines; may be null.
  void tell(Watch* watch) { watch_ = watch; }

  std::string save() const {
    size_t needed = 0;
    (void)oriel_snapshot_save(get(), nullptr, 0, &needed);
    std::string bytes(needed, '\0');
    EXPECT_EQ(ORIEL_OK, oriel_snapshot_save(get(), bytes.data(), bytes.size(), &needed));
    EXPECT_EQ(bytes.size(), needed);
    return bytes;
  }
  /// An empty session with `tokens` tokens. Computed once, then restored.
  void beginWith(size_t tokens) {
    std::string& known = begun_[tokens];
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(get()));
    if (!known.empty()) {
      EXPECT_EQ(ORIEL_OK, oriel_snapshot_restore(get(), known.data(), known.size(),
                                                 ORIEL_RESTORE_EXACT, nullptr));
      return;
    }
    const std::vector<int32_t> ids = test::someIds(tokens, 300);
    EXPECT_EQ(ORIEL_OK, oriel_session_append(get(), ids.data(), ids.size(), nullptr, nullptr));
    known = save();
  }
  /// Memory that calls borrow is refused.
  void refuseMemory(bool refuse) { ledger_.refuse_all = refuse; }
  oriel_status add(const std::string& role, const std::string& text) const {
    return oriel_chat_add(get(), role.c_str(), text.data(), text.size());
  }
  oriel_status reply(uint32_t tokens) const {
    const ReplyOptions options = test::greedyOptions(tokens);
    return oriel_chat_reply(get(), &options, nullptr, nullptr, nullptr);
  }

 private:
  Watch* watch_ = nullptr;
  std::map<size_t, std::string> begun_;
  test::Ledger ledger_;  // outlives its users
  test::Loaded loaded_;
};

class SmallModels {
 public:
  SmallModels() {
    const char* const wanted[] = {"falcon-h1", "deepseek2"};
    add(test::RandomLlama());
    add(test::smallGemma());
    add(test::smallLfm2());
    for (const test::RandomFamily& family : test::randomFamilies()) {
      for (const char* const name : wanted) {
        if (family.name == name) {
          add(family.model);
        }
      }
    }
    EXPECT_EQ(kSmallModelCount, files_.size());
    sessions_.resize(files_.size() * kSmallLayoutCount);
  }
  SmallSession& session(size_t model, size_t layout) {
    std::unique_ptr<SmallSession>& made = sessions_[model * kSmallLayoutCount + layout];
    if (made == nullptr) {
      made = std::make_unique<SmallSession>(files_[model]->path(), kSmallLayouts[layout]);
    }
    return *made;
  }

 private:
  void add(test::RandomLlama model) {
    // Each token takes time, with sanitizers a lot of it.
    model.n_layers = std::min(model.n_layers, 3u);
    model.n_vocab = 300;
    model.n_ff = 32;
    model.control_tokens = {"<|im_start|>", "<|im_end|>"};
    if (!model.kv_heads_by_layer.empty()) {
      model.kv_heads_by_layer.resize(model.n_layers);
    }
    model.chat_template =
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + "
        "'<|im_end|>' "
        "+ '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% "
        "endif %}";
    files_.push_back(std::make_unique<test::TemporaryModel>(model));
  }

  std::vector<std::unique_ptr<test::TemporaryModel>> files_;
  std::vector<std::unique_ptr<SmallSession>> sessions_;
};

inline SmallModels& smallModels() {
  static SmallModels made;
  return made;
}

}  // namespace oriel_internal::fuzz
