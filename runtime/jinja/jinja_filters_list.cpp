// Filters over sequences.
#include <utility>

#include "jinja/jinja_builtins.h"

namespace oriel_internal::jinja {
namespace {

bool isTrue(Interpreter* run, const Value* value) { return value != nullptr && run->truth(*value); }

// The element's attribute, or the element itself without an attribute.
bool pick(Interpreter* run, const Value& element, const Value* attribute, Value* out) {
  if (attribute == nullptr || attribute->isNone()) {
    *out = element;
    return true;
  }
  return run->path(element, *attribute, out);
}

bool keyOf(Interpreter* run, const Value& element, const Value* attribute, bool case_sensitive,
           Value* out) {
  Value value;
  if (!pick(run, element, attribute, &value)) {
    return false;
  }
  if (case_sensitive) {
    *out = std::move(value);
    return true;
  }
  return foldCase(run, value, out);
}

// A list of keys, since several attributes may be given, separated by commas. Lists compare by their first difference.
bool keysOf(Interpreter* run, const Value& element, const Value* attributes, bool case_sensitive,
            Value* out) {
  const bool named = attributes != nullptr && attributes->isText();
  const Str names = named ? strOf(*attributes) : Str{};
  Ref<List> keys = makeList(run->heap(), 1);
  for (size_t begin = 0; keys && begin <= names.bytes;) {
    size_t end = begin;
    while (end < names.bytes && names[end] != ',') {
      ++end;
    }
    const Value attribute = named ? sub(run->heap(), *attributes, begin, end) : Value();
    Value key;
    if (!keyOf(run, element, named ? &attribute : attributes, case_sensitive, &key)) {
      return false;
    }
    if (!growList(run->heap(), &keys, std::move(key))) {
      return run->failMemory();
    }
    begin = end + 1;
  }
  return run->give(std::move(keys), out);
}

bool copyOf(Interpreter* run, const Value& in, Ref<List>* out) {
  Ref<List> all;
  if (!run->toList(in, &all)) {
    return false;
  }
  *out = makeList(run->heap(), all->count);
  for (uint32_t i = 0; *out && i < all->count; ++i) {
    pushTo(out->get(), all->items()[i]);
  }
  return *out || run->failMemory();
}

// select, reject, selectattr and rejectattr.
bool keep(Interpreter* run, const Value& in, const Args& args, bool by_attribute, bool wanted,
          Value* out) {
  const Value* const attribute = by_attribute ? args.find(0, nullptr) : nullptr;
  const Value* const name = args.find(by_attribute ? 1 : 0, nullptr);
  if (by_attribute && attribute == nullptr) {
    return run->fail("a filter needs the name of an attribute");
  }
  uint16_t test = kUnknown;
  if (name != nullptr && name->isText()) {
    test = testNamed({strOf(*name).data, strOf(*name).bytes});
  }
  if (name != nullptr && test == kUnknown) {
    return run->fail("a filter is given a test that there is not");
  }
  const Args rest = args.from(by_attribute ? 2 : 1);
  Ref<List> all;
  Ref<List> kept = makeList(run->heap(), 0);
  if (!kept || (run->truth(in) && !run->toList(in, &all))) {
    return kept ? false : run->failMemory();
  }
  for (uint32_t i = 0; all && i < all->count; ++i) {
    Value value;
    if (!run->charge(1) || !pick(run, all->items()[i], attribute, &value)) {
      return false;
    }
    bool holds = run->truth(value);
    if (test != kUnknown && !applyTest(run, test, value, rest, &holds)) {
      return false;
    }
    if (holds == wanted && !growList(run->heap(), &kept, all->items()[i])) {
      return run->failMemory();
    }
  }
  return giveGenerator(run, std::move(kept), out);
}

bool extreme(Interpreter* run, const Value& in, const Args& args, int sign, Value* out) {
  Ref<List> all;
  if (!run->toList(in, &all)) {
    return false;
  }
  Value best;
  for (uint32_t i = 0; i < all->count; ++i) {
    Value key;
    int order = 0;
    if (!keyOf(run, all->items()[i], args.find(1, "attribute"),
               isTrue(run, args.find(0, "case_sensitive")), &key) ||
        (i > 0 && !run->compare(key, best, &order))) {
      return false;
    }
    if (i == 0 || order * sign > 0) {
      *out = all->items()[i];
      best = std::move(key);
    }
  }
  return true;
}

// Merges two sorted index ranges; the merge is stable.
bool merge(Interpreter* run, List* keys, bool reverse, const uint32_t* from, uint32_t begin,
           uint32_t middle, uint32_t end, uint32_t* to) {
  uint32_t left = begin;
  uint32_t right = middle;
  for (uint32_t at = begin; at < end; ++at) {
    int order = 0;
    if (left < middle && right < end &&
        !run->compare(keys->items()[from[left]], keys->items()[from[right]], &order)) {
      return false;
    }
    const bool take_left = right >= end || (left < middle && (reverse ? order >= 0 : order <= 0));
    to[at] = take_left ? from[left++] : from[right++];
  }
  return true;
}

bool sortPlaces(Interpreter* run, List* keys, bool reverse, uint32_t* places, uint32_t* other) {
  const uint32_t n = keys->count;
  for (uint32_t i = 0; i < n; ++i) {
    places[i] = i;
  }
  for (uint32_t width = 1; width < n; width *= 2) {
    for (uint32_t begin = 0; begin < n; begin += 2 * width) {
      const uint32_t middle = n - begin < width ? n : begin + width;
      const uint32_t end = n - begin < 2 * width ? n : begin + 2 * width;
      if (!merge(run, keys, reverse, places, begin, middle, end, other)) {
        return false;
      }
    }
    for (uint32_t i = 0; i < n; ++i) {
      places[i] = other[i];
    }
  }
  return true;
}

}  // namespace

bool giveGenerator(Interpreter* run, Ref<List> list, Value* out) {
  if (list) {
    list->shape = Shape::kGenerator;
  }
  return run->give(std::move(list), out);
}

bool foldCase(Interpreter* run, const Value& value, Value* out) {
  if (!value.isText()) {
    *out = value;
    return true;
  }
  return mapLetters(run, value, Letters::kLower, out);
}

bool sortBy(Interpreter* run, List* keys, List* items, bool reverse) {
  const uint32_t n = keys->count;
  const size_t bytes = size_t{n} * 2 * sizeof(uint32_t);
  const Ref<List> sorted = makeList(run->heap(), n);
  auto* const places = static_cast<uint32_t*>(run->heap()->take(bytes));
  if (!sorted || places == nullptr) {
    return run->failMemory();
  }
  const bool ok = sortPlaces(run, keys, reverse, places, places + n);
  for (uint32_t i = 0; ok && i < n; ++i) {
    pushTo(sorted.get(), items->items()[places[i]]);
  }
  for (uint32_t i = 0; ok && i < n; ++i) {
    items->items()[i] = sorted->items()[i];
  }
  run->heap()->give(places, bytes);
  return ok;
}

bool sortPairs(Interpreter* run, List* pairs) {
  const Ref<List> keys = makeList(run->heap(), pairs->count);
  for (uint32_t i = 0; keys && i < pairs->count; ++i) {
    pushTo(keys.get(), pairs->items()[i].as<List>()->items()[0]);
  }
  return keys ? sortBy(run, keys.get(), pairs, false) : run->failMemory();
}

bool filterSort(Interpreter* run, const Value& in, const Args& args, Value* out) {
  Ref<List> items;
  if (!copyOf(run, in, &items)) {
    return false;
  }
  const Ref<List> keys = makeList(run->heap(), items->count);
  for (uint32_t i = 0; keys && i < items->count; ++i) {
    Value key;
    if (!keysOf(run, items->items()[i], args.find(2, "attribute"),
                isTrue(run, args.find(1, "case_sensitive")), &key)) {
      return false;
    }
    pushTo(keys.get(), std::move(key));
  }
  if (!keys) {
    return run->failMemory();
  }
  return sortBy(run, keys.get(), items.get(), isTrue(run, args.find(0, "reverse"))) &&
         run->give(std::move(items), out);
}

bool filterDictsort(Interpreter* run, const Value& in, const Args& args, Value* out) {
  Ref<List> pairs;
  if (!in.isDict()) {
    return run->fail("dictsort is given a value of type %s", Interpreter::typeName(in));
  }
  const Value* const by = args.find(1, "by");
  const uint32_t part = by != nullptr && by->isText() && strOf(*by).is("value") ? 1 : 0;
  if (!run->toPairs(in, &pairs)) {
    return false;
  }
  const Ref<List> keys = makeList(run->heap(), pairs->count);
  for (uint32_t i = 0; keys && i < pairs->count; ++i) {
    Value key;
    if (!keyOf(run, pairs->items()[i].as<List>()->items()[part], nullptr,
               isTrue(run, args.find(0, "case_sensitive")), &key)) {
      return false;
    }
    pushTo(keys.get(), std::move(key));
  }
  if (!keys) {
    return run->failMemory();
  }
  return sortBy(run, keys.get(), pairs.get(), isTrue(run, args.find(2, "reverse"))) &&
         run->give(std::move(pairs), out);
}

bool filterMap(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const attribute = args.places() == 0 ? args.find(0, "attribute") : nullptr;
  const Value* const otherwise = args.places() == 0 ? args.find(1, "default") : nullptr;
  const Value* const name = args.places() > 0 ? args.find(0, nullptr) : nullptr;
  uint16_t filter = kUnknown;
  if (name != nullptr && name->isText()) {
    filter = filterNamed({strOf(*name).data, strOf(*name).bytes});
  }
  if (attribute == nullptr && filter == kUnknown) {
    return run->fail("map needs a filter or an attribute");
  }
  Ref<List> all;
  if (run->truth(in) && !run->toList(in, &all)) {
    return false;
  }
  Ref<List> mapped = makeList(run->heap(), all ? all->count : 0);
  for (uint32_t i = 0; mapped && all && i < all->count; ++i) {
    Value value;
    if (!run->charge(1) ||
        !(attribute != nullptr ? run->path(all->items()[i], *attribute, &value)
                               : applyFilter(run, filter, all->items()[i], args.from(1), &value))) {
      return false;
    }
    pushTo(mapped.get(), value.isUndefined() && otherwise != nullptr ? *otherwise : value);
  }
  return giveGenerator(run, std::move(mapped), out);
}

bool filterSelect(Interpreter* run, const Value& in, const Args& args, Value* out) {
  return keep(run, in, args, false, true, out);
}

bool filterReject(Interpreter* run, const Value& in, const Args& args, Value* out) {
  return keep(run, in, args, false, false, out);
}

bool filterSelectattr(Interpreter* run, const Value& in, const Args& args, Value* out) {
  return keep(run, in, args, true, true, out);
}

bool filterRejectattr(Interpreter* run, const Value& in, const Args& args, Value* out) {
  return keep(run, in, args, true, false, out);
}

bool filterUnique(Interpreter* run, const Value& in, const Args& args, Value* out) {
  Ref<List> all;
  Ref<List> keys = makeList(run->heap(), 0);
  Ref<List> kept = makeList(run->heap(), 0);
  if (!keys || !kept || !run->toList(in, &all)) {
    return keys && kept ? false : run->failMemory();
  }
  for (uint32_t i = 0; i < all->count; ++i) {
    Value key;
    bool known = false;
    if (!keyOf(run, all->items()[i], args.find(1, "attribute"),
               isTrue(run, args.find(0, "case_sensitive")), &key) ||
        !run->contains(Value::of(Ref<List>(keys)), key, &known)) {
      return false;
    }
    if (!known &&
        (!growList(run->heap(), &keys, key) || !growList(run->heap(), &kept, all->items()[i]))) {
      return run->failMemory();
    }
  }
  return giveGenerator(run, std::move(kept), out);
}

bool filterMin(Interpreter* run, const Value& in, const Args& args, Value* out) {
  return extreme(run, in, args, -1, out);
}

bool filterMax(Interpreter* run, const Value& in, const Args& args, Value* out) {
  return extreme(run, in, args, 1, out);
}

bool filterSum(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const start = args.find(1, "start");
  Ref<List> all;
  if (!run->toList(in, &all)) {
    return false;
  }
  *out = start != nullptr ? *start : Value::integer(0);
  for (uint32_t i = 0; i < all->count; ++i) {
    Value value;
    const Value before = *out;
    if (!pick(run, all->items()[i], args.find(0, "attribute"), &value) ||
        !run->binary(Op::kAdd, before, value, out)) {
      return false;
    }
  }
  return true;
}

bool filterJoin(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const between = args.find(0, "d");
  Ref<List> all;
  if (!run->toList(in, &all)) {
    return false;
  }
  TextBuilder text(run->heap());
  for (uint32_t i = 0; i < all->count; ++i) {
    Value value;
    if ((i > 0 && between != nullptr && !run->write(*between, &text)) ||
        !pick(run, all->items()[i], args.find(1, "attribute"), &value) || !run->charge(1) ||
        !run->write(value, &text)) {
      return false;
    }
  }
  return run->finish(&text, out);
}

// Python's reversed(), where it exists.
bool filterReverse(Interpreter* run, const Value& in, const Args&, Value* out) {
  const Value parts[3] = {Value::none(), Value::none(), Value::integer(-1)};
  const bool list_again = in.isUndefined() || in.hasShape(Shape::kGenerator);
  Ref<List> all;
  if (in.isText()) {
    return run->slice(in, parts, out);
  }
  if (!run->toList(in, &all)) {
    return false;
  }
  Ref<List> turned = makeList(run->heap(), all->count);
  for (uint32_t i = all->count; turned && i > 0; --i) {
    pushTo(turned.get(), all->items()[i - 1]);
  }
  return list_again ? run->give(std::move(turned), out)
                    : giveGenerator(run, std::move(turned), out);
}

}  // namespace oriel_internal::jinja
