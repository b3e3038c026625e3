#include "oriel/advanced.h"

#include "base/version.h"

const char* oriel_status_text(oriel_status status) {
  switch (status) {
    case ORIEL_OK:
      return "ok";
    case ORIEL_ERROR_ARGUMENT:
      return "an argument is not allowed";
    case ORIEL_ERROR_IO:
      return "a file cannot be read or written";
    case ORIEL_ERROR_FORMAT:
      return "not a whole GGUF model or snapshot";
    case ORIEL_ERROR_UNSUPPORTED:
      return "the model needs something this build does not have";
    case ORIEL_ERROR_MEMORY_BUDGET:
      return "does not fit the memory given";
    case ORIEL_ERROR_OUT_OF_MEMORY:
      return "the system or the device refused memory";
    case ORIEL_ERROR_NO_DEVICE:
      return "no usable device";
    case ORIEL_ERROR_DEVICE:
      return "the device was lost or its driver failed";
    case ORIEL_ERROR_TIMEOUT:
      return "the device did not answer in time";
    case ORIEL_ERROR_CANCELLED:
      return "cancelled";
    case ORIEL_ERROR_BUFFER_TOO_SMALL:
      return "the buffer is too small";
    case ORIEL_ERROR_STATE:
      return "not allowed in this state";
    case ORIEL_ERROR_CONTEXT:
      return "the window does not hold so much";
    case ORIEL_ERROR_TEXT:
      return "the text is not valid UTF-8";
    case ORIEL_ERROR_INTERNAL:
      return "a defect in Oriel";
    case ORIEL_ERROR_SPEED:
      return "slower than the speed asked for";
  }
  return "unknown status";
}

const char* oriel_version(void) { return oriel_internal::kVersionText; }
