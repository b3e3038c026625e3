// Why structs of the app's are refused.
#include "api/api.h"

namespace oriel_internal {

namespace {

// The app's callback first: a call that it makes may fail into the same buffer, and this one failed after it.
void handOn(oriel_log_level level, const char* message, void* user) {
  const oriel_options& options = *static_cast<const oriel_options*>(user);
  if (options.log != nullptr) {
    options.log(level, message, options.log_user);
  }
  if (level == ORIEL_LOG_ERROR) {
    copyLine(message, options.error_line, options.error_line_bytes);
  }
}

}  // namespace

Log logOf(const oriel_options& options) {
  return wantsLine(options) ? Log{handOn, const_cast<oriel_options*>(&options)}
                            : Log{options.log, options.log_user};
}

Status refuseStruct(const char* type, size_t struct_size, const Log& log) {
  if (validSize(struct_size)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "%s has fields that this version of Oriel does not know: leave them 0, or "
                    "update Oriel",
                    type);
  }
  return log.fail(ORIEL_ERROR_ARGUMENT, "%s.struct_size is %zu: set it to sizeof(%s)", type,
                  struct_size, type);
}

// The log stands where the first version of the struct had it, so a size that was forgotten hides it from nobody. Where
// the size is no size at all, the struct was never filled: nothing in it is used.
Status takeModelOptions(const oriel_options* given, LoadOptions* options) {
  const bool read = readOptions<oriel_options>(given, options);
  if (wantsLine(*options)) {
    options->error_line[0] = '\0';
  }
  if (read) {
    return applySettings(OptionScope::kLoad, options->settings, options->setting_count,
                         logOf(*options), options, &options->lists);
  }
  const bool forgotten = given->struct_size == 0;
  return refuseStruct("oriel_options", given->struct_size,
                      forgotten ? Log{given->log, given->log_user} : logOf(*options));
}

}  // namespace oriel_internal
