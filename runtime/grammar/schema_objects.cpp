#include "grammar/schema_objects.h"

#include "grammar/schema_strings.h"
#include "grammar/schema_texts.h"

namespace oriel_internal {
namespace {

class ObjectWriter : private LiveExpressions {
 public:
  explicit ObjectWriter(Grammar* grammar) : LiveExpressions(grammar) {}

  // Builds back to front: the expression after the comma before property i, and after a member, by the number of
  // written members.
  ExprId write(const ObjectShape& shape) {
    const List<ObjectProperty>& properties = *shape.properties;
    const uint32_t n_counts = shape.top + 1;
    ExprId* const keys = g_->scratch()->take<ExprId>(n_counts);   // for the properties from i on
    ExprId* const after = g_->scratch()->take<ExprId>(n_counts);  // after a member
    if (keys == nullptr || after == nullptr) {
      return g_->never();
    }
    const ExprId close = g_->text("}");
    writeOthers(shape, close, keys, after);
    bool may_close = true;
    for (uint32_t i = properties.count(); i-- != 0;) {
      const ObjectProperty& property = properties[i];
      const ExprId member = n_counts > 1 ? asRule(property.member) : property.member;
      for (uint32_t n = 0; n < n_counts; ++n) {
        const bool full = shape.most != UINT32_MAX && n == shape.most;
        const ExprId one = full ? g_->never() : sequence(member, after[shape.more(n)]);
        keys[n] = asRule(property.required ? one : choice(one, keys[n]));
      }
      may_close = may_close && !property.required;
      for (uint32_t n = 0; n < n_counts; ++n) {
        const ExprId more = sequence(comma(), keys[n]);
        after[n] = asRule(may_close && n >= shape.least ? choice(close, more) : more);
      }
    }
    ExprId body = keys[0];
    if (may_close && shape.least == 0) {
      body = choice(body, close);
    }
    return sequence(g_->text("{"), body);
  }

 private:
  // After the last property. Unknown names may repeat, so together they count as one required member and any number of
  // optional ones.
  void writeOthers(const ObjectShape& shape, ExprId close, ExprId* keys, ExprId* after) {
    for (uint32_t n = 0; n <= shape.top; ++n) {
      const bool enough = n + 1 >= shape.least;
      const uint32_t left = shape.most == UINT32_MAX ? shape.most : shape.most - n;
      keys[n] = g_->never();
      if (enough && left != 0 && !isNever(shape.other)) {
        const ExprId next = g_->sequence(comma(), shape.other);
        const ExprId more = countedExpression(next, 0, left == UINT32_MAX ? left : left - 1, g_);
        keys[n] = asRule(g_->sequence(shape.other, g_->sequence(more, close)));
      }
      const ExprId others = sequence(comma(), keys[n]);
      after[n] = asRule(n >= shape.least ? choice(close, others) : others);
    }
  }
};

}  // namespace

ExprId objectExpression(const ObjectShape& shape, Grammar* grammar) {
  return ObjectWriter(grammar).write(shape);
}

}  // namespace oriel_internal
