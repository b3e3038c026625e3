#include "vulkan/shader_table.h"

#include <cstring>
#include <initializer_list>

namespace oriel_internal {
namespace {

constexpr size_t kBoundWord = 3;
constexpr uint32_t kMostIds = 1u << 16;
constexpr uint32_t kSpecId = 1;        // a decoration
constexpr uint32_t kInputStorage = 1;  // of entry point interface variables

bool isTerminator(uint32_t code) { return code >= kOpBranch && code <= 255; }

/// Facts about an id.
struct Fact {
  uint32_t
      value;  ///< of a constant; of a label or function: where its first block's instructions begin
  uint32_t
      link;  ///< of a label: the next one to walk, then the only block that may follow (0: as it says)
  bool is_known;  ///< a constant with a known value
  bool is_form;   ///< a form constant, or computed from one
  bool is_label;
  bool is_variable;
  bool is_global;  ///< declared outside functions
  bool is_alive;   ///< a function or block that is reachable
  bool is_used;    ///< by live code
};

struct Instruction {
  uint32_t code;
  uint32_t length;
  const uint32_t* words;  // the first is code and length

  uint32_t at(uint32_t operand) const { return words[operand + 1]; }
  uint32_t operands() const { return length - 1; }
};

uint32_t computed(uint32_t code, const uint32_t v[3], bool* known) {
  switch (code) {
    case kOpIAdd:
      return v[0] + v[1];
    case kOpISub:
      return v[0] - v[1];
    case kOpIMul:
      return v[0] * v[1];
    case kOpUDiv:
      return v[1] != 0 ? v[0] / v[1] : 0;
    case kOpLogicalOr:
      return v[0] | v[1];
    case kOpLogicalAnd:
      return v[0] & v[1];
    case kOpLogicalNot:
      return v[0] ^ 1;
    case kOpSelect:
      return v[0] != 0 ? v[1] : v[2];
    case kOpIEqual:
      return v[0] == v[1] ? 1 : 0;
    case kOpINotEqual:
      return v[0] != v[1] ? 1 : 0;
    default:
      *known = false;
      return 0;
  }
}

class Cutter {
 public:
  Cutter(const uint32_t* words, size_t count, Fact* facts, uint32_t* out)
      : words_(words), count_(count), bound_(words[kBoundWord]), facts_(facts), out_(out) {}

  size_t cut(const uint8_t form[kFormConstants]) {
    return readAll(form) && walk() && write() ? written_ : 0;
  }

 private:
  // False at the end or at an invalid instruction.
  bool read(size_t at, Instruction* i) const {
    if (at >= count_ || words_[at] >> 16 == 0 || words_[at] >> 16 > count_ - at) {
      return false;
    }
    *i = {words_[at] & 0xFFFF, words_[at] >> 16, words_ + at};
    return true;
  }
  bool isId(uint32_t word) const { return word != 0 && word < bound_; }
  bool knows(uint32_t id) const { return isId(id) && facts_[id].is_known; }
  bool isDropped(uint32_t variable) const {
    return facts_[variable].is_variable && !facts_[variable].is_used;
  }
  // True if the instruction has all operands that the other functions read.
  bool isWhole(const Instruction& i) const {
    constexpr struct {
      uint32_t code;
      uint32_t operands;
      uint32_t result;  // index of the result among the operands
    } kNeeds[] = {{kOpName, 1, 0},           {kOpConstant, 3, 1},       {kOpSpecConstant, 3, 1},
                  {kOpSpecConstantOp, 4, 1}, {kOpFunction, 4, 1},       {kOpVariable, 3, 1},
                  {kOpDecorate, 2, 0},       {kOpMemberDecorate, 3, 0}, {kOpPhi, 2, 1},
                  {kOpLabel, 1, 0}};
    for (const auto& need : kNeeds) {
      if (need.code == i.code) {
        return i.operands() >= need.operands && isId(i.at(need.result));
      }
    }
    return true;
  }
  static bool names(const Instruction& i) {
    return i.code == kOpDecorate || i.code == kOpMemberDecorate || i.code == kOpName;
  }

  bool readAll(const uint8_t form[kFormConstants]) {
    uint32_t function = 0;  // function whose first label has not been reached
    size_t at = kSpirvHeaderWords;
    for (Instruction i; at < count_; at += i.length) {
      if (!read(at, &i) || !isWhole(i)) {
        return false;
      }
      const uint32_t first = i.operands() > 0 && isId(i.at(0)) ? i.at(0) : 0;
      const uint32_t second = i.operands() > 1 && isId(i.at(1)) ? i.at(1) : 0;
      if (i.code == kOpLabel) {
        facts_[first].value = static_cast<uint32_t>(at + i.length);
        facts_[first].is_label = true;
        facts_[function].value = first;
        function = 0;
      } else if (i.code == kOpFunction) {
        function = second;
        first_function_ = first_function_ == 0 ? at : first_function_;
      } else if (i.code == kOpVariable && i.operands() > 2) {
        facts_[second].is_variable = i.at(2) != kInputStorage;
      } else if (i.code == kOpDecorate && i.operands() == 3 && i.at(1) == kSpecId &&
                 i.at(2) - kFirstFormConstant < kFormConstants) {
        facts_[first].value = form[i.at(2) - kFirstFormConstant];
        facts_[first].is_form = true;
        facts_[first].is_known = true;
      }
      if (first_function_ == 0) {
        readDeclaration(i, first, second);
      }
    }
    return first_function_ != 0;
  }

  void readDeclaration(const Instruction& i, uint32_t first, uint32_t second) {
    const bool is_type = i.code >= kOpTypeVoid && i.code < kOpConstantTrue;
    Fact* const fact = &facts_[is_type ? first : second];
    fact->is_global = fact->is_global || is_type ||
                      (i.code >= kOpConstantTrue && i.code <= kOpSpecConstantOp) ||
                      i.code == kOpVariable;
    if (i.code == kOpTypeBool) {
      bool_type_ = first;
    } else if (i.code == kOpConstantTrue || i.code == kOpConstantFalse) {
      fact->value = i.code == kOpConstantTrue ? 1 : 0;
      fact->is_known = true;
    } else if (i.code == kOpConstant && i.operands() == 3) {
      fact->value = i.at(2);
      fact->is_known = true;
    } else if (i.code == kOpSpecConstantOp && i.operands() > 3 && i.operands() <= 6) {
      uint32_t values[3] = {};
      fact->is_known = true;
      for (uint32_t k = 3; k < i.operands(); ++k) {
        const Fact& operand = facts_[isId(i.at(k)) ? i.at(k) : 0];
        values[k - 3] = operand.value;
        fact->is_known = fact->is_known && operand.is_known;
        fact->is_form = fact->is_form || operand.is_form;
      }
      fact->value = computed(i.at(2), values, &fact->is_known);
      fact->is_form = fact->is_form && fact->is_known;
    }
  }

  // Target block of a branch; 0 if unknown.
  uint32_t decided(const Instruction& branch) const {
    const bool two_ways = branch.code == kOpBranchConditional;
    if ((!two_ways && branch.code != kOpSwitch) || branch.operands() < 2 + (two_ways ? 1 : 0) ||
        !knows(branch.at(0))) {
      return 0;
    }
    const uint32_t value = facts_[branch.at(0)].value;
    if (two_ways) {
      return branch.at(value != 0 ? 1 : 2);
    }
    for (uint32_t k = 2; k + 1 < branch.operands(); k += 2) {
      if (branch.at(k) == value) {
        return branch.at(k + 1);
      }
    }
    return branch.at(1);
  }

  void reach(uint32_t label) {
    if (isId(label) && facts_[label].is_label && !facts_[label].is_alive) {
      facts_[label].is_alive = true;
      facts_[label].link = waiting_;
      waiting_ = label;
    }
  }

  void call(uint32_t function) {
    if (isId(function) && !facts_[function].is_alive) {
      facts_[function].is_alive = true;
      reach(facts_[function].value);
    }
  }

  // Finds every block that is reachable from the entry point.
  bool walk() {
    size_t at = kSpirvHeaderWords;
    for (Instruction i; at < first_function_; at += i.length) {
      if (!read(at, &i)) {
        return false;
      }
      if (i.code == kOpEntryPoint && i.operands() > 2) {
        call(i.at(1));
      }
    }
    while (waiting_ != 0) {
      const uint32_t label = waiting_;
      waiting_ = facts_[label].link;
      facts_[label].link = 0;
      if (!walkBlock(label)) {
        return false;
      }
    }
    return true;
  }

  bool walkBlock(uint32_t label) {
    bool ends = false;
    size_t at = facts_[label].value;
    for (Instruction i; !ends; at += i.length) {
      if (!read(at, &i) || i.code == kOpFunctionEnd) {
        return false;
      }
      Instruction branch;
      if (i.code == kOpSelectionMerge && read(at + i.length, &branch) && decided(branch) != 0) {
        facts_[label].link = decided(branch);
        reach(facts_[label].link);
        return true;
      }
      if (i.code == kOpFunctionCall && i.operands() > 2) {
        call(i.at(2));
      }
      ends = isTerminator(i.code);
      // Merge blocks are kept even if they are unreachable.
      const bool goes = ends || i.code == kOpSelectionMerge || i.code == kOpLoopMerge;
      for (uint32_t k = 0; k < i.operands() && i.code != kOpVariable; ++k) {
        if (isId(i.at(k))) {
          facts_[i.at(k)].is_used = true;
          if (goes) {
            reach(i.at(k));
          }
        }
      }
    }
    return true;
  }

  void put(const Instruction& i) {
    std::memcpy(out_ + written_, i.words, i.length * sizeof(uint32_t));
    written_ += i.length;
  }
  void put(uint32_t code, std::initializer_list<uint32_t> operands) {
    out_[written_++] = static_cast<uint32_t>(operands.size() + 1) << 16 | code;
    for (const uint32_t operand : operands) {
      out_[written_++] = operand;
    }
  }

  bool write() {
    std::memcpy(out_, words_, kSpirvHeaderWords * sizeof(uint32_t));
    written_ = kSpirvHeaderWords;
    uint32_t block = 0;
    bool skips_function = false;
    size_t at = kSpirvHeaderWords;
    for (Instruction i; at < count_; at += i.length) {
      if (!read(at, &i)) {
        return false;
      }
      if (i.code == kOpFunction) {
        skips_function = !facts_[i.at(1)].is_alive;
      }
      if (i.code == kOpLabel || i.code == kOpFunctionEnd) {
        block = i.code == kOpLabel ? i.at(0) : 0;
      }
      if (skips_function || (block != 0 && !facts_[block].is_alive)) {
        continue;
      }
      Instruction branch;
      if (i.code == kOpSelectionMerge && facts_[block].link != 0 && read(at + i.length, &branch)) {
        put(kOpBranch, {facts_[block].link});
        at += branch.length;
      } else if (i.code == kOpPhi) {
        writePhi(i, block);
      } else if (names(i) ? keepsName(i) : i.code != kOpVariable || !isDropped(i.at(1))) {
        writeConstantOr(i);
      }
    }
    return true;
  }

  bool keepsName(const Instruction& i) const {
    const uint32_t id = i.at(0);
    const Fact& fact = facts_[id];
    if (i.code == kOpDecorate && i.operands() == 3 && i.at(1) == kSpecId) {
      return !fact.is_form;
    }
    return fact.is_global ? !isDropped(id) : fact.is_used;
  }

  void writeConstantOr(const Instruction& i) {
    if ((i.code != kOpSpecConstant && i.code != kOpSpecConstantOp) || !facts_[i.at(1)].is_form) {
      put(i);
    } else if (i.at(0) == bool_type_) {
      put(facts_[i.at(1)].value != 0 ? kOpConstantTrue : kOpConstantFalse, {i.at(0), i.at(1)});
    } else {
      put(kOpConstant, {i.at(0), i.at(1), facts_[i.at(1)].value});
    }
  }

  // Keeps operands from blocks that still branch here.
  void writePhi(const Instruction& i, uint32_t block) {
    const size_t begin = written_;
    put(kOpPhi, {i.at(0), i.at(1)});
    for (uint32_t k = 2; k + 1 < i.operands(); k += 2) {
      const Fact& parent = facts_[isId(i.at(k + 1)) ? i.at(k + 1) : 0];
      if (parent.is_alive && (parent.link == 0 || parent.link == block)) {
        out_[written_++] = i.at(k);
        out_[written_++] = i.at(k + 1);
      }
    }
    out_[begin] = static_cast<uint32_t>(written_ - begin) << 16 | kOpPhi;
  }

  const uint32_t* const words_;
  const size_t count_;
  const uint32_t bound_;
  Fact* const facts_;  // by id; the first is of none
  uint32_t* const out_;
  size_t written_ = 0;
  size_t first_function_ = 0;
  uint32_t bool_type_ = 0;
  uint32_t waiting_ = 0;
};

}  // namespace

size_t formWorkBytes(const uint32_t* words, size_t count) {
  const bool good =
      count > kSpirvHeaderWords && words[kBoundWord] != 0 && words[kBoundWord] <= kMostIds;
  return good ? words[kBoundWord] * sizeof(Fact) : 0;
}

size_t cutToForm(const uint32_t* words, size_t count, const uint8_t form[kFormConstants],
                 uint32_t* out, void* work) {
  const size_t bytes = formWorkBytes(words, count);
  if (bytes == 0) {
    return 0;
  }
  std::memset(work, 0, bytes);
  return Cutter(words, count, static_cast<Fact*>(work), out).cut(form);
}

namespace {

// The same values as in cmake/renumber_spirv.py.
constexpr uint32_t kResultId = 0x80000000u;
constexpr uint32_t kOtherId = 0x40000000u;
constexpr uint32_t kReach = 0x8000;

void restoreWord(uint32_t* word, uint32_t* latest) {
  if (const uint32_t step = *word - kResultId; step != 0 && step < kReach) {
    *latest += step;
    *word = *latest;
  } else if (*word - (kOtherId - kReach + 1) < 2 * kReach - 1) {
    *word = *latest - (*word - kOtherId);
  }
}

}  // namespace

bool restoreIds(uint32_t* words, size_t count) {
  uint32_t latest = 0;
  bool in_functions = false;
  for (size_t at = kSpirvHeaderWords; at < count;) {
    const size_t length = words[at] >> 16;
    if (length == 0 || length > count - at) {
      return false;
    }
    in_functions = in_functions || (words[at] & 0xFFFF) == kOpFunction;
    for (size_t i = 1; i < length && in_functions; ++i) {
      restoreWord(&words[at + i], &latest);
    }
    at += length;
  }
  return count > kSpirvHeaderWords;
}

}  // namespace oriel_internal
