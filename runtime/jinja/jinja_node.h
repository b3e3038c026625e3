// What a template says, as a tree in the scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"

namespace oriel_internal::jinja {

/// A name of the template: one for all places where it stands.
struct Symbol {
  JsonText text;
  Symbol* next = nullptr;
  uint8_t attribute = 0;  ///< which method of Python's it names (jinja_methods.h), 0: none
};

enum class NodeKind : uint8_t {
  // Statements
  kData,         ///< text
  kPrint,        ///< a: what
  kIf,           ///< a: condition, b: body, c: kIf or kElse
  kElse,         ///< b: body
  kFor,          ///< a: target, b: over what, c: kForParts
  kForParts,     ///< a: condition, b: body, c: body when there is nothing
  kSet,          ///< a: target, b: what
  kSetBlock,     ///< a: target, b: body, c: filters around kCaptured
  kMacro,        ///< name; a: parameters, b: body
  kCallBlock,    ///< a: call, b: kMacro
  kFilterBlock,  ///< b: body, c: filters around kCaptured
  kWith,         ///< a: kSet, one after another; b: body
  kBlock,        ///< b: body, in a scope of its own
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
  kAttribute,   ///< a: of what; name
  kSubscript,   ///< a: of what, b: index or kSlice
  kSlice,       ///< a: start, b: stop, c: step
  kCall,        ///< a: what, b: kArgument
  kMethodCall,  ///< a: of what, b: kArgument; name
  kFilter,      ///< a: what, b: kArgument; name, flags: which
  kTest,        ///< a: what, b: kArgument; name, flags: which
  kArgument,    ///< a: what; name or null
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
  kCaptured,    ///< what a block wrote
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
constexpr uint16_t kUnknown = 0xFFFF;  ///< flags of a filter or test that there is none of

}  // namespace oriel_internal::jinja
