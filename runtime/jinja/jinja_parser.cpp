#include "jinja/jinja_parser.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "jinja/jinja_builtins.h"
#include "jinja/jinja_value.h"
#include "text/unicode.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint32_t kNodesAtOnce = 32;
constexpr uint32_t kWordsBetweenStops = 4096;

int shown(const JsonText& text) {
  constexpr size_t kMostShown = 60;
  return static_cast<int>(text.bytes < kMostShown ? text.bytes : kMostShown);
}

uint32_t hashOf(const JsonText& text) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (size_t i = 0; i < text.bytes; ++i) {
    hash = (hash ^ static_cast<uint8_t>(text.data[i])) * 16777619u;
  }
  return hash ^ hash >> 16;
}

}  // namespace

bool Parser::Deeper::tooDeep() const {
  if (parser_->depth_ <= kMaxNesting) {
    return false;
  }
  parser_->failAt(parser_->now_.line, "it nests deeper than %u levels", kMaxNesting);
  return true;
}

Status Parser::parse(const char* text, size_t bytes, const Node** body) {
  lexer_ = Lexer(text, bytes);
  advance();
  Node* const all = parseBody(nullptr, nullptr, nullptr);
  *body = all != nullptr ? all->b : nullptr;
  return status_;
}

void Parser::advance() {
  now_ = lexer_.next();
  if (now_.token == Token::kWrong) {
    failAt(now_.line, "%.*s", shown(now_.text), now_.text.data);
  }
  if (++words_ > kMaxWords) {
    failAt(now_.line, "it has more than %u words", kMaxWords);
  }
  if (words_ % kWordsBetweenStops == 0 && stop_.asked != nullptr && stop_.asked(stop_.user) &&
      status_.ok()) {
    status_ = log_.fail(ORIEL_ERROR_CANCELLED, "reading the chat template was stopped: ask again");
    now_.token = Token::kWrong;
  }
}

Node* Parser::failAt(uint32_t line, const char* format, ...) {
  if (status_.ok()) {
    char what[200];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    status_ = log_.fail(ORIEL_ERROR_ARGUMENT,
                        "line %u of the chat template cannot be read, %s: correct the template",
                        line, what);
  }
  now_.token = Token::kWrong;
  return nullptr;
}

Node* Parser::unexpected(const char* wanted) {
  switch (now_.token) {
    case Token::kEnd:
      return failAt(now_.line, "it ends where %s should be", wanted);
    case Token::kPrintEnd:
    case Token::kBlockEnd:
      return failAt(now_.line, "a tag ends where %s should be", wanted);
    default:
      return failAt(now_.line, "'%.*s' stands where %s should be", shown(now_.text), now_.text.data,
                    wanted);
  }
}

Node* Parser::outOfMemory() {
  if (status_.ok()) {
    status_ = log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                        "no memory to read the chat template: it is too long, use another");
  }
  now_.token = Token::kWrong;
  return nullptr;
}

Node* Parser::node(NodeKind kind) {
  if (nodes_left_ == 0) {
    nodes_ = scratch_->take<Node>(kNodesAtOnce);
    nodes_left_ = nodes_ != nullptr ? kNodesAtOnce : 0;
    if (nodes_ == nullptr) {
      return outOfMemory();
    }
  }
  Node* const made = new (nodes_++) Node;
  --nodes_left_;
  made->kind = kind;
  made->line = now_.line;
  return made;
}

Node* Parser::nodeOf(NodeKind kind, Node* a, Node* b) {
  Node* const made = status_.ok() ? node(kind) : nullptr;
  if (made != nullptr) {
    made->a = a;
    made->b = b;
  }
  return made;
}

const Symbol* Parser::find(const JsonText& name, uint64_t* compared) const {
  const Symbol* symbol = symbols_[hashOf(name) % kChains];
  while (symbol != nullptr && !(symbol->text == name)) {
    symbol = symbol->next;
    ++*compared;
  }
  return symbol;
}

const Symbol* Parser::intern(const JsonText& name) {
  if (const Symbol* const known = find(name, &compared_); known != nullptr) {
    return known;
  }
  if (compared_ > kMaxNamesCompared) {
    failAt(now_.line, "its names are too much alike");
    return nullptr;
  }
  Symbol* const symbol = scratch_->take<Symbol>(1);
  if (symbol == nullptr) {
    outOfMemory();
    return nullptr;
  }
  Symbol** const chain = &symbols_[hashOf(name) % kChains];
  *symbol = {name, *chain, attributeNamed(name)};
  *chain = symbol;
  return symbol;
}

const JsonText* Parser::keep(const JsonText& text) {
  JsonText* const kept = scratch_->take<JsonText>(1);
  if (kept == nullptr) {
    outOfMemory();
    return nullptr;
  }
  *kept = text;
  return kept;
}

bool Parser::takeOperator(const char* what) {
  const bool there = atOperator(what);
  if (there) {
    advance();
  }
  return there;
}

bool Parser::takeName(const char* what) {
  const bool there = now_.isName(what);
  if (there) {
    advance();
  }
  return there;
}

bool Parser::expectOperator(const char* what) {
  return takeOperator(what) || unexpected(what) != nullptr;
}

// One expression, or several separated by commas.
Node* Parser::parseTuple(bool conditions) {
  Node* const first = parseExpression(conditions);
  if (first == nullptr || !atOperator(",")) {
    return first;
  }
  Chain elements;
  elements.add(first);
  while (takeOperator(",")) {
    if (now_.token == Token::kPrintEnd || now_.token == Token::kBlockEnd || atOperator(")") ||
        now_.isName("in")) {
      break;
    }
    Node* const element = parseExpression(conditions);
    if (element == nullptr) {
      return nullptr;
    }
    elements.add(element);
  }
  return nodeOf(NodeKind::kTuple, elements.first, nullptr);
}

Node* Parser::parseExpression(bool conditions) { return conditions ? parseCondition() : parseOr(); }

Node* Parser::parseCondition() {
  const Deeper deeper(this);
  Node* value = deeper.tooDeep() ? nullptr : parseOr();
  while (value != nullptr && takeName("if")) {
    Node* const condition = parseOr();
    Node* otherwise = nullptr;
    if (condition != nullptr && takeName("else")) {
      otherwise = parseCondition();
      if (otherwise == nullptr) {
        return nullptr;
      }
    }
    value = condition != nullptr ? nodeOf(NodeKind::kCondition, value, condition) : nullptr;
    if (value != nullptr) {
      value->c = otherwise;
    }
  }
  return value;
}

Node* Parser::parseOr() {
  Node* const first = parseAnd();
  if (first == nullptr || !now_.isName("or")) {
    return first;
  }
  Chain operands;
  operands.add(first);
  while (takeName("or")) {
    Node* const operand = parseAnd();
    if (operand == nullptr) {
      return nullptr;
    }
    operands.add(operand);
  }
  return nodeOf(NodeKind::kOr, operands.first, nullptr);
}

Node* Parser::parseAnd() {
  Node* const first = parseNot();
  if (first == nullptr || !now_.isName("and")) {
    return first;
  }
  Chain operands;
  operands.add(first);
  while (takeName("and")) {
    Node* const operand = parseNot();
    if (operand == nullptr) {
      return nullptr;
    }
    operands.add(operand);
  }
  return nodeOf(NodeKind::kAnd, operands.first, nullptr);
}

Node* Parser::parseNot() {
  if (!now_.isName("not")) {
    return parseCompare();
  }
  const Deeper deeper(this);
  advance();
  Node* const operand = deeper.tooDeep() ? nullptr : parseNot();
  return operand != nullptr ? nodeOf(NodeKind::kNot, operand, nullptr) : nullptr;
}

Op Parser::takeCompareOp() {
  static constexpr struct {
    const char* text;
    Op op;
  } kOps[] = {{"==", Op::kEqual},     {"!=", Op::kNotEqual}, {"<", Op::kLess},
              {"<=", Op::kLessEqual}, {">", Op::kGreater},   {">=", Op::kGreaterEqual}};
  for (const auto& op : kOps) {
    if (takeOperator(op.text)) {
      return op.op;
    }
  }
  if (takeName("in")) {
    return Op::kIn;
  }
  if (now_.isName("not")) {
    Lexer ahead = lexer_;
    if (ahead.next().isName("in")) {
      advance();
      advance();
      return Op::kNotIn;
    }
  }
  return Op::kNoOp;
}

Node* Parser::parseCompare() {
  Node* const first = parseBinary(0);
  Chain operands;
  for (Op op; first != nullptr && (op = takeCompareOp()) != Op::kNoOp;) {
    Node* const right = parseBinary(0);
    Node* const operand = right != nullptr ? nodeOf(NodeKind::kOperand, right, nullptr) : nullptr;
    if (operand == nullptr) {
      return nullptr;
    }
    operand->op = op;
    operands.add(operand);
  }
  return operands.first != nullptr ? nodeOf(NodeKind::kCompare, first, operands.first) : first;
}

// Levels, in increasing precedence: + and -; ~; * / // %; **.
Op Parser::takeBinaryOp(uint32_t level) {
  static constexpr struct {
    uint32_t level;
    const char* text;
    Op op;
  } kOps[] = {{0, "+", Op::kAdd},      {0, "-", Op::kSubtract}, {1, "~", Op::kJoin},
              {2, "*", Op::kMultiply}, {2, "/", Op::kDivide},   {2, "//", Op::kFloorDivide},
              {2, "%", Op::kModulo},   {3, "**", Op::kPower}};
  for (const auto& op : kOps) {
    if (op.level == level && takeOperator(op.text)) {
      return op.op;
    }
  }
  return Op::kNoOp;
}

Node* Parser::parseBinary(uint32_t level) {
  constexpr uint32_t kConcatLevel = 1;
  constexpr uint32_t kLevels = 4;
  if (level == kLevels) {
    return parseUnary(true);
  }
  Node* const first = parseBinary(level + 1);
  Chain operands;
  for (Op op; first != nullptr && (op = takeBinaryOp(level)) != Op::kNoOp;) {
    Node* const right = parseBinary(level + 1);
    Node* const operand = right == nullptr        ? nullptr
                          : level == kConcatLevel ? right
                                                  : nodeOf(NodeKind::kOperand, right, nullptr);
    if (operand == nullptr) {
      return nullptr;
    }
    operand->op = level == kConcatLevel ? operand->op : op;
    operands.add(operand);
  }
  if (operands.first == nullptr || level != kConcatLevel) {
    return operands.first != nullptr ? nodeOf(NodeKind::kChain, first, operands.first) : first;
  }
  first->next = operands.first;
  return nodeOf(NodeKind::kConcat, first, nullptr);
}

Node* Parser::parseUnary(bool filters) {
  const bool minus = atOperator("-");
  Node* value = nullptr;
  if (minus || atOperator("+")) {
    const Deeper deeper(this);
    advance();
    Node* const operand = deeper.tooDeep() ? nullptr : parseUnary(false);
    value = operand != nullptr
                ? nodeOf(minus ? NodeKind::kNegative : NodeKind::kPositive, operand, nullptr)
                : nullptr;
  } else {
    value = parsePrimary();
  }
  value = value != nullptr ? parsePostfix(value) : nullptr;
  return value != nullptr && filters ? parseFilters(value) : value;
}

Node* Parser::parsePrimary() {
  switch (now_.token) {
    case Token::kName:
      return parseNameOrConstant();
    case Token::kString:
      return parseLiteral();
    case Token::kInteger:
    case Token::kFloat:
      return parseNumber();
    default:
      break;
  }
  const Deeper deeper(this);
  if (deeper.tooDeep()) {
    return nullptr;
  }
  return takeOperator("(")   ? parseParentheses()
         : takeOperator("[") ? parseList()
         : takeOperator("{") ? parseDict()
                             : unexpected("a value");
}

Node* Parser::parseNameOrConstant() {
  static constexpr struct {
    const char* text;
    NodeKind kind;
  } kConstants[] = {{"true", NodeKind::kTrue},   {"True", NodeKind::kTrue},
                    {"false", NodeKind::kFalse}, {"False", NodeKind::kFalse},
                    {"none", NodeKind::kNone},   {"None", NodeKind::kNone}};
  for (const auto& constant : kConstants) {
    if (takeName(constant.text)) {
      return node(constant.kind);
    }
  }
  Node* const name = node(NodeKind::kName);
  if (name != nullptr) {
    name->name = intern(now_.text);
    advance();
  }
  return status_.ok() ? name : nullptr;
}

// Adjacent strings are concatenated.
Node* Parser::parseLiteral() {
  Node* const literal = node(NodeKind::kLiteral);
  JsonText text = now_.text;
  Lexer ahead = lexer_;
  size_t bytes = text.bytes;
  uint32_t n = 1;
  for (Lexeme more = ahead.next(); more.token == Token::kString && n < kMaxWords;
       more = ahead.next(), ++n) {
    bytes += more.text.bytes;
  }
  const bool as_written = n == 1 && std::memchr(text.data, '\\', text.bytes) == nullptr;
  char* const out = as_written ? nullptr : scratch_->takeText(bytes);
  if (literal == nullptr || (!as_written && out == nullptr)) {
    return outOfMemory();
  }
  size_t at = 0;
  for (; n > 0; --n) {
    if (!as_written && !decode(now_.text, out, &at)) {
      return nullptr;
    }
    advance();
  }
  literal->text = keep(as_written ? text : JsonText{out, at});
  return status_.ok() ? literal : nullptr;
}

// Python's escapes; unknown ones stay as written.
bool Parser::decode(const JsonText& written, char* out, size_t* bytes) {
  for (size_t at = 0; at < written.bytes;) {
    if (written.data[at] != '\\' || at + 1 == written.bytes) {
      out[(*bytes)++] = written.data[at++];
      continue;
    }
    uint32_t code_point = 0;
    const size_t taken = readEscape(written.data + at, written.bytes - at, &code_point);
    if (taken == 0) {
      failAt(now_.line, "a string has a wrong escape");
      return false;
    }
    if (code_point == kLineJoined) {
      at += taken;
    } else if (code_point == kNoEscape) {
      out[(*bytes)++] = written.data[at++];
    } else {
      *bytes += encodeUtf8(code_point, out + *bytes);
      at += taken;
    }
  }
  return true;
}

Node* Parser::parseNumber() {
  const bool real = now_.token == Token::kFloat;
  Node* const number = node(real ? NodeKind::kFloat : NodeKind::kInteger);
  char digits[64] = "";
  size_t n = 0;
  for (size_t i = 0; i < now_.text.bytes; ++i) {
    if (now_.text.data[i] != '_') {
      if (n == sizeof digits) {
        return failAt(now_.line, "a number has too many digits");
      }
      digits[n++] = now_.text.data[i];
    }
  }
  if (number == nullptr) {
    return nullptr;
  }
  const char mark = n > 2 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const uint32_t base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
  const size_t prefix = base != 10 ? 2 : 0;
  if (!(real ? readFloat(digits, n, &number->real)
             : readInteger(digits + prefix, n - prefix, base, &number->integer))) {
    return failAt(now_.line, "'%.*s' is not a number of 64 bits", shown(now_.text), now_.text.data);
  }
  advance();
  return number;
}

Node* Parser::parseParentheses() {
  if (takeOperator(")")) {
    return node(NodeKind::kTuple);
  }
  Node* const inner = parseTuple(true);
  return inner != nullptr && expectOperator(")") ? inner : nullptr;
}

Node* Parser::parseList() {
  Chain elements;
  while (!takeOperator("]")) {
    if (elements.first != nullptr && (!expectOperator(",") || takeOperator("]"))) {
      break;
    }
    Node* const element = status_.ok() ? parseCondition() : nullptr;
    if (element == nullptr) {
      return nullptr;
    }
    elements.add(element);
  }
  return status_.ok() ? nodeOf(NodeKind::kList, elements.first, nullptr) : nullptr;
}

Node* Parser::parseDict() {
  Chain pairs;
  while (!takeOperator("}")) {
    if (pairs.first != nullptr && (!expectOperator(",") || takeOperator("}"))) {
      break;
    }
    Node* const key = status_.ok() ? parseCondition() : nullptr;
    Node* const value = key != nullptr && expectOperator(":") ? parseCondition() : nullptr;
    Node* const pair = value != nullptr ? nodeOf(NodeKind::kPair, key, value) : nullptr;
    if (pair == nullptr) {
      return nullptr;
    }
    pairs.add(pair);
  }
  return status_.ok() ? nodeOf(NodeKind::kDict, pairs.first, nullptr) : nullptr;
}

}  // namespace oriel_internal::jinja
