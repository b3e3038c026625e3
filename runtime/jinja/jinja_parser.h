// Parses a template into a tree. Nesting is bounded, so parsing and running need little stack.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "base/scratch.h"
#include "jinja/jinja.h"
#include "jinja/jinja_lexer.h"
#include "jinja/jinja_node.h"

namespace oriel_internal::jinja {

constexpr uint32_t kMaxNesting = 96;     ///< of blocks and expressions together
constexpr uint32_t kMaxWords = 200000;   ///< between braces
constexpr uint32_t kMaxArguments = 255;  ///< in a call, and parameters of a macro
/// Limit on all name comparisons. The largest number of distinct names needs a fifth of it, unless they were chosen to
/// collide.
constexpr uint64_t kMaxNamesCompared = 20'000'000;

class Parser {
 public:
  Parser(const StopCheck& stop, const Log& log, Scratch* scratch)
      : stop_(stop), log_(log), scratch_(scratch) {}

  /// The statements of a template.
  Status parse(const char* text, size_t bytes, const Node** body);
  /// A name in the template; null: not used. Adds the number of compared names to *compared.
  const Symbol* find(const JsonText& name, uint64_t* compared) const;
  /// Words between braces so far.
  uint32_t words() const { return words_; }

 private:
  class Deeper;
  struct Chain;  // a list under construction

  // Statements (jinja_statements.cpp)
  Node* parseBody(const char* end1, const char* end2, const char* end3);
  Node* parseStatement();
  Node* parseIf();
  Node* parseFor();
  Node* parseSet();
  Node* parseMacro();
  Node* parseMacroParts(Node* macro, const char* end);
  Node* parseParameters();
  Node* parseCallBlock();
  Node* parseFilterBlock();
  Node* parseWith();
  Node* parseBlock();
  Node* parseLoopEnd(NodeKind kind);
  Node* parseTarget(bool attributes);
  Node* parseTargetName(bool attributes);
  Node* parsePrint();
  bool endBlock();
  bool endOf(const char* word);

  // Expressions (jinja_parser.cpp)
  Node* parseTuple(bool conditions);
  Node* parseExpression(bool conditions);
  Node* parseCondition();
  Node* parseOr();
  Node* parseAnd();
  Node* parseNot();
  Node* parseCompare();
  Op takeCompareOp();
  Node* parseBinary(uint32_t level);
  Op takeBinaryOp(uint32_t level);
  Node* parseUnary(bool filters);
  Node* parsePrimary();
  Node* parseNameOrConstant();
  Node* parseLiteral();
  Node* parseNumber();
  Node* parseParentheses();
  Node* parseList();
  Node* parseDict();
  Node* parsePostfix(Node* of);
  Node* parseFilters(Node* of);
  Node* parseAttribute(Node* of);
  Node* parseSubscript(Node* of);
  Node* parseIndex();
  Node* parseCall(Node* of);
  bool parseArguments(Node** first);
  Node* parseFilter(Node* of);
  Node* parseTest(Node* of);
  bool startsTestArgument() const;

  bool decode(const JsonText& written, char* out, size_t* bytes);

  void advance();
  bool atOperator(const char* what) const { return now_.isOperator(what); }
  bool takeOperator(const char* what);
  bool takeName(const char* what);
  bool expectOperator(const char* what);
  Node* node(NodeKind kind);
  Node* nodeOf(NodeKind kind, Node* a, Node* b);
  const Symbol* intern(const JsonText& name);
  const JsonText* keep(const JsonText& text);
  Node* failAt(uint32_t line, const char* format, ...) ORIEL_PRINTF(3, 4);
  Node* unexpected(const char* wanted);
  Node* outOfMemory();

  const StopCheck& stop_;
  const Log& log_;
  Scratch* const scratch_;
  Lexer lexer_;
  Lexeme now_;
  Status status_ = kOk;
  uint32_t depth_ = 0;
  uint32_t loops_ = 0;  ///< enclosing loops within the macro
  uint32_t words_ = 0;
  uint64_t compared_ = 0;  ///< names
  Node* nodes_ = nullptr;  ///< room for
  uint32_t nodes_left_ = 0;
  static constexpr uint32_t kChains = 512;
  Symbol* symbols_[kChains] = {};
};

/// Counts a nesting level during its lifetime.
class Parser::Deeper {
 public:
  explicit Deeper(Parser* parser) : parser_(parser) { ++parser->depth_; }
  ~Deeper() { --parser_->depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  /// Logs an error if the nesting is too deep.
  bool tooDeep() const;

 private:
  Parser* const parser_;
};

struct Parser::Chain {
  Node* first = nullptr;
  Node* last = nullptr;
  uint32_t count = 0;
  void add(Node* node) {
    ++count;
    (last != nullptr ? last->next : first) = node;
    last = node;
  }
};

}  // namespace oriel_internal::jinja
