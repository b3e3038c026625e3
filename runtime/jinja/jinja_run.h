// Runs a template's tree. Functions return false after a failure, which has been logged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/log.h"
#include "jinja/jinja.h"
#include "jinja/jinja_parser.h"
#include "jinja/jinja_value.h"

namespace oriel_internal::jinja {

class Parser;

/// Arguments of a call, with their values.
struct Args {
  const Node* nodes = nullptr;  ///< kArgument
  const Value* values = nullptr;
  uint32_t count = 0;

  /// By position or by name; null: not given. With a null name: by position only.
  const Value* find(uint32_t place, const char* name) const;
  Args from(uint32_t first) const;
  uint32_t places() const;  ///< number of positional arguments
};

constexpr uint64_t kUnitsAStep = 64;

/// Nesting limits; the heap's meter limits the steps.
struct Limits {
  uint64_t steps = 0;
  uint32_t depth = 0;  ///< of calls, blocks and expressions together
};

class Interpreter {
 public:
  struct World {
    Heap* heap;
    const Parser* parser;
    JinjaClock clock;
    Log log;
    Limits limits;
  };
  explicit Interpreter(const World& world) : world_(world), heap_(world.heap) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Status run(const Node* body, const JinjaVariable* variables, size_t n_variables,
             TextBuilder* out);

  // For filters, tests, methods and functions.
  Heap* heap() const { return heap_; }
  const JinjaClock& clock() const { return world_.clock; }
  bool fail(const char* format, ...) ORIEL_PRINTF(2, 3);
  bool failMemory();
  bool failUndefined(const Value& value);
  /// Raises an exception in the template.
  bool raise(const Value& message);
  /// Counts work in addition to the work of the primitives (Heap::meter). False: the limit is reached or the work was
  /// stopped.
  bool charge(uint64_t steps);
  bool chargeBytes(uint64_t bytes) { return charge(bytes / kUnitsAStep + 1); }
  /// find() and findLast() within the remaining work.
  bool findIn(const Str& text, const Str& part, size_t from, size_t* at);
  bool findLastIn(const Str& text, const Str& part, size_t end, size_t* at);
  /// False: the builder's text failed.
  bool finish(TextBuilder* builder, Value* out) { return builder->finish(out) || failMemory(); }
  bool give(Ref<List> list, Value* out);

  bool putIn(Dict* dict, DictEntry* entry);
  /// Copies a dict's members to a namespace.
  bool copyInto(const Value& dict, Scope* space);
  bool evalArgs(const Node* arguments, Ref<List>* values);
  bool call(const Value& callee, const Args& args, Value* out);
  bool attribute(const Value& of, const Symbol& name, Value* out);
  bool item(const Value& of, const Value& key, Value* out);
  /// "a.b.0": applies item() to each part.
  bool path(const Value& of, const Value& path, Value* out);

  // Operators (jinja_operators.cpp)
  bool truth(const Value& value) const;
  bool equal(const Value& a, const Value& b, bool* result, uint32_t depth = 0);
  /// *order is below, at or above 0.
  bool compare(const Value& a, const Value& b, int* order, uint32_t depth = 0);
  bool contains(const Value& in, const Value& what, bool* result);
  bool binary(Op op, const Value& a, const Value& b, Value* out);
  bool length(const Value& value, size_t* n);
  /// The value of a key; null in `found` if missing.
  bool findKey(const Value& dict, const Value& key, Value* out, bool* found);

  // Printing (jinja_print.cpp)
  bool write(const Value& value, TextBuilder* out);
  bool repr(const Value& value, TextBuilder* out, uint32_t depth = 0);
  /// The value as a string; strings are returned unchanged.
  bool toText(const Value& value, Value* out);

  // Sequences (jinja_sequences.cpp)
  // Any iterable as a list.
  bool toList(const Value& value, Ref<List>* out);
  /// A dict's pairs.
  bool toPairs(const Value& dict, Ref<List>* out);
  bool slice(const Value& of, const Value parts[3], Value* out);
  /// Python's name of the type, for messages.
  static const char* typeName(const Value& value);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue, kFailed };
  class Deeper;
  class NewScope;

  bool define(const JinjaVariable* variables, size_t n_variables);
  bool defineVariable(const JinjaVariable& variable, const Symbol* name);
  Flow runBody(const Node* first);
  Flow runStatement(const Node& node);
  Flow runIf(const Node& node);
  Flow runFor(const Node& node);
  Flow runLoop(const Node& node, const Value& over, bool* ran);
  bool keepWhere(const Node& node, const Value& over, Value* out);
  Flow runScoped(const Node& node);
  bool runSet(const Node& node);
  bool runSetBlock(const Node& node);
  bool runMacro(const Node& node);
  bool runCallBlock(const Node& node);
  bool runFilterBlock(const Node& node);
  Flow runWith(const Node& node);
  bool capture(const Node* body, Value* out);
  bool assign(const Node& target, const Value& value);
  bool print(const Node& node);

  bool eval(const Node& node, Value* out);
  bool evalDeeper(const Node& node, Value* out);
  bool evalName(const Symbol& name, Value* out);
  bool evalElements(const Node& node, Value* out);
  bool evalDict(const Node& node, Value* out);
  bool evalAttribute(const Node& node, Value* out);
  bool evalSubscript(const Node& node, Value* out);
  bool evalCall(const Node& node, Value* out);
  bool evalMethodCall(const Node& node, Value* out);
  bool evalFilter(const Node& node, Value* out);
  bool evalTest(const Node& node, Value* out);
  bool evalSign(const Node& node, Value* out);
  bool evalLogic(const Node& node, Value* out);
  bool evalChain(const Node& node, Value* out);
  bool evalCompare(const Node& node, Value* out);
  bool evalConcat(const Node& node, Value* out);
  bool evalCondition(const Node& node, Value* out);
  bool equalLists(const Value& a, const Value& b, bool* result, uint32_t depth);
  bool equalDicts(const Value& a, const Value& b, bool* result, uint32_t depth);
  bool reprList(const Value& value, TextBuilder* out, uint32_t depth);
  bool reprDict(const Value& value, TextBuilder* out, uint32_t depth);
  bool reprNumber(const Value& value, TextBuilder* out);
  bool reprRange(const Range& range, TextBuilder* out);
  bool formatPercent(const Value& format, const Value& values, Value* out);
  bool compareOp(Op op, const Value& a, const Value& b, bool* result);
  bool add(const Value& a, const Value& b, Value* out);
  bool addTexts(const Value& a, const Value& b, Value* out);
  bool repeat(const Value& what, const Value& times, Value* out);
  /// The rest of a generator, which is empty afterwards.
  bool drain(List* generator, Ref<List>* out);
  bool textToList(const Value& text, Ref<List>* out);
  bool jsonToList(const Value& json, Ref<List>* out);
  /// A member's value; strings of several pieces keep each piece's source.
  bool memberOf(const Value& dict, const JsonValue& member, Value* out);
  bool sliceText(const Value& of, const Value parts[3], Value* out);
  bool sliceRange(const Range& of, const Value parts[3], Value* out);
  bool sliceList(const Value& of, const Value parts[3], Value* out);
  bool textItem(const Value& of, const Value& key, Value* out);
  bool listItem(const Value& of, const Value& key, Value* out);
  bool loopAttribute(const Loop& loop, const Symbol& name, Value* out);
  bool callMacro(Macro* macro, const Args& args, const Value* caller, Value* out);
  bool bindArguments(const Macro& macro, const Args& args, Scope* scope);
  bool bindRest(const Macro& macro, const Args& args, uint32_t n_parameters, Scope* scope);
  bool set(const Symbol* name, Value value);
  /// Null if the template does not use the name.
  const Symbol* symbol(const JsonText& name) const;
  const Symbol* symbol(const char* name) const;

  const World world_;
  Heap* const heap_;
  Status status_ = kOk;
  uint32_t depth_ = 0;
  uint32_t line_ = 0;
  Ref<Scope> scope_;
  TextBuilder* out_ = nullptr;
  Value captured_;
};

// State of a running template with the lifetime of a block.

/// One nesting level of calls, blocks and expressions.
class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter* run) : run_(run) { ++run->depth_; }
  ~Deeper() { --run_->depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  bool ok() const {
    return run_->depth_ <= run_->world_.limits.depth ||
           run_->fail("it nests deeper than %u levels", run_->world_.limits.depth);
  }

 private:
  Interpreter* const run_;
};

/// A scope below `parent`; restores the previous scope.
class Interpreter::NewScope {
 public:
  NewScope(Interpreter* run, Scope* parent) : run_(run), before_(run->scope_) {
    run->scope_ = Ref<Scope>(make<Scope>(run->heap_, Kind::kScope));
    if (run->scope_) {
      run->scope_->parent = parent;
      retain(parent);
    }
  }
  ~NewScope() { run_->scope_ = before_; }
  NewScope(const NewScope&) = delete;
  NewScope& operator=(const NewScope&) = delete;
  bool ok() const { return static_cast<bool>(run_->scope_) || run_->failMemory(); }

 private:
  Interpreter* const run_;
  const Ref<Scope> before_;
};

}  // namespace oriel_internal::jinja
