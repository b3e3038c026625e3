#include "jinja/jinja.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order_mark.h"
#include "jinja/jinja_parser.h"
#include "jinja/jinja_run.h"

namespace oriel_internal {
namespace {

using jinja::Heap;
using jinja::Interpreter;
using jinja::Node;
using jinja::Parser;
using jinja::Str;
using jinja::TextBuilder;

// A step takes some tens of nanoseconds. A template without input gets a tenth of a second.
constexpr uint64_t kSteps = 700000;
constexpr uint64_t kStepsAByte = 32;
constexpr uint64_t kStepsAValue = 1500;     // some templates scan all messages for each message
constexpr uint64_t kMostSteps = 7'000'000;  // for any input: half a second
constexpr size_t kFirstBytes = 2048;        // of output, besides the size of the input
constexpr uint32_t kMaxDepth = 400;

// Adds the steps and text bytes that the value justifies, saturating.
void allow(const JsonValue& value, uint64_t* steps, size_t* bytes) {
  *bytes += value.textBytes();
  *steps += kStepsAValue + kStepsAByte * (uint64_t{value.textBytes()} + value.key().bytes);
  for (const JsonValue* child = value.first(); child != nullptr && *steps < kMostSteps;
       child = child->next()) {
    allow(*child, steps, bytes);  // as deep as JSON may be
  }
}

// Jinja uses only '\n', and a byte order mark is not text. Copies only texts with other newlines.
Status unifyNewlines(const char** text, size_t* bytes, const Log& log, Scratch* scratch) {
  const size_t mark = byteOrderMarkBytes(*text, *bytes);
  *text += mark;
  *bytes -= mark;
  if (std::memchr(*text, '\r', *bytes) == nullptr) {
    return kOk;
  }
  char* const copy = scratch->takeText(*bytes);
  if (copy == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no memory to read the chat template: it is too long, use another");
  }
  size_t n = 0;
  for (size_t i = 0; i < *bytes; ++i) {
    const bool carriage_return = (*text)[i] == '\r';
    copy[n++] = carriage_return ? '\n' : (*text)[i];
    i += carriage_return && i + 1 < *bytes && (*text)[i + 1] == '\n' ? 1 : 0;
  }
  *text = copy;
  *bytes = n;
  return kOk;
}

Status handOut(const Str& text, const Log& log, Scratch* scratch, JinjaOutput* output) {
  output->text = text.data;
  output->bytes = text.bytes;
  size_t n = 0;
  jinja::forEachRun(text, 0, text.bytes,
                    [&](size_t, size_t, TextOrigin source) { n += source != 0 ? 1 : 0; });
  SourceRange* const ranges = n > 0 ? scratch->take<SourceRange>(n) : nullptr;
  if (n > 0 && ranges == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no memory for what the chat template wrote: give it less text");
  }
  jinja::forEachRun(text, 0, text.bytes, [&](size_t begin, size_t end, TextOrigin source) {
    if (source != 0) {
      ranges[output->n_ranges++] = {begin, end, source};
    }
  });
  output->ranges = ranges;
  return kOk;
}

Status runParsed(const Parser& parser, const Node* body, const JinjaVariable* variables,
                 size_t n_variables, const JinjaClock& clock, const StopCheck& stop, const Log& log,
                 Scratch* scratch, JinjaOutput* output) {
  uint64_t steps = kSteps;
  size_t bytes = kFirstBytes;
  for (size_t i = 0; i < n_variables; ++i) {
    allow(*variables[i].value, &steps, &bytes);
  }
  steps = std::min(steps, kMostSteps);

  Heap heap(scratch);
  jinja::Value text;
  {
    TextBuilder out(&heap);
    out.reserve(std::min(bytes, scratch->leftBytes() / 4));
    heap.meter() = Steps(steps * jinja::kUnitsAStep, stop, jinja::kUnitsBetweenStops);
    Interpreter interpreter({&heap, &parser, clock, log, {steps, kMaxDepth}});
    const Status status = interpreter.run(body, variables, n_variables, &out);
    output->steps += heap.meter().steps() / jinja::kUnitsAStep;
    ORIEL_TRY(status);
    if (!out.finish(&text)) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                      "no memory for what the chat template wrote: give it less text");
    }
  }
  ORIEL_TRY(handOut(jinja::strOf(text), log, scratch, output));
  text.leave();  // the output owns its bytes
  return kOk;
}

}  // namespace

Status runJinja(const char* chat_template, size_t bytes, const JinjaVariable* variables,
                size_t n_variables, const JinjaClock& clock, const StopCheck& stop, const Log& log,
                Scratch* scratch, JinjaOutput* output) {
  *output = {};
  ORIEL_TRY(unifyNewlines(&chat_template, &bytes, log, scratch));
  const Node* body = nullptr;
  Parser parser(stop, log, scratch);
  const Status parsed = parser.parse(chat_template, bytes, &body);
  output->steps = parser.words();
  ORIEL_TRY(parsed);
  return runParsed(parser, body, variables, n_variables, clock, stop, log, scratch, output);
}

Status checkJinja(const char* chat_template, size_t bytes, const StopCheck& stop, const Log& log,
                  Scratch* scratch) {
  ORIEL_TRY(unifyNewlines(&chat_template, &bytes, log, scratch));
  const Node* body = nullptr;
  Parser parser(stop, log, scratch);
  return parser.parse(chat_template, bytes, &body);
}

}  // namespace oriel_internal
