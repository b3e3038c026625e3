#include <algorithm>
#include <cstdio>
#include <iterator>

#include "api/api.h"
#include "base/arena.h"
#include "exec/host_executor.h"
#include "json/json.h"
#include "oriel/tools.h"
#include "plan/weight_placement.h"
#include "selftest/self_test.h"
#include "speed/probe.h"

namespace oriel_internal {
namespace {

// Weight types whose candidates are timed: the common ones.
constexpr WeightType kTimedTypes[] = {WeightType::kF16, WeightType::kQ8_0, WeightType::kQ4_0,
                                      WeightType::kQ4_K, WeightType::kQ6_K};

constexpr MatmulUse kTimedUses[] = {MatmulUse::kVector, MatmulUse::kChunk};

// Some drivers compile at the first dispatch, and a self-test plan has dozens of kernels.
constexpr uint32_t kTimeoutMs = 600000;

struct DeviceChoice {
  LoadOptions options;
  oriel_allocator allocator;
  mutable bool begun = false;  // the first executor discards earlier verdicts
};

Status makeForChecks(const void* context, const Plan& plan, bool baseline,
                     const ExecutorMemory& memory, Executor** executor) {
  const DeviceChoice& choice = *static_cast<const DeviceChoice*>(context);
  LoadOptions options = choice.options;
  if (baseline) {
    options.disabled_features = "all";
  }
  const ExecutorUse use = choice.begun ? ExecutorUse::kSelfTest : ExecutorUse::kSelfTestBegins;
  choice.begun = true;
  return createExecutor(options, use, plan, memory, choice.allocator, {}, logOf(options), nullptr,
                        executor);
}

Status makeForProbe(const void* context, const Plan& plan, const ExecutorMemory& memory,
                    Executor** executor) {
  const DeviceChoice& choice = *static_cast<const DeviceChoice*>(context);
  return createExecutor(choice.options, ExecutorUse::kProbe, plan, memory, choice.allocator, {},
                        logOf(choice.options), nullptr, executor);
}

Status timeCandidates(const DeviceChoice& choice, MatmulUse use, const Log& log,
                      oriel_candidate_fn on_candidate, void* user, TestProgress* progress,
                      oriel_self_test_result* result) {
  for (const WeightType type : kTimedTypes) {
    MatmulTimes times;
    ORIEL_TRY(tuneMatmul({makeForProbe, &choice}, use, fileTypeOf(type), true, choice.allocator,
                         log, &times));
    result->candidates_kept |= times.kept ? 1 : 0;
    for (uint32_t i = 0; i < times.count; ++i) {
      oriel_candidate candidate = {};
      candidate.struct_size = sizeof(candidate);
      std::snprintf(candidate.op, sizeof(candidate.op), "%s %s",
                    use == MatmulUse::kVector ? "matvec" : "matmul", weightTypeName(type));
      std::snprintf(candidate.name, sizeof(candidate.name), "%s", times.names[i]);
      candidate.microseconds = times.microseconds[i];
      candidate.chosen = i == times.chosen ? 1 : 0;
      candidate.standard = i == times.standard ? 1 : 0;
      on_candidate(&candidate, user);
    }
    ORIEL_TRY(progress->advance());
  }
  return kOk;
}

struct CheckCallback {
  oriel_check_fn on_check;
  void* user;

  static void handOn(const CheckReport& report, void* context) {
    const CheckCallback& self = *static_cast<const CheckCallback*>(context);
    oriel_check check = {};
    check.struct_size = sizeof(check);
    copyText(report.name, std::strlen(report.name), check.name);
    check.result = report.result == CheckResult::kPassed   ? ORIEL_CHECK_PASSED
                   : report.result == CheckResult::kFailed ? ORIEL_CHECK_FAILED
                                                           : ORIEL_CHECK_SKIPPED;
    check.error = report.error;
    check.limit = report.limit;
    copyText(report.reason, std::strlen(report.reason), check.reason);
    self.on_check(&check, self.user);
  }
};

void describeSummary(const SelfTestSummary& summary, oriel_self_test_result* result) {
  copyText(summary.device, std::strlen(summary.device), result->device);
  copyText(summary.driver, std::strlen(summary.driver), result->driver);
  copyText(summary.features, std::strlen(summary.features), result->features);
  result->passed = summary.passed;
  result->failed = summary.failed;
  result->skipped = summary.skipped;
}

Status selfTest(const LoadOptions& options, oriel_check_fn on_check,
                oriel_candidate_fn on_candidate, void* user, oriel_self_test_result* result) {
  const Log log = logOf(options);
  BudgetRequest checked;
  ORIEL_TRY(readRequest(options, log, &checked));
  if (options.device == DeviceKind::kNone) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "the device name is empty: give a device");
  }
  DeviceChoice choice = {
      options, options.allocator != nullptr ? *options.allocator : defaultAllocator(), false};
  if (choice.options.device_timeout_ms == 0) {
    choice.options.device_timeout_ms = kTimeoutMs;
  }
  TestedDevice device;
  device.make = makeForChecks;
  device.context = &choice;
  writeFeatureNames(UINT32_MAX, result->feature_names, sizeof(result->feature_names));
  CheckCallback callback = {on_check, user};
  SelfTestSummary summary = {};
  const CheckSink sink = {on_check != nullptr ? CheckCallback::handOn : nullptr, &callback,
                          &summary};
  TestProgress progress = {{options.progress, options.progress_user}, kSelfTestParts};
  if (on_candidate != nullptr) {
    progress.parts += static_cast<uint32_t>(std::size(kTimedUses) * std::size(kTimedTypes));
  }
  ORIEL_TRY(runSelfTest(device, choice.allocator, log, sink, &progress));
  describeSummary(summary, result);
  if (on_candidate != nullptr) {
    for (const MatmulUse use : kTimedUses) {
      ORIEL_TRY(timeCandidates(choice, use, log, on_candidate, user, &progress, result));
    }
  }
  return kOk;
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_self_test(const oriel_options* given, oriel_check_fn on_check,
                             oriel_candidate_fn on_candidate, void* user,
                             oriel_self_test_result* out) {
  CallOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if (const Status checked = checkResult(out, "oriel_self_test_result", logOf(options));
      !checked.ok()) {
    return checked.code();
  }
  oriel_self_test_result result = {};
  result.struct_size = sizeof(result);
  const Status status = selfTest(options, on_check, on_candidate, user, &result);
  if (status.ok()) {
    writeResult(result, out);
  }
  return status.code();
}

namespace oriel_internal {
namespace {

oriel_json_kind kindOf(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::kNull:
      return ORIEL_JSON_NULL;
    case JsonKind::kBool:
      return ORIEL_JSON_BOOL;
    case JsonKind::kNumber:
      return ORIEL_JSON_NUMBER;
    case JsonKind::kString:
      return ORIEL_JSON_STRING;
    case JsonKind::kArray:
      return ORIEL_JSON_LIST;
    case JsonKind::kObject:
      return ORIEL_JSON_OBJECT;
  }
  return ORIEL_JSON_NULL;
}

// Reports a value and its items. Recursive; the reader has limited the depth. False: the callback stopped it.
bool tell(const JsonValue& value, oriel_json_fn on_item, void* user) {
  oriel_json_item item = {};
  item.struct_size = sizeof(item);
  item.kind = kindOf(value);
  item.count = value.isBool() ? (value.boolean() ? 1 : 0) : value.count();
  if (value.isString() || value.isNumber()) {
    item.text = value.text().data;
    item.text_bytes = value.text().bytes;
  }
  if (value.hasKey()) {
    item.key = value.key().data;
    item.key_bytes = value.key().bytes;
  }
  if (on_item(&item, user) != 0) {
    return false;
  }
  if (!value.isArray() && !value.isObject()) {
    return true;
  }
  for (const JsonValue* one = value.first(); one != nullptr; one = one->next()) {
    if (!tell(*one, on_item, user)) {
      return false;
    }
  }
  item = {};
  item.struct_size = sizeof(item);
  item.kind = ORIEL_JSON_END;
  return on_item(&item, user) == 0;
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_json_read(const char* json, size_t bytes, const char* what,
                             const oriel_options* given, oriel_json_fn on_item, void* user) {
  CallOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if ((json == nullptr && bytes != 0) || what == nullptr || on_item == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  const oriel_allocator allocator = allocatorOf(options);
  Scratch scratch(allocator, kJsonBytesPerByte * std::min(bytes, kMaxJsonBytes) + kJsonBaseBytes);
  const JsonValue* value = nullptr;
  const Status status =
      parseJson(json, bytes, what, {}, logOf(options), &scratch, &value, JsonRules::kStrict);
  if (!status.ok()) {
    return status.code();
  }
  return tell(*value, on_item, user) ? ORIEL_OK : ORIEL_ERROR_CANCELLED;
}

namespace oriel_internal {

// The rows of a text model that a picture becomes: oriel_picture_rows.

namespace {

/// The picture encoder of a model that is not loaded.
class PictureRowsCall {
 public:
  PictureRowsCall(const LoadOptions& options, const Log& log)
      : options_(options), log_(log), allocator_(allocatorOf(options)) {}
  ~PictureRowsCall() {
    dropPictures(pictures_);
    for (const Block& block : blocks_) {
      if (block.data != nullptr) {
        release(allocator_, block.data, block.bytes);
      }
    }
  }
  PictureRowsCall(const PictureRowsCall&) = delete;
  PictureRowsCall& operator=(const PictureRowsCall&) = delete;

  Status load(const char* path, const Picture& picture) {
    if (options_.mmproj == nullptr) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "there is no encoder of pictures: give its file as \"mmproj\"");
    }
    ModelFile model;
    ORIEL_TRY(model.open(path, allocator_, log_));
    ORIEL_TRY(file_.open(options_, model.gguf(), log_, {}));
    ORIEL_TRY(checkPicture(picture, log_));
    if (options_.image_tokens == 0 && file_.desc.projector == Projector::kQwen3) {
      // There is memory for one picture: any size that the publisher allows.
      PictureLayout layout;
      ORIEL_TRY(layOutPicture(file_.desc, {picture.width, picture.height}, 0, log_, &layout));
      options_.image_tokens = layout.rowCount();
    }
    Arena measure;
    ORIEL_TRY(takePictures(options_, &file_, log_, &measure, &pictures_));
    ORIEL_TRY(take(measure.used(), &blocks_[0]));
    Arena arena(blocks_[0].data, measure.used());
    ORIEL_TRY(takePictures(options_, &file_, log_, &arena, &pictures_));
    pictures_->handOver(&file_);
    return loadPictures(options_, ExecutorUse::kProbe, allocator_, nullptr, log_, nullptr,
                        pictures_);
  }

  Status encode(const Picture& picture, oriel_picture_rows_fn on_rows, void* user) {
    PictureEncoder& encoder = pictures_->encoder;
    PictureLayout layout;
    ORIEL_TRY(encoder.layOut(picture, log_, &layout));
    const uint32_t count = layout.rowCount();
    ORIEL_TRY(take(sizeof(float) * uint64_t{count} * encoder.width(), &blocks_[1]));
    float* const rows = static_cast<float*>(blocks_[1].data);
    ORIEL_TRY(encoder.encode(picture, layout, log_, StopCheck(), rows));
    on_rows(rows, count, encoder.width(), user);
    return kOk;
  }

 private:
  struct Block {
    void* data = nullptr;
    uint64_t bytes = 0;
  };
  Status take(uint64_t bytes, Block* block) {
    *block = {allocateZeroed(allocator_, bytes), bytes};
    return block->data != nullptr ? Status(kOk)
                                  : log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                              "the system refused %llu bytes: close other programs",
                                              static_cast<unsigned long long>(bytes));
  }

  LoadOptions options_;
  const Log log_;
  const oriel_allocator allocator_;
  PictureFile file_;
  ModelPictures* pictures_ = nullptr;
  Block blocks_[2];
};

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_picture_rows(const char* path, const uint8_t* rgb, uint32_t width,
                                uint32_t height, const oriel_options* given,
                                oriel_picture_rows_fn on_rows, void* user) {
  if (path == nullptr || rgb == nullptr || on_rows == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  CallOptions options;
  if (const Status status = takeModelOptions(given, &options); !status.ok()) {
    return status.code();
  }
  PictureRowsCall call(options, logOf(options));
  const Picture picture = {rgb, width, height, size_t{width} * 3, PixelOrder::kRgb8};
  Status status = call.load(path, picture);
  status = status.ok() ? call.encode(picture, on_rows, user) : status;
  return status.code();
}
