// The models that requests can name, loaded or not.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/api_error.h"
#include "serve/loaded_model.h"
#include "serve/reply_request.h"

namespace cli {

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
