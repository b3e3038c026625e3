#include <algorithm>
#include <cstdio>

#include "grammar/grammar.h"
#include "grammar/schema_parts.h"
#include "grammar/schema_patterns.h"
#include "text/special_tokens.h"

namespace oriel_internal {
namespace {

constexpr char kAndMore[] = "\"...\"";
constexpr size_t kMostEntryBytes = 80;

}  // namespace

bool IgnoredKeywords::has(const char* entry, size_t bytes) const {
  const char* const end = json_ + bytes_;
  return std::search(json_, end, entry, entry + bytes) != end;
}

void IgnoredKeywords::add(const char* before, const JsonText& name) {
  if (full_ && bytes_ != 0) {
    return;
  }
  char entry[6 * kMostEntryBytes + 32];  // an escape has up to six bytes
  JsonRoom room = {entry, 0};
  const JsonSink sink = room.sink();
  sink.write("\"", 1, sink.user);
  writeJsonEscaped(before, sink);
  writeJsonEscaped({name.data, std::min<size_t>(name.bytes, kMostEntryBytes)}, sink);
  sink.write("\"", 1, sink.user);
  if (has(entry, room.bytes)) {
    return;
  }
  // Bytes before the closing bracket; then a comma, a blank, and room for the "..." mark.
  const size_t used = bytes_ == 0 ? 1 : bytes_ - 1;
  full_ = used + 2 + room.bytes + 2 + sizeof(kAndMore) + 2 > kBytes;
  const char* const added = full_ ? kAndMore : entry;
  const size_t added_bytes = full_ ? sizeof(kAndMore) - 1 : room.bytes;
  char* at = json_ + used;
  if (bytes_ == 0) {
    json_[0] = '[';
  } else {
    *at++ = ',';
    *at++ = ' ';
  }
  at = std::copy(added, added + added_bytes, at);
  *at++ = ']';
  *at = '\0';
  bytes_ = static_cast<size_t>(at - json_);
}

// Facts of combined schemas.

namespace {

constexpr uint32_t kMostReferences = 40;  // chained
constexpr uint32_t kMostCountOfKeyword = UINT32_MAX - 1;
}  // namespace

uint32_t typeOf(const JsonValue& value) {
  Decimal decimal;
  switch (value.kind()) {
    case JsonKind::kNull:
      return kNullType;
    case JsonKind::kBool:
      return kBoolType;
    case JsonKind::kNumber:
      return !readDecimal(value.text(), &decimal) || decimal.isInteger() ? kIntegerType
                                                                         : kFractionType;
    case JsonKind::kString:
      return kStringType;
    case JsonKind::kArray:
      return kArrayType;
    case JsonKind::kObject:
      return kObjectType;
  }
  return 0;
}

void SchemaContext::refuse(const JsonValue& schema, const char* keyword, const char* what) {
  fail(ORIEL_ERROR_UNSUPPORTED, schema, keyword, what);
}

void SchemaContext::wrong(const JsonValue& schema, const char* keyword, const char* what) {
  fail(ORIEL_ERROR_ARGUMENT, schema, keyword, what);
}

bool SchemaContext::spend(const JsonValue& schema, uint64_t steps) {
  at_ = &schema;
  if (!grammar_->work()->spend(steps)) {
    (void)end();
  }
  return !failed();
}

bool SchemaContext::leadsTo(const Conjunction& all, uint32_t ancestor, uint32_t element) {
  while (element != SchemaElement::kNoParent && element != ancestor) {
    element = all.elements[element].parent;
  }
  return element == ancestor;
}

void SchemaContext::add(const JsonValue* schema, Conjunction* all, uint32_t parent,
                        uint32_t depth) {
  schema = schema != nullptr && !failed() ? canonical(*schema) : nullptr;
  if (schema == nullptr) {
    return;
  }
  if (schema->isBool()) {
    all->never = all->never || !schema->boolean();
    return;
  }
  if (depth > kMostReferences) {
    refuse(*schema, "$ref", "is part of too many nested references: leave some out");
    return;
  }
  const uint32_t at = all->elements.count();
  if (!spend(*schema, at)) {
    return;
  }
  for (uint32_t i = 0; i < at; ++i) {
    if (all->elements[i].schema != schema || all->elements[i].isNegated()) {
      continue;
    }
    if (leadsTo(*all, i, parent)) {
      wrong(*schema, "$ref", "leads back here without a property or item between: correct it");
    }
    return;
  }
  if (!all->elements.push({schema, 0, parent})) {
    return;
  }
  if (const JsonValue* const reference = schema->find("$ref"); reference != nullptr) {
    add(resolve(*schema, *reference), all, at, depth + 1);
  }
  if (const JsonValue* const parts = schema->find("allOf"); parts != nullptr) {
    for (const JsonValue* part = parts->first(); part != nullptr; part = part->next()) {
      add(part, all, at, depth + 1);
    }
  }
  if (const JsonValue* const excluded = schema->find("not"); excluded != nullptr && !failed()) {
    addNegated(*excluded, all, SchemaElement::kOfNot, at, depth + 1);
  }
}

uint32_t SchemaContext::typesOf(const JsonValue& schema) {
  const JsonValue* const type = schema.find("type");
  if (type == nullptr) {
    return kAnyType;
  }
  uint32_t types = typeNamed(*type);
  for (const JsonValue* one = type->first(); one != nullptr; one = one->next()) {
    types |= typeNamed(*one);
  }
  return types;
}

NumberFacts SchemaContext::numbersOf(const JsonValue& schema) {
  NumberFacts facts;
  const auto bound = [&](const char* keyword, Decimal* decimal) {
    const JsonValue* const value = schema.find(keyword);
    if (value == nullptr) {
      return false;
    }
    (void)spend(schema, value->text().bytes);
    if (!readBound(value->text(), decimal)) {
      refuse(schema, keyword, "has too many digits: write fewer");
      return false;
    }
    return true;
  };
  Decimal decimal;
  if (bound("minimum", &decimal)) {
    facts.addMin(decimal, false);
  }
  if (bound("exclusiveMinimum", &decimal)) {
    facts.addMin(decimal, true);
  }
  if (bound("maximum", &decimal)) {
    facts.addMax(decimal, false);
  }
  if (bound("exclusiveMaximum", &decimal)) {
    facts.addMax(decimal, true);
  }
  if (bound("multipleOf", &decimal)) {
    Step step;
    if (decimal.negative || decimal.isZero()) {
      wrong(schema, "multipleOf", "has to be above zero: correct it");
    } else if (!asStep(decimal, &step)) {
      refuse(schema, "multipleOf", "has too many digits: write fewer");
    } else {
      facts.addStep(step);
    }
  }
  return facts;
}

StringFacts SchemaContext::stringsOf(const JsonValue& schema) {
  StringFacts facts;
  countsOf(schema, "minLength", "maxLength", &facts.min_length, &facts.max_length);
  if (const JsonValue* const pattern = schema.find("pattern"); pattern != nullptr) {
    bool is_wrong = false;
    const char* const error = patterns_.error(pattern->text(), &is_wrong);
    if (error != nullptr) {
      failOfPattern(schema, "pattern", error, is_wrong);
    }
    facts.patterns[facts.n_patterns++] = pattern->text();
  }
  if (const JsonValue* const format = schema.find("format"); format != nullptr) {
    if (formatPattern(format->text()) != nullptr) {
      facts.formats[facts.n_formats++] = format->text();
    } else {
      ignoreFormat(schema, format->text());
    }
  }
  return facts;
}

void SchemaContext::failOfPattern(const JsonValue& schema, const char* keyword, const char* error,
                                  bool is_wrong) {
  char what[160];
  std::snprintf(what, sizeof(what), "has a part that cannot be used (%s): write it otherwise",
                error);
  fail(is_wrong ? ORIEL_ERROR_ARGUMENT : ORIEL_ERROR_UNSUPPORTED, schema, keyword, what);
}

void SchemaContext::ignoreFormat(const JsonValue& schema, const JsonText& format) {
  if (!rules_.strict) {
    ignore(schema, "format: ", format);
    return;
  }
  char what[120];
  std::snprintf(what, sizeof(what), "asks for \"%.*s\", which is not supported: leave it out",
                static_cast<int>(std::min<size_t>(format.bytes, 40)), format.data);
  refuse(schema, "format", what);
}

void SchemaContext::countsOf(const JsonValue& schema, const char* min, const char* max,
                             uint32_t* least, uint32_t* most) {
  uint32_t count = 0;
  if (const JsonValue* const value = schema.find(min);
      value != nullptr && asCount(*value, kMostCountOfKeyword, &count)) {
    *least = std::max(*least, count);
  }
  if (const JsonValue* const value = schema.find(max);
      value != nullptr && asCount(*value, kMostCountOfKeyword, &count)) {
    *most = std::min(*most, count);
  }
}

void SchemaContext::join(const JsonValue& schema, const NumberFacts& more, NumberFacts* facts) {
  if (more.has_min) {
    facts->addMin(more.min, more.above_min);
  }
  if (more.has_max) {
    facts->addMax(more.max, more.below_max);
  }
  for (uint32_t i = 0; i < more.n_steps; ++i) {
    if (!facts->addStep(more.steps[i])) {
      refuse(schema, "multipleOf", "exceeds the limit of items: leave some out");
    }
  }
}

void SchemaContext::join(const JsonValue& schema, const StringFacts& more, StringFacts* facts) {
  facts->min_length = std::max(facts->min_length, more.min_length);
  facts->max_length = std::min(facts->max_length, more.max_length);
  const auto add = [&](const JsonText& text, JsonText* texts, uint32_t* n, const char* keyword) {
    if (std::find(texts, texts + *n, text) != texts + *n) {
      return;
    }
    if (*n == StringFacts::kMostPatterns) {
      refuse(schema, keyword, "exceeds the limit of items: leave some out");
      return;
    }
    texts[(*n)++] = text;
  };
  for (uint32_t i = 0; i < more.n_patterns; ++i) {
    add(more.patterns[i], facts->patterns, &facts->n_patterns, "pattern");
  }
  for (uint32_t i = 0; i < more.n_formats; ++i) {
    add(more.formats[i], facts->formats, &facts->n_formats, "format");
  }
  bool fits = true;
  for (uint32_t i = 0; i < more.n_not_patterns; ++i) {
    fits = fits && facts->excludePattern(more.not_patterns[i]);
  }
  for (uint32_t i = 0; i < more.n_not_listed; ++i) {
    fits = fits && facts->excludeListed(*more.not_listed[i]);
  }
  if (!fits) {
    refuse(schema, "not", "exceeds the limit of items: leave some out");
  }
}

SchemaFacts SchemaContext::factsOf(const Conjunction& all) {
  SchemaFacts facts;
  (void)grammar_->work()->spend(all.elements.count());
  for (uint32_t i = 0; i < all.elements.count() && !failed(); ++i) {
    const SchemaElement& element = all.elements[i];
    if (element.isNegated()) {
      continue;
    }
    const JsonValue& schema = *element.schema;
    if (!spend(schema, kStepsOfSchema / 2 + stepsOfMembers(schema))) {
      break;
    }
    facts.types &= typesOf(schema);
    if (facts.constants == nullptr &&
        (schema.find("const") != nullptr || schema.find("enum") != nullptr)) {
      facts.constants = &schema;
    }
    join(schema, numbersOf(schema), &facts.number);
    join(schema, stringsOf(schema), &facts.string);
    countsOf(schema, "minItems", "maxItems", &facts.min_items, &facts.max_items);
    countsOf(schema, "minProperties", "maxProperties", &facts.min_properties,
             &facts.max_properties);
    const JsonValue* const unique = schema.find("uniqueItems");
    facts.unique = unique != nullptr && unique->boolean() ? &schema : facts.unique;
    const bool any_of =
        (element.flags & SchemaElement::kWithoutAnyOf) == 0 && schema.find("anyOf") != nullptr;
    const bool one_of =
        (element.flags & SchemaElement::kWithoutOneOf) == 0 && schema.find("oneOf") != nullptr;
    if (!facts.has_union && (any_of || one_of)) {
      facts.has_union = true;
      facts.union_at = i;
      facts.is_one_of = !any_of;
    }
  }
  return facts;
}

// Positions of schemas in their document, and the targets of references.

namespace {

constexpr size_t kPathBytes = 400;
constexpr uint64_t kStepsOfVisit = 8;  // to look for the name of a schema in a value

// The position of a value in a document as a JSON pointer, truncated if long.
class Path {
 public:
  Path(const JsonValue& document, const JsonValue& value) { find(document, value); }
  const char* text() const { return text_; }

 private:
  bool find(const JsonValue& at, const JsonValue& value) {
    if (&at == &value) {
      return true;
    }
    uint32_t index = 0;
    for (const JsonValue* child = at.first(); child != nullptr; child = child->next(), ++index) {
      const size_t before = bytes_;
      put('/');
      at.isObject() ? putKey(child->key()) : putIndex(index);
      if (find(*child, value)) {
        return true;
      }
      bytes_ = before;
      text_[bytes_] = '\0';
    }
    return false;
  }
  void put(char c) {
    if (bytes_ + 1 < kPathBytes) {
      text_[bytes_++] = c;
      text_[bytes_] = '\0';
    }
  }
  void putKey(const JsonText& key) {
    for (size_t i = 0; i < key.bytes; ++i) {
      const char c = key.data[i];
      if (c == '~' || c == '/') {
        put('~');
      }
      put(c == '~' ? '0' : c == '/' ? '1' : static_cast<uint8_t>(c) < 0x20 ? '?' : c);
    }
  }
  void putIndex(uint32_t index) {
    if (index >= 10) {
      putIndex(index / 10);
    }
    put(static_cast<char>('0' + index % 10));
  }

  char text_[kPathBytes] = "#";
  size_t bytes_ = 1;
};

// Decodes the part between two slashes of a reference: %-escapes, then JSON pointer escapes.
bool decodeToken(const char* at, const char* end, char* out, size_t* bytes) {
  size_t n = 0;
  while (at != end) {
    char c = *at++;
    if (c == '%') {
      const int high = end - at >= 2 ? hexDigit(at[0]) : -1;
      const int low = end - at >= 2 ? hexDigit(at[1]) : -1;
      if (high < 0 || low < 0) {
        return false;
      }
      c = static_cast<char>(high * 16 + low);
      at += 2;
    }
    const bool escaped = n != 0 && out[n - 1] == '~' && (c == '0' || c == '1');
    if (escaped) {
      // "~01" decodes to "~1": a decoded character does not start another escape.
      out[n - 1] = c == '0' ? '\x01' : '/';
    } else {
      out[n++] = c;
    }
  }
  std::replace(out, out + n, '\x01', '~');
  *bytes = n;
  return true;
}

const JsonValue* elementAt(const JsonValue& array, const JsonText& index) {
  uint32_t n = 0;
  for (size_t i = 0; i < index.bytes; ++i) {
    if (index.data[i] < '0' || index.data[i] > '9' || n > 1000000) {
      return nullptr;
    }
    n = n * 10 + static_cast<uint32_t>(index.data[i] - '0');
  }
  const JsonValue* at = index.bytes != 0 ? array.first() : nullptr;
  for (; at != nullptr && n != 0; --n) {
    at = at->next();
  }
  return at;
}

JsonText part(const JsonText& text, size_t from, size_t to) {
  return {text.data + from, to - from};
}

size_t findByte(const JsonText& text, char c) {
  return static_cast<size_t>(std::find(text.data, text.data + text.bytes, c) - text.data);
}

// The name a schema gives itself; empty: none.
JsonText idOf(const JsonValue& schema) {
  for (const char* const keyword : {"$id", "id"}) {
    const JsonValue* const id = schema.find(keyword);
    if (id != nullptr && id->isString()) {
      return id->text();
    }
  }
  return {};
}

// Without its fragment, and without the folder of the base name it is relative to.
JsonText localName(const JsonText& id, const JsonText& base) {
  const JsonText name = part(id, 0, findByte(id, '#'));
  size_t folder = findByte(base, '#');
  while (folder != 0 && base.data[folder - 1] != '/') {
    --folder;
  }
  const bool inside = name.bytes >= folder && std::equal(base.data, base.data + folder, name.data);
  return inside ? part(name, folder, name.bytes) : name;
}

// Keywords whose values are data, not schemas.
bool isData(const JsonText& key) {
  return key.is("const") || key.is("enum") || key.is("default") || key.is("example") ||
         key.is("examples");
}

// The first schema in `at` accepted by `is`; null: none.
template <typename Is>
const JsonValue* findSchema(const JsonValue& at, Work* work, const Is& is) {
  if (!work->spend(kStepsOfVisit) || (!at.isObject() && !at.isArray())) {
    return nullptr;
  }
  if (at.isObject() && is(at)) {
    return &at;
  }
  for (const JsonValue* child = at.first(); child != nullptr; child = child->next()) {
    const bool skipped = at.isObject() && isData(child->key());
    const JsonValue* const found = skipped ? nullptr : findSchema(*child, work, is);
    if (found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

bool isInside(const JsonValue& outer, const JsonValue& value, Work* work) {
  if (&outer == &value) {
    return true;
  }
  for (const JsonValue* child = outer.first(); child != nullptr && work->spend(kStepsOfVisit);
       child = child->next()) {
    if (isInside(*child, value, work)) {
      return true;
    }
  }
  return false;
}

}  // namespace

void SchemaContext::fail(oriel_status code, const JsonValue& schema, const char* keyword,
                         const char* what) {
  (void)end();
  if (status_.ok()) {
    status_ = log_.fail(code, "the schema's keyword \"%s\" at %s %s", keyword,
                        Path(document_, original(schema)).text(), what);
  }
}

Status SchemaContext::end() {
  if (status_.ok() && (grammar_->noMemory() || patterns_.noMemory())) {  // not the schema's fault
    status_ = log_.fail(ORIEL_ERROR_OUT_OF_MEMORY, kNoSchemaMemory);
  } else if (status_.ok() && grammar_->work()->stopped()) {
    status_ = ORIEL_ERROR_CANCELLED;
  } else if (status_.ok() && grammar_->work()->ended()) {
    status_ = log_.fail(ORIEL_ERROR_UNSUPPORTED,
                        "the schema is too much to work out (at %s): make it smaller, above all "
                        "unions within unions and patterns in branches of oneOf",
                        Path(document_, original(at_ != nullptr ? *at_ : schema_)).text());
  }
  return status_;
}

const JsonValue* SchemaContext::pointed(const JsonValue& schema, const JsonValue& from,
                                        const JsonText& pointer) {
  char* const token = scratch()->takeText(pointer.bytes + 1);
  if (token == nullptr || !spend(schema, 4 * uint64_t{pointer.bytes})) {
    return nullptr;
  }
  const JsonValue* target = &from;
  const char* const end = pointer.data + pointer.bytes;
  for (const char* at = pointer.data; at != end && target != nullptr;) {
    const char* const slash = std::find(at + 1, end, '/');
    size_t bytes = 0;
    if (!decodeToken(at + 1, slash, token, &bytes)) {
      return nullptr;
    }
    const JsonText name = {token, bytes};
    (void)spend(schema, stepsToPass(target->count()));
    target = target->isObject()  ? target->find(name)
             : target->isArray() ? elementAt(*target, name)
                                 : nullptr;
    at = slash;
  }
  return target != nullptr && isSchemaValue(*target) ? target : nullptr;
}

// The nearest enclosing schema with a name, or the document.
const JsonValue& SchemaContext::resourceOf(const JsonValue& schema) {
  Work* const work = grammar_->work();
  if (!looked_for_resources_) {
    looked_for_resources_ = true;
    const JsonValue* const dialect = document_.find("$schema");
    const JsonText text = dialect != nullptr ? dialect->text() : JsonText();
    for (const char* const old : {"draft-03", "draft-04"}) {
      const char* const text_end = text.data + text.bytes;
      const bool is_old = std::search(text.data, text_end, old, old + 8) != text_end;
      resource_keyword_ = is_old ? "id" : resource_keyword_;
    }
    has_resources_ = findSchema(document_, work, [&](const JsonValue& one) {
                       return &one != &document_ && isResource(one);
                     }) != nullptr;
  }
  const JsonValue* innermost = &document_;
  while (has_resources_) {
    const JsonValue* const outer = innermost;
    const JsonValue* const inner = findSchema(*outer, work, [&](const JsonValue& one) {
      return &one != outer && isResource(one) && isInside(one, original(schema), work);
    });
    if (inner == nullptr) {
      break;
    }
    innermost = inner;
  }
  return *innermost;
}

bool SchemaContext::isResource(const JsonValue& schema) const {
  const JsonValue* const id = schema.find(resource_keyword_);
  return id != nullptr && id->isString() && id->text().bytes != 0 && id->text().data[0] != '#';
}

const JsonValue* SchemaContext::resolve(const JsonValue& schema, const JsonValue& reference) {
  const JsonText& text = reference.text();
  Work* const work = grammar_->work();
  const size_t hash = findByte(text, '#');
  const JsonText name = localName(text, idOf(document_));
  const JsonText fragment = hash < text.bytes ? part(text, hash + 1, text.bytes) : JsonText();
  const JsonValue* from = nullptr;
  if (hash == 0) {
    from = &resourceOf(schema);
  } else if (name == localName(idOf(document_), idOf(document_)) && name.bytes != 0) {
    from = &document_;
  } else {
    from = findSchema(document_, work, [&](const JsonValue& one) {
      const JsonText id = idOf(one);
      return id.bytes != 0 && id.data[0] != '#' && localName(id, idOf(document_)) == name;
    });
  }
  if (from == nullptr) {
    refuse(schema, "$ref", "leads elsewhere: only references into the schema are supported");
    return nullptr;
  }
  const JsonValue* target = nullptr;
  if (fragment.bytes == 0 || fragment.data[0] == '/') {
    target = pointed(schema, *from, fragment);
    target =
        target == nullptr && from != &document_ ? pointed(schema, document_, fragment) : target;
  } else {
    target = findSchema(*from, work, [&](const JsonValue& one) {
      const JsonText id = idOf(one);
      const JsonValue* const anchor = one.find("$anchor");
      return (anchor != nullptr && anchor->isString() && anchor->text() == fragment) ||
             (id.bytes > 1 && id.data[0] == '#' && part(id, 1, id.bytes) == fragment);
    });
  }
  if (target == nullptr && !failed()) {
    wrong(schema, "$ref", "leads to no schema: correct it");
  }
  return target;
}

}  // namespace oriel_internal
