// Why structs of the app's are refused.
#include "api/api.h"

namespace oriel_internal {

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
Status takeModelOptions(const oriel_options* given, oriel_options* options) {
  const bool read = readOptions(given, options);
  if (options->error_line != nullptr && options->error_line_bytes != 0) {
    options->error_line[0] = '\0';
  }
  if (read) {
    return kOk;
  }
  const bool forgotten = given->struct_size == 0;
  return refuseStruct("oriel_options", given->struct_size,
                      forgotten ? Log{given->log, given->log_user} : logOf(*options));
}

}  // namespace oriel_internal
