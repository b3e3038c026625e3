// Reads a template: words, syntax tree, and parser.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "jinja/jinja.h"
#include "json/json.h"

namespace oriel_internal::jinja {

// The syntax tree of a template, in the scratch.

/// A name in the template, shared by all its uses.
struct Symbol {
  JsonText text;
  Symbol* next = nullptr;
  uint8_t attribute = 0;  ///< the Python method of that name (jinja_builtins.h), 0: none
};

enum class NodeKind : uint8_t {
  // Statements
  kData,         ///< text
  kPrint,        ///< a: what
  kIf,           ///< a: condition, b: body, c: kIf or kElse
  kElse,         ///< b: body
  kFor,          ///< a: target, b: iterated value, c: kForParts
  kForParts,     ///< a: condition, b: body, c: body for an empty loop
  kSet,          ///< a: target, b: value
  kSetBlock,     ///< a: target, b: body, c: filters around kCaptured
  kMacro,        ///< name; a: parameters, b: body
  kCallBlock,    ///< a: call, b: kMacro
  kFilterBlock,  ///< b: body, c: filters around kCaptured
  kWith,         ///< a: kSet, in sequence; b: body
  kBlock,        ///< b: body, with its own scope
  kBreak,
  kContinue,
  // Expressions
  kLiteral,  ///< text
  kInteger,
  kFloat,
  kTrue,
  kFalse,
  kNone,
  kName,        ///< name
  kList,        ///< a: elements
  kTuple,       ///< a: elements
  kDict,        ///< a: kPair
  kPair,        ///< a: key, b: value
  kAttribute,   ///< a: object; name
  kSubscript,   ///< a: object, b: index or kSlice
  kSlice,       ///< a: start, b: stop, c: step
  kCall,        ///< a: callee, b: kArgument
  kMethodCall,  ///< a: object, b: kArgument; name
  kFilter,      ///< a: input, b: kArgument; name, flags: which
  kTest,        ///< a: input, b: kArgument; name, flags: which
  kArgument,    ///< a: value; name or null
  kParameter,   ///< a: default or null; name
  kNegative,    ///< a
  kPositive,    ///< a
  kNot,         ///< a
  kAnd,         ///< a: operands
  kOr,          ///< a: operands
  kChain,       ///< a: first operand, b: kOperand
  kCompare,     ///< a: first operand, b: kOperand
  kOperand,     ///< op; a
  kConcat,      ///< a: operands
  kCondition,   ///< a: then, b: if, c: else or null
  kCaptured,    ///< the output of a block
};

enum class Op : uint8_t {
  kNoOp,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
  kJoin,  ///< ~
};

struct Node {
  NodeKind kind = NodeKind::kData;
  Op op = Op::kNoOp;
  uint16_t flags = 0;
  uint32_t line = 0;
  Node* next = nullptr;
  Node* a = nullptr;
  Node* b = nullptr;
  union {
    Node* c = nullptr;
    const Symbol* name;
    const JsonText* text;
    int64_t integer;
    double real;
  };
};
constexpr uint16_t kUnknown = 0xFFFF;  ///< flags of an unknown filter or test

// Splits a template into text and the words between its braces, with Jinja's white space rules: trim_blocks and
// lstrip_blocks on, no newline kept at the very end.

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

// Parses a template into a tree. Nesting is bounded, so parsing and running need little stack.

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
