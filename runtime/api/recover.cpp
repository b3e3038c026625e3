// Continues a session whose device was lost, on a new device, from the host's data.
#include "api/api.h"
#include "api/session.h"
#include "oriel/advanced.h"

namespace oriel_internal {
namespace {

struct RecoverOptions {
  DeviceKind device = DeviceKind::kAuto;
  uint32_t device_number = 0;
  bool in_batches = false;
  oriel_progress_fn progress = nullptr;
  void* progress_user = nullptr;
};

// True for an error of the device: another device may work. False for a missing file, which fails on every device.
bool mayBeTheDevice(const Status& status) {
  return status.lost() || status.code() == ORIEL_ERROR_NO_DEVICE ||
         status.code() == ORIEL_ERROR_OUT_OF_MEMORY || status.code() == ORIEL_ERROR_UNSUPPORTED;
}

class Recovery {
 public:
  Recovery(oriel_session* handle, Guard::Call* call, const RecoverOptions& options)
      : handle_(*handle), model_(*handle->model), call_(*call), options_(options) {}

  Status run(oriel_recovered* result);

 private:
  bool needsDevice() const { return model_.device_lost; }
  Status takeDevice();
  Status takeDeviceAlone();
  Status tryDevices();
  Status tryDevice(const DeviceChoices::One& choice);
  void chooseDevices(bool drained);
  bool leaveDevice();
  void use(Executor* executor);
  void loseSessions();
  Status read();
  void describe(oriel_recovered* result) const;

  static int onWeights(uint64_t done, uint64_t total, void* user) {
    const Recovery& self = *static_cast<const Recovery*>(user);
    const bool stop = self.options_.progress != nullptr &&
                      self.options_.progress(done, total, self.options_.progress_user) != 0;
    return stop || self.handle_.session->call().cancelled() ? 1 : 0;
  }

  oriel_session& handle_;
  oriel_model& model_;
  Guard::Call& call_;
  const RecoverOptions& options_;
  DeviceChoices choices_;
  uint32_t tried_ = 0;
  bool chosen_ = false;
  char old_name_[sizeof(ModelInfo::device)] = "";
  char old_driver_[sizeof(ModelInfo::driver)] = "";
  Rebuilt read_;
};

Status Recovery::run(oriel_recovered* result) {
  {
    const auto lock = model_.guard.lock();
    std::memcpy(old_name_, model_.info.device, sizeof(old_name_));
    std::memcpy(old_driver_, model_.info.driver, sizeof(old_driver_));
  }
  read_.held = handle_.session->facts().memory.held().count();
  Status status = kOk;
  do {
    status = needsDevice() ? takeDevice() : Status(kOk);
    if (status.ok() && handle_.lost) {
      status = read();
    }
    // Lost again while reading: try the next device.
  } while (status.lost() && needsDevice() && chosen_ && tried_ < choices_.count);
  ORIEL_TRY(status);
  describe(result);
  return kOk;
}

// ---- The device ----------------------------------------------------------------------------------

// No other call runs, and no other call takes or gives back the model's memory.
Status Recovery::takeDevice() {
  (void)call_.become(Guard::Work::kControls);
  model_.guard.close(Guard::Phase::kStopped);
  const Status status = takeDeviceAlone();
  openUntrimmed(&model_);
  (void)call_.become(Guard::Work::kHost);
  return status;
}

Status Recovery::takeDeviceAlone() {
  if (model_.guard.hasDeviceCalls()) {
    return handle_.log.fail(ORIEL_ERROR_STATE,
                            "a reply waits for oriel_resume: cancel it, or call that first");
  }
  if (!needsDevice()) {
    return kOk;  // another session did it already
  }
  // Caches in a file are still valid.
  if (model_.trimmed.level != ORIEL_TRIM_CACHE) {
    loseSessions();
  }
  const bool drained = leaveDevice();
  if (!chosen_) {
    chooseDevices(drained);
    chosen_ = true;
  }
  ORIEL_TRY(tryDevices());
  {
    const auto lock = model_.guard.lock();
    model_.trimmed.level = ORIEL_TRIM_NONE;
  }
  model_.trimmed.spill.remove();
  model_.guard.open();  // also ends a pause
  return kOk;
}

void Recovery::loseSessions() {
  (void)forEachSession(model_, [](oriel_session* handle) -> Status {
    handle->lost = true;
    handle->cache_lost = 0;  // recovered from its transcript
    return kOk;
  });
}

// False: the device never finished its work, so its memory is leaked.
bool Recovery::leaveDevice() {
  Executor* const old = model_.executor;
  if (old == &model_.no_device) {
    return true;
  }
  const bool drained = old->drain();
  (void)old->forget();  // only the part on the host
  leavePictures(model_.pictures);
  use(&model_.no_device);
  destroyExecutor(old);
  if (model_.on_file != nullptr) {
    model_.on_file->experts.forgetSlots();
  }
  return drained;
}

void Recovery::use(Executor* executor) {
  {
    const auto lock = model_.guard.lock();
    model_.executor = executor;
  }
  (void)forEachSession(model_, [&](oriel_session* handle) -> Status {
    handle->session->moveTo(executor);
    return kOk;
  });
}

void Recovery::chooseDevices(bool drained) {
  if (options_.device == DeviceKind::kCpu ||
      (options_.device == DeviceKind::kVulkan && options_.device_number != 0)) {
    choices_.add(options_.device, options_.device_number);
    return;
  }
  const bool with_cpu = options_.device == DeviceKind::kAuto;
  choices_ =
      devicesAfter(old_name_, old_driver_, model_.wish.asked(), drained, with_cpu, model_.log);
  if (choices_.count == 0) {
    choices_.add(DeviceKind::kVulkan);  // logs the reason
  }
}

Status Recovery::tryDevices() {
  Status status = ORIEL_ERROR_DEVICE;
  for (bool again = true; again && tried_ < choices_.count;) {
    const DeviceChoices::One& choice = choices_.list[tried_++];
    model_.device_log.tries(tried_ < choices_.count);
    status = tryDevice(choice);
    model_.device_log.tries(false);
    if (status.ok()) {
      model_.device_lost = false;
      {
        const auto lock = model_.guard.lock();
        describeDevice(&model_);
      }
      model_.log.write(ORIEL_LOG_INFO, "the model is on %s again", model_.executor->deviceName());
      return kOk;
    }
    (void)leaveDevice();
    again = mayBeTheDevice(status);
  }
  return status;
}

Status Recovery::tryDevice(const DeviceChoices::One& choice) {
  ExpertFetch* const experts = model_.on_file != nullptr ? &model_.on_file->experts : nullptr;
  Executor* executor = nullptr;
  ORIEL_TRY(createExecutor(model_.wish.on(choice.kind, choice.number), ExecutorUse::kModel,
                           model_.plan, model_.executor_memory, model_.allocator,
                           {experts, nullptr, nullptr, model_.plan_result.activation_bits},
                           model_.device_log.log(), nullptr, &executor));
  use(executor);
  ORIEL_TRY(loadPictures(model_.wish.on(choice.kind, choice.number), ExecutorUse::kModel,
                         model_.allocator, executor, model_.device_log.log(), nullptr,
                         model_.pictures));
  ORIEL_TRY(refillDevice(&model_, &call_, {onWeights, this}));
  if (model_.trimmed.level == ORIEL_TRIM_CACHE || model_.prefix == nullptr ||
      model_.prefix->tokens == 0) {
    return kOk;
  }
  return makePrefixAgain(&model_, &handle_);
}

// ---- The conversation ----------------------------------------------------------------------------

Status Recovery::read() {
  if (call_.become(Guard::Work::kDevice) != Guard::Answer::kEntered) {
    return refuse(model_, handle_.log, Guard::Answer::kStopped);
  }
  if (needsDevice()) {
    return ORIEL_ERROR_DEVICE;  // lost again
  }
  model_.device_log.tries(chosen_ && tried_ < choices_.count);
  RebuildSource source;
  source.from = RebuildSource::From::kLost;
  source.in_batches = options_.in_batches;
  source.prefix_exact = model_.prefix_exact;
  const Status status = noteLoss(model_, handle_.session->rebuild(source, &read_));
  model_.device_log.tries(false);
  if (status.ok()) {
    handle_.lost = false;
  }
  return status;
}

void Recovery::describe(oriel_recovered* result) const {
  const auto lock = model_.guard.lock();
  const ModelInfo& info = model_.info;
  result->struct_size = sizeof(*result);
  result->on_cpu = isCpuName(info.device) ? 1 : 0;
  result->same_device =
      std::strcmp(info.device, old_name_) == 0 && std::strcmp(info.driver, old_driver_) == 0 ? 1
                                                                                             : 0;
  std::memcpy(result->device_name, info.device, sizeof(result->device_name));
  result->tokens_held = read_.held;
  result->tokens_read = read_.read;
  result->tokens_dropped = read_.dropped;
  result->exact = read_.exact ? 1 : 0;
}

Status readDevice(const char* device, const Log& log, RecoverOptions* options) {
  LoadOptions read = {};
  const oriel_setting setting = {"device", device != nullptr ? device : "auto"};
  ORIEL_TRY(applySettings(OptionScope::kLoad, &setting, 1, log, &read, nullptr));
  if (read.device == DeviceKind::kNone) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a session cannot recover on no device: name one");
  }
  options->device = read.device;
  options->device_number = read.device_number;
  return kOk;
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_session_recover(oriel_session* handle, const char* device, uint32_t flags,
                                   oriel_progress_fn progress, void* user, oriel_recovered* out) {
  if (handle == nullptr || (flags & ~ORIEL_RECOVER_IN_BATCHES) != 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  Guard::Call call(&handle->model->guard, Guard::Work::kHost, Guard::bit(handle->index));
  if (!call.entered()) {
    return refuseCall(handle, call.answer());
  }
  beginCall(handle);
  RecoverOptions options;
  options.in_batches = (flags & ORIEL_RECOVER_IN_BATCHES) != 0;
  options.progress = progress;
  options.progress_user = user;
  Status read = out != nullptr ? checkResult(out, "oriel_recovered", handle->log) : kOk;
  read = read.ok() ? readDevice(device, handle->log, &options) : read;
  if (!read.ok()) {
    return endCall(handle, read);
  }
  oriel_recovered recovered = {};
  oriel_model& model = *handle->model;
  const uint32_t of_device = model.device_error.count();
  const uint32_t of_model = model.last_error.count();
  const Status status = Recovery(handle, &call, options).run(&recovered);
  // The attempts logged lines for the model; the failed call belongs to this session.
  if (!status.ok() && handle->last_error.count() == handle->errors_before) {
    if (model.device_error.count() != of_device) {
      handle->last_error.set(model.device_error);
    } else if (model.last_error.count() != of_model) {
      handle->last_error.set(model.last_error);
    }
  }
  if (status.ok() && out != nullptr) {
    writeResult(recovered, out);
  }
  return endCall(handle, status);
}
