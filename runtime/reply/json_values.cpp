#include "reply/reader.h"

#include <cstdio>
#include <cstring>

#include "base/hash.h"
#include "text/special_tokens.h"
#include "text/unicode.h"

namespace oriel_internal {
namespace {

bool isOfLiteral(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '-' || c == '+' ||
         c == '.';
}
constexpr uint32_t kHighSurrogates = 0xD800;
constexpr uint32_t kLowSurrogates = 0xDC00;
constexpr uint32_t kBehindSurrogates = 0xE000;

}  // namespace

void JsonValues::start(OnEvent on_event, void* user) {
  on_event_ = on_event;
  user_ = user;
  at_ = on_event != nullptr ? At::kValue : At::kOver;
  depth_ = path_bytes_ = piece_bytes_ = 0;
  escape_ = code_unit_ = high_surrogate_ = 0;
}

void JsonValues::push(const char* text, size_t bytes) {
  for (size_t i = 0; i < bytes && at_ != At::kOver; ++i) {
    step(text[i]);
  }
  if (at_ == At::kInString) {
    flush();
  }
}

void JsonValues::finish() {
  if (at_ == At::kInLiteral && depth_ == 0) {
    endLiteral();
  }
  at_ = At::kOver;
}

void JsonValues::forget() {
  at_ = At::kOver;
  wipe(path_, sizeof(path_));
  wipe(piece_, sizeof(piece_));
}

void JsonValues::step(char c) {
  const bool in_text = at_ == At::kInKey || at_ == At::kInString || at_ == At::kInLiteral;
  if (!in_text && isSpace(c)) {
    return;
  }
  switch (at_) {
    case At::kFirstValue:
      if (c == ']') {
        return close();
      }
      element();
      return beginValue(c);
    case At::kValue:
      return beginValue(c);
    case At::kFirstKey:
    case At::kKey:
      if (c == '}' && at_ == At::kFirstKey) {
        return close();
      }
      at_ = c == '"' ? At::kInKey : At::kOver;
      path_bytes_ = levels_[depth_ - 1].path;
      return putPath('/');
    case At::kColon:
      at_ = c == ':' ? At::kValue : At::kOver;
      return;
    case At::kInKey:
    case At::kInString:
      return stringByte(c);
    case At::kInLiteral:
      if (isOfLiteral(c)) {
        return put(c);
      }
      endLiteral();
      return at_ == At::kOver ? void() : step(c);
    case At::kNext: {
      Level& level = levels_[depth_ - 1];
      if (c == (level.is_array ? ']' : '}')) {
        return close();
      }
      at_ = c != ',' ? At::kOver : level.is_array ? At::kValue : At::kKey;
      if (at_ == At::kValue) {
        ++level.index;
        element();
      }
      return;
    }
    case At::kOver:
      return;
  }
}

void JsonValues::beginValue(char c) {
  piece_bytes_ = 0;
  if (c == '{' || c == '[') {
    return open(c == '[');
  }
  at_ = c == '"' ? At::kInString : isOfLiteral(c) ? At::kInLiteral : At::kOver;
  if (at_ == At::kInLiteral) {
    put(c);
  }
}

void JsonValues::open(bool is_array) {
  if (depth_ == kMostDepth) {
    at_ = At::kOver;
    return;
  }
  levels_[depth_++] = {0, path_bytes_, is_array};
  at_ = is_array ? At::kFirstValue : At::kFirstKey;
}

void JsonValues::close() {
  path_bytes_ = levels_[--depth_].path;
  tell(JsonEvent::kEnded, "", 0);
  afterValue();
}

void JsonValues::afterValue() { at_ = depth_ == 0 ? At::kOver : At::kNext; }

void JsonValues::endLiteral() {
  tell(JsonEvent::kLiteral, piece_, piece_bytes_);
  afterValue();
}

// The path of the array's next value.
void JsonValues::element() {
  const Level& level = levels_[depth_ - 1];
  char number[16];
  std::snprintf(number, sizeof(number), "/%u", level.index);
  path_bytes_ = level.path;
  for (const char* c = number; *c != '\0'; ++c) {
    putPath(*c);
  }
}

void JsonValues::stringByte(char c) {
  if (escape_ != 0) {
    return escaped(c);
  }
  if (c == '\\') {
    escape_ = 1;
    return;
  }
  dropSurrogate();
  if (c == '"') {
    return endString();
  }
  put(c);
}

void JsonValues::escaped(char c) {
  constexpr char kNames[] = "\"\\/bfnrt";
  constexpr char kMeant[] = "\"\\/\b\f\n\r\t";
  if (escape_ == 1 && c == 'u') {
    escape_ = 2;
    code_unit_ = 0;
    return;
  }
  if (escape_ == 1) {
    const char* const found = c != '\0' ? std::strchr(kNames, c) : nullptr;
    escape_ = 0;
    dropSurrogate();
    if (found == nullptr) {
      at_ = At::kOver;
      return;
    }
    return put(kMeant[found - kNames]);
  }
  const int digit = hexDigit(c);
  if (digit < 0) {
    at_ = At::kOver;
    return;
  }
  code_unit_ = code_unit_ << 4 | static_cast<uint32_t>(digit);
  if (++escape_ <= 5) {
    return;
  }
  escape_ = 0;
  const bool low = code_unit_ >= kLowSurrogates && code_unit_ < kBehindSurrogates;
  if (high_surrogate_ != 0 && low) {
    const uint32_t high = high_surrogate_ - kHighSurrogates;
    high_surrogate_ = 0;
    return putCodePoint(0x10000 + (high << 10) + (code_unit_ - kLowSurrogates));
  }
  dropSurrogate();
  if (code_unit_ >= kHighSurrogates && code_unit_ < kLowSurrogates) {
    high_surrogate_ = code_unit_;
    return;
  }
  putCodePoint(low ? kReplacementCharacter : code_unit_);
}

// Half of a pair, and the other half did not come.
void JsonValues::dropSurrogate() {
  if (high_surrogate_ != 0) {
    high_surrogate_ = 0;
    putCodePoint(kReplacementCharacter);
  }
}

void JsonValues::endString() {
  if (at_ == At::kInKey) {
    at_ = At::kColon;
    return;
  }
  flush();
  tell(JsonEvent::kEnded, "", 0);
  afterValue();
}

void JsonValues::putCodePoint(uint32_t code_point) {
  char text[kMaxUtf8Bytes];
  const size_t bytes = encodeUtf8(code_point, text);
  for (size_t i = 0; i < bytes; ++i) {
    put(text[i]);
  }
}

void JsonValues::put(char c) {
  if (at_ == At::kInKey) {
    if (c == '~' || c == '/') {
      putPath('~');
      c = c == '~' ? '0' : '1';
    }
    return putPath(c);
  }
  // Characters are not divided.
  const bool begins = (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  if (begins && piece_bytes_ + kMaxUtf8Bytes > kMostPiece) {
    if (at_ == At::kInLiteral) {
      at_ = At::kOver;
      return;
    }
    flush();
  }
  piece_[piece_bytes_++] = c;
}

void JsonValues::putPath(char c) {
  if (path_bytes_ < kMostPath) {
    path_[path_bytes_] = c;
  }
  ++path_bytes_;
}

void JsonValues::flush() {
  if (piece_bytes_ != 0) {
    tell(JsonEvent::kString, piece_, piece_bytes_);
  }
  piece_bytes_ = 0;
}

void JsonValues::tell(JsonEvent event, const char* text, size_t bytes) {
  if (path_bytes_ > kMostPath) {
    return;
  }
  path_[path_bytes_] = '\0';
  on_event_(event, path_, text, bytes, user_);
}

}  // namespace oriel_internal
