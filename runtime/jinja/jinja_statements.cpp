// Parses statements, {% ... %}.
#include "jinja/jinja_builtins.h"
#include "jinja/jinja_parser.h"

namespace oriel_internal::jinja {
namespace {

bool isAny(const Lexeme& word, const char* a, const char* b, const char* c) {
  return (a != nullptr && word.isName(a)) || (b != nullptr && word.isName(b)) ||
         (c != nullptr && word.isName(c));
}

}  // namespace

// Parses statements up to a tag that begins with any of these words, and does not consume the tag. Without words, parses
// up to the end. The statements become b of a kBlock.
Node* Parser::parseBody(const char* end1, const char* end2, const char* end3) {
  const Deeper deeper(this);
  Node* const block = nodeOf(NodeKind::kBlock, nullptr, nullptr);
  if (block == nullptr || deeper.tooDeep()) {
    return nullptr;
  }
  Chain body;
  while (now_.token != Token::kEnd) {
    Node* statement = nullptr;
    if (now_.token == Token::kData) {
      statement = node(NodeKind::kData);
      if (statement != nullptr) {
        statement->text = keep(now_.text);
        advance();
      }
    } else if (now_.token == Token::kPrintBegin) {
      statement = parsePrint();
    } else if (now_.token == Token::kBlockBegin) {
      advance();
      if (isAny(now_, end1, end2, end3)) {
        block->b = body.first;
        return block;
      }
      statement = parseStatement();
    }
    if (statement == nullptr || !status_.ok()) {
      return nullptr;
    }
    body.add(statement);
  }
  block->b = body.first;
  return end1 == nullptr ? block : failAt(now_.line, "it ends where {%% %s %%} should be", end1);
}

Node* Parser::parsePrint() {
  advance();
  Node* const value = parseTuple(true);
  if (value == nullptr || now_.token != Token::kPrintEnd) {
    return value == nullptr ? nullptr : unexpected("}}");
  }
  Node* const print = nodeOf(NodeKind::kPrint, value, nullptr);
  advance();
  return status_.ok() ? print : nullptr;
}

bool Parser::endBlock() {
  if (now_.token != Token::kBlockEnd) {
    unexpected("%}");
    return false;
  }
  advance();
  return status_.ok();
}

bool Parser::endOf(const char* word) {
  if (!takeName(word)) {
    unexpected(word);
    return false;
  }
  return endBlock();
}

Node* Parser::parseStatement() {
  if (takeName("if")) {
    return parseIf();
  }
  if (takeName("for")) {
    return parseFor();
  }
  if (takeName("set")) {
    return parseSet();
  }
  if (takeName("macro")) {
    return parseMacro();
  }
  if (takeName("call")) {
    return parseCallBlock();
  }
  if (takeName("filter")) {
    return parseFilterBlock();
  }
  if (takeName("with")) {
    return parseWith();
  }
  if (takeName("generation")) {
    return parseBlock();
  }
  if (takeName("break")) {
    return parseLoopEnd(NodeKind::kBreak);
  }
  if (takeName("continue")) {
    return parseLoopEnd(NodeKind::kContinue);
  }
  return unexpected("a statement that is known");
}

// Call after `if` or `elif`; consumes its {% endif %}.
Node* Parser::parseIf() {
  Node* const first = node(NodeKind::kIf);
  Node* branch = first;
  while (branch != nullptr) {
    branch->a = parseTuple(false);
    Node* const body =
        branch->a != nullptr && endBlock() ? parseBody("elif", "else", "endif") : nullptr;
    if (body == nullptr) {
      return nullptr;
    }
    branch->b = body->b;
    if (takeName("elif")) {
      branch->c = node(NodeKind::kIf);
      branch = branch->c;
      continue;
    }
    if (takeName("else")) {
      Node* const otherwise = endBlock() ? parseBody("endif", nullptr, nullptr) : nullptr;
      branch->c = otherwise != nullptr ? nodeOf(NodeKind::kElse, nullptr, otherwise->b) : nullptr;
      if (branch->c == nullptr) {
        return nullptr;
      }
    }
    return endOf("endif") ? first : nullptr;
  }
  return nullptr;
}

Node* Parser::parseFor() {
  Node* const loop = node(NodeKind::kFor);
  Node* const target = loop != nullptr ? parseTarget(false) : nullptr;
  if (target == nullptr || !takeName("in")) {
    return target == nullptr ? nullptr : unexpected("in");
  }
  Node* const over = parseTuple(false);
  Node* const parts = over != nullptr ? node(NodeKind::kForParts) : nullptr;
  if (parts == nullptr) {
    return nullptr;
  }
  if (takeName("if")) {
    parts->a = parseCondition();
  }
  if (now_.isName("recursive")) {
    return failAt(now_.line, "recursive loops are not supported");
  }
  ++loops_;
  Node* const body = status_.ok() && endBlock() ? parseBody("endfor", "else", nullptr) : nullptr;
  --loops_;
  if (body == nullptr) {
    return nullptr;
  }
  if (takeName("else")) {
    Node* const nothing = endBlock() ? parseBody("endfor", nullptr, nullptr) : nullptr;
    if (nothing == nullptr) {
      return nullptr;
    }
    parts->c = nothing;
  }
  parts->b = body->b;
  loop->a = target;
  loop->b = over;
  loop->c = parts;
  return endOf("endfor") ? loop : nullptr;
}

Node* Parser::parseLoopEnd(NodeKind kind) {
  if (loops_ == 0) {
    return failAt(now_.line, "break and continue belong into a loop");
  }
  Node* const end = node(kind);
  return endBlock() ? end : nullptr;
}

Node* Parser::parseTarget(bool attributes) {
  Node* const first = parseTargetName(attributes);
  if (first == nullptr || !atOperator(",")) {
    return first;
  }
  Chain names;
  names.add(first);
  while (takeOperator(",") &&
         (atOperator("(") || (now_.token == Token::kName && !now_.isName("in")))) {
    Node* const name = parseTargetName(attributes);
    if (name == nullptr) {
      return nullptr;
    }
    names.add(name);
  }
  return nodeOf(NodeKind::kTuple, names.first, nullptr);
}

Node* Parser::parseTargetName(bool attributes) {
  if (takeOperator("(")) {
    const Deeper deeper(this);
    Node* const inner = deeper.tooDeep() ? nullptr : parseTarget(attributes);
    return inner != nullptr && expectOperator(")") ? inner : nullptr;
  }
  if (now_.token != Token::kName) {
    return unexpected("a name to set");
  }
  Node* const name = parseNameOrConstant();
  if (name == nullptr || name->kind != NodeKind::kName) {
    return name == nullptr ? nullptr : failAt(now_.line, "a constant cannot be set");
  }
  if (!attributes || !takeOperator(".")) {
    return name;
  }
  Node* const attribute = now_.token == Token::kName ? nodeOf(NodeKind::kAttribute, name, nullptr)
                                                     : unexpected("a name");
  if (attribute != nullptr) {
    attribute->name = intern(now_.text);
    advance();
  }
  return attribute;
}

Node* Parser::parseSet() {
  Node* const target = parseTarget(true);
  if (target == nullptr) {
    return nullptr;
  }
  if (takeOperator("=")) {
    Node* const value = parseTuple(true);
    Node* const set = value != nullptr ? nodeOf(NodeKind::kSet, target, value) : nullptr;
    return set != nullptr && endBlock() ? set : nullptr;
  }
  Node* const captured = node(NodeKind::kCaptured);
  Node* const filters = captured != nullptr ? parseFilters(captured) : nullptr;
  Node* const body =
      filters != nullptr && endBlock() ? parseBody("endset", nullptr, nullptr) : nullptr;
  Node* const set = body != nullptr ? nodeOf(NodeKind::kSetBlock, target, body->b) : nullptr;
  if (set == nullptr) {
    return nullptr;
  }
  set->c = filters;
  return endOf("endset") ? set : nullptr;
}

Node* Parser::parseMacro() {
  Node* const macro = node(NodeKind::kMacro);
  if (macro == nullptr || now_.token != Token::kName) {
    return macro == nullptr ? nullptr : unexpected("a macro's name");
  }
  macro->name = intern(now_.text);
  advance();
  if (!expectOperator("(")) {
    return nullptr;
  }
  return parseMacroParts(macro, "endmacro");
}

// Call after the parenthesis of its parameters.
Node* Parser::parseMacroParts(Node* macro, const char* end) {
  macro->a = parseParameters();
  const uint32_t loops = loops_;
  loops_ = 0;
  Node* const body = status_.ok() && endBlock() ? parseBody(end, nullptr, nullptr) : nullptr;
  loops_ = loops;
  if (body == nullptr) {
    return nullptr;
  }
  macro->b = body->b;
  return endOf(end) ? macro : nullptr;
}

Node* Parser::parseParameters() {
  Chain parameters;
  while (!takeOperator(")")) {
    if (parameters.first != nullptr && (!expectOperator(",") || takeOperator(")"))) {
      break;
    }
    if (now_.token != Token::kName) {
      return unexpected("a parameter's name");
    }
    Node* const parameter = node(NodeKind::kParameter);
    if (parameter == nullptr) {
      return nullptr;
    }
    parameter->name = intern(now_.text);
    advance();
    if (takeOperator("=")) {
      parameter->a = parseCondition();
      if (parameter->a == nullptr) {
        return nullptr;
      }
    }
    parameters.add(parameter);
    if (parameters.count > kMaxArguments) {
      return failAt(now_.line, "a macro has more than %u parameters", kMaxArguments);
    }
  }
  return parameters.first;
}

Node* Parser::parseCallBlock() {
  static constexpr JsonText kCaller = {"caller", 6};
  Node* const macro = node(NodeKind::kMacro);
  if (macro == nullptr) {
    return nullptr;
  }
  macro->name = intern(kCaller);
  if (takeOperator("(")) {
    macro->a = parseParameters();
  }
  Node* const call = status_.ok() ? parseUnary(true) : nullptr;
  if (call == nullptr || call->kind != NodeKind::kCall) {
    return call == nullptr ? nullptr : failAt(now_.line, "a call block calls a macro");
  }
  const uint32_t loops = loops_;
  loops_ = 0;
  Node* const body = endBlock() ? parseBody("endcall", nullptr, nullptr) : nullptr;
  loops_ = loops;
  if (body == nullptr) {
    return nullptr;
  }
  macro->b = body->b;
  return endOf("endcall") ? nodeOf(NodeKind::kCallBlock, call, macro) : nullptr;
}

Node* Parser::parseFilterBlock() {
  Node* const captured = node(NodeKind::kCaptured);
  Node* const first = captured != nullptr ? parseFilter(captured) : nullptr;
  Node* const filters = first != nullptr ? parseFilters(first) : nullptr;
  Node* const body =
      filters != nullptr && endBlock() ? parseBody("endfilter", nullptr, nullptr) : nullptr;
  Node* const block = body != nullptr ? nodeOf(NodeKind::kFilterBlock, nullptr, body->b) : nullptr;
  if (block == nullptr) {
    return nullptr;
  }
  block->c = filters;
  return endOf("endfilter") ? block : nullptr;
}

Node* Parser::parseWith() {
  Chain sets;
  while (now_.token != Token::kBlockEnd) {
    if (sets.first != nullptr && !expectOperator(",")) {
      return nullptr;
    }
    Node* const target = parseTarget(false);
    Node* const value = target != nullptr && expectOperator("=") ? parseExpression(true) : nullptr;
    Node* const set = value != nullptr ? nodeOf(NodeKind::kSet, target, value) : nullptr;
    if (set == nullptr) {
      return nullptr;
    }
    sets.add(set);
  }
  Node* const body = endBlock() ? parseBody("endwith", nullptr, nullptr) : nullptr;
  Node* const with = body != nullptr ? nodeOf(NodeKind::kWith, sets.first, body->b) : nullptr;
  return with != nullptr && endOf("endwith") ? with : nullptr;
}

// {% generation %} marks the model's text, for training.
Node* Parser::parseBlock() {
  Node* const body = endBlock() ? parseBody("endgeneration", nullptr, nullptr) : nullptr;
  return body != nullptr && endOf("endgeneration") ? body : nullptr;
}

}  // namespace oriel_internal::jinja
