// Small random models with sessions of several layouts, loaded once a program. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fuzz/checks.h"
#include "oriel/sessions.h"
#include "support/owners.h"
#include "support/random_families.h"

namespace oriel::fuzz {

/// A model's window and formats.
struct SmallLayout {
  uint32_t window;
  uint32_t chunk;
  uint32_t sinks;  ///< UINT32_MAX: none
  oriel_kv_format k;
  oriel_kv_format v;
  uint32_t transcript_bytes;
};
constexpr SmallLayout kSmallLayouts[] = {{24, 8, 4, ORIEL_KV_F16, ORIEL_KV_F16, 2048},
                                         {40, 4, 4, ORIEL_KV_INT8, ORIEL_KV_INT4, 600},
                                         {12, 8, UINT32_MAX, ORIEL_KV_INT4, ORIEL_KV_INT4, 0},
                                         {24, 8, 9, ORIEL_KV_INT8, ORIEL_KV_INT8, 4096}};
constexpr size_t kSmallLayoutCount = sizeof(kSmallLayouts) / sizeof(kSmallLayouts[0]);
/// Keys and values, windows by layer, columns, states, latents.
constexpr size_t kSmallModelCount = 5;

/// A session that calls are made on; what they log is theirs.
class SmallSession {
 public:
  SmallSession(const std::string& path, const SmallLayout& layout) {
    oriel_options options = {};
    options.struct_size = sizeof(options);
    options.device = ORIEL_DEVICE_CPU;
    options.cpu_threads = 1;
    options.memory_bytes = 64u << 20;
    options.window_tokens = layout.window;
    options.chunk_tokens = layout.chunk;
    options.sink_tokens = layout.sinks;
    options.k_format = layout.k;
    options.v_format = layout.v;
    options.transcript_bytes = layout.transcript_bytes;
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
    oriel_session_options session_options = {};
    session_options.struct_size = sizeof(session_options);
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
    loaded_.session.reset(session);
  }
  SmallSession(const SmallSession&) = delete;
  SmallSession& operator=(const SmallSession&) = delete;

  oriel_session* get() const { return loaded_.session.get(); }
  oriel_model* model() const { return loaded_.model.get(); }
  /// Who hears its lines; null: nobody.
  void tell(Watch* watch) { watch_ = watch; }

  std::string save() const {
    size_t needed = 0;
    (void)oriel_session_save(get(), nullptr, 0, &needed);
    std::string bytes(needed, '\0');
    EXPECT_EQ(ORIEL_OK, oriel_session_save(get(), bytes.data(), bytes.size(), &needed));
    EXPECT_EQ(bytes.size(), needed);
    return bytes;
  }
  /// An empty session with so many tokens.
  void beginWith(size_t tokens) const {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(get()));
    const std::vector<int32_t> ids = test::someIds(tokens, 300);
    EXPECT_EQ(ORIEL_OK, oriel_session_append(get(), ids.data(), ids.size()));
  }
  oriel_status add(const std::string& role, const std::string& text) const {
    return oriel_chat_add(get(), role.c_str(), text.data(), text.size());
  }
  oriel_status reply(uint32_t tokens) const {
    const oriel_generate_options options = test::greedyOptions(tokens);
    return oriel_chat_reply(get(), &options, nullptr, nullptr, nullptr);
  }

 private:
  Watch* watch_ = nullptr;
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

}  // namespace oriel::fuzz
