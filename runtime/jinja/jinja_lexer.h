// Splits a template into text and the words between its braces, with Jinja's white space rules: trim_blocks and
// lstrip_blocks on, no newline kept at the very end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"

namespace oriel_internal::jinja {

enum class Token : uint8_t {
  kEnd,
  kData,
  kPrintBegin,
  kPrintEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  ///< text: between the quotes
  kInteger,
  kFloat,
  kOperator,  ///< one or two characters
  kWrong,     ///< text: the fault
};

struct Lexeme {
  Token token = Token::kEnd;
  uint32_t line = 1;
  JsonText text;

  bool isOperator(const char* what) const { return token == Token::kOperator && text.is(what); }
  bool isName(const char* what) const { return token == Token::kName && text.is(what); }
};

/// Small; copy it to look ahead.
class Lexer {
 public:
  Lexer() = default;
  /// Newlines must be '\n'.
  Lexer(const char* text, size_t bytes);

  Lexeme next();

 private:
  enum class Mode : uint8_t { kData, kBlock, kPrint };

  Lexeme nextData();
  Lexeme nextWord();
  bool takeTag(Lexeme* data);
  bool takeComment();
  bool takeRaw(Lexeme* data);
  Lexeme takeEnd(size_t bytes, bool trim_newline, bool trim_space, Token token);
  Lexeme takeString(char quote);
  Lexeme takeNumber();
  Lexeme takeName();
  Lexeme takeOperator();
  void endData(size_t end, char sign, bool print, Lexeme* data);
  void afterTag(bool trim_newline, bool trim_space);
  void moveTo(size_t at);
  bool startsWith(size_t at, const char* what) const;
  size_t skipBlanks(size_t at) const;
  /// True if `{% WORD %}` is at `at`. Returns its end and its signs.
  bool isTag(size_t at, const char* word, size_t* end, char* first_sign, bool* minus) const;
  Lexeme lexeme(Token token, size_t bytes);
  Lexeme wrong(const char* what) const;

  const char* text_ = nullptr;
  size_t bytes_ = 0;
  size_t at_ = 0;
  uint32_t line_ = 1;
  uint32_t open_ = 0;  ///< brackets
  Mode mode_ = Mode::kData;
  bool line_begins_ = true;
  Mode pending_ = Mode::kData;  ///< a tag whose start is returned next
};

}  // namespace oriel_internal::jinja
