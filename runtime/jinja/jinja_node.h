// The syntax tree of a template, in the scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"

namespace oriel_internal::jinja {

/// A name in the template, shared by all its uses.
struct Symbol {
  JsonText text;
  Symbol* next = nullptr;
  uint8_t attribute = 0;  ///< the Python method of that name (jinja_methods.h), 0: none
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

}  // namespace oriel_internal::jinja
