#include "chat/prove.h"

#include <algorithm>
#include <cstring>

#include "chat/template_run.h"

namespace oriel_internal {
namespace {

constexpr size_t kMostProbeMessages = 5;

struct Probe {
  ChatMessage messages[kMostProbeMessages];
  size_t count;
};

constexpr ChatMessage say(const char* role, const char* text) {
  size_t bytes = 0;
  while (text[bytes] != '\0') {
    ++bytes;
  }
  return {role, text, bytes};
}

constexpr ChatMessage kSystem = say("system", " Be brief.\n");
constexpr ChatMessage kUser = say("user", "  What is two and two?\n");
constexpr ChatMessage kAnswer = say("assistant", " Four.\n");
constexpr ChatMessage kThoughtful = say("assistant", "<think>\nOne more.\n</think>\n\nFive.");
constexpr ChatMessage kMore = say("user", "Und drei?");

constexpr Probe kProbes[] = {
    {{kUser}, 1},
    {{kSystem, kUser}, 2},
    {{kUser, kAnswer, kMore}, 3},
    {{kSystem, kUser, kAnswer, kMore}, 4},
    {{kSystem, kUser, kThoughtful, kMore, kAnswer}, 5},
};

/// The longest text that a probe becomes, default system prompts included.
constexpr size_t kProbeTextBytes = ChatTemplate::kMaxDefaultSystem + 4096;

/// Of all probes together. Published templates take a hundredth of it.
constexpr uint64_t kMostSteps = 1'000'000;

class Prover {
 public:
  Prover(const ChatTemplate& chat, const StopCheck& stop, Scratch* scratch)
      : chat_(chat), stop_(stop), scratch_(*scratch) {}

  /// Then what was found counts for nothing.
  bool stopped() const { return stopped_; }
  bool tooMuch() const { return too_much_; }

  bool proves() {
    char* const room = scratch_.takeText(kProbeTextBytes);
    if (room == nullptr) {
      return false;
    }
    bool compared = false;
    const bool wishes = templateContains(chat_.jinja, chat_.jinja_bytes, "enable_thinking");
    for (const ThinkingWish wish :
         {ThinkingWish::kTemplates, ThinkingWish::kOff, ThinkingWish::kOn}) {
      if (wish != ThinkingWish::kTemplates && !wishes) {
        continue;
      }
      for (const Probe& probe : kProbes) {
        for (const bool generation : {true, false}) {
          const Scratch::Place place = scratch_.place();
          const Result result = compare(probe, wish, generation, room);
          scratch_.releaseTo(place);
          if (result == Result::kDiffers) {
            return false;
          }
          compared = compared || result == Result::kSame;
        }
      }
    }
    return compared;
  }

 private:
  enum class Result : uint8_t { kSame, kDiffers, kRefused };

  /// Whether nothing of the first message is there.
  static bool leavesOut(const JinjaOutput& written, const Probe& probe) {
    return probe.count > 1 && std::none_of(written.ranges, written.ranges + written.n_ranges,
                                           [](const SourceRange& range) {
                                             return range.source == kFirstMessageSource;
                                           });
  }

  bool asksToStop() {
    stopped_ = stopped_ || stop_();
    return stopped_;
  }

  Result compare(const Probe& probe, ThinkingWish wish, bool generation, char* room) {
    if (asksToStop()) {
      return Result::kDiffers;
    }
    TemplateSettings settings;
    settings.text = {chat_.jinja, chat_.jinja_bytes};
    settings.bos = {chat_.bos, std::strlen(chat_.bos)};
    settings.eos = {chat_.eos, std::strlen(chat_.eos)};
    settings.thinking = wish;
    const StopCheck stop = {[](void* self) { return static_cast<Prover*>(self)->asksToStop(); },
                            this};
    TemplateRun run(settings, stop, Log(), &scratch_);
    JsonBuilder make(&scratch_);
    JsonMade* const list = make.list();
    for (size_t i = 0; i < probe.count; ++i) {
      const ChatMessage& one = probe.messages[i];
      make.append(list,
                  make.message({one.role, std::strlen(one.role)}, {one.text, one.text_bytes}));
    }
    JinjaOutput written;
    const Status status = list != nullptr ? run.render(*list, generation, &written)
                                          : Status(ORIEL_ERROR_OUT_OF_MEMORY);
    steps_ += written.steps;
    stopped_ = stopped_ || status.code() == ORIEL_ERROR_CANCELLED;
    too_much_ = status.code() == ORIEL_ERROR_UNSUPPORTED || steps_ > kMostSteps;
    if (!status.ok() || too_much_) {
      return status.code() == ORIEL_ERROR_ARGUMENT && !too_much_ ? Result::kRefused
                                                                 : Result::kDiffers;
    }
    if (leavesOut(written, probe)) {
      return Result::kRefused;
    }
    ChatOptions options;
    options.thinking =
        wish != ThinkingWish::kOff && (wish == ThinkingWish::kOn || !chat_.format->thinks_if_told);
    RenderedConversation known;
    known.text = room;
    known.capacity = kProbeTextBytes;
    const bool fits = renderConversation(chat_, options, probe.messages, probe.count, generation,
                                         true, Log(), &known)
                          .ok();
    const bool same = fits && known.needed == written.bytes &&
                      std::memcmp(known.text, written.text, written.bytes) == 0;
    return same ? Result::kSame : Result::kDiffers;
  }

  const ChatTemplate& chat_;
  const StopCheck stop_;
  Scratch& scratch_;
  uint64_t steps_ = 0;
  bool stopped_ = false;
  bool too_much_ = false;
};

}  // namespace

Status settleChat(const oriel_allocator& allocator, const StopCheck& stop, const Log& log,
                  ChatTemplate* chat) {
  if (chat->jinja == nullptr) {
    return kOk;
  }
  Scratch scratch(allocator, templateScratchBytes(kJsonBytesAByteOfTemplate * chat->jinja_bytes));
  const bool known = chat->format != nullptr && std::strcmp(chat->format->name, "plain") != 0;
  Prover prover(*chat, stop, &scratch);
  chat->runs = !known || chat->jinja_bytes > kMaxChatTemplateBytes || !prover.proves();
  if (prover.stopped()) {
    return ORIEL_ERROR_CANCELLED;
  }
  if (prover.tooMuch()) {
    log.write(ORIEL_LOG_WARNING,
              "the model's chat template takes too many steps for short conversations: name a "
              "format (\"template\")");
  }
  return scratch.noMemory()
             ? log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                        "no memory to run the model's chat template: close other programs")
             : kOk;
}

}  // namespace oriel_internal
