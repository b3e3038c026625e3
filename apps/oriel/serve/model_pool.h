// The server's command line options.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model_handle.h"
#include "options.h"
#include "serve/api_error.h"
#include "serve/message.h"
#include "serve/slot.h"

namespace cli {

struct ServiceOptions {
  CommonOptions common;     ///< defaults for replies
  std::string system;       ///< starts every conversation; empty: none
  std::string model_name;   ///< of the first model, for clients
  bool all_models = false;  ///< serves local models by name
  uint32_t queue = 32;
  uint32_t most_tokens = 0;  ///< for all replies of a request; 0: the default
  std::chrono::seconds timeout{600};
  GuardOptions guard;
};

// A loaded model with its sessions.

/// Memory for loading `options.common.model` with as many sessions as fit. Sets their number and the system prompt's
/// length in *options. 0: unknown, or it does not fit.
uint64_t planLoad(ServiceOptions* options);

class LoadedModel {
 public:
  /// `options` must be planned. Loads the model and reads the system prompt. Throws Failure.
  explicit LoadedModel(ServiceOptions options, std::string name);

  /// Throws ApiError if the server has a --system prompt.
  void checkWithoutSystem() const;
  /// Removes a system prompt equal to the server's, which every session has.
  void leaveOutSystem(ReplyRequest* request) const;

  const ServiceOptions options;
  const std::string name;  ///< name for clients
  const Model model;
  Slots slots;
  ReplyCheck check;
};

// The models that requests can name, loaded or not.

/// Facts about a model; some are known only after loading.
struct ModelCard {
  std::string name;
  std::string path;
  uint64_t file_bytes = 0;
  Json info;          ///< from oriel_model_describe; null: not opened yet
  bool sees = false;  ///< it has an encoder of pictures
  bool loaded = false;
  uint32_t window_tokens = 0;  ///< 0: not loaded yet
  uint32_t sessions = 0;
  uint64_t memory_bytes = 0;  ///< while it is loaded
};

/// Without --all-models: one model for any name. With it: local models are loaded on request under one memory cap, and
/// the least recently used are unloaded. Thread-safe.
class ModelPool {
 public:
  struct Entry;

  /// Loads the options' model. Throws Failure.
  explicit ModelPool(ServiceOptions options);
  ~ModelPool();

  bool servesAll() const { return options_.all_models; }
  static ApiError unknown(const std::string& name);
  /// "" is the first model. Throws ApiError 404 for an unknown name.
  Entry* find(const std::string& name);
  ModelFacts facts(Entry* entry);
  ModelCard card(Entry* entry);
  /// The first model, then the local ones by name.
  std::vector<ModelCard> cards();

  /// Keeps a model loaded during its lifetime.
  class Lease {
   public:
    Lease(ModelPool* pool, Entry* entry) : pool_(pool), entry_(entry) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    LoadedModel* operator->() const;
    LoadedModel& operator*() const { return *operator->(); }

   private:
    ModelPool* pool_;
    Entry* entry_;
  };

  struct Wait {
    std::function<std::optional<ApiError>()> gives_up;  ///< called several times a second
    std::function<void()> begins;  ///< called once, if the model must be loaded first
  };
  /// Loads it if needed. Throws ApiError if that fails, or the error of `gives_up`.
  Lease open(Entry* entry, const Wait& wait);

  struct Count {
    size_t sessions = 0;
    size_t busy = 0;
    size_t waiting = 0;
    uint64_t memory_bytes = 0;
  };
  Count count() const;

 private:
  Entry* add(const std::string& name, const std::string& path, uint64_t bytes);
  void readStore();
  ServiceOptions optionsOf(const ModelCard& card) const;
  static void keepInfo(Entry* entry, Json info);
  void makeRoom(uint64_t bytes, const Wait& wait, std::unique_lock<std::mutex>* hold);
  std::unique_ptr<LoadedModel> load(Entry* entry, const Wait& wait,
                                    std::unique_lock<std::mutex>* hold);
  void settle(Entry* entry, std::unique_ptr<LoadedModel> loaded);
  uint64_t usedBytes() const;

  const ServiceOptions options_;
  uint64_t memory_bytes_ = 0;  ///< the common cap
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::list<Entry> entries_;  ///< the first model first; entries are never removed
  Entry* loading_ = nullptr;  ///< one at a time
  bool makes_room_ = false;   ///< for loading: no other model is handed out meanwhile
  uint64_t uses_ = 0;
};

}  // namespace cli
