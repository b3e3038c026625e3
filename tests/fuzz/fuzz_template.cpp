// Chat templates: a conversation as a whole and turn by turn. An input is five texts with lines of = between them:
// wishes, the template, messages, tools, documents and variables.
#include <nlohmann/json.hpp>

#include "chat/turn.h"
#include "fuzz/fuzz.h"
#include "fuzz/text_rules.h"
#include "fuzz/words.h"
#include "support/encoding.h"

namespace oriel_internal::fuzz::fuzz_template {
namespace {

constexpr char kBetween[] = "\n=====\n";
enum Part : size_t { kWishes, kTemplate, kMessages, kTools, kDocuments, kVariables, kParts };

/// Its UTF-8 begins with a byte that only given texts contain.
constexpr char kMarked = '\xEE';

struct Given {
  explicit Given(const std::string& input) : parts(partsOf(input, kBetween, kParts)) {
    settings.text = textOf(kTemplate);
    settings.bos = {"<s>", 3};
    settings.eos = {"</s>", 4};
    settings.tools = textOf(kTools);
    settings.documents = textOf(kDocuments);
    settings.variables = textOf(kVariables);
    settings.thinking = wishes("think") ? ThinkingWish::kOn
                        : wishes("off") ? ThinkingWish::kOff
                                        : ThinkingWish::kTemplates;
    settings.date = wishes("leap") ? 20240229 : 20261122;
  }
  JsonText textOf(Part part) const { return {parts[part].data(), parts[part].size()}; }
  bool wishes(const char* word) const { return parts[kWishes].find(word) != std::string::npos; }
  size_t bytes() const { return settings.bytes() + parts[kMessages].size(); }
  /// That byte may only appear in output from a message, a tool, a document or a variable.
  bool marks() const {
    return parts[kTemplate].find_first_of(std::string("\\") + kMarked) == std::string::npos;
  }

  std::vector<std::string> parts;
  TemplateSettings settings;
};

/// A stop check that stops at its n-th call.
struct Patience {
  uint64_t left = UINT64_MAX;

  StopCheck stop() {
    return {[](void* user) { return static_cast<Patience*>(user)->left-- == 0; }, this};
  }
};

/// A template with its inputs, in its own memory.
class Session {
 public:
  /// `most_bytes` 0: as many as a session gives it.
  Session(const Given& given, Patience* patience, size_t most_bytes = 0)
      : given_(given),
        scratch_(*watch_.allocator(),
                 most_bytes != 0 ? most_bytes : templateScratchBytes(given.bytes())),
        run_(given.settings, patience->stop(), watch_.log(), &scratch_) {}

  /// Messages after all inputs were read; null, with the reason.
  const JsonValue* read(oriel_status* status) {
    const JsonValue* messages = nullptr;
    const JsonText text = given_.textOf(kMessages);
    *status = ended(run_.read());
    if (*status == ORIEL_OK) {
      *status = ended(
          parseJson(text.data, text.bytes, "the messages", watch_.log(), &scratch_, &messages));
    }
    if (*status == ORIEL_OK && !messages->isArray()) {
      *status = ORIEL_ERROR_ARGUMENT;
    }
    return *status == ORIEL_OK ? messages : nullptr;
  }
  /// Returns its status after all checks.
  oriel_status ended(Status status) {
    EXPECT_TRUE(status.ok() || status.code() == ORIEL_ERROR_ARGUMENT ||
                status.code() == ORIEL_ERROR_OUT_OF_MEMORY ||
                status.code() == ORIEL_ERROR_UNSUPPORTED || status.code() == ORIEL_ERROR_CANCELLED)
        << status.code();
    watch_.expectPeakBelow(templateScratchBytes(given_.bytes()));
    return watch_.ended(status.code());
  }
  TemplateRun* run() { return &run_; }
  Scratch* scratch() { return &scratch_; }
  uint64_t peakBytes() const { return watch_.ledger().peak_bytes; }
  Log log() { return watch_.log(); }

 private:
  const Given& given_;
  Watch watch_;
  Scratch scratch_;
  TemplateRun run_;
};

struct Whole {
  oriel_status status = ORIEL_OK;
  uint64_t peak_bytes = 0;
  std::string text;
  std::vector<SourceRange> ranges;
};

Whole renderWhole(const Given& given, Patience* patience, size_t most_bytes = 0) {
  Whole whole;
  Session session(given, patience, most_bytes);
  const JsonValue* const messages = session.read(&whole.status);
  if (messages == nullptr) {
    return whole;
  }
  JinjaOutput out;
  whole.status = session.ended(session.run()->render(*messages, !given.wishes("no_reply"), &out));
  whole.peak_bytes = session.peakBytes();
  if (whole.status == ORIEL_OK) {
    whole.text.assign(out.text, out.bytes);
    whole.ranges.assign(out.ranges, out.ranges + out.n_ranges);
    size_t end = 0;
    TextOrigin before = 0;
    for (const SourceRange& range : whole.ranges) {
      EXPECT_LT(range.begin, range.end);
      EXPECT_LE(range.end, out.bytes);
      EXPECT_TRUE(range.begin > end || (range.begin == end && range.source != before));
      // The list of messages itself counts as the first, even if empty.
      const TextOrigin count = std::max<TextOrigin>(messages->count(), 1);
      EXPECT_TRUE(
          (range.source >= kFirstMessageSource && range.source < kFirstMessageSource + count) ||
          range.source == kToolsSource || range.source == kDocumentsSource ||
          range.source == kVariablesSource)
          << range.source;
      end = range.end;
      before = range.source;
    }
  }
  return whole;
}

/// A template can never remove the mark of user text.
template <typename Ranges>
void expectMarkedInside(const char* text, size_t bytes, const Ranges& ranges) {
  if (bytes == 0) {
    return;  // no text is a null pointer
  }
  size_t at = 0;
  for (const auto& range : ranges) {
    EXPECT_EQ(nullptr, std::memchr(text + at, kMarked, range.begin - at))
        << std::string(text, bytes);
    at = range.end;
  }
  EXPECT_EQ(nullptr, std::memchr(text + at, kMarked, bytes - at)) << std::string(text, bytes);
}

void checkNew(const NewText& text, bool marks) {
  const std::vector<TextRange> literals(text.literals, text.literals + text.n_literals);
  size_t end = 0;
  for (size_t i = 0; i < literals.size(); ++i) {
    EXPECT_TRUE(literals[i].begin > end || (i == 0 && literals[i].begin == 0));
    EXPECT_LT(literals[i].begin, literals[i].end);
    EXPECT_LE(literals[i].end, text.bytes);
    end = literals[i].end;
  }
  if (marks) {
    expectMarkedInside(text.text, text.bytes, literals);
  }
}

void checkMessages(const NewText& text, uint32_t count) {
  size_t end = 0;
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_LE(end, text.messages[i].body);
    EXPECT_LE(text.messages[i].body, text.messages[i].end);
    end = text.messages[i].end;
  }
  EXPECT_LE(end, text.bytes);
}

/// Like a session.
void renderTurns(const Given& given, size_t most_bytes = 0) {
  constexpr uint32_t kMostTurns = 5;  // each is some renderings
  Patience patience;
  LearnedTemplate learned;
  {
    Watch watch;
    const oriel_status status = watch.ended(
        learnTemplate(given.settings, {}, watch.log(), *watch.allocator(), &learned).code());
    if (status != ORIEL_OK) {
      return;  // invalid tools, documents or variables
    }
  }
  Session session(given, &patience, most_bytes);
  oriel_status read = ORIEL_OK;
  const JsonValue* const messages = session.read(&read);
  if (messages == nullptr) {
    return;
  }
  JsonBuilder make(session.scratch());
  NewText text;
  const bool closed = given.wishes("closed");
  for (uint32_t count = 1; count <= std::min(messages->count(), kMostTurns); ++count) {
    const Scratch::Place begin = session.scratch()->place();
    JsonMade* const list = make.list();
    const JsonValue* one = messages->first();
    for (uint32_t i = 0; i < count; ++i, one = one->next()) {
      make.append(list, make.copyOf(*one));
    }
    for (const uint32_t held : {count - 1, count}) {
      const bool opens = held == count;
      if (session.scratch()->failed() ||
          session.ended(renderNew(
              session.run(), learned,
              {list, held, given.wishes("stop"), closed, given.wishes("stop") ? "</s>" : ""}, opens,
              &text)) != ORIEL_OK) {
        return;
      }
      checkNew(text, given.marks());
      checkMessages(text, count - held);
    }
    session.scratch()->releaseTo(begin);
  }
  const Scratch::Place begin = session.scratch()->place();
  if (session.ended(renderNew(session.run(), learned, {messages, 0, false, false}, closed,
                              &text)) == ORIEL_OK) {
    checkNew(text, given.marks());
    checkMessages(text, messages->count());
  }
  session.scratch()->releaseTo(begin);
  if (session.ended(renderPreamble(session.run(), learned, &text)) == ORIEL_OK) {
    checkNew(text, given.marks());
  }
}

/// The same with some memory taken before the template starts, so that memory runs out elsewhere.
Given padded(const std::string& input, Chance* chance) {
  std::vector<std::string> parts = partsOf(input, kBetween, kParts);
  // Lines of a block: the text after them still begins a line.
  std::string pad;
  for (uint64_t n = chance->below(4); n != 0; --n) {
    pad += "{% set zz" + std::to_string(n) + " = 'x' * " + std::to_string(chance->below(700)) +
           " %}\n";
  }
  parts[kTemplate].insert(0, pad);
  std::string all = parts[0];
  for (size_t i = 1; i < kParts; ++i) {
    all += kBetween + parts[i];
  }
  return Given(all);
}

/// Works for any memory limit, with an error.
void renderWithLess(const std::string& input, const Whole& whole, uint32_t hash) {
  Chance chance(hash);
  const uint64_t most = std::min<uint64_t>(std::max<uint64_t>(whole.peak_bytes, 3000), 200000);
  for (int i = 0; i < 3; ++i) {
    const Given given = padded(input, &chance);
    Patience patience;
    const Whole less = renderWhole(given, &patience, 1 + chance.below(most + most / 8));
    EXPECT_TRUE(less.status != ORIEL_OK || less.text == whole.text);
  }
  if (chance.once(4)) {
    renderTurns(padded(input, &chance), 1 + chance.below(most));
  }
}

}  // namespace

ORIEL_FUZZ(template) {
  const Given given(text(data, size));
  Patience patience;
  const Whole whole = renderWhole(given, &patience);
  const uint64_t asked = UINT64_MAX - patience.left;
  Watch watch;
  Scratch scratch(*watch.allocator(), templateScratchBytes(given.bytes()));
  const JsonText jinja = given.settings.text;
  const oriel_status parsed =
      watch.ended(checkJinja(jinja.data, jinja.bytes, {}, watch.log(), &scratch).code());
  EXPECT_TRUE(whole.status != ORIEL_OK || parsed == ORIEL_OK);
  if (parsed == ORIEL_OK) {
    pastFirstCheck();
  }
  EXPECT_TRUE(parsed == ORIEL_OK || parsed == ORIEL_ERROR_ARGUMENT ||
              parsed == ORIEL_ERROR_OUT_OF_MEMORY);
  if (whole.status == ORIEL_OK && given.marks()) {
    expectMarkedInside(whole.text.data(), whole.text.size(), whole.ranges);
  }
  if (asked != 0) {
    Patience less;
    less.left = hashOf(data, size) % asked;
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, renderWhole(given, &less).status);
  }
  if (whole.status != ORIEL_ERROR_UNSUPPORTED) {
    renderWithLess(text(data, size), whole, hashOf(data, size));
  }
  // Templates that use all their steps are not repeated.
  if (whole.status != ORIEL_ERROR_UNSUPPORTED && whole.status != ORIEL_ERROR_OUT_OF_MEMORY) {
    const Whole again = renderWhole(given, &patience);
    EXPECT_EQ(whole.status, again.status);
    EXPECT_EQ(whole.text, again.text);
    renderTurns(given);
  }
}

ORIEL_FUZZ_MUTATE(template) {
  static const WordMutator mutator(templateWords());
  Chance chance(seed);
  if (chance.once(8)) {
    return mutateBytes(data, size, max_size, seed);
  }
  // Invalid JSON ends early, so mostly the template is changed.
  std::vector<std::string> parts = partsOf(text(data, size), kBetween, kParts);
  std::string& part = parts[chance.once(3) ? chance.below(kParts) : size_t{kTemplate}];
  part = mutator.mutate(part, &chance);
  std::string joined = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    joined += kBetween + parts[i];
  }
  return put(joined, data, max_size);
}

ORIEL_FUZZ_SEEDS(template) {
  const std::string talk =
      "[{\"role\": \"system\", \"content\": \"Be \xEE\x83\x80 brief.\"}, {\"role\": \"user\", "
      "\"content\": \" \xEE\x83\x80 Hi\\n\"}, {\"role\": \"assistant\", \"content\": "
      "\"<think>\xEE\x83\x80</think>x\", \"tool_calls\": [{\"id\": \"call00001\", \"type\": "
      "\"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"a\": \"\xEE\x83\x80\", "
      "\"b\": "
      "[1, 2.5, null]}}}]}, {\"role\": \"tool\", \"tool_call_id\": \"call00001\", \"content\": "
      "\"\xEE\x83\x80 7\"}, {\"role\": \"assistant\", \"content\": \"\"}, {\"role\": \"user\", "
      "\"content\": [{\"type\": \"text\", \"text\": \"\xEE\x83\x80\"}]}]";
  const std::string tools =
      "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": "
      "\"\xEE\x83\x80\", "
      "\"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\"}}, "
      "\"required\": [\"a\"]}}}]";
  const auto add = [&](const std::string& wishes, const std::string& jinja,
                       const std::string& messages, const std::string& variables) {
    seeds->push_back(wishes + kBetween + jinja + kBetween + messages + kBetween + tools + kBetween +
                     "[{\"title\": \"\xEE\x83\x80\"}]" + kBetween + variables);
  };
  nlohmann::ordered_json cases =
      nlohmann::ordered_json::parse(test::openToRead(ORIEL_TEST_DATA "/jinja/cases.json"));
  cases["values"].erase("messages");  // which Oriel sets
  const std::string values = cases["values"].dump();
  for (const nlohmann::ordered_json& one : cases["cases"]) {
    add("", one["template"], talk, values);
  }
  const nlohmann::ordered_json chatml =
      nlohmann::ordered_json::parse(test::openToRead(ORIEL_TEST_DATA "/chat/chatml.json"));
  if (chatml.contains("template")) {
    add("think", chatml["template"], talk, "{}");
  }
  for (const std::string& file : wholeTemplates()) {
    for (const char* wishes : {"think stop", "off closed", "no_reply leap"}) {
      add(wishes, file, talk, "{}");
    }
  }
  for (const std::string& mistake : templateMistakes()) {
    seeds->push_back(kBetween + mistake + kBetween + "[]");
  }
}

}  // namespace oriel_internal::fuzz::fuzz_template
