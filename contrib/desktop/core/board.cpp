#include "board.h"

namespace desktop {

void LastError::listen(oriel_options* options) {
  options->log = onLog;
  options->log_user = this;
}

std::string LastError::text(oriel_status status) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return line_.empty() ? oriel_status_text(status) : line_;
}

void LastError::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  line_.clear();
}

void LastError::onLog(oriel_log_level level, const char* message, void* user) {
  if (level == ORIEL_LOG_ERROR) {
    auto* self = static_cast<LastError*>(user);
    std::lock_guard<std::mutex> lock(self->mutex_);
    self->line_ = message;
  }
}

}  // namespace desktop
