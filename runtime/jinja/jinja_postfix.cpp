// Parses suffixes of values: attributes, subscripts, calls, filters, tests.
#include "jinja/jinja_filters.h"
#include "jinja/jinja_parser.h"
#include "jinja/jinja_tests.h"

namespace oriel_internal::jinja {

Node* Parser::parsePostfix(Node* of) {
  while (of != nullptr) {
    if (takeOperator(".")) {
      of = parseAttribute(of);
    } else if (takeOperator("[")) {
      of = parseSubscript(of);
    } else if (takeOperator("(")) {
      of = parseCall(of);
    } else {
      return of;
    }
  }
  return nullptr;
}

Node* Parser::parseFilters(Node* of) {
  while (of != nullptr) {
    if (takeOperator("|")) {
      of = parseFilter(of);
    } else if (takeName("is")) {
      of = parseTest(of);
    } else if (takeOperator("(")) {
      of = parseCall(of);
    } else {
      return of;
    }
  }
  return nullptr;
}

Node* Parser::parseAttribute(Node* of) {
  if (now_.token == Token::kInteger) {
    Node* const index = parseNumber();
    return index != nullptr ? nodeOf(NodeKind::kSubscript, of, index) : nullptr;
  }
  if (now_.token != Token::kName) {
    return unexpected("a name");
  }
  const Symbol* const name = intern(now_.text);
  advance();
  const bool called = takeOperator("(");
  Node* const made = nodeOf(called ? NodeKind::kMethodCall : NodeKind::kAttribute, of, nullptr);
  if (made == nullptr || (called && !parseArguments(&made->b))) {
    return nullptr;
  }
  made->name = name;
  return made;
}

Node* Parser::parseSubscript(Node* of) {
  Chain indices;
  bool more = !atOperator("]");  // a[] is a[()]
  while (more) {
    Node* const index = parseIndex();
    if (index == nullptr) {
      return nullptr;
    }
    indices.add(index);
    more = takeOperator(",") && !atOperator("]");
  }
  Node* const index = indices.first != nullptr && indices.first == indices.last
                          ? indices.first
                          : nodeOf(NodeKind::kTuple, indices.first, nullptr);
  return index != nullptr && expectOperator("]") ? nodeOf(NodeKind::kSubscript, of, index)
                                                 : nullptr;
}

Node* Parser::parseIndex() {
  const Deeper deeper(this);
  if (deeper.tooDeep()) {
    return nullptr;
  }
  Node* parts[3] = {};
  uint32_t n = 0;
  bool slice = false;
  while (!atOperator("]") && !atOperator(",")) {
    if (takeOperator(":")) {
      slice = true;
      if (++n > 2) {
        return unexpected("]");
      }
      continue;
    }
    if (parts[n] != nullptr) {
      return unexpected("]");
    }
    parts[n] = parseCondition();
    if (parts[n] == nullptr) {
      return nullptr;
    }
  }
  if (!slice) {
    return parts[0] != nullptr ? parts[0] : unexpected("an index");
  }
  Node* const made = nodeOf(NodeKind::kSlice, parts[0], parts[1]);
  if (made != nullptr) {
    made->c = parts[2];
  }
  return made;
}

Node* Parser::parseCall(Node* of) {
  Node* const call = nodeOf(NodeKind::kCall, of, nullptr);
  return call != nullptr && parseArguments(&call->b) ? call : nullptr;
}

// Call after the opening parenthesis.
bool Parser::parseArguments(Node** first) {
  const Deeper deeper(this);
  Chain arguments;
  while (!deeper.tooDeep() && !takeOperator(")")) {
    if (arguments.first != nullptr && (!expectOperator(",") || takeOperator(")"))) {
      break;
    }
    if (!status_.ok() || atOperator("*") || atOperator("**")) {
      unexpected("an argument");
      return false;
    }
    const Lexeme name = now_;
    Lexer ahead = lexer_;
    const bool named = now_.token == Token::kName && ahead.next().isOperator("=");
    if (named) {
      advance();
      advance();
    }
    Node* const value = parseCondition();
    Node* const argument = value != nullptr ? nodeOf(NodeKind::kArgument, value, nullptr) : nullptr;
    if (argument == nullptr) {
      return false;
    }
    argument->name = named ? intern(name.text) : nullptr;
    arguments.add(argument);
    if (arguments.count > kMaxArguments) {
      failAt(now_.line, "a call has more than %u arguments", kMaxArguments);
      return false;
    }
  }
  *first = arguments.first;
  return status_.ok();
}

Node* Parser::parseFilter(Node* of) {
  if (now_.token != Token::kName) {
    return unexpected("a filter's name");
  }
  Node* const filter = nodeOf(NodeKind::kFilter, of, nullptr);
  if (filter == nullptr) {
    return nullptr;
  }
  filter->flags = filterNamed(now_.text);
  filter->name = intern(now_.text);
  advance();
  return !takeOperator("(") || parseArguments(&filter->b) ? filter : nullptr;
}

bool Parser::startsTestArgument() const {
  switch (now_.token) {
    case Token::kName:
      return !now_.isName("else") && !now_.isName("or") && !now_.isName("and");
    case Token::kString:
    case Token::kInteger:
    case Token::kFloat:
      return true;
    default:
      return atOperator("[") || atOperator("{");
  }
}

Node* Parser::parseTest(Node* of) {
  const bool negated = takeName("not");
  if (now_.token != Token::kName) {
    return unexpected("a test's name");
  }
  Node* const test = nodeOf(NodeKind::kTest, of, nullptr);
  if (test == nullptr) {
    return nullptr;
  }
  test->flags = testNamed(now_.text);
  test->name = intern(now_.text);
  advance();
  if (takeOperator("(")) {
    if (!parseArguments(&test->b)) {
      return nullptr;
    }
  } else if (startsTestArgument() && !now_.isName("if") && !now_.isName("is")) {
    Node* const primary = parsePrimary();
    Node* const value = primary != nullptr ? parsePostfix(primary) : nullptr;
    test->b = value != nullptr ? nodeOf(NodeKind::kArgument, value, nullptr) : nullptr;
    if (test->b == nullptr) {
      return nullptr;
    }
    test->b->name = nullptr;
  }
  return negated ? nodeOf(NodeKind::kNot, test, nullptr) : test;
}

}  // namespace oriel_internal::jinja
