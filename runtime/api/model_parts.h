// Parts of the handles of models and sessions: paths, adapters, devices, pictures, weights on file, trims.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/arena.h"
#include "base/choices.h"
#include "base/log.h"
#include "exec/executor.h"
#include "exec/expert_cache.h"
#include "exec/guard.h"
#include "exec/load_weights.h"
#include "exec/picture_store.h"
#include "gguf/gguf.h"
#include "model/adapters.h"
#include "model/model_desc.h"
#include "oriel/advanced.h"
#include "os/os.h"
#include "plan/plan.h"
#include "vision/patches.h"
#include "vision/picture_encoder.h"

namespace oriel_internal {

// Paths stored in a model.

/// Paths take a multiple of this, so a plan does not change when a file moves.
constexpr uint64_t kPathStepBytes = 1024;

/// Null while measuring.
inline char* copyPath(const char* path, Arena* arena) {
  const size_t bytes = std::strlen(path) + 1;
  char* const copy = arena->take<char>(alignUp(bytes, kPathStepBytes));
  if (copy != nullptr) {
    std::memcpy(copy, path, bytes);
  }
  return copy;
}

}  // namespace oriel_internal

// Memory levels of oriel_trim, and the state needed to undo them.

struct oriel_model;

namespace oriel_internal {

constexpr uint32_t kTrimLevels = 5;

// Arenas given back at a level. Weights go before the cache: they are much larger and can be read from the file again.
constexpr ArenaSet arenasOf(oriel_trim_level level) {
  return (level >= ORIEL_TRIM_SCRATCH ? arenaBit(ArenaKind::kActivations) | arenaBit(ArenaKind::kIo)
                                      : 0) |
         (level >= ORIEL_TRIM_WEIGHTS ? arenaBit(ArenaKind::kWeights) : 0) |
         (level >= ORIEL_TRIM_CACHE ? arenaBit(ArenaKind::kCache) : 0);
}

// The source to read a model's weights again. The file is closed while the weights are in memory, so an app may replace
// it. A file given as a descriptor cannot be reopened.
class ModelSource {
 public:
  // Takes memory for the path from `arena`, which may be a measuring arena. `header_hash`: headerHash() of the file.
  void init(const char* path, uint64_t header_hash, Arena* arena);
  bool keepsFile() const { return keeps_file_; }
  void handOver(ModelFile* model) { model->handOver(path_, &file_); }
  const char* path() const { return path_; }
  const InputFile& file() const { return file_; }
  uint64_t headerHash() const { return header_hash_; }

 private:
  char* path_ = nullptr;
  uint64_t header_hash_ = 0;
  bool keeps_file_ = false;
  InputFile file_;  ///< open if keepsFile()
};

// The trim level and its spilled cache.
struct Trimmed {
  oriel_trim_level level = ORIEL_TRIM_NONE;
  SpillFile spill;  // a byte-for-byte copy of the cache; open at ORIEL_TRIM_CACHE
  uint64_t spill_hash = 0;
};

// For a model with a new executor: reads the weights, and the cache if it was spilled.
Status refillDevice(oriel_model* model, Guard::Call* call, const LoadProgress& progress);

// Allows calls on the device again, unless the model is trimmed or paused.
void openUntrimmed(oriel_model* model);

// The adapters of a model: opens and reads their files, and reads a session's choice of adapters.

/// The adapters requested for a model, and their open files. Borrows memory until it is destroyed.
class AdapterFiles {
 public:
  /// The part that a loaded model keeps in its arena.
  struct Kept {
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept();

    Adapters* adapters = nullptr;
    ModelSource* sources = nullptr;  ///< of each
  };

  AdapterFiles() = default;
  AdapterFiles(const AdapterFiles&) = delete;
  AdapterFiles& operator=(const AdapterFiles&) = delete;
  ~AdapterFiles();

  /// Reads the adapter files in the options, checks them against the model, and adds them to `desc` and `tensors`.
  /// A no-op if the options name no adapter.
  Status open(const LoadOptions& options, const GgufFile& base, const Log& log,
              const StopCheck& stop, ModelDesc* desc, TensorIndex* tensors);
  /// Opens the files again to reread the weights of a loaded model. ORIEL_ERROR_IO if a file was replaced.
  Status openAgain(const Kept& kept, const oriel_allocator& allocator, const Log& log);
  /// Call after reading. Checks that the hashes equal the hashes at load.
  Status expectSame(const Kept& kept, const Log& log) const;
  bool any() const { return adapters_ != nullptr; }
  Adapters* adapters() const { return adapters_; }
  void addTo(WeightFiles* files) const;
  /// Continues `hash` over the headers and InputFile::stateHash of the files.
  uint64_t stateHash(uint64_t hash) const;
  Status expectUnchanged(const Log& log) const;

  /// Copies the kept part into `arena`, which may be a measuring arena.
  void keep(Arena* arena, Kept* kept) const;
  /// Moves files without a name to the model, which keeps them open.
  void handOver(const Kept& kept);

 private:
  struct File {
    const char* path = nullptr;  ///< in the form that the system opens
    ModelFile file;
    uint64_t header_hash = 0;
    GgufFile data;       ///< if `given`: the file that the model has open
    bool given = false;  ///< `data` is used instead of `file`
  };
  Status takeRoom(uint32_t count, size_t path_bytes, const Log& log);
  static Status refuseOther(const ModelSource& source, const Log& log);
  Status openOne(const char* given, bool is_control, const LoadOptions& options,
                 const GgufFile& base, const Log& log, const StopCheck& stop, ModelDesc* desc,
                 TensorIndex* tensors);

  oriel_allocator allocator_ = {};
  Adapters* adapters_ = nullptr;
  File* files_ = nullptr;
  char* paths_ = nullptr;  ///< room for the paths of the files
  void* block_ = nullptr;
  uint64_t block_bytes_ = 0;
  uint32_t opened_ = 0;
};

/// Reads the scales for a session. "none" turns all adapters off. A list names adapters, each with an optional ":SCALE";
/// the default is the scale at load. Null or "": all adapters at their scale at load.
/// An unknown name is ORIEL_ERROR_ARGUMENT; the message lists the names.
Status readAdapterChoice(const ModelDesc& desc, const char* text, const Log& log,
                         float (&scales)[kMaxAdapters]);

// The device options of oriel_model_load, kept to choose a device again.

// Size of disabled_features and enabled_features, including the NUL.
constexpr size_t kFeatureNamesBytes = 256;

// Load options that are needed later. Texts are copied. The buffer of the cache folder has a fixed size, so plans do
// not depend on its length.
class DeviceWish {
 public:
  DeviceWish() = default;
  DeviceWish(const DeviceWish&) = delete;
  DeviceWish& operator=(const DeviceWish&) = delete;
  // Takes memory for the prefix's path from `arena`, which may be a measuring arena.
  void init(const LoadOptions& options, Arena* arena);

  // Options for createExecutor() on another device.
  LoadOptions on(DeviceKind kind, uint32_t number) const;
  const LoadOptions& asked() const { return options_; }
  // Room for the path of prepared weights, kPreparedPathBytes; null without "prepared_dir".
  char* preparedPath() const { return prepared_path_; }
  // The prefix file; null: none.
  const char* prefixFile() const { return options_.prefix_file; }

 private:
  LoadOptions options_ = {};  // the options for createExecutor(), and prefix_file
  char* prepared_path_ = nullptr;
  char cache_dir_[1024] = "";  // fits any path that opening a file accepts
  char disabled_[kFeatureNamesBytes] = "";
  char enabled_[kFeatureNamesBytes] = "";
};

/// Devices to try, in order.
struct DeviceChoices {
  struct One {
    DeviceKind kind;
    uint32_t number;  // of a Vulkan device, counted from 1
  };
  static constexpr uint32_t kMost = 18;

  One list[kMost] = {};
  uint32_t count = 0;

  void add(DeviceKind kind, uint32_t number = 0) {
    if (count < kMost) {
      list[count++] = {kind, number};
    }
  }
};

// The device with this name and driver, then the other Vulkan devices with the fastest kind first, then the CPU if
// `with_cpu`. `with_same` false leaves the named device out.
DeviceChoices devicesAfter(const char* device, const char* driver, const LoadOptions& asked_for,
                           bool with_same, bool with_cpu, const Log& log);

// True if ModelInfo.device is the CPU.
bool isCpuName(const char* device);

// Logs errors as warnings while a device is only tried. Thread-safe.
class DeviceLog {
 public:
  void init(const Log& to) { to_ = to; }
  // Valid for the lifetime of this object.
  Log log() { return {handOn, this, nullptr}; }
  void tries(bool on) { tries_ = on; }

 private:
  static void handOn(oriel_log_level level, const char* message, void* user);

  Log to_;
  std::atomic<bool> tries_{false};
};

// The pictures that an app hands over, and how they enter the text model.

/// Describes how this encoder's pictures enter the text model in `file`, and sets text->pictures. Does nothing if
/// `image_rows` is 0 (no encoder).
Status describeInput(const VisionDesc& vision, uint32_t image_rows, const GgufFile& file,
                     const Log& log, ModelDesc* text, PictureInput* input);

/// ORIEL_ERROR_ARGUMENT for a struct that is not valid.
Status readPicture(const oriel_picture& given, const Log& log, Picture* picture);

/// The rows of a picture with this layout; `first` stays 0.
void describeRows(const PictureLayout& layout, HeldPicture* picture);
/// Hashes the picture's pixels and all settings that determine its rows for one encoder. Never 0.
uint64_t hashOfPicture(const Picture& picture, uint32_t image_rows);

// The picture encoder of a model: its mmproj file, its plan and its executor.

/// An mmproj file that was opened and checked. Borrows memory until it is destroyed: calls that plan have little stack.
struct PictureFile {
  PictureFile() = default;
  ~PictureFile();
  PictureFile(const PictureFile&) = delete;
  PictureFile& operator=(const PictureFile&) = delete;

  ModelFile* source = nullptr;  ///< null without a file
  oriel_allocator allocator = {};
  VisionDesc desc;
  uint64_t host_bytes = 0;    ///< of ModelPictures and all it owns
  uint64_t device_bytes = 0;  ///< PictureEncoder::deviceBytes()
  uint32_t image_rows = 0;    ///< of the plan

  /// Checks that the file belongs to the text model `model`. ORIEL_ERROR_ARGUMENT for "image_tokens" without a file.
  Status open(const LoadOptions& options, const GgufFile& model, const Log& log,
              const StopCheck& stop);
  bool any() const { return source != nullptr; }
};

/// The part of a loaded model.
struct ModelPictures {
  VisionDesc desc;
  InputFile input;  ///< open after handOver()
  GgufFile data;
  PictureEncoder encoder;
  Executor* executor = nullptr;
  char* path = nullptr;

  /// Moves the open file here. Afterwards the encoder can be used.
  void handOver(PictureFile* file);
};

/// Bytes of the encoder's arenas; 0 without pictures.
inline uint64_t executorBytes(const ModelPictures* pictures) {
  uint64_t bytes = 0;
  for (uint32_t kind = 0;
       pictures != nullptr && pictures->executor != nullptr && kind < kArenaKinds; ++kind) {
    bytes += pictures->executor->allocatedBytes(static_cast<ArenaKind>(kind));
  }
  return bytes;
}

/// Takes it from `arena`, which may be a measuring arena, and sets the bytes in `file`. Null when measuring, or without
/// a file. `file` must outlive the call only.
Status takePictures(const LoadOptions& options, PictureFile* file, const Log& log, Arena* arena,
                    ModelPictures** pictures);
/// Gives the encoder's arenas back for a while, and takes them again. No picture is encoded in between. Accept null.
Status trimPictures(ModelPictures* pictures);
Status resumePictures(ModelPictures* pictures);
/// Destroys the executor. Accepts null.
void leavePictures(ModelPictures* pictures);
/// Destroys the executor and closes the file; the arena keeps the memory. Accepts null.
void dropPictures(ModelPictures* pictures);

// The parts of a loaded model that read weights from its file.

struct WeightsOnFile {
  WeightsOnFile(const Plan& plan, const Log& log) : experts(plan, source, log) {}

  InputFile file;  // open after handOver()
  WeightSource source;
  ExpertCache experts;
  char* path = nullptr;  // a copy, since the app's string may be freed after the call

  // Keeps the model's file open here.
  void handOver(ModelFile* model) { model->handOver(path, &file); }
};

// Takes it from `arena`. The plan and the log must outlive it. Null when measuring, or if the plan leaves no weights on
// file.
WeightsOnFile* takeWeightsOnFile(const Plan& plan, const char* path, const Log& log, Arena* arena);
// Closes the file; the arena keeps the memory. Accepts null.
void dropWeightsOnFile(WeightsOnFile* weights);

// A session's options with copies of their texts. They are not part of the plan.

// Shared by a session and its forks. Null without options.
struct SessionTexts {
  std::atomic<uint32_t> owners{1};
  uint64_t bytes = 0;  ///< of the block
  SessionSettings settings = {};

  // Copies the texts of `settings` and points it at the copies.
  static Status copy(const oriel_allocator& allocator, const Log& log, SessionSettings* settings,
                     SessionTexts** out);
  static SessionTexts* share(SessionTexts* texts);
  static void drop(const oriel_allocator& allocator, SessionTexts* texts);
};

}  // namespace oriel_internal
