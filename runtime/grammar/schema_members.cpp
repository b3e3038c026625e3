// Properties and items of combined schemas: which are allowed, and their constraints.
#include "grammar/schema_parts.h"

#include "grammar/schema_patterns.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostPatternsOfNames = 16;
constexpr uint32_t kMostWays = 64;  // combinations of matched and unmatched patterns

}  // namespace

bool SchemaContext::matches(const JsonValue& schema, const JsonText& pattern, const JsonText& name,
                            RegexReading reading) {
  bool is_wrong = false;
  const char* const error = patterns_.error(pattern, &is_wrong);
  if (error != nullptr) {
    failOfPattern(schema, "patternProperties", error, is_wrong);
    return false;
  }
  bool too_large = false;
  const bool does = patterns_.accepts(pattern, false, name, &too_large, reading);
  if (too_large) {
    refuse(schema, "patternProperties", "has a pattern that is too large: make it smaller");
  }
  return does;
}

void SchemaContext::propertyOf(const JsonValue& schema, const JsonText& name,
                               List<const JsonValue*>* out) {
  const JsonValue* const properties = schema.find("properties");
  if (properties != nullptr && !spend(schema, stepsToPass(properties->count()))) {
    return;
  }
  const JsonValue* const named = properties != nullptr ? properties->find(name) : nullptr;
  bool is_known = named != nullptr;
  if (named != nullptr) {
    out->push(named);
  }
  const JsonValue* const patterns = schema.find("patternProperties");
  for (const JsonValue* one = patterns != nullptr ? patterns->first() : nullptr;
       one != nullptr && !failed(); one = one->next()) {
    if (matches(schema, one->key(), name, RegexReading::kEither)) {
      out->push(one);
      is_known = is_known || matches(schema, one->key(), name, RegexReading::kBoth);
    }
  }
  const JsonValue* const others = schema.find("additionalProperties");
  if (!is_known && others != nullptr) {
    out->push(others);
  }
}

const JsonValue* SchemaContext::itemOf(const JsonValue& schema, uint32_t index) {
  const JsonValue* const prefix = schema.find("prefixItems");
  if (prefix == nullptr || index >= prefix->count()) {
    return schema.find("items");
  }
  if (!spend(schema, stepsToPass(index))) {
    return nullptr;
  }
  const JsonValue* item = prefix->first();
  for (; index != 0; --index) {
    item = item->next();
  }
  return item;
}

void SchemaContext::addProperty(const Conjunction& objects, const JsonText& name,
                                Conjunction* value) {
  (void)grammar_->work()->spend(objects.elements.count());
  for (const SchemaElement& element : objects.elements) {
    if (!element.isNegated()) {
      found_.cutTo(0);
      propertyOf(*element.schema, name, &found_);
      for (const JsonValue* const one : found_) {
        add(one, value);
      }
    }
  }
}

void SchemaContext::addItem(const Conjunction& arrays, uint32_t index, Conjunction* value) {
  (void)grammar_->work()->spend(arrays.elements.count());
  for (const SchemaElement& element : arrays.elements) {
    if (!element.isNegated()) {
      add(itemOf(*element.schema, index), value);
    }
  }
}

// Forbidden properties and properties made from conditions do not count as listed.
bool SchemaContext::listsNames(const JsonValue& schema) {
  if (isUnlisted(schema)) {
    return false;
  }
  if (schema.find("patternProperties") != nullptr) {
    return true;
  }
  const JsonValue* const properties = schema.find("properties");
  const JsonValue* one = properties != nullptr ? properties->first() : nullptr;
  if (properties != nullptr && one == nullptr) {
    return true;
  }
  while (one != nullptr && one->isBool() && !one->boolean()) {
    one = one->next();
  }
  return one != nullptr;
}

bool SchemaContext::isOpen(const Conjunction& objects) {
  (void)grammar_->work()->spend(objects.elements.count());
  bool opened = rules_.open_objects;
  bool listed = false;
  for (const SchemaElement& element : objects.elements) {
    if (element.isNegated()) {
      continue;
    }
    (void)spend(*element.schema, stepsOfMembers(*element.schema));
    const JsonValue* const more = element.schema->find("additionalProperties");
    if (more != nullptr && more->isBool() && !more->boolean()) {
      return false;
    }
    opened = opened || more != nullptr;
    listed = listed || listsNames(*element.schema);
  }
  return opened || !listed;
}

bool SchemaContext::isRequired(const JsonValue& schema, const JsonText& name) {
  const JsonValue* const names = schema.find("required");
  const JsonValue* one = names != nullptr ? names->first() : nullptr;
  if (names != nullptr && !spend(schema, stepsToPass(names->count()))) {
    return false;
  }
  while (one != nullptr && !(one->text() == name)) {
    one = one->next();
  }
  return one != nullptr;
}

bool SchemaContext::isNamed(const Conjunction& objects, const JsonText& name) {
  (void)grammar_->work()->spend(objects.elements.count());
  for (const SchemaElement& element : objects.elements) {
    if (element.isNegated()) {
      continue;
    }
    const JsonValue* const properties = element.schema->find("properties");
    if (properties != nullptr && !spend(*element.schema, stepsToPass(properties->count()))) {
      return false;
    }
    if (isRequired(*element.schema, name) || isMatched(*element.schema, name) ||
        (properties != nullptr && properties->find(name) != nullptr)) {
      return true;
    }
  }
  return false;
}

bool SchemaContext::isMatched(const JsonValue& schema, const JsonText& name) {
  const JsonValue* const patterns = schema.find("patternProperties");
  const JsonValue* one = patterns != nullptr ? patterns->first() : nullptr;
  while (one != nullptr && !failed() && !matches(schema, one->key(), name, RegexReading::kBoth)) {
    one = one->next();
  }
  return one != nullptr;
}

bool SchemaContext::namesOf(const Conjunction& objects, Conjunction* names) {
  bool any = false;
  for (const SchemaElement& element : objects.elements) {
    const JsonValue* const of_names =
        element.isNegated() ? nullptr : element.schema->find("propertyNames");
    any = any || of_names != nullptr;
    add(of_names, names);
  }
  return any;
}

// ---- unnamed properties

class SchemaContext::OtherWays {
 public:
  OtherWays(SchemaContext* context, const Conjunction& objects, const JsonValue* names,
            List<Others>* out)
      : c_(*context),
        objects_(objects),
        names_(names),
        patterns_(context->scratch()),
        owners_(context->scratch()),
        out_(*out) {}

  void write() {
    for (const SchemaElement& element : objects_.elements) {
      const JsonValue* const patterns =
          element.isNegated() ? nullptr : element.schema->find("patternProperties");
      for (const JsonValue* one = patterns != nullptr ? patterns->first() : nullptr; one != nullptr;
           one = one->next()) {
        addPattern(*element.schema, one->key());
      }
    }
    if (!c_.failed()) {
      write(0, 0);
    }
  }

 private:
  void addPattern(const JsonValue& owner, const JsonText& pattern) {
    if (std::find(patterns_.begin(), patterns_.end(), pattern) != patterns_.end()) {
      return;
    }
    (void)c_.matches(owner, pattern, "", RegexReading::kBoth);  // logs the fault
    if (patterns_.count() == kMostPatternsOfNames) {
      c_.refuse(owner, "patternProperties", "has too many patterns: give fewer");
      return;
    }
    patterns_.push(pattern);
    owners_.push(&owner);
  }

  bool meets(uint32_t pattern, uint32_t matched) {
    for (uint32_t i = 0; i < patterns_.count(); ++i) {
      if ((matched >> i & 1) != 0 &&
          !c_.patterns_.mayMeetEither(patterns_[i], patterns_[pattern])) {
        return false;
      }
    }
    return true;
  }

  // With each pattern from `at` on matched or not.
  void write(uint32_t at, uint32_t matched) {
    if (c_.failed()) {
      return;
    }
    if (at == patterns_.count()) {
      writeWay(matched);
      return;
    }
    if (meets(at, matched)) {
      write(at + 1, matched | 1u << at);
    }
    write(at + 1, matched);
  }

  void writeWay(uint32_t matched) {
    if (matched == 0 && !c_.isOpen(objects_)) {
      return;
    }
    if (out_.count() == kMostWays) {
      c_.refuse(*owners_[0], "patternProperties", "has too many patterns that meet: give fewer");
      return;
    }
    Others other;
    other.value = Conjunction(c_.scratch());
    other.is_any = matched == 0;
    bool fits = true;
    for (uint32_t i = 0; i < patterns_.count(); ++i) {
      StringFacts& key = other.key;
      if ((matched >> i & 1) == 0) {
        fits = fits && (!meets(i, matched) || key.excludePattern(patterns_[i]));
      } else if (key.n_patterns < StringFacts::kMostPatterns) {
        key.patterns[key.n_patterns++] = patterns_[i];
      } else {
        fits = false;
      }
    }
    if (!fits) {
      c_.refuse(*owners_[0], "patternProperties", "has too many patterns: give fewer");
      return;
    }
    excludeNames(matched, &other);
    addValues(matched, &other);
    out_.push(other);
  }

  void excludeNames(uint32_t matched, Others* other) {
    JsonMade* const names = c_.maker_.list();
    for (const JsonValue* name = names_->first(); name != nullptr; name = name->next()) {
      bool may_be = true;
      for (uint32_t i = 0; i < patterns_.count() && may_be; ++i) {
        may_be = (matched >> i & 1) == 0 ||
                 c_.matches(*owners_[i], patterns_[i], name->text(), RegexReading::kEither);
      }
      if (may_be) {
        c_.maker_.append(names, c_.maker_.text(name->text()));
      }
    }
    if (SchemaMaker::isSome(names)) {
      (void)other->key.excludeListed(*names);
    }
  }

  void addValues(uint32_t matched, Others* other) {
    for (const SchemaElement& element : objects_.elements) {
      if (element.isNegated()) {
        continue;
      }
      bool is_known = false;
      const JsonValue* const patterns = element.schema->find("patternProperties");
      for (const JsonValue* one = patterns != nullptr ? patterns->first() : nullptr; one != nullptr;
           one = one->next()) {
        const auto index =
            std::find(patterns_.begin(), patterns_.end(), one->key()) - patterns_.begin();
        if ((matched >> index & 1) != 0) {
          c_.add(one, &other->value);
          is_known = true;
        }
      }
      if (!is_known) {
        c_.add(element.schema->find("additionalProperties"), &other->value);
      }
    }
  }

  SchemaContext& c_;
  const Conjunction& objects_;
  const JsonValue* const names_;
  List<JsonText> patterns_;
  List<const JsonValue*> owners_;
  List<Others>& out_;
};

void SchemaContext::othersOf(const Conjunction& objects, const JsonValue* names,
                             List<Others>* out) {
  if (names != nullptr) {
    OtherWays(this, objects, names, out).write();
  }
}

namespace {

class ArrayWriter : private LiveExpressions {
 public:
  ArrayWriter(const ArrayLengths& lengths, Grammar* grammar)
      : LiveExpressions(grammar), least_(lengths.least), most_(lengths.most) {}

  ExprId all(const List<ExprId>& items, uint32_t n_prefix) {
    const uint32_t n_single = std::max(std::min(n_prefix, most_), 1u);
    ExprId rest = g_->empty();
    if (most_ > n_single) {
      const uint32_t more = most_ == UINT32_MAX ? most_ : most_ - n_single;
      const ExprId next = sequence(comma(), items[n_prefix]);
      rest = countedExpression(next, least_ > n_single ? least_ - n_single : 0, more, g_);
    }
    for (uint32_t i = n_single; i-- != 0;) {
      rest = g_->sequence(items[i], rest);
      if (i != 0) {
        rest = g_->sequence(comma(), rest);
        rest = asRule(i >= least_ ? optional(rest) : rest);
      }
    }
    rest = least_ == 0 ? optional(rest) : rest;
    return g_->sequence(g_->text("["), g_->sequence(rest, g_->text("]")));
  }

  // The continuation depends on the set of used values, so all sets are enumerated.
  ExprId unique(const JsonText* values, uint32_t count) {
    const uint32_t n_sets = 1u << count;
    ExprId* const behind = g_->scratch()->take<ExprId>(n_sets);
    if (behind == nullptr || !g_->work()->spend(uint64_t{n_sets} * count * kStepsOfValue)) {
      return g_->never();
    }
    ExprId first = g_->never();
    for (uint32_t used = n_sets; used-- != 0;) {
      uint32_t n_used = 0;
      for (uint32_t i = 0; i < count; ++i) {
        n_used += used >> i & 1;
      }
      ExprId more = g_->never();
      for (uint32_t i = 0; i < count && n_used < most_; ++i) {
        if ((used >> i & 1) == 0) {
          const ExprId value = g_->bytes(values[i].data, values[i].bytes);
          more = choice(more, sequence(value, behind[used | 1u << i]));
        }
      }
      behind[used] = after(n_used, more);
      first = more;
    }
    return whole(first);
  }

  // Values from i on, after n written ones; built from the last value.
  ExprId ordered(const JsonText* values, uint32_t count) {
    const uint32_t top = std::min(most_ != UINT32_MAX ? most_ : least_, count);
    ExprId* const from = g_->scratch()->take<ExprId>(top + uint64_t{1});
    if (from == nullptr || !g_->work()->spend(uint64_t{count} * top * kStepsOfValue)) {
      return g_->never();
    }
    std::fill(from, from + top + 1, g_->never());
    for (uint32_t i = count; i-- != 0;) {
      const ExprId value = asRule(g_->bytes(values[i].data, values[i].bytes));
      for (uint32_t n = 0; n <= top; ++n) {
        const uint32_t written = std::min(n + 1, top);
        const bool full = most_ != UINT32_MAX && n >= most_;
        const ExprId behind = full ? g_->never() : after(n + 1, from[written]);
        from[n] = asRule(choice(sequence(value, behind), from[n]));
      }
    }
    return whole(from[0]);
  }

  // The continuation after n items, with or without a hit; built from the last n.
  ExprId containing(ExprId item, ExprId hit) {
    const uint32_t top = most_ != UINT32_MAX ? most_ : std::max(least_, 1u);
    ExprId has = g_->never();
    ExprId lacks = g_->never();
    for (uint32_t n = top; n != 0; --n) {
      const bool loops = n == top && most_ == UINT32_MAX;
      const RuleId has_rule = g_->newRule();
      const RuleId lacks_rule = g_->newRule();
      const ExprId next_has = loops ? g_->rule(has_rule) : has;
      const ExprId next_lacks = loops ? g_->rule(lacks_rule) : lacks;
      const ExprId more = sequence(comma(), sequence(item, next_has));
      has = define(has_rule, n >= least_ ? choice(g_->text("]"), more) : more);
      lacks = define(lacks_rule, choice(sequence(comma(), sequence(item, next_lacks)),
                                        sequence(comma(), sequence(hit, next_has))));
    }
    return sequence(g_->text("["), choice(sequence(item, lacks), sequence(hit, has)));
  }

 private:
  static constexpr uint64_t kStepsOfValue = 16;

  ExprId define(RuleId rule, ExprId what) {
    g_->define(rule, what);
    return isNever(what) ? what : g_->rule(rule);
  }
  ExprId after(uint32_t n, ExprId more) {
    const ExprId next = sequence(comma(), more);
    return asRule(n >= least_ ? choice(g_->text("]"), next) : next);
  }
  ExprId whole(ExprId first) {
    const ExprId inside = least_ == 0 ? choice(g_->text("]"), first) : first;
    return sequence(g_->text("["), inside);
  }

  const uint32_t least_;
  const uint32_t most_;
};

}  // namespace

ExprId arrayExpression(const List<ExprId>& items, uint32_t n_prefix, const ArrayLengths& lengths,
                       Grammar* grammar) {
  return ArrayWriter(lengths, grammar).all(items, n_prefix);
}

ExprId uniqueItemsExpression(const JsonText* values, uint32_t count, const ArrayLengths& lengths,
                             Grammar* grammar) {
  ArrayWriter writer(lengths, grammar);
  return count <= kMostUniqueInAnyOrder ? writer.unique(values, count)
                                        : writer.ordered(values, count);
}

ExprId containingExpression(ExprId item, ExprId hit, const ArrayLengths& lengths,
                            Grammar* grammar) {
  return ArrayWriter(lengths, grammar).containing(item, hit);
}

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
