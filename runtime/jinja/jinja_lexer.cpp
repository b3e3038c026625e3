#include "jinja/jinja_parser.h"

#include <cstring>

#include "jinja/jinja_value.h"

namespace oriel_internal::jinja {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

bool isNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || isDigit(c) ||
         static_cast<uint8_t>(c) >= 0x80;
}

bool isSign(char c) { return c == '-' || c == '+'; }

}  // namespace

Lexer::Lexer(const char* text, size_t bytes) : text_(text), bytes_(bytes) {
  if (bytes_ > 0 && text_[bytes_ - 1] == '\n') {
    --bytes_;
  }
}

bool Lexer::startsWith(size_t at, const char* what) const {
  const size_t n = std::strlen(what);
  return at <= bytes_ && bytes_ - at >= n && std::memcmp(text_ + at, what, n) == 0;
}

size_t Lexer::skipBlanks(size_t at) const { return skipSpace(text_, bytes_, at); }

void Lexer::moveTo(size_t at) {
  for (; at_ < at; ++at_) {
    line_ += text_[at_] == '\n' ? 1 : 0;
  }
}

Lexeme Lexer::lexeme(Token token, size_t bytes) {
  const Lexeme word = {token, line_, {text_ + at_, bytes}};
  moveTo(at_ + bytes);
  return word;
}

Lexeme Lexer::wrong(const char* what) const {
  return {Token::kWrong, line_, {what, std::strlen(what)}};
}

Lexeme Lexer::next() {
  if (pending_ != Mode::kData) {
    mode_ = pending_;
    pending_ = Mode::kData;
    return {mode_ == Mode::kBlock ? Token::kBlockBegin : Token::kPrintBegin, line_, {}};
  }
  return mode_ == Mode::kData ? nextData() : nextWord();
}

// The next non-empty text, or the tag that follows.
Lexeme Lexer::nextData() {
  while (at_ < bytes_) {
    Lexeme data = {Token::kData, line_, {text_ + at_, 0}};
    const size_t begin = at_;
    const void* brace = nullptr;
    size_t from = at_;
    bool tag = false;
    while (!tag && from < bytes_ &&
           (brace = std::memchr(text_ + from, '{', bytes_ - from)) != nullptr) {
      from = static_cast<size_t>(static_cast<const char*>(brace) - text_);
      tag = startsWith(from, "{%") || startsWith(from, "{{") || startsWith(from, "{#");
      from += tag ? 0 : 1;
    }
    moveTo(tag ? from : bytes_);
    data.text = {data.text.data, at_ - begin};
    if (tag && !takeTag(&data)) {
      return data;
    }
    if (data.text.bytes > 0) {
      return data;
    }
    if (pending_ != Mode::kData) {
      return next();
    }
  }
  return {Token::kEnd, line_, {}};
}

// False: `data` holds the fault.
bool Lexer::takeTag(Lexeme* data) {
  if (takeRaw(data)) {
    return data->token != Token::kWrong;
  }
  const bool comment = text_[at_ + 1] == '#';
  const bool print = text_[at_ + 1] == '{';
  const size_t begin = at_ + 2;
  const char sign = begin < bytes_ && isSign(text_[begin]) ? text_[begin] : '\0';
  endData(at_, sign, print, data);
  moveTo(begin + (sign != '\0' ? 1 : 0));
  if (comment && !takeComment()) {
    *data = wrong("a comment has no end");
    return false;
  }
  if (!comment) {
    pending_ = print ? Mode::kPrint : Mode::kBlock;
    open_ = 0;
  }
  return true;
}

// Applies the white space sign of a tag to the text before it.
void Lexer::endData(size_t end, char sign, bool print, Lexeme* data) {
  const size_t begin = static_cast<size_t>(data->text.data - text_);
  if (sign == '-') {
    data->text = {data->text.data, spaceBefore(data->text.data, data->text.bytes)};
    return;
  }
  if (sign == '+' || print) {
    return;
  }
  size_t line = end;
  while (line > begin && text_[line - 1] != '\n') {
    --line;
  }
  if ((line > begin || line_begins_) && skipSpace(text_, end, line) == end) {
    data->text = {data->text.data, line - begin};
  }
}

bool Lexer::takeComment() {
  for (size_t at = at_; at + 1 < bytes_; ++at) {
    const void* const end = std::memchr(text_ + at, '#', bytes_ - 1 - at);
    if (end == nullptr) {
      return false;
    }
    at = static_cast<size_t>(static_cast<const char*>(end) - text_);
    if (text_[at + 1] == '}') {
      const char sign = at > at_ ? text_[at - 1] : '\0';
      moveTo(at + 2);
      afterTag(sign != '-' && sign != '+', sign == '-');
      return true;
    }
  }
  return false;
}

void Lexer::afterTag(bool trim_newline, bool trim_space) {
  const size_t begin = at_;
  if (trim_space) {
    moveTo(skipBlanks(at_));
  } else if (trim_newline && startsWith(at_, "\n")) {
    moveTo(at_ + 1);
  }
  line_begins_ = at_ > begin && text_[at_ - 1] == '\n';
}

bool Lexer::isTag(size_t at, const char* word, size_t* end, char* first_sign, bool* minus) const {
  if (!startsWith(at, "{%")) {
    return false;
  }
  at += 2;
  *first_sign = at < bytes_ && isSign(text_[at]) ? text_[at] : '\0';
  at = skipBlanks(at + (*first_sign != '\0' ? 1 : 0));
  if (!startsWith(at, word)) {
    return false;
  }
  at = skipBlanks(at + std::strlen(word));
  const bool sign = at < bytes_ && isSign(text_[at]);
  *minus = sign && text_[at] == '-';
  at += sign ? 1 : 0;
  *end = at + 2;
  return startsWith(at, "%}");
}

// {% raw %}: everything up to {% endraw %} is text. `data` becomes the text before, unless that is empty. The raw text
// is returned as the next data.
bool Lexer::takeRaw(Lexeme* data) {
  size_t inner = 0;
  char sign = '\0';
  bool minus = false;
  if (!isTag(at_, "raw", &inner, &sign, &minus)) {
    return false;
  }
  endData(at_, sign, false, data);
  if (data->text.bytes > 0) {
    // The next call returns the tag.
    line_begins_ = data->text.data[data->text.bytes - 1] == '\n';
    return true;
  }
  moveTo(inner);
  afterTag(false, minus);
  Lexeme raw = {Token::kData, line_, {text_ + at_, 0}};
  const size_t begin = at_;
  for (size_t at = begin; at < bytes_; ++at) {
    const void* const brace = std::memchr(text_ + at, '{', bytes_ - at);
    if (brace == nullptr) {
      break;
    }
    at = static_cast<size_t>(static_cast<const char*>(brace) - text_);
    size_t end = 0;
    if (isTag(at, "endraw", &end, &sign, &minus)) {
      raw.text = {raw.text.data, at - begin};
      endData(at, sign, false, &raw);
      moveTo(end);
      afterTag(!minus && text_[end - 3] != '+', minus);
      *data = raw;
      return true;
    }
  }
  *data = wrong("{% raw %} has no end");
  return true;
}

Lexeme Lexer::nextWord() {
  moveTo(skipBlanks(at_));
  if (at_ >= bytes_) {
    return {Token::kEnd, line_, {}};
  }
  const char* const close = mode_ == Mode::kBlock ? "%}" : "}}";
  if (open_ == 0) {
    const bool sign = isSign(text_[at_]) && startsWith(at_ + 1, close) &&
                      (mode_ == Mode::kBlock || text_[at_] == '-');
    if (sign || startsWith(at_, close)) {
      const Token token = mode_ == Mode::kBlock ? Token::kBlockEnd : Token::kPrintEnd;
      const bool minus = sign && text_[at_] == '-';
      return takeEnd(sign ? 3 : 2, mode_ == Mode::kBlock && !sign, minus, token);
    }
  }
  const char c = text_[at_];
  if (c == '"' || c == '\'') {
    return takeString(c);
  }
  return isDigit(c) ? takeNumber() : isNameByte(c) ? takeName() : takeOperator();
}

Lexeme Lexer::takeEnd(size_t bytes, bool trim_newline, bool trim_space, Token token) {
  const Lexeme word = lexeme(token, bytes);
  mode_ = Mode::kData;
  afterTag(trim_newline, trim_space);
  return word;
}

Lexeme Lexer::takeString(char quote) {
  size_t end = at_ + 1;
  while (end < bytes_ && text_[end] != quote) {
    end += text_[end] == '\\' ? 2 : 1;
  }
  if (end >= bytes_) {
    return wrong("a string has no end");
  }
  const Lexeme word = {Token::kString, line_, {text_ + at_ + 1, end - at_ - 1}};
  moveTo(end + 1);
  return word;
}

Lexeme Lexer::takeNumber() {
  size_t end = at_;
  const auto digits = [&] {
    while (end < bytes_ && (isDigit(text_[end]) || text_[end] == '_')) {
      ++end;
    }
  };
  if (text_[at_] == '0' && at_ + 2 < bytes_ && std::strchr("xXoObB", text_[at_ + 1]) != nullptr) {
    for (end = at_ + 2; end < bytes_ && isNameByte(text_[end]);) {
      ++end;
    }
    return lexeme(Token::kInteger, end - at_);
  }
  digits();
  bool real = false;
  const bool after_point = at_ > 0 && text_[at_ - 1] == '.';
  if (!after_point && end + 1 < bytes_ && text_[end] == '.' && isDigit(text_[end + 1])) {
    real = true;
    ++end;
    digits();
  }
  if (!after_point && end + 1 < bytes_ && (text_[end] == 'e' || text_[end] == 'E')) {
    const size_t sign = isSign(text_[end + 1]) ? 1 : 0;
    if (end + 1 + sign < bytes_ && isDigit(text_[end + 1 + sign])) {
      real = true;
      end += 1 + sign;
      digits();
    }
  }
  return lexeme(real ? Token::kFloat : Token::kInteger, end - at_);
}

Lexeme Lexer::takeName() {
  size_t end = at_;
  while (end < bytes_ && isNameByte(text_[end])) {
    ++end;
  }
  return lexeme(Token::kName, end - at_);
}

Lexeme Lexer::takeOperator() {
  static constexpr const char* kPairs[] = {"==", "!=", "<=", ">=", "//", "**"};
  for (const char* const two : kPairs) {
    if (startsWith(at_, two)) {
      return lexeme(Token::kOperator, 2);
    }
  }
  const char c = text_[at_];
  if (c == '\0' || std::strchr("+-*/%~[](){}<>=.:|,", c) == nullptr) {
    return wrong("a character that means nothing here");
  }
  const bool opens = c == '(' || c == '[' || c == '{';
  const bool closes = c == ')' || c == ']' || c == '}';
  open_ = opens ? open_ + 1 : closes && open_ > 0 ? open_ - 1 : open_;
  return lexeme(Token::kOperator, 1);
}

}  // namespace oriel_internal::jinja
