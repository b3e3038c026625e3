// Evaluates expressions.
#include <cstring>
#include <utility>

#include "jinja/jinja_builtins.h"
#include "jinja/jinja_parser.h"
#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

uint32_t Args::places() const {
  uint32_t n = 0;
  for (const Node* node = nodes; n < count && node != nullptr && node->name == nullptr;
       node = node->next) {
    ++n;
  }
  return n;
}

const Value* Args::find(uint32_t place, const char* name) const {
  if (place < places()) {
    return &values[place];
  }
  const Node* node = nodes;
  for (uint32_t i = 0; i < count; ++i, node = node->next) {
    if (name != nullptr && node->name != nullptr && node->name->text.is(name)) {
      return &values[i];
    }
  }
  return nullptr;
}

Args Args::from(uint32_t first) const {
  Args rest = *this;
  for (; first > 0 && rest.count > 0; --first) {
    rest = {rest.nodes->next, rest.values + 1, rest.count - 1};
  }
  return rest;
}

bool Interpreter::eval(const Node& node, Value* out) {
  switch (node.kind) {  // leaves
    case NodeKind::kLiteral:
      *out = Value::view(node.text);
      return charge(1);
    case NodeKind::kName:
      return charge(1) && evalName(*node.name, out);
    case NodeKind::kInteger:
      *out = Value::integer(node.integer);
      return charge(1);
    default:
      break;
  }
  const Deeper deeper(this);
  line_ = node.line;
  return deeper.ok() && charge(1) && evalDeeper(node, out);
}

bool Interpreter::evalDeeper(const Node& node, Value* out) {
  *out = Value();
  switch (node.kind) {
    case NodeKind::kFloat:
      *out = Value::real(node.real);
      return true;
    case NodeKind::kTrue:
    case NodeKind::kFalse:
      *out = Value::boolean(node.kind == NodeKind::kTrue);
      return true;
    case NodeKind::kNone:
      *out = Value::none();
      return true;
    case NodeKind::kList:
    case NodeKind::kTuple:
      return evalElements(node, out);
    case NodeKind::kDict:
      return evalDict(node, out);
    case NodeKind::kAttribute:
      return evalAttribute(node, out);
    case NodeKind::kSubscript:
      return evalSubscript(node, out);
    case NodeKind::kCall:
      return evalCall(node, out);
    case NodeKind::kMethodCall:
      return evalMethodCall(node, out);
    case NodeKind::kFilter:
      return evalFilter(node, out);
    case NodeKind::kTest:
      return evalTest(node, out);
    case NodeKind::kNegative:
    case NodeKind::kPositive:
      return evalSign(node, out);
    case NodeKind::kNot:
    case NodeKind::kAnd:
    case NodeKind::kOr:
      return evalLogic(node, out);
    case NodeKind::kChain:
      return evalChain(node, out);
    case NodeKind::kCompare:
      return evalCompare(node, out);
    case NodeKind::kConcat:
      return evalConcat(node, out);
    case NodeKind::kCondition:
      return evalCondition(node, out);
    default:
      *out = captured_;
      return true;
  }
}

bool Interpreter::evalName(const Symbol& name, Value* out) {
  for (Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent) {
    if (const Value* const value = scope->find(&name); value != nullptr) {
      *out = *value;
      return true;
    }
  }
  *out = Value::undefined(&name.text);
  return true;
}

bool Interpreter::evalElements(const Node& node, Value* out) {
  size_t n = 0;
  for (const Node* element = node.a; element != nullptr; element = element->next) {
    ++n;
  }
  Ref<List> list = makeList(heap_, n);
  for (const Node* element = node.a; list && element != nullptr; element = element->next) {
    Value value;
    if (!eval(*element, &value)) {
      return false;
    }
    pushTo(list.get(), std::move(value));
  }
  if (list) {
    list->shape = node.kind == NodeKind::kTuple ? Shape::kTuple : Shape::kList;
  }
  return give(std::move(list), out);
}

bool Interpreter::evalDict(const Node& node, Value* out) {
  size_t n = 0;
  for (const Node* pair = node.a; pair != nullptr; pair = pair->next) {
    ++n;
  }
  const Ref<Dict> dict = makeDict(heap_, n);
  if (!dict) {
    return failMemory();
  }
  for (const Node* pair = node.a; pair != nullptr; pair = pair->next) {
    DictEntry entry;
    if (!eval(*pair->a, &entry.key) || !eval(*pair->b, &entry.value) ||
        !putIn(dict.get(), &entry)) {
      return false;
    }
  }
  *out = Value::of(Ref<Dict>(dict));
  return true;
}

// The dict has room.
bool Interpreter::putIn(Dict* dict, DictEntry* entry) {
  if ((entry->key.isList() && !entry->key.hasShape(Shape::kTuple)) || entry->key.isDict() ||
      entry->key.isUndefined()) {
    return fail("a value of type %s cannot be a key", typeName(entry->key));
  }
  for (uint32_t i = 0; i < dict->count; ++i) {
    bool same = false;
    if (!equal(dict->entries()[i].key, entry->key, &same)) {
      return false;
    }
    if (same) {
      dict->entries()[i].value = std::move(entry->value);
      return true;
    }
  }
  new (dict->entries() + dict->count) DictEntry(std::move(*entry));
  ++dict->count;
  return true;
}

// Keys that the template never names need no entry.
bool Interpreter::copyInto(const Value& dict, Scope* space) {
  Ref<List> pairs;
  if (!dict.isDict()) {
    return fail("namespace is given a value of type %s", typeName(dict));
  }
  if (!toPairs(dict, &pairs)) {
    return false;
  }
  for (uint32_t i = 0; i < pairs->count; ++i) {
    Value* const pair = pairs->items()[i].as<List>()->items();
    const Str key = pair[0].isText() ? strOf(pair[0]) : Str{};
    const Symbol* const name = symbol({key.data, key.bytes});
    if (name != nullptr && !setIn(heap_, space, name, pair[1])) {
      return failMemory();
    }
  }
  return true;
}

bool Interpreter::evalAttribute(const Node& node, Value* out) {
  Value of;
  return eval(*node.a, &of) && attribute(of, *node.name, out);
}

bool Interpreter::evalSubscript(const Node& node, Value* out) {
  Value of;
  if (!eval(*node.a, &of)) {
    return false;
  }
  if (node.b->kind != NodeKind::kSlice) {
    Value key;
    return eval(*node.b, &key) && item(of, key, out);
  }
  Value parts[3];
  const Node* const nodes[3] = {node.b->a, node.b->b, node.b->c};
  for (int i = 0; i < 3; ++i) {
    parts[i] = Value::none();
    if (nodes[i] != nullptr && !eval(*nodes[i], &parts[i])) {
      return false;
    }
  }
  return slice(of, parts, out);
}

bool Interpreter::evalArgs(const Node* arguments, Ref<List>* values) {
  uint32_t n = 0;
  for (const Node* argument = arguments; argument != nullptr; argument = argument->next) {
    ++n;
  }
  if (n == 0) {
    return true;
  }
  *values = makeList(heap_, n);
  if (!*values) {
    return failMemory();
  }
  for (const Node* argument = arguments; argument != nullptr; argument = argument->next) {
    Value value;
    if (!eval(*argument->a, &value)) {
      return false;
    }
    pushTo(values->get(), std::move(value));
  }
  return true;
}

namespace {

Args argsOf(const Node* nodes, const Ref<List>& values) {
  return values ? Args{nodes, values->items(), values->count} : Args{};
}

}  // namespace

bool Interpreter::evalCall(const Node& node, Value* out) {
  Value callee;
  Ref<List> values;
  if (!eval(*node.a, &callee) || !evalArgs(node.b, &values)) {
    return false;
  }
  line_ = node.line;
  return call(callee, argsOf(node.b, values), out);
}

bool Interpreter::call(const Value& callee, const Args& args, Value* out) {
  switch (callee.kind()) {
    case Kind::kMacro:
      return callMacro(callee.as<Macro>(), args, nullptr, out);
    case Kind::kBuiltin:
      return callFunction(this, static_cast<uint32_t>(callee.integer()), args, out);
    case Kind::kUndefined:
      return failUndefined(callee);
    default:
      return fail("a value of type %s is called", typeName(callee));
  }
}

bool Interpreter::failUndefined(const Value& value) {
  const JsonText* const name = value.text();
  if (name == nullptr) {
    return fail("a value is undefined");
  }
  return fail("'%.*s' is undefined", static_cast<int>(name->bytes < 60 ? name->bytes : 60),
              name->data);
}

bool Interpreter::evalMethodCall(const Node& node, Value* out) {
  Value of;
  Ref<List> values;
  if (!eval(*node.a, &of)) {
    return false;
  }
  if (of.isUndefined()) {
    return failUndefined(of);
  }
  if (!evalArgs(node.b, &values)) {
    return false;
  }
  line_ = node.line;
  const Args args = argsOf(node.b, values);
  if (hasMethod(of, node.name->attribute)) {
    return callMethod(this, of, *node.name, args, out);
  }
  Value callee;
  return attribute(of, *node.name, &callee) && call(callee, args, out);
}

bool Interpreter::evalFilter(const Node& node, Value* out) {
  Value in;
  Ref<List> values;
  if (!eval(*node.a, &in) || !evalArgs(node.b, &values)) {
    return false;
  }
  line_ = node.line;
  if (node.flags == kUnknown) {
    return fail("unknown filter '%.*s'", static_cast<int>(node.name->text.bytes),
                node.name->text.data);
  }
  return applyFilter(this, node.flags, in, argsOf(node.b, values), out);
}

bool Interpreter::evalTest(const Node& node, Value* out) {
  Value of;
  Ref<List> values;
  if (!eval(*node.a, &of) || !evalArgs(node.b, &values)) {
    return false;
  }
  line_ = node.line;
  if (node.flags == kUnknown) {
    return fail("unknown test '%.*s'", static_cast<int>(node.name->text.bytes),
                node.name->text.data);
  }
  bool holds = false;
  if (!applyTest(this, node.flags, of, argsOf(node.b, values), &holds)) {
    return false;
  }
  *out = Value::boolean(holds);
  return true;
}

bool Interpreter::evalSign(const Node& node, Value* out) {
  Value value;
  if (!eval(*node.a, &value)) {
    return false;
  }
  const bool minus = node.kind == NodeKind::kNegative;
  if (value.is(Kind::kFloat)) {
    *out = Value::real(minus ? -value.real() : value.real());
    return true;
  }
  return binary(minus ? Op::kSubtract : Op::kAdd, Value::integer(0), value, out);
}

bool Interpreter::evalLogic(const Node& node, Value* out) {
  if (node.kind == NodeKind::kNot) {
    Value value;
    const bool ok = eval(*node.a, &value);
    *out = Value::boolean(ok && !truth(value));
    return ok;
  }
  const bool stops_at = node.kind == NodeKind::kOr;
  for (const Node* operand = node.a; operand != nullptr; operand = operand->next) {
    if (!eval(*operand, out)) {
      return false;
    }
    if (truth(*out) == stops_at) {
      break;
    }
  }
  return true;
}

bool Interpreter::evalChain(const Node& node, Value* out) {
  if (!eval(*node.a, out)) {
    return false;
  }
  for (const Node* operand = node.b; operand != nullptr; operand = operand->next) {
    Value right;
    if (!eval(*operand->a, &right)) {
      return false;
    }
    line_ = operand->line;
    const Value left = std::move(*out);
    *out = Value();
    if (!binary(operand->op, left, right, out)) {
      return false;
    }
  }
  return true;
}

bool Interpreter::evalCompare(const Node& node, Value* out) {
  Value left;
  if (!eval(*node.a, &left)) {
    return false;
  }
  bool holds = true;
  for (const Node* operand = node.b; holds && operand != nullptr; operand = operand->next) {
    Value right;
    if (!eval(*operand->a, &right) || !compareOp(operand->op, left, right, &holds)) {
      return false;
    }
    left = std::move(right);
  }
  *out = Value::boolean(holds);
  return true;
}

// Appends to the first operand if possible: many templates collect their output in one string.
bool Interpreter::evalConcat(const Node& node, Value* out) {
  Value text;
  for (const Node* operand = node.a; operand != nullptr; operand = operand->next) {
    Value value;
    Value part;
    if (!eval(*operand, &value) || !toText(value, &part)) {
      return false;
    }
    const Value before = std::move(text);
    text = Value();
    if (operand == node.a) {
      text = std::move(part);
    } else if (!concat(heap_, before, part, &text)) {
      return failMemory();
    }
  }
  text.setSafe(false);
  *out = std::move(text);
  return true;
}

bool Interpreter::evalCondition(const Node& node, Value* out) {
  Value condition;
  if (!eval(*node.b, &condition)) {
    return false;
  }
  if (truth(condition)) {
    return eval(*node.a, out);
  }
  *out = Value();
  return node.c == nullptr || eval(*node.c, out);
}

bool Interpreter::attribute(const Value& of, const Symbol& name, Value* out) {
  *out = Value::undefined(&name.text);
  if (of.isUndefined()) {
    return failUndefined(of);
  }
  if (hasMethod(of, name.attribute)) {
    *out = Value::method(&name.text);
    return true;
  }
  if (of.isDict()) {
    Value value;
    bool found = false;
    const bool ok = findKey(of, Value::view(&name.text), &value, &found);
    if (found) {
      *out = std::move(value);
    }
    return ok;
  }
  if (of.is(Kind::kNamespace)) {
    const Value* const value = of.as<Scope>()->find(&name);
    if (value != nullptr) {
      *out = *value;
    }
    return true;
  }
  return !of.is(Kind::kLoop) || loopAttribute(*of.as<Loop>(), name, out);
}

bool Interpreter::loopAttribute(const Loop& loop, const Symbol& name, Value* out) {
  const struct {
    const char* name;
    int64_t value;
  } kNumbers[] = {{"index", int64_t{loop.index} + 1},
                  {"index0", loop.index},
                  {"revindex", int64_t{loop.count} - loop.index},
                  {"revindex0", int64_t{loop.count} - loop.index - 1},
                  {"length", loop.count},
                  {"depth", 1},
                  {"depth0", 0}};
  for (const auto& number : kNumbers) {
    if (name.text.is(number.name)) {
      *out = Value::integer(number.value);
      return true;
    }
  }
  if (name.text.is("first") || name.text.is("last")) {
    *out = Value::boolean(name.text.is("first") ? loop.index == 0 : loop.index + 1 == loop.count);
  } else if (name.text.is("previtem") && loop.index > 0) {
    *out = loop.previous;
  } else if (name.text.is("nextitem") && loop.index + 1 < loop.count) {
    *out = loop.next;
  }
  return true;
}

bool Interpreter::item(const Value& of, const Value& key, Value* out) {
  const JsonText* const name = key.is(Kind::kView) ? key.text() : nullptr;
  Value missing = Value::undefined(name);
  if (of.isUndefined()) {
    return failUndefined(of);
  }
  if (of.isDict()) {
    bool found = false;
    if (!findKey(of, key, out, &found) || found) {
      return found;
    }
  } else if (of.isText() && key.isInteger()) {
    return textItem(of, key, out);
  } else if ((of.isList() || of.is(Kind::kRange)) && key.isInteger()) {
    return listItem(of, key, out);
  }
  *out = std::move(missing);
  if (key.isText()) {
    const Str word = strOf(key);
    const Symbol* const named = symbol({word.data, word.bytes});
    if (named != nullptr) {
      return attribute(of, *named, out);
    }
    if (hasMethod(of, attributeNamed({word.data, word.bytes}))) {
      *out = Value::method(nullptr);
    }
  }
  return true;
}

// Parses suffixes of values: attributes, subscripts, calls, filters, tests.

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
