#include "chat/prepare_calls.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "reply/forms.h"

namespace oriel_internal {
namespace {

#define BAR "\xEF\xBD\x9C"
#define LOW "\xE2\x96\x81"

constexpr char kBeforeName[] = "{\"name\": \"";
constexpr char kBeforeArguments[] = "\", \"arguments\": ";

/// A row for templates of a form that, if `mark` is not null, contain that text.
struct SpellingOfForm {
  ReplyForms forms;
  const char* mark;
  uint8_t spelling;
};
constexpr SpellingOfForm kSpellings[] = {
    {kFormToolCall, nullptr, 0}, {kFormLfm, nullptr, 1},       {kFormBarCall, "<|/tool", 2},
    {kFormBarCall, nullptr, 3},  {kFormFunctools, nullptr, 4}, {kFormMistral, nullptr, 5},
    {kFormDeepSeek, nullptr, 6}, {kFormKimi, nullptr, 7},
};

bool has(const JsonText& text, const char* part) {
  const char* const end = text.data + text.bytes;
  return std::search(text.data, end, part, part + std::strlen(part)) != end;
}

void put(const char* text, const JsonSink& sink) { sink.write(text, std::strlen(text), sink.user); }

void writeSpaced(const JsonValue& value, bool python, const JsonSink& sink) {
  if (value.isArray() || value.isObject()) {
    put(value.isArray() ? "[" : "{", sink);
    for (const JsonValue* one = value.first(); one != nullptr; one = one->next()) {
      if (one != value.first()) {
        put(", ", sink);
      }
      if (value.isObject()) {
        writeJsonString(one->key(), sink);
        put(": ", sink);
      }
      writeSpaced(*one, python, sink);
    }
    put(value.isArray() ? "]" : "}", sink);
  } else if (python && (value.isNull() || value.isBool())) {
    put(value.isNull() ? "None" : value.boolean() ? "True" : "False", sink);
  } else {
    writeJson(value, sink);
  }
}

void writePython(const JsonValue& arguments, const JsonSink& sink) {
  for (const JsonValue* one = arguments.first(); one != nullptr; one = one->next()) {
    if (one != arguments.first()) {
      put(", ", sink);
    }
    sink.write(one->key().data, one->key().bytes, sink.user);
    put("=", sink);
    writeSpaced(*one, true, sink);
  }
}

/// The text that write(sink) writes; it is called twice. Empty: out of memory.
template <typename Write>
JsonText textFrom(Scratch* scratch, const Write& write) {
  JsonRoom room;
  write(room.sink());
  room = {scratch->takeText(room.bytes + 1), 0};
  if (room.to == nullptr) {
    return {};
  }
  write(room.sink());
  return {room.to, room.bytes};
}

}  // namespace

const CallSpelling kCallSpellings[] = {
    {"<tool_call>\n", kBeforeName, kBeforeArguments, "}", "\n</tool_call>\n<tool_call>\n",
     "\n</tool_call>"},
    {"<|tool_call_start|>[", "", "(", ")", ", ", "]<|tool_call_end|>", true},
    {"<|tool_call|>[", kBeforeName, kBeforeArguments, "}", ", ", "]<|/tool_call|>"},
    {"<|tool_call|>[", kBeforeName, kBeforeArguments, "}", ", ", "]"},
    {"functools[", kBeforeName, kBeforeArguments, "}", ", ", "]"},
    {"[TOOL_CALLS][", kBeforeName, kBeforeArguments, "}", ", ", "]"},
    {"<" BAR "tool" LOW "calls" LOW "begin" BAR "><" BAR "tool" LOW "call" LOW "begin" BAR
     ">function<" BAR "tool" LOW "sep" BAR ">",
     "", "\n```json\n", "\n```<" BAR "tool" LOW "call" LOW "end" BAR ">",
     "\n<" BAR "tool" LOW "call" LOW "begin" BAR ">function<" BAR "tool" LOW "sep" BAR ">",
     "<" BAR "tool" LOW "calls" LOW "end" BAR ">"},
    {"<|tool_calls_section_begin|><|tool_call_begin|>functions.", "",
     "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_call_begin|>functions.",
     "<|tool_calls_section_end|>", false, true},
};

uint8_t callSpellingOf(const JsonText& chat_template) {
  const ReplyForms forms = formsOfTemplate(chat_template.data, chat_template.bytes);
  const ReplyForms none = formsOfAnything();
  for (const SpellingOfForm& row : kSpellings) {
    const bool speaks = (forms & none) != none && (forms & row.forms) != 0;
    if (speaks && (row.mark == nullptr || has(chat_template, row.mark))) {
      return row.spelling;
    }
  }
  return 0;
}

JsonMade* argumentsOf(const JsonValue* given, Scratch* scratch) {
  JsonBuilder make(scratch);
  const JsonValue* value = given;
  if (given != nullptr && given->isString()) {
    const JsonText& text = given->text();
    const bool blank = std::all_of(text.data, text.data + text.bytes,
                                   [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
    if (blank) {
      return make.object();
    }
    const JsonValue* read = nullptr;
    const Status status =
        parseJson(text.data, text.bytes, "arguments of a call", Log(), scratch, &read);
    value = status.ok() ? read : given;
  }
  if (value == nullptr || value->isNull()) {
    return make.object();
  }
  if (value->isObject()) {
    return make.copyOf(*value);
  }
  JsonMade* const object = make.object();
  make.set(object, "arguments", make.copyOf(*value));
  return object;
}

JsonText argumentsText(const JsonValue& object, Scratch* scratch) {
  return textFrom(scratch, [&](const JsonSink& sink) { writeSpaced(object, false, sink); });
}

JsonText shortId(const JsonText& id, Scratch* scratch) {
  constexpr uint32_t kLetters = 9;
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  if (id.bytes == kLetters && std::all_of(id.data, id.data + id.bytes, plain)) {
    return id;
  }
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (uint32_t i = 0; i < id.bytes; ++i) {
    hash = (hash ^ static_cast<uint8_t>(id.data[i])) * 1099511628211u;
  }
  char* const letters = scratch->takeText(kLetters);
  for (uint32_t i = 0; letters != nullptr && i < kLetters; ++i, hash /= 36) {
    letters[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[hash % 36];
  }
  return letters != nullptr ? JsonText{letters, kLetters} : JsonText{};
}

// Names and arguments are untrusted; the marks may become control tokens.
void appendCalls(const JsonValue& calls, const CallSpelling& spelling, Scratch* scratch,
                 JsonMade* pieces) {
  JsonBuilder make(scratch);
  const auto mark = [&](const char* text) {
    JsonMade* const piece = make.text(text);
    if (piece != nullptr) {
      piece->trust();
    }
    make.append(pieces, piece);
  };
  mark(pieces != nullptr && pieces->count() != 0 ? "\n" : "");
  mark(spelling.open);
  unsigned number = 0;
  for (const JsonValue* call = calls.first(); call != nullptr; call = call->next(), ++number) {
    const JsonValue& function = functionOf(*call);
    const JsonValue* const name = function.find("name");
    const JsonMade* const arguments = argumentsOf(function.find("arguments"), scratch);
    if (arguments == nullptr) {
      return;
    }
    mark(call != calls.first() ? spelling.separator : "");
    mark(spelling.before_name);
    make.append(pieces, make.text(name != nullptr && name->isString() ? name->text() : JsonText{}));
    if (spelling.numbered) {
      make.append(pieces, make.text(textFrom(scratch, [number](const JsonSink& sink) {
        char digits[16];
        std::snprintf(digits, sizeof digits, ":%u", number);
        put(digits, sink);
      })));
    }
    mark(spelling.before_arguments);
    make.append(pieces, make.text(textFrom(scratch, [&](const JsonSink& sink) {
      spelling.python ? writePython(*arguments, sink) : writeSpaced(*arguments, false, sink);
    })));
    mark(spelling.after_arguments);
  }
  mark(spelling.close);
}

}  // namespace oriel_internal
