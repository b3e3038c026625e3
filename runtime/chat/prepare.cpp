#include "chat/prepare.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "reply/forms.h"

namespace oriel_internal {
namespace {

#define BAR "\xEF\xBD\x9C"
#define LOW "\xE2\x96\x81"

constexpr char kBeforeName[] = "{\"name\": \"";
constexpr char kBeforeArguments[] = "\", \"arguments\": ";

/// A row for templates of a form that, if `mark` is not null, contain that text.
struct SpellingOfForm {
  ReplyForms forms;
  const char* mark;
  uint8_t spelling;
};
constexpr SpellingOfForm kSpellings[] = {
    {kFormToolCall, nullptr, 0}, {kFormLfm, nullptr, 1},       {kFormBarCall, "<|/tool", 2},
    {kFormBarCall, nullptr, 3},  {kFormFunctools, nullptr, 4}, {kFormMistral, nullptr, 5},
    {kFormDeepSeek, nullptr, 6}, {kFormKimi, nullptr, 7},
};

bool has(const JsonText& text, const char* part) {
  const char* const end = text.data + text.bytes;
  return std::search(text.data, end, part, part + std::strlen(part)) != end;
}

void put(const char* text, const JsonSink& sink) { sink.write(text, std::strlen(text), sink.user); }

void writeSpaced(const JsonValue& value, bool python, const JsonSink& sink) {
  if (value.isArray() || value.isObject()) {
    put(value.isArray() ? "[" : "{", sink);
    for (const JsonValue* one = value.first(); one != nullptr; one = one->next()) {
      if (one != value.first()) {
        put(", ", sink);
      }
      if (value.isObject()) {
        writeJsonString(one->key(), sink);
        put(": ", sink);
      }
      writeSpaced(*one, python, sink);
    }
    put(value.isArray() ? "]" : "}", sink);
  } else if (python && (value.isNull() || value.isBool())) {
    put(value.isNull() ? "None" : value.boolean() ? "True" : "False", sink);
  } else {
    writeJson(value, sink);
  }
}

void writePython(const JsonValue& arguments, const JsonSink& sink) {
  for (const JsonValue* one = arguments.first(); one != nullptr; one = one->next()) {
    if (one != arguments.first()) {
      put(", ", sink);
    }
    sink.write(one->key().data, one->key().bytes, sink.user);
    put("=", sink);
    writeSpaced(*one, true, sink);
  }
}

/// The text that write(sink) writes; it is called twice. Empty: out of memory.
template <typename Write>
JsonText textFrom(Scratch* scratch, const Write& write) {
  JsonRoom room;
  write(room.sink());
  room = {scratch->takeText(room.bytes + 1), 0};
  if (room.to == nullptr) {
    return {};
  }
  write(room.sink());
  return {room.to, room.bytes};
}

}  // namespace

const CallSpelling kCallSpellings[] = {
    {"<tool_call>\n", kBeforeName, kBeforeArguments, "}", "\n</tool_call>\n<tool_call>\n",
     "\n</tool_call>"},
    {"<|tool_call_start|>[", "", "(", ")", ", ", "]<|tool_call_end|>", true},
    {"<|tool_call|>[", kBeforeName, kBeforeArguments, "}", ", ", "]<|/tool_call|>"},
    {"<|tool_call|>[", kBeforeName, kBeforeArguments, "}", ", ", "]"},
    {"functools[", kBeforeName, kBeforeArguments, "}", ", ", "]"},
    {"[TOOL_CALLS][", kBeforeName, kBeforeArguments, "}", ", ", "]"},
    {"<" BAR "tool" LOW "calls" LOW "begin" BAR "><" BAR "tool" LOW "call" LOW "begin" BAR
     ">function<" BAR "tool" LOW "sep" BAR ">",
     "", "\n```json\n", "\n```<" BAR "tool" LOW "call" LOW "end" BAR ">",
     "\n<" BAR "tool" LOW "call" LOW "begin" BAR ">function<" BAR "tool" LOW "sep" BAR ">",
     "<" BAR "tool" LOW "calls" LOW "end" BAR ">"},
    {"<|tool_calls_section_begin|><|tool_call_begin|>functions.", "",
     "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_call_begin|>functions.",
     "<|tool_calls_section_end|>", false, true},
};

uint8_t callSpellingOf(const JsonText& chat_template) {
  const ReplyForms forms = formsOfTemplate(chat_template.data, chat_template.bytes);
  const ReplyForms none = formsOfAnything();
  for (const SpellingOfForm& row : kSpellings) {
    const bool speaks = (forms & none) != none && (forms & row.forms) != 0;
    if (speaks && (row.mark == nullptr || has(chat_template, row.mark))) {
      return row.spelling;
    }
  }
  return 0;
}

JsonMade* argumentsOf(const JsonValue* given, Scratch* scratch) {
  JsonBuilder make(scratch);
  const JsonValue* value = given;
  if (given != nullptr && given->isString()) {
    const JsonText& text = given->text();
    const bool blank = std::all_of(text.data, text.data + text.bytes,
                                   [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
    if (blank) {
      return make.object();
    }
    const JsonValue* read = nullptr;
    const Status status =
        parseJson(text.data, text.bytes, "arguments of a call", Log(), scratch, &read);
    value = status.ok() ? read : given;
  }
  if (value == nullptr || value->isNull()) {
    return make.object();
  }
  if (value->isObject()) {
    return make.copyOf(*value);
  }
  JsonMade* const object = make.object();
  make.set(object, "arguments", make.copyOf(*value));
  return object;
}

JsonText argumentsText(const JsonValue& object, Scratch* scratch) {
  return textFrom(scratch, [&](const JsonSink& sink) { writeSpaced(object, false, sink); });
}

JsonText shortId(const JsonText& id, Scratch* scratch) {
  constexpr uint32_t kLetters = 9;
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  if (id.bytes == kLetters && std::all_of(id.data, id.data + id.bytes, plain)) {
    return id;
  }
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (uint32_t i = 0; i < id.bytes; ++i) {
    hash = (hash ^ static_cast<uint8_t>(id.data[i])) * 1099511628211u;
  }
  char* const letters = scratch->takeText(kLetters);
  for (uint32_t i = 0; letters != nullptr && i < kLetters; ++i, hash /= 36) {
    letters[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[hash % 36];
  }
  return letters != nullptr ? JsonText{letters, kLetters} : JsonText{};
}

// Names and arguments are untrusted; the marks may become control tokens.
void appendCalls(const JsonValue& calls, const CallSpelling& spelling, Scratch* scratch,
                 JsonMade* pieces) {
  JsonBuilder make(scratch);
  const auto mark = [&](const char* text) {
    JsonMade* const piece = make.text(text);
    if (piece != nullptr) {
      piece->trust();
    }
    make.append(pieces, piece);
  };
  mark(pieces != nullptr && pieces->count() != 0 ? "\n" : "");
  mark(spelling.open);
  unsigned number = 0;
  for (const JsonValue* call = calls.first(); call != nullptr; call = call->next(), ++number) {
    const JsonValue& function = functionOf(*call);
    const JsonValue* const name = function.find("name");
    const JsonMade* const arguments = argumentsOf(function.find("arguments"), scratch);
    if (arguments == nullptr) {
      return;
    }
    mark(call != calls.first() ? spelling.separator : "");
    mark(spelling.before_name);
    make.append(pieces, make.text(name != nullptr && name->isString() ? name->text() : JsonText{}));
    if (spelling.numbered) {
      make.append(pieces, make.text(textFrom(scratch, [number](const JsonSink& sink) {
        char digits[16];
        std::snprintf(digits, sizeof digits, ":%u", number);
        put(digits, sink);
      })));
    }
    mark(spelling.before_arguments);
    make.append(pieces, make.text(textFrom(scratch, [&](const JsonSink& sink) {
      spelling.python ? writePython(*arguments, sink) : writeSpaced(*arguments, false, sink);
    })));
    mark(spelling.after_arguments);
  }
  mark(spelling.close);
}

namespace {

/// A kind of content part, and the member with its text.
struct TextPart {
  const char* type;
  const char* member;
  bool thought = false;
};
constexpr TextPart kTextParts[] = {
    {"text", "text"},       {"input_text", "text"},         {"output_text", "text"},
    {"refusal", "refusal"}, {"thinking", "thinking", true}, {"reasoning_text", "text", true},
};

constexpr char kBetweenMessages[] = "\n\n";
constexpr char kBeforeResult[] = "<tool_response>\n";
constexpr char kBehindResult[] = "\n</tool_response>";

/// Null if the part is not text.
const TextPart* textPartOf(const JsonValue& part) {
  const JsonValue* const type = part.find("type");
  for (const TextPart& one : kTextParts) {
    if (type == nullptr || (type->isString() && type->text().is(one.type))) {
      const JsonValue* const text = part.find(one.member);
      return text != nullptr && text->isString() ? &one : nullptr;
    }
  }
  return nullptr;
}

bool isNothing(const JsonValue* value) { return value == nullptr || value->isNull(); }

class Preparer {
 public:
  Preparer(const TemplateFacts& facts, PictureWords pictures, Scratch* scratch)
      : facts_(facts),
        pictures_(pictures),
        scratch_(scratch),
        make_(scratch),
        list_(make_.list()) {}

  Status run(const JsonValue& messages, const Log& log, const JsonValue** prepared) {
    origin_ = kFirstMessageSource;
    for (const JsonValue* one = messages.first(); one != nullptr; one = one->next(), ++origin_) {
      ORIEL_TRY(checkMessage(*one, pictures_, log));
      read(*one);
      add();
    }
    closeResults();
    askAlone();
    *prepared = list_;
    return scratch_->failed()
               ? log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to prepare the messages: free some")
               : kOk;
  }

 private:
  /// Position of a system message in the conversation.
  enum class Place : uint8_t { kFirst, kBehindSystem, kLate };

  void read(const JsonValue& message) {
    message_ = &message;
    has_results_ = false;
    role_ = message.find("role")->text();
    role_ = role_.is("function") ? "tool" : role_;
    role_ = role_.is("developer") && facts_.no_developer ? "system" : role_;
    const JsonValue* const calls = message.find("tool_calls");
    calls_ = calls != nullptr && calls->isArray() && calls->count() != 0 ? calls : nullptr;
    readContent();
    const bool has_text = pieces_ == nullptr || pieces_->count() != 0;
    calls_in_content_ = calls_ != nullptr && pieces_ != nullptr &&
                        (facts_.no_calls || (facts_.null_content && has_text));
    if (calls_in_content_) {
      appendCalls(*calls_, kCallSpellings[facts_.call_spelling], scratch_, pieces_);
    }
  }

  /// Appends texts to pieces_ and thoughts to thoughts_. pieces_ is null for other content, which stays unchanged.
  void readContent() {
    pieces_ = make_.list();
    thoughts_ = make_.list();
    content_ = message_->find("content");
    if (isNothing(content_)) {
      const JsonValue* const refusal = message_->find("refusal");
      content_ = refusal != nullptr && refusal->isString() ? refusal : nullptr;
    }
    if (content_ == nullptr) {
      return;
    }
    if (content_->isString()) {
      addPiece(pieces_, *content_);
      return;
    }
    bool known = content_->isArray();
    for (const JsonValue* part = content_->first(); known && part != nullptr; part = part->next()) {
      if (pictures_ != PictureWords::kNone && isPicturePart(*part)) {
        addMark(pieces_, rowOf(pictures_).placeholder);
        continue;
      }
      const TextPart* const kind = textPartOf(*part);
      known = kind != nullptr || part->isString();
      if (known) {
        addPiece(kind != nullptr && kind->thought ? thoughts_ : pieces_,
                 kind != nullptr ? *part->find(kind->member) : *part);
      }
    }
    pieces_ = known ? pieces_ : nullptr;
  }

  void addPiece(JsonMade* pieces, const JsonValue& text) {
    if (text.text().bytes != 0) {
      make_.append(pieces, JsonBuilder::from(origin_, make_.text(text.text())));
    }
  }
  void addMark(JsonMade* pieces, const char* text) {
    JsonMade* const mark = make_.text(text);
    if (mark != nullptr) {
      mark->trust();
    }
    make_.append(pieces, mark);
  }
  void addAll(JsonMade* pieces, const JsonMade& more) {
    for (const JsonValue* one = more.first(); one != nullptr; one = one->next()) {
      JsonMade* const copy = make_.copyOf(*one);
      make_.append(pieces, JsonBuilder::from(one->origin(), copy));
    }
  }

  void add() {
    if (role_.is("system") && pieces_ != nullptr && losesSystem()) {
      system_ = system_ != nullptr ? system_ : make_.list();
      if (system_ != nullptr && pieces_->count() != 0) {
        addMark(system_, system_->count() != 0 ? kBetweenMessages : "");
        addAll(system_, *pieces_);
      }
      return;
    }
    const bool leads = place_ != Place::kLate && (role_.is("system") || role_.is("developer"));
    place_ = leads ? Place::kBehindSystem : Place::kLate;
    if (role_.is("tool") && facts_.no_results && pieces_ != nullptr) {
      results_ = results_ != nullptr ? results_ : make_.list();
      addMark(results_, results_ != nullptr && results_->count() != 0 ? "\n" : "");
      addMark(results_, kBeforeResult);
      addAll(results_, *pieces_);
      addMark(results_, kBehindResult);
      return;
    }
    if (results_ != nullptr && role_.is("user") && pieces_ != nullptr) {
      addMark(results_, kBetweenMessages);
      addAll(results_, *pieces_);
      pieces_ = results_;
      results_ = nullptr;
      has_results_ = true;
    }
    closeResults();
    if (role_.is("user") && pieces_ == nullptr) {
      askAlone();
    }
    make_.append(list_,
                 JsonBuilder::from(origin_, isReady() ? make_.copyOf(*message_) : prepared()));
  }

  bool losesSystem() const {
    return facts_.no_system || (place_ == Place::kBehindSystem && facts_.loses_second) ||
           (place_ == Place::kLate && facts_.loses_late);
  }

  /// True if the message needs no change.
  bool isReady() const {
    const JsonValue* const content = message_->find("content");
    return content != nullptr && content->isString() && !facts_.parts_only &&
           message_->find("role")->text() == role_ && message_->find("tool_calls") == nullptr &&
           !(facts_.short_ids && message_->find("tool_call_id") != nullptr) && !has_results_ &&
           !(system_ != nullptr && role_.is("user"));
  }

  /// Merges system messages without a following question into one question.
  void askAlone() {
    if (system_ != nullptr && system_->count() != 0) {
      ask(behindSystem(nullptr));
    }
    system_ = nullptr;
  }

  /// Merges consecutive results into one question, unless a question follows.
  void closeResults() {
    if (results_ != nullptr) {
      ask(behindSystem(results_));
    }
    results_ = nullptr;
  }

  void ask(JsonMade* pieces) {
    JsonMade* const question = make_.object();
    make_.set(question, "role", make_.text("user"));
    make_.set(question, "content", facts_.parts_only ? onePart(pieces) : make_.joined(pieces));
    make_.append(list_, question);
  }

  /// Pieces of a question, after the pending system text.
  JsonMade* behindSystem(JsonMade* pieces) {
    JsonMade* const all = system_;
    system_ = nullptr;
    if (all == nullptr || all->count() == 0) {
      return pieces;
    }
    if (pieces != nullptr && pieces->count() != 0) {
      addMark(all, kBetweenMessages);
      addAll(all, *pieces);
    }
    return all;
  }

  JsonMade* prepared() {
    JsonMade* const made = make_.object();
    JsonMade* const content = madeContent();
    for (const JsonValue* one = message_->first(); one != nullptr; one = one->next()) {
      const JsonText& key = one->key();
      if (key.is("role")) {
        make_.set(made, key, make_.text(role_));
      } else if (key.is("content")) {
        make_.set(made, key, content);
      } else if (key.is("tool_calls")) {
        make_.set(made, key, calls_ != nullptr && !calls_in_content_ ? callList() : nullptr);
      } else if (key.is("tool_call_id") && one->isString() && facts_.short_ids) {
        make_.set(made, key, make_.text(shortId(one->text(), scratch_)));
      } else {
        make_.set(made, key, make_.copyOf(*one));
      }
    }
    if (message_->find("content") == nullptr) {
      make_.set(made, "content", content);
    }
    if (thoughts_ != nullptr && thoughts_->count() != 0 &&
        message_->find("reasoning_content") == nullptr) {
      make_.set(made, "reasoning_content", make_.joined(thoughts_));
    }
    return made;
  }

  JsonMade* madeContent() {
    if (pieces_ == nullptr) {
      return content_ != nullptr ? make_.copyOf(*content_) : nullptr;
    }
    const bool leads = role_.is("user") && system_ != nullptr;
    JsonMade* const pieces = leads ? behindSystem(pieces_) : pieces_;
    if (facts_.parts_only && !hasPicture(*pieces)) {
      return onePart(pieces);
    }
    const bool list = facts_.takes_parts && content_ != nullptr && content_->isArray() && !leads &&
                      !has_results_ && !calls_in_content_ &&
                      (role_.is("user") || role_.is("assistant"));
    if (list || facts_.parts_only) {
      JsonMade* const parts = make_.list();
      for (const JsonValue* one = pieces->first(); one != nullptr; one = one->next()) {
        make_.append(parts, isPicture(*one) ? picture() : part(make_.text(one->text())));
      }
      return parts;
    }
    const bool is_null =
        pieces->count() == 0 && calls_ != nullptr && !calls_in_content_ && facts_.null_content;
    return is_null ? make_.null() : make_.joined(pieces);
  }

  bool isPicture(const JsonValue& piece) const {
    return pictures_ != PictureWords::kNone && piece.trusted() &&
           piece.text().is(rowOf(pictures_).placeholder);
  }
  bool hasPicture(const JsonValue& pieces) const {
    const JsonValue* one = pieces.first();
    while (one != nullptr && !isPicture(*one)) {
      one = one->next();
    }
    return one != nullptr;
  }
  JsonMade* picture() {
    JsonMade* const made = make_.object();
    make_.set(made, "type", make_.text("image"));
    return made;
  }
  JsonMade* part(JsonMade* text) {
    JsonMade* const made = make_.object();
    make_.set(made, "type", make_.text("text"));
    make_.set(made, "text", text);
    return made;
  }
  JsonMade* onePart(JsonMade* pieces) {
    JsonMade* const parts = make_.list();
    make_.append(parts, part(make_.joined(pieces)));
    return parts;
  }

  JsonMade* callList() {
    JsonMade* const list = make_.list();
    for (const JsonValue* call = calls_->first(); call != nullptr; call = call->next()) {
      const JsonValue* const function = &functionOf(*call);
      make_.append(list, function == call ? withArguments(*call) : callOf(*call));
    }
    return list;
  }

  JsonMade* callOf(const JsonValue& call) {
    JsonMade* const made = make_.object();
    for (const JsonValue* one = call.first(); one != nullptr; one = one->next()) {
      const bool is_id = facts_.short_ids && one->key().is("id") && one->isString();
      make_.set(made, one->key(),
                one->key().is("function") ? withArguments(*one)
                : is_id                   ? make_.text(shortId(one->text(), scratch_))
                                          : make_.copyOf(*one));
    }
    return made;
  }

  JsonMade* withArguments(const JsonValue& function) {
    JsonMade* const made = make_.object();
    for (const JsonValue* one = function.first(); one != nullptr; one = one->next()) {
      if (!one->key().is("arguments")) {
        make_.set(made, one->key(), make_.copyOf(*one));
      }
    }
    const JsonValue* const given = function.find("arguments");
    JsonMade* arguments = argumentsOf(given, scratch_);
    if (facts_.text_arguments && arguments != nullptr) {
      // A text that holds an object stays as the model wrote it.
      const bool stays = given != nullptr && given->isString() && arguments->count() != 0 &&
                         arguments->find("arguments") == nullptr;
      arguments = make_.text(stays ? given->text() : argumentsText(*arguments, scratch_));
    }
    make_.set(made, "arguments", arguments);
    return made;
  }

  const TemplateFacts& facts_;
  const PictureWords pictures_;
  Scratch* const scratch_;
  JsonBuilder make_;
  JsonMade* const list_;
  JsonMade* system_ = nullptr;   ///< pieces that go to the next question
  JsonMade* results_ = nullptr;  ///< pieces of consecutive results
  Place place_ = Place::kFirst;

  // The current message.
  uint32_t origin_ = 0;
  const JsonValue* message_ = nullptr;
  JsonText role_;
  const JsonValue* content_ = nullptr;
  const JsonValue* calls_ = nullptr;
  bool calls_in_content_ = false;
  bool has_results_ = false;  ///< put before a question's text
  JsonMade* pieces_ = nullptr;
  JsonMade* thoughts_ = nullptr;
};

}  // namespace

Status prepareMessages(const TemplateFacts& facts, const JsonValue& messages, Scratch* scratch,
                       const Log& log, const JsonValue** prepared, PictureWords pictures) {
  return Preparer(facts, pictures, scratch).run(messages, log, prepared);
}

}  // namespace oriel_internal
