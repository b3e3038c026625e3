// A model in a session on its own executor, with another one in front.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "api/api.h"
#include "support/api.h"
#include "support/forwarding_executor.h"

namespace oriel_internal::test {

template <class Watcher>
struct WatchedModel {
  /// `executor` and session() are null if the model could not be loaded, which is a test failure.
  WatchedModel(const char* path, const Options& options) {
    oriel_model* model = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_model_load(path, &options, &model));
    if (model == nullptr) {
      return;
    }
    loaded.model.reset(model);
    real_ = model->executor;
    executor = std::make_unique<Watcher>(real_);
    model->executor = executor.get();
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session));
    loaded.session.reset(session);
  }
  ~WatchedModel() {
    loaded.session.reset();
    if (loaded.model != nullptr) {
      loaded.model->executor = real_;
    }
  }
  WatchedModel(const WatchedModel&) = delete;
  WatchedModel& operator=(const WatchedModel&) = delete;
  oriel_session* session() const { return loaded.session.get(); }

  Loaded loaded;
  std::unique_ptr<Watcher> executor;

 private:
  Executor* real_ = nullptr;
};

}  // namespace oriel_internal::test
