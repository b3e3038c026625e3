// Runs chat templates: the part of Jinja that published templates use, within bounds of time, memory and output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "base/scratch.h"
#include "json/json.h"

namespace oriel_internal {

/// Where a stretch of output comes from: 0 is the template's own text, anything else what its caller gave a value. Kept
/// through everything that templates do to strings.
using TextOrigin = uint32_t;

/// A variable of the template. Its strings, and those inside it, have the source `source`; of a list of messages element
/// i has source + i. Trusted strings (JsonValue) have 0.
struct JinjaVariable {
  JsonText name;
  const JsonValue* value = nullptr;
  TextOrigin source = 0;
  bool source_by_element = false;
};

/// Bytes of the output that have a source other than 0, ascending; neighbours of one source are joined.
struct SourceRange {
  size_t begin = 0;
  size_t end = 0;
  TextOrigin source = 0;
};

struct JinjaClock {
  uint32_t date = 20240726;  ///< year * 10000 + month * 100 + day, at noon
};

struct JinjaOutput {
  const char* text = nullptr;
  size_t bytes = 0;
  const SourceRange* ranges = nullptr;
  size_t n_ranges = 0;
  uint64_t steps = 0;  ///< that reading and running took, also where it failed
};

/// Parses and runs a template in `scratch`, in which the output lies. Bounds: the scratch's, steps in proportion to them,
/// nesting. What it was stopped by is one line: the template's own words where it raised an exception
/// (ORIEL_ERROR_ARGUMENT), what is wrong and in which line of it (ORIEL_ERROR_ARGUMENT), which bound it met
/// (ORIEL_ERROR_OUT_OF_MEMORY; of steps ORIEL_ERROR_UNSUPPORTED), ORIEL_ERROR_CANCELLED.
Status runJinja(const char* chat_template, size_t bytes, const JinjaVariable* variables,
                size_t n_variables, const JinjaClock& clock, const StopCheck& stop, const Log& log,
                Scratch* scratch, JinjaOutput* output);
/// Whether a template can be parsed; says in which line not.
Status checkJinja(const char* chat_template, size_t bytes, const StopCheck& stop, const Log& log,
                  Scratch* scratch);

}  // namespace oriel_internal
