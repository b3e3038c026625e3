// Validation of the app's structs, with the reason of a refusal.
#include <cstring>

#include "api/api.h"
#include "api/describe.h"

namespace oriel_internal {

namespace {

// The app's callback runs first: a failing call inside it may overwrite the same buffer.
void handOn(oriel_log_level level, const char* message, void* user) {
  const LoadOptions& options = *static_cast<const LoadOptions*>(user);
  if (options.log != nullptr) {
    options.log(level, message, options.log_user);
  }
  if (level == ORIEL_LOG_ERROR) {
    copyLine(message, options.error_line, options.error_line_bytes);
  }
}

}  // namespace

Log logOf(const LoadOptions& options) {
  return wantsLine(options) ? Log{handOn, const_cast<LoadOptions*>(&options)}
                            : Log{options.log, options.log_user};
}

namespace {

// Size in bytes of the whole fields that struct_size covers; 0 if the size is invalid.
size_t wholeFields(size_t struct_size, StructShape shape) {
  constexpr size_t kMost = 64 * 1024;
  if (struct_size > kMost || struct_size >= shape.bytes) {
    return struct_size <= kMost ? shape.bytes : 0;
  }
  const uint16_t* const after = std::upper_bound(shape.ends, shape.ends + shape.n, struct_size);
  return after != shape.ends ? after[-1] : 0;
}

}  // namespace

bool validSize(size_t struct_size, StructShape shape) {
  const size_t whole = wholeFields(struct_size, shape);
  return whole != 0 && whole == std::min<size_t>(struct_size, shape.bytes);
}

bool readStruct(const void* given, StructShape shape, void* out) {
  std::memset(out, 0, shape.bytes);
  if (given == nullptr) {
    return true;
  }
  size_t size;
  std::memcpy(&size, given, sizeof(size));
  std::memcpy(out, given, wholeFields(size, shape));
  const uint8_t* const bytes = static_cast<const uint8_t*>(given);
  return validSize(size, shape) &&
         std::all_of(bytes + std::min<size_t>(size, shape.bytes), bytes + size,
                     [](uint8_t byte) { return byte == 0; });
}

void writeStruct(const void* result, StructShape shape, void* out) {
  size_t size;
  std::memcpy(&size, out, sizeof(size));
  std::memcpy(out, result, std::min<size_t>(size, shape.bytes));
  std::memcpy(out, &size, sizeof(size));
}

Status refuseStruct(const char* type, size_t struct_size, StructShape shape, const Log& log) {
  if (validSize(struct_size, shape)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "%s has fields that this version of Oriel does not know: leave them 0, or "
                    "update Oriel",
                    type);
  }
  return log.fail(ORIEL_ERROR_ARGUMENT, "%s.struct_size is %zu: set it to sizeof(%s)", type,
                  struct_size, type);
}

// An invalid size means that the struct was never filled: only the log is used, and only if the size was forgotten.
Status takeModelOptions(const oriel_options* given, CallOptions* options) {
  *options = {};
  oriel_options front;
  const bool read = readOptions(given, &front);
  options->log = front.log;
  options->log_user = front.log_user;
  options->error_line = front.error_line;
  options->error_line_bytes = front.error_line_bytes;
  if (wantsLine(*options)) {
    options->error_line[0] = '\0';
  }
  const Log log = logOf(*options);
  if (!read) {
    const bool forgotten = given->struct_size == 0;
    return refuseStruct("oriel_options", given->struct_size, shapeOf<oriel_options>(),
                        forgotten ? Log{given->log, given->log_user} : log);
  }
  options->memory_bytes = front.memory_bytes;
  options->window_tokens = front.window_tokens;
  options->sessions = front.sessions;
  options->cpu_threads = std::min(front.threads, kMostThreads);  // limited to the number of cores
  options->cache_dir = front.cache_folder;
  options->progress = front.progress;
  options->progress_user = front.progress_user;
  options->allocator = front.allocator;
  options->calibration = front.calibration;
  options->speed = front.speed;
  ORIEL_TRY(applyText(OptionScope::kLoad, "device", front.device, log, options));
  ORIEL_TRY(applyText(OptionScope::kLoad, "system_prompt", front.system_prompt, log, options));
  ORIEL_TRY(applySettings(OptionScope::kLoad, front.settings, front.setting_count, log, options,
                          &options->lists));
  return checkRanges(OptionScope::kLoad, options, log);
}

Status takeSessionOptions(const oriel_session_options* given, const Log& log,
                          SessionSettings* settings) {
  *settings = {};
  oriel_session_options front;
  ORIEL_TRY(takeOptions(given, "oriel_session_options", log, &front));
  settings->chat.chat_template = front.chat_template;
  settings->progress = front.progress;
  settings->progress_user = front.progress_user;
  ORIEL_TRY(applyText(OptionScope::kSession, "tools", front.tools, log, settings));
  return applySettings(OptionScope::kSession, front.settings, front.setting_count, log, settings,
                       nullptr);
}

// The table of options as JSON.

namespace {

bool hasRange(const OptionRow& row) {
  return row.type == OptionType::kCount || row.type == OptionType::kNumber ||
         row.type == OptionType::kList;
}

// The program's spelling, with '-' instead of '_'.
void writeFlag(const OptionRow& row, JsonWriter* out) {
  char flag[64];
  const char* const written = row.flag()[0] != '\0' ? row.flag() : row.name();
  copyText(written, std::strlen(written), flag);
  for (char* c = flag; *c != '\0'; ++c) {
    *c = *c == '_' ? '-' : *c;
  }
  out->text("flag", std::strcmp(flag, "-") == 0 ? "" : flag);
}

void writeRow(const OptionRow& row, JsonWriter* out) {
  out->object();
  out->text("name", row.name());
  writeFlag(row, out);
  out->text("scope", scopeName(row.scope));
  out->text("layer", layerName(row.layer));
  out->text("type", typeName(row.type));
  out->text("default", row.standard());
  if (hasRange(row)) {
    out->real("least", row.least);
    out->real("most", row.most);
  }
  if (row.words != nullptr) {
    out->list("choices");
    for (const OptionWord* word = row.words; word->word != nullptr; ++word) {
      out->text(nullptr, word->word);
    }
    out->end();
  }
  out->text("help", row.help());
  out->end();
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_option_list(char* json, size_t capacity, size_t* needed) {
  if (!validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  JsonWriter out(json, capacity);
  out.object();
  out.list("options");
  for (size_t i = 0; i < kOptionCount; ++i) {
    if (kOptions[i].layer != OptionLayer::kTests) {
      writeRow(kOptions[i], &out);
    }
  }
  out.end();
  out.end();
  return out.finish(needed);
}
