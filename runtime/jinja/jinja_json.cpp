#include "jinja/jinja_builtins.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "jinja/jinja_value.h"
#include "text/unicode.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint32_t kMaxJsonNesting = 64;

class JsonWriter {
 public:
  JsonWriter(Interpreter* run, TextBuilder* out) : run_(run), out_(out) {}

  bool readOptions(const Args& args);
  bool write(const Value& value, uint32_t depth);

 private:
  bool writeList(const Value& value, uint32_t depth);
  bool writeDict(const Value& value, uint32_t depth);
  bool writeKey(const Value& key, const Value& dict, uint32_t depth);
  bool writeFloat(const Value& value);
  bool failType(const Value& value);
  void writeString(const Str& text);
  void writeRun(const Str& text, size_t begin, size_t end, TextOrigin source);
  void newLine(uint32_t depth, TextOrigin source);
  void append(const Str& separator, TextOrigin source) {
    out_->append(separator.data, separator.bytes, source);
  }

  Interpreter* const run_;
  TextBuilder* const out_;
  bool ascii_ = false;
  bool sort_keys_ = false;
  bool lines_ = false;
  Str indent_;
  int64_t indent_blanks_ = 0;
  Str between_ = {", ", 2, 0, nullptr, 0};
  Str after_key_ = {": ", 2, 0, nullptr, 0};
};

bool JsonWriter::readOptions(const Args& args) {
  const Value* const ascii = args.find(0, "ensure_ascii");
  const Value* const indent = args.find(1, "indent");
  const Value* const separators = args.find(2, "separators");
  const Value* const sort_keys = args.find(3, "sort_keys");
  ascii_ = ascii != nullptr && run_->truth(*ascii);
  sort_keys_ = sort_keys != nullptr && run_->truth(*sort_keys);
  lines_ = indent != nullptr && !indent->isNone();
  if (lines_) {
    between_ = {",", 1, 0, nullptr, 0};
    if (indent->isText()) {
      indent_ = strOf(*indent);
    } else if (!indent->isInteger()) {
      return run_->fail("the indent of tojson is not a number");
    } else {
      indent_blanks_ = indent->integer() > 0 ? indent->integer() : 0;
    }
  }
  if (separators == nullptr || separators->isNone()) {
    return true;
  }
  List* const pair = separators->is(Kind::kList) ? separators->as<List>() : nullptr;
  if (pair == nullptr || pair->count != 2 || !pair->items()[0].isText() ||
      !pair->items()[1].isText()) {
    return run_->fail("the separators of tojson are not two strings");
  }
  between_ = strOf(pair->items()[0]);
  after_key_ = strOf(pair->items()[1]);
  return true;
}

bool JsonWriter::write(const Value& value, uint32_t depth) {
  if (depth > kMaxJsonNesting) {
    return run_->fail("tojson is given a value that nests too deep");
  }
  if (out_->failed() || !run_->charge(1)) {
    return out_->failed() ? run_->failMemory() : false;
  }
  switch (value.kind()) {
    case Kind::kNone:
      out_->append("null", value.source());
      return true;
    case Kind::kBool:
      out_->append(value.boolean() ? "true" : "false", value.source());
      return true;
    case Kind::kInt:
    case Kind::kAsWritten:
      return run_->repr(value, out_);
    case Kind::kFloat:
      return writeFloat(value);
    case Kind::kView:
    case Kind::kText:
      writeString(strOf(value));
      return run_->charge(strOf(value).bytes / 16);
    case Kind::kList:
    case Kind::kJsonList:
      return value.isList() ? writeList(value, depth) : failType(value);
    case Kind::kDict:
    case Kind::kJsonDict:
      return writeDict(value, depth);
    case Kind::kUndefined:
      return run_->failUndefined(value);
    default:
      return failType(value);
  }
}

bool JsonWriter::failType(const Value& value) {
  return run_->fail("tojson is given a value of type %s", Interpreter::typeName(value));
}

bool JsonWriter::writeFloat(const Value& value) {
  if (std::isnan(value.real()) || std::isinf(value.real())) {
    out_->append(std::isnan(value.real()) ? "NaN"
                 : value.real() < 0       ? "-Infinity"
                                          : "Infinity",
                 value.source());
    return true;
  }
  return run_->repr(value, out_);
}

void JsonWriter::newLine(uint32_t depth, TextOrigin source) {
  if (!lines_) {
    return;
  }
  out_->append("\n", source);
  for (uint32_t i = 0; i < depth && !out_->failed(); ++i) {
    append(indent_, source);
    for (int64_t blank = 0; blank < indent_blanks_ && !out_->failed(); ++blank) {
      out_->append(" ", source);
    }
  }
}

bool JsonWriter::writeList(const Value& value, uint32_t depth) {
  Ref<List> list;
  if (!run_->toList(value, &list)) {
    return false;
  }
  const TextOrigin source = value.source();
  out_->append("[", source);
  for (uint32_t i = 0; i < list->count; ++i) {
    if (i > 0) {
      append(between_, source);
    }
    newLine(depth + 1, source);
    if (!write(list->items()[i], depth + 1)) {
      return false;
    }
  }
  if (list->count > 0) {
    newLine(depth, source);
  }
  out_->append("]", source);
  return true;
}

bool JsonWriter::writeKey(const Value& key, const Value& dict, uint32_t depth) {
  if (key.isText()) {
    return write(key, depth);
  }
  if (!key.isNumber() && !key.isNone()) {
    return run_->fail("tojson is given a key of type %s", Interpreter::typeName(key));
  }
  out_->append("\"", dict.source());
  const bool ok = write(key, depth);
  out_->append("\"", dict.source());
  return ok;
}

bool JsonWriter::writeDict(const Value& value, uint32_t depth) {
  Ref<List> pairs;
  if (!run_->toPairs(value, &pairs) || (sort_keys_ && !sortPairs(run_, pairs.get()))) {
    return false;
  }
  const TextOrigin source = value.source();
  out_->append("{", source);
  for (uint32_t i = 0; i < pairs->count; ++i) {
    Value* const pair = pairs->items()[i].as<List>()->items();
    if (i > 0) {
      append(between_, source);
    }
    newLine(depth + 1, source);
    if (!writeKey(pair[0], value, depth + 1)) {
      return false;
    }
    append(after_key_, source);
    if (!write(pair[1], depth + 1)) {
      return false;
    }
  }
  if (pairs->count > 0) {
    newLine(depth, source);
  }
  out_->append("}", source);
  return true;
}

// The quotes get the source of the string's first and last bytes.
void JsonWriter::writeString(const Str& text) {
  TextOrigin source = text.source;
  out_->reserve(text.bytes + 2);
  forEachRun(text, 0, text.bytes > 0 ? 1 : 0,
             [&](size_t, size_t, TextOrigin first) { source = first; });
  out_->append("\"", source);
  forEachRun(text, 0, text.bytes, [&](size_t begin, size_t end, TextOrigin of) {
    source = of;
    writeRun(text, begin, end, of);
  });
  out_->append("\"", source);
}

void JsonWriter::writeRun(const Str& text, size_t begin, size_t end, TextOrigin source) {
  struct Sink {
    TextBuilder* out;
    TextOrigin source;
  } sink = {out_, source};
  const JsonSink json = {[](const char* data, size_t bytes, void* user) {
                           const Sink* const to = static_cast<const Sink*>(user);
                           to->out->append(data, bytes, to->source);
                         },
                         &sink};
  if (!ascii_) {
    writeJsonEscaped({text.data + begin, end - begin}, json);
    return;
  }
  for (size_t at = begin; at < end;) {
    const Utf8Char c = decodeUtf8(text.data + at, end - at);
    char escape[16] = "";
    if (c.code_point < 0x7F) {
      writeJsonEscaped({text.data + at, 1}, json);
    } else if (c.code_point == 0x7F) {
      out_->append("\x7F", source);
    } else if (c.code_point < 0x10000) {
      std::snprintf(escape, sizeof escape, "\\u%04x", c.code_point);
    } else {
      const uint32_t rest = c.code_point - 0x10000;
      std::snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xD800 | rest >> 10,
                    0xDC00 | (rest & 0x3FF));
    }
    out_->append(escape, source);
    at += c.bytes;
  }
}

}  // namespace

bool filterTojson(Interpreter* run, const Value& in, const Args& args, Value* out) {
  TextBuilder text(run->heap());
  JsonWriter writer(run, &text);
  return writer.readOptions(args) && writer.write(in, 0) && run->finish(&text, out);
}

namespace {

const Value* byName(const Args& args, const Str& name) {
  const Node* node = args.nodes;
  for (uint32_t i = 0; i < args.count; ++i, node = node->next) {
    if (node->name != nullptr && node->name->text == JsonText{name.data, name.bytes}) {
      return &args.values[i];
    }
  }
  return nullptr;
}

// The value for the field between { and }.
const Value* fieldOf(const Args& args, const Str& field, uint32_t* next) {
  int64_t place = 0;
  if (field.bytes == 0) {
    place = (*next)++;
  } else if (!readInteger(field.data, field.bytes, 10, &place)) {
    return byName(args, field);
  }
  return place >= 0 && place < args.places() ? &args.values[place] : nullptr;
}

}  // namespace

bool formatBraces(Interpreter* run, const Value& format, const Args& args, Value* out) {
  const Str text = strOf(format);
  TextBuilder built(run->heap());
  uint32_t next = 0;
  for (size_t at = 0; at < text.bytes;) {
    size_t end = at;
    while (end < text.bytes && text[end] != '{' && text[end] != '}') {
      ++end;
    }
    built.append(text, at, end);
    if (end == text.bytes) {
      break;
    }
    if (end + 1 < text.bytes && text[end + 1] == text[end]) {
      built.append(text, end, end + 1);
      at = end + 2;
      continue;
    }
    size_t close = end + 1;
    while (close < text.bytes && text[close] != '}') {
      ++close;
    }
    const Str field = {text.data + end + 1, close - end - 1, 0, nullptr, 0};
    const Value* const value =
        text[end] == '{' && close < text.bytes ? fieldOf(args, field, &next) : nullptr;
    if (value == nullptr) {
      return run->fail("format is given a field that is not supported, or no value for it");
    }
    if (!run->charge(1) || !run->write(*value, &built)) {
      return false;
    }
    at = close + 1;
  }
  return run->chargeBytes(text.bytes) && run->finish(&built, out);
}

// %s, %d, %r and %%.
bool Interpreter::formatPercent(const Value& format, const Value& values, Value* out) {
  const Str text = strOf(format);
  Value single = values;
  const bool tuple = values.hasShape(Shape::kTuple);
  const Value* const given = tuple ? values.as<List>()->items() : &single;
  const uint32_t count = tuple ? values.as<List>()->count : 1;
  uint32_t next = 0;
  TextBuilder built(heap_);
  for (size_t at = 0; at < text.bytes; ++at) {
    size_t end = at;
    while (end < text.bytes && text[end] != '%') {
      ++end;
    }
    built.append(text, at, end);
    at = end + 1;
    if (end == text.bytes) {
      break;
    }
    const char kind = at < text.bytes ? text[at] : '\0';
    if (kind == '%') {
      built.append(text, at, at + 1);
      continue;
    }
    if (next == count ||
        (kind != 's' && kind != 'r' && (kind != 'd' || !given[next].isInteger()))) {
      return fail("%% is given a format that is not supported, or no value for it");
    }
    const Value value = kind == 'd' ? Value::integer(given[next].integer()) : given[next];
    ++next;
    if (!charge(1) || !(kind == 'r' ? repr(value, &built) : write(value, &built))) {
      return false;
    }
  }
  if (next < count && (tuple || !(values.isDict() || values.isList() || values.isUndefined()))) {
    return fail("%% is given more values than its format has places");
  }
  return chargeBytes(text.bytes) && finish(&built, out);
}

}  // namespace oriel_internal::jinja
