// Runs chat templates: the part of Jinja that published templates use, with limits on time, memory and output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "json/json.h"

namespace oriel_internal {

/// The source of a range of output: 0 is the template's own text, other numbers were assigned to values by the caller.
/// Preserved by all string operations.
using TextOrigin = uint32_t;

/// A template variable. Its strings, also nested ones, have the source `source`; in a list of messages element i has
/// source + i. Trusted strings (JsonValue) have source 0.
struct JinjaVariable {
  JsonText name;
  const JsonValue* value = nullptr;
  TextOrigin source = 0;
  bool source_by_element = false;
};

/// Output bytes with a source other than 0, ascending; neighbours of equal source are joined.
struct SourceRange {
  size_t begin = 0;
  size_t end = 0;
  TextOrigin source = 0;
  bool is_picture = false;  ///< the template's own text for a picture of the source (chat/turn.h)
};

struct JinjaClock {
  uint32_t date = 20240726;  ///< year * 10000 + month * 100 + day, at noon
};

struct JinjaOutput {
  const char* text = nullptr;
  size_t bytes = 0;
  const SourceRange* ranges = nullptr;
  size_t n_ranges = 0;
  uint64_t steps = 0;  ///< used by parsing and running, also on failure
};

/// Parses and runs a template in `scratch`, which holds the output. Limits: the scratch's size, steps in proportion to
/// it, nesting. Logs one line on failure:
/// - ORIEL_ERROR_ARGUMENT with the template's message if it raised an exception
/// - ORIEL_ERROR_ARGUMENT with the fault and its line in the template
/// - ORIEL_ERROR_OUT_OF_MEMORY with the limit, or ORIEL_ERROR_UNSUPPORTED for too many steps
/// - ORIEL_ERROR_CANCELLED
Status runJinja(const char* chat_template, size_t bytes, const JinjaVariable* variables,
                size_t n_variables, const JinjaClock& clock, const StopCheck& stop, const Log& log,
                Scratch* scratch, JinjaOutput* output);
/// Checks that a template can be parsed; logs the line with the fault.
Status checkJinja(const char* chat_template, size_t bytes, const StopCheck& stop, const Log& log,
                  Scratch* scratch);

}  // namespace oriel_internal
