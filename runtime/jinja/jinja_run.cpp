#include "jinja/jinja_run.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "jinja/jinja_builtins.h"
#include "jinja/jinja_parser.h"
#include "jinja/jinja_value.h"
#include "text/unicode.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint64_t kStepsARound = 3;      // of a loop
constexpr uint64_t kUnitsOfCompared = 4;  // a name in an occupied slot

}  // namespace

Status Interpreter::run(const Node* body, const JinjaVariable* variables, size_t n_variables,
                        TextBuilder* out) {
  out_ = out;
  scope_ = Ref<Scope>(make<Scope>(heap_, Kind::kScope));
  if ((scope_ || failMemory()) && define(variables, n_variables)) {
    runBody(body);
  }
  if (status_.ok() && out->failed()) {
    failMemory();
  }
  return status_;
}

const Symbol* Interpreter::symbol(const char* name) const {
  return symbol({name, std::strlen(name)});
}

const Symbol* Interpreter::symbol(const JsonText& name) const {
  uint64_t compared = 0;
  const Symbol* const found = world_.parser->find(name, &compared);
  (void)heap_->spend(name.bytes + compared * kUnitsOfCompared);
  return found;
}

// Skips names that the template does not use.
bool Interpreter::define(const JinjaVariable* variables, size_t n_variables) {
  for (uint32_t id = 0; functionName(id) != nullptr; ++id) {
    const Symbol* const name = symbol(functionName(id));
    if (name != nullptr && !set(name, Value::builtin(id))) {
      return false;
    }
  }
  for (size_t i = n_variables; i > 0; --i) {  // the first of two equal names wins
    const Symbol* const name = symbol(variables[i - 1].name);
    if (name != nullptr && !defineVariable(variables[i - 1], name)) {
      return false;
    }
  }
  return true;
}

bool Interpreter::defineVariable(const JinjaVariable& variable, const Symbol* name) {
  const JsonValue& json = *variable.value;
  if (!json.isArray()) {
    return set(name, Value::json(&json, variable.source));
  }
  Ref<List> list = makeList(heap_, json.count());
  if (!list || !charge(json.count())) {
    return !list ? failMemory() : false;
  }
  TextOrigin source = variable.source;
  for (const JsonValue* element = json.first(); element != nullptr; element = element->next()) {
    pushTo(list.get(), Value::json(element, source));
    source += variable.source_by_element ? 1 : 0;
  }
  Value all = Value::of(std::move(list));
  all.setSource(variable.source);
  return set(name, std::move(all));
}

bool Interpreter::fail(const char* format, ...) {
  if (status_.ok() && charge(0)) {
    char what[kMaxMessageBytes / 2];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    status_ = world_.log.fail(
        ORIEL_ERROR_ARGUMENT,
        "line %u of the chat template fails, %s: correct the template or its variables", line_,
        what);
  }
  return false;
}

bool Interpreter::failMemory() {
  if (status_.ok() && charge(0)) {
    status_ = world_.log.fail(
        ORIEL_ERROR_OUT_OF_MEMORY,
        "line %u of the chat template needs more memory than it may take: give it less text",
        line_);
  }
  return false;
}

bool Interpreter::raise(const Value& message) {
  Value text;
  if (status_.ok() && toText(message, &text)) {
    const Str words = strOf(text);
    status_ =
        world_.log.fail(ORIEL_ERROR_ARGUMENT, "the chat template refuses this conversation: %.*s",
                        static_cast<int>(words.bytes), words.data);
  }
  return false;
}

bool Interpreter::charge(uint64_t steps) {
  if (heap_->spend(steps * kUnitsAStep) || !status_.ok()) {
    return status_.ok();
  }
  status_ = heap_->meter().stopped()
                ? Status(ORIEL_ERROR_CANCELLED)
                : world_.log.fail(ORIEL_ERROR_UNSUPPORTED,
                                  "line %u of the chat template takes more than %llu steps: use "
                                  "another template or shorter messages",
                                  line_, static_cast<unsigned long long>(world_.limits.steps));
  return false;
}

bool Interpreter::findIn(const Str& text, const Str& part, size_t from, size_t* at) {
  const uint64_t left = heap_->meter().left() / 4 + kUnitsAStep;
  uint64_t work = left;
  *at = find(text, part, from, &work);
  return charge((left - work) * 4 / kUnitsAStep + 1);
}

bool Interpreter::findLastIn(const Str& text, const Str& part, size_t end, size_t* at) {
  const uint64_t left = heap_->meter().left() / 4 + kUnitsAStep;
  uint64_t work = left;
  *at = findLast(text, part, end, &work);
  return charge((left - work) * 4 / kUnitsAStep + 1);
}

bool Interpreter::give(Ref<List> list, Value* out) {
  if (!list) {
    return failMemory();
  }
  *out = Value::of(std::move(list));
  return true;
}

bool Interpreter::set(const Symbol* name, Value value) {
  return setIn(heap_, scope_.get(), name, std::move(value)) || failMemory();
}

Interpreter::Flow Interpreter::runBody(const Node* first) {
  for (const Node* node = first; node != nullptr; node = node->next) {
    const Flow flow = runStatement(*node);
    if (flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::runStatement(const Node& node) {
  const auto done = [](bool ok) { return ok ? Flow::kNext : Flow::kFailed; };
  line_ = node.line;
  if (!charge(1)) {
    return Flow::kFailed;
  }
  switch (node.kind) {
    case NodeKind::kData:
      out_->append(node.text->data, node.text->bytes, 0);
      return done(!out_->failed() || failMemory());
    case NodeKind::kPrint:
      return done(print(node));
    case NodeKind::kIf:
      return runIf(node);
    case NodeKind::kFor:
      return runFor(node);
    case NodeKind::kSet:
      return done(runSet(node));
    case NodeKind::kSetBlock:
      return done(runSetBlock(node));
    case NodeKind::kMacro:
      return done(runMacro(node));
    case NodeKind::kCallBlock:
      return done(runCallBlock(node));
    case NodeKind::kFilterBlock:
      return done(runFilterBlock(node));
    case NodeKind::kWith:
      return runWith(node);
    case NodeKind::kBlock:
      return runScoped(node);
    case NodeKind::kBreak:
      return Flow::kBreak;
    default:
      return Flow::kContinue;
  }
}

bool Interpreter::print(const Node& node) {
  Value value;
  if (!eval(*node.a, &value) || !write(value, out_)) {
    return false;
  }
  return !out_->failed() || failMemory();
}

Interpreter::Flow Interpreter::runIf(const Node& node) {
  for (const Node* branch = &node; branch != nullptr; branch = branch->c) {
    Value condition = Value::boolean(true);
    if (branch->kind == NodeKind::kIf && !eval(*branch->a, &condition)) {
      return Flow::kFailed;
    }
    if (truth(condition)) {
      const Deeper deeper(this);
      return deeper.ok() ? runBody(branch->b) : Flow::kFailed;
    }
    if (branch->kind == NodeKind::kElse) {
      break;
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::runScoped(const Node& node) {
  const Deeper deeper(this);
  const NewScope scope(this, scope_.get());
  return deeper.ok() && scope.ok() ? runBody(node.b) : Flow::kFailed;
}

Interpreter::Flow Interpreter::runFor(const Node& node) {
  const Deeper deeper(this);
  Value over;
  if (!deeper.ok() || !eval(*node.b, &over)) {
    return Flow::kFailed;
  }
  if (node.c->a != nullptr && !keepWhere(node, Value(over), &over)) {
    return Flow::kFailed;
  }
  bool ran = false;
  const Flow flow = runLoop(node, over, &ran);
  if (flow == Flow::kNext && !ran && node.c->c != nullptr) {
    return runScoped(*node.c->c);
  }
  return flow;
}

bool Interpreter::keepWhere(const Node& node, const Value& over, Value* out) {
  Ref<List> all;
  if (!toList(over, &all)) {
    return false;
  }
  Ref<List> kept = makeList(heap_, 0);
  for (uint32_t i = 0; kept && i < all->count; ++i) {
    const NewScope scope(this, scope_.get());
    Value holds;
    if (!scope.ok() || !assign(*node.a, all->items()[i]) || !eval(*node.c->a, &holds)) {
      return false;
    }
    if (truth(holds) && !growList(heap_, &kept, all->items()[i])) {
      return failMemory();
    }
  }
  return give(std::move(kept), out);
}

// Ranges are counted; everything else becomes a list.
Interpreter::Flow Interpreter::runLoop(const Node& node, const Value& over, bool* ran) {
  Ref<List> list;
  const bool is_range = over.is(Kind::kRange);
  if (!is_range && !toList(over, &list)) {
    return Flow::kFailed;
  }
  const uint32_t count = is_range ? over.as<Range>()->count : list->count;
  const auto at = [&](uint32_t i) {
    const Range* const range = is_range ? over.as<Range>() : nullptr;
    return is_range ? Value::integer(range->start + range->step * i) : list->items()[i];
  };
  Ref<Loop> loop(make<Loop>(heap_, Kind::kLoop));
  if (!loop) {
    failMemory();
    return Flow::kFailed;
  }
  const Symbol* const loop_name = symbol("loop");
  loop->count = count;
  for (uint32_t i = 0; i < count; ++i) {
    loop->index = i;
    loop->previous = std::move(loop->current);
    loop->current = at(i);
    loop->next = i + 1 < count ? at(i + 1) : Value();
    const NewScope scope(this, scope_.get());
    if (!scope.ok() || !charge(kStepsARound) ||
        (loop_name != nullptr && !set(loop_name, Value::of(Ref<Loop>(loop)))) ||
        !assign(*node.a, loop->current)) {
      return Flow::kFailed;
    }
    const Flow flow = runBody(node.c->b);
    *ran = *ran || flow == Flow::kNext;  // as in Jinja: a round left by break does not count
    if (flow == Flow::kFailed || flow == Flow::kBreak) {
      return flow == Flow::kBreak ? Flow::kNext : flow;
    }
  }
  return Flow::kNext;
}

bool Interpreter::assign(const Node& target, const Value& value) {
  if (target.kind == NodeKind::kName) {
    return set(target.name, value);
  }
  if (target.kind == NodeKind::kAttribute) {
    Value space;
    if (!evalName(*target.a->name, &space)) {
      return false;
    }
    if (!space.is(Kind::kNamespace)) {
      return fail("'%.*s' is not a namespace, so its attributes cannot be set",
                  static_cast<int>(target.a->name->text.bytes), target.a->name->text.data);
    }
    return setIn(heap_, space.as<Scope>(), target.name, value) || failMemory();
  }
  Ref<List> parts;
  if (!toList(value, &parts)) {
    return false;
  }
  uint32_t i = 0;
  for (const Node* part = target.a; part != nullptr; part = part->next, ++i) {
    if (i < parts->count && !assign(*part, parts->items()[i])) {
      return false;
    }
  }
  return i == parts->count || fail("%u values cannot be set to %u names", parts->count, i);
}

bool Interpreter::runSet(const Node& node) {
  Value value;
  return eval(*node.b, &value) && assign(*node.a, value);
}

bool Interpreter::capture(const Node* body, Value* out) {
  const Deeper deeper(this);
  const NewScope scope(this, scope_.get());
  if (!deeper.ok() || !scope.ok()) {
    return false;
  }
  TextBuilder text(heap_);
  TextBuilder* const before = out_;
  out_ = &text;
  const Flow flow = runBody(body);
  out_ = before;
  return flow != Flow::kFailed && finish(&text, out);
}

bool Interpreter::runSetBlock(const Node& node) {
  Value value;
  if (!capture(node.b, &captured_) || !eval(*node.c, &value)) {
    return false;
  }
  captured_ = Value();
  return assign(*node.a, value);
}

bool Interpreter::runFilterBlock(const Node& node) {
  Value value;
  if (!capture(node.b, &captured_) || !eval(*node.c, &value)) {
    return false;
  }
  captured_ = Value();
  return write(value, out_);
}

Interpreter::Flow Interpreter::runWith(const Node& node) {
  const Deeper deeper(this);
  const NewScope scope(this, scope_.get());
  if (!deeper.ok() || !scope.ok()) {
    return Flow::kFailed;
  }
  for (const Node* one = node.a; one != nullptr; one = one->next) {
    if (!runSet(*one)) {
      return Flow::kFailed;
    }
  }
  return runBody(node.b);
}

bool Interpreter::runMacro(const Node& node) {
  Ref<Macro> macro(make<Macro>(heap_, Kind::kMacro));
  if (!macro) {
    return failMemory();
  }
  macro->node = &node;
  macro->scope = scope_.get();
  retain(macro->scope);
  return set(node.name, Value::of(std::move(macro)));
}

bool Interpreter::runCallBlock(const Node& node) {
  Ref<Macro> caller(make<Macro>(heap_, Kind::kMacro));
  if (!caller) {
    return failMemory();
  }
  caller->node = node.b;
  caller->scope = scope_.get();
  retain(caller->scope);
  const Value block = Value::of(std::move(caller));
  Value callee;
  Value text;
  Ref<List> values;
  if (!eval(*node.a->a, &callee) || !evalArgs(node.a->b, &values)) {
    return false;
  }
  if (!callee.is(Kind::kMacro)) {
    return fail("a call block calls a value that is not a macro");
  }
  const Args args = {node.a->b, values ? values->items() : nullptr, values ? values->count : 0};
  return callMacro(callee.as<Macro>(), args, &block, &text) && write(text, out_);
}

bool Interpreter::callMacro(Macro* macro, const Args& args, const Value* caller, Value* out) {
  const Ref<Macro> kept = Ref<Macro>::share(macro);
  const Deeper deeper(this);
  const NewScope scope(this, macro->scope);
  const Symbol* const caller_name = caller != nullptr ? symbol("caller") : nullptr;
  if (!deeper.ok() || !scope.ok() || (caller_name != nullptr && !set(caller_name, *caller)) ||
      !bindArguments(*macro, args, scope_.get())) {
    return false;
  }
  return capture(macro->node->b, out);
}

bool Interpreter::bindArguments(const Macro& macro, const Args& args, Scope* scope) {
  uint32_t n = 0;
  const uint32_t places = args.places();
  for (const Node* p = macro.node->a; p != nullptr; p = p->next, ++n) {
    const Value* given = n < places ? &args.values[n] : nullptr;
    const Node* argument = args.nodes;
    for (uint32_t i = 0; i < args.count; ++i, argument = argument->next) {
      if (argument->name != nullptr && argument->name == p->name) {
        given = &args.values[i];
      }
    }
    Value value = given != nullptr ? *given : Value::undefined(&p->name->text);
    if (!charge(1 + args.count / 4) ||
        (given == nullptr && p->a != nullptr && !eval(*p->a, &value))) {
      return false;
    }
    if (!setIn(heap_, scope, p->name, std::move(value))) {
      return failMemory();
    }
  }
  return bindRest(macro, args, n, scope);
}

// Extra arguments, for varargs or kwargs.
bool Interpreter::bindRest(const Macro& macro, const Args& args, uint32_t n_parameters,
                           Scope* scope) {
  const Symbol* const varargs = symbol("varargs");
  const uint32_t places = args.places();
  if (places > n_parameters && varargs == nullptr) {
    return fail("macro '%.*s' takes %u arguments and is given %u",
                static_cast<int>(macro.node->name->text.bytes), macro.node->name->text.data,
                n_parameters, places);
  }
  if (varargs != nullptr) {
    Ref<List> rest = makeList(heap_, places > n_parameters ? places - n_parameters : 0);
    for (uint32_t i = n_parameters; rest && i < places; ++i) {
      pushTo(rest.get(), args.values[i]);
    }
    if (rest) {
      rest->shape = Shape::kTuple;
    }
    if (!rest || !setIn(heap_, scope, varargs, Value::of(std::move(rest)))) {
      return failMemory();
    }
  }
  for (const Node* argument = args.nodes; argument != nullptr; argument = argument->next) {
    const Node* p = argument->name != nullptr ? macro.node->a : nullptr;
    while (p != nullptr && p->name != argument->name) {
      p = p->next;
    }
    if (argument->name != nullptr && p == nullptr) {
      return fail("macro '%.*s' takes no argument '%.*s'",
                  static_cast<int>(macro.node->name->text.bytes), macro.node->name->text.data,
                  static_cast<int>(argument->name->text.bytes), argument->name->text.data);
    }
  }
  return true;
}

// Values as text: Python's str() and repr().

namespace {

constexpr uint32_t kMaxPrintDepth = 64;

bool isPrintable(const Utf8Char& c) {
  const CharClass of = charClass(c.code_point);
  return c.code_point == ' ' || (of != CharClass::kOther && of != CharClass::kSpace);
}

size_t writeEscape(uint32_t c, char quote, char* out) {
  switch (c) {
    case '\n':
      std::strcpy(out, "\\n");
      return 2;
    case '\r':
      std::strcpy(out, "\\r");
      return 2;
    case '\t':
      std::strcpy(out, "\\t");
      return 2;
    default:
      break;
  }
  if (c == '\\' || c == static_cast<uint8_t>(quote)) {
    out[0] = '\\';
    out[1] = static_cast<char>(c);
    return 2;
  }
  const char* const format = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
  return static_cast<size_t>(std::snprintf(out, 16, format, c));
}

void writeQuoted(const Str& text, TextBuilder* out) {
  const bool single = std::memchr(text.data, '\'', text.bytes) != nullptr;
  const bool twofold = std::memchr(text.data, '"', text.bytes) != nullptr;
  out->reserve(text.bytes + 2);
  const char quote[] = {single && !twofold ? '"' : '\'', '\0'};
  forEachRun(text, 0, text.bytes < 1 ? 0 : 1,
             [&](size_t, size_t, TextOrigin source) { out->append(quote, source); });
  if (text.bytes == 0) {
    out->append("''", text.source);
    return;
  }
  forEachRun(text, 0, text.bytes, [&](size_t begin, size_t end, TextOrigin source) {
    size_t plain = begin;
    for (size_t at = begin; at < end;) {
      if (text[at] >= ' ' && text[at] < 0x7F && text[at] != '\\' && text[at] != quote[0]) {
        ++at;
        continue;
      }
      const Utf8Char c = decodeUtf8(text.data + at, end - at);
      const bool escape =
          c.valid && (c.code_point == '\\' || c.code_point == uint8_t(quote[0]) || !isPrintable(c));
      if (escape) {
        char escaped[16] = "";
        const size_t n = writeEscape(c.code_point, quote[0], escaped);
        out->append(text.data + plain, at - plain, source);
        out->append(escaped, n, source);
        plain = at + c.bytes;
      }
      at += c.bytes;
    }
    out->append(text.data + plain, end - plain, source);
  });
  forEachRun(text, text.bytes - 1, text.bytes,
             [&](size_t, size_t, TextOrigin source) { out->append(quote, source); });
}

}  // namespace

namespace {

const char* shapeName(Shape shape) {
  static constexpr const char* kNames[] = {"list",      "tuple",       "generator",
                                           "dict_keys", "dict_values", "dict_items"};
  return kNames[static_cast<int>(shape)];
}

}  // namespace

const char* Interpreter::typeName(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kAsWritten:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kView:
    case Kind::kText:
      return "str";
    case Kind::kJsonDict:
    case Kind::kDict:
      return "dict";
    case Kind::kJsonList:
      return "list";
    case Kind::kList:
      return shapeName(value.object()->shape);
    case Kind::kRange:
      return "range";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kMacro:
      return "macro";
    case Kind::kLoop:
      return "loop";
    default:
      return "function";
  }
}

bool Interpreter::write(const Value& value, TextBuilder* out) {
  if (value.isUndefined()) {
    return true;
  }
  if (!value.isText()) {
    return repr(value, out);
  }
  const Str text = strOf(value);
  out->append(text);
  return !out->failed() || failMemory();
}

bool Interpreter::toText(const Value& value, Value* out) {
  if (value.isText()) {
    *out = value;
    return true;
  }
  TextBuilder text(heap_);
  return write(value, &text) && finish(&text, out);
}

bool Interpreter::reprList(const Value& value, TextBuilder* out, uint32_t depth) {
  Ref<List> list;
  if (value.hasShape(Shape::kGenerator)) {
    return fail("a value of type %s is printed", typeName(value));
  }
  if (!toList(value, &list)) {
    return false;
  }
  const bool tuple = value.hasShape(Shape::kTuple);
  const bool view = !tuple && !value.isList();
  const TextOrigin source = value.source();
  out->append(view ? typeName(value) : "", source);
  out->append(view ? "(" : "", source);
  out->append(tuple ? "(" : "[", source);
  for (uint32_t i = 0; i < list->count; ++i) {
    out->append(i > 0 ? ", " : "", source);
    if (!repr(list->items()[i], out, depth + 1)) {
      return false;
    }
  }
  out->append(!tuple ? "]" : list->count == 1 ? ",)" : ")", source);
  out->append(view ? ")" : "", source);
  return true;
}

bool Interpreter::reprDict(const Value& value, TextBuilder* out, uint32_t depth) {
  Ref<List> pairs;
  if (!toPairs(value, &pairs)) {
    return false;
  }
  const TextOrigin source = value.source();
  out->append("{", source);
  for (uint32_t i = 0; i < pairs->count; ++i) {
    Value* const pair = pairs->items()[i].as<List>()->items();
    out->append(i > 0 ? ", " : "", source);
    if (!repr(pair[0], out, depth + 1)) {
      return false;
    }
    out->append(": ", source);
    if (!repr(pair[1], out, depth + 1)) {
      return false;
    }
  }
  out->append("}", source);
  return true;
}

bool Interpreter::reprNumber(const Value& value, TextBuilder* out) {
  char text[kMaxNumberBytes] = "";
  if (value.is(Kind::kAsWritten)) {
    out->append(value.text()->data, value.text()->bytes, value.source());
    return charge(1);
  }
  const size_t n =
      value.is(Kind::kFloat) ? writeFloat(value.real(), text) : writeInteger(value.integer(), text);
  out->append(text, n, value.source());
  return charge(value.is(Kind::kFloat) ? 16 : 2);
}

bool Interpreter::reprRange(const Range& range, TextBuilder* out) {
  char text[96];
  const long long stop = range.stop;
  const int n = range.step == 1 ? std::snprintf(text, sizeof text, "range(%lld, %lld)",
                                                static_cast<long long>(range.start), stop)
                                : std::snprintf(text, sizeof text, "range(%lld, %lld, %lld)",
                                                static_cast<long long>(range.start), stop,
                                                static_cast<long long>(range.step));
  out->append(text, static_cast<size_t>(n), 0);
  return true;
}

bool Interpreter::repr(const Value& value, TextBuilder* out, uint32_t depth) {
  if (depth > kMaxPrintDepth) {
    return fail("a value that nests too deep is printed");
  }
  if (out->failed() || !charge(1)) {
    return out->failed() ? failMemory() : false;
  }
  switch (value.kind()) {
    case Kind::kNone:
      out->append("None", value.source());
      return true;
    case Kind::kBool:
      out->append(value.boolean() ? "True" : "False", value.source());
      return true;
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kAsWritten:
      return reprNumber(value, out);
    case Kind::kView:
    case Kind::kText:
      writeQuoted(strOf(value), out);
      return charge(strOf(value).bytes / 8);
    case Kind::kJsonList:
    case Kind::kList:
      return reprList(value, out, depth);
    case Kind::kJsonDict:
    case Kind::kDict:
      return reprDict(value, out, depth);
    case Kind::kRange:
      return reprRange(*value.as<Range>(), out);
    case Kind::kUndefined:
      out->append("Undefined", 0);
      return true;
    default:
      return fail("a value of type %s is printed", typeName(value));
  }
}

}  // namespace oriel_internal::jinja
