// Chat formats: the text around messages, one message at a time, so that a new turn never
// re-renders what is already in the cache. A format is data (chat_formats.cpp); which one a model was
// trained with is read off its Jinja template (chat_recognise.cpp), which is never run.
#pragma once

#include "gguf/gguf.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Which ends of a message lose their white space.
enum Trim : uint8_t { kTrimNone = 0, kTrimStart = 1, kTrimEnd = 2, kTrimBoth = 3 };

/// The text around one kind of message. `open` null: the format has no such message.
///
/// In these strings {role} stands for the message's role, {eos} for the text of the model's EOS, {date}
/// for the date and {mode} for what says whether to think.
struct MessageFrame {
  const char* open = nullptr;
  const char* close = nullptr;
  Trim trim = kTrimNone;
};

/// Words in a system message that a template acts upon and takes out; null: it knows no such word.
struct SystemSwitches {
  const char* think;
  const char* no_think;
  const char* bare;  ///< the message then stands in `bare_frame`, without a header
  MessageFrame bare_frame;
  const char* thinking_mode;  ///< {mode} with thinking on
  const char* other_mode;
};

/// Where a template's own text holds the system prompt that it uses when there is none: between `before`
/// (as matched by templateContains) and `after`, beginning with `begins`.
struct DefaultSystemMarks {
  const char* before;
  const char* begins;
  const char* after;
};

/// What becomes of the <think> block in an assistant's message that comes with a conversation. The last answer
/// is the one behind the last question.
enum class Thoughts : uint8_t {
  kKept,
  kLastHasBlock,    ///< earlier answers lose theirs; the last one has a block, if only an empty one
  kLastMayHave,     ///< the same without an empty block
  kTrimmedEarlier,  ///< earlier answers lose theirs and the white space around what is left
  kTrimmedButFinal,  ///< the same for all but the assistant's latest message
  kTrimmed,          ///< the same for all
  kChannelsTrimmed,  ///< all lose all blocks between <|channel> and <channel|>, then white space
};

/// How {date} is written.
enum class DateStyle : uint8_t {
  kShortMonth,  ///< 26 Jul 2024
  kLongMonth,   ///< 26 July 2024
  kMonthFirst,  ///< July 26, 2024
  kIso,         ///< 2024-07-26
};

struct ChatFormat {
  const char* name = nullptr;
  const char* begin = "";  ///< BOS as the template writes it; empty: it writes none

  MessageFrame system;        ///< when it comes first
  MessageFrame later_system;  ///< when it does not
  MessageFrame user;
  MessageFrame joined_user;  ///< goes on in the turn that the system text has opened
  MessageFrame assistant;
  MessageFrame other;  ///< every other role

  const char* generation = "";  ///< opens a reply
  const char* generation_no_think =
      nullptr;                 ///< the same with thinking switched off, if that differs
  const char* reply_end = "";  ///< closes a reply; its first token is the model's
  const char* end = "";        ///< behind the last message when no reply is opened
  /// Closes the assistant's message that ends a whole conversation; null: as any.
  const char* final_answer_close = nullptr;

  const char* default_system = nullptr;  ///< put first when no system message is; null: nothing is
  const char* default_system_no_think = nullptr;
  const char* default_system_close = nullptr;  ///< null: as of any system message
  const DefaultSystemMarks* marks = nullptr;   ///< how to find the default in a template
  const SystemSwitches* switches = nullptr;
  bool thinks_if_told =
      false;  ///< thinking is off unless it is asked for, and a system message says it is on

  const char* no_think_answer = "";  ///< in front of an assistant's text with thinking switched off
  Thoughts thoughts = Thoughts::kKept;
  bool skips_empty_system = false;  ///< an empty system message counts as none
  bool system_in_last_user =
      false;                ///< in a text rendered whole the system text joins the last message
  bool alternates = false;  ///< the template refuses all but user, assistant, user, ...
  bool always_generates = false;  ///< a reply is opened whether it is asked for or not
  DateStyle date_style = DateStyle::kShortMonth;
};

/// Null for a name that nobody knows.
const ChatFormat* chatFormatByName(const char* name);
/// "chatml, gemma2, ...", for messages.
extern const char kChatFormatNames[];

/// A format as one model uses it. Trivially copyable; refers to nothing but the constant tables.
struct ChatTemplate {
  static constexpr size_t kMaxDefaultSystem = 4096;  ///< bytes; Mistral Small 3.2's has 2,600
  static constexpr size_t kMaxToken = 64;

  const ChatFormat* format = nullptr;  ///< null: none is known
  /// A template's text, which outlives this, without NUL at its end; null: there is none.
  const char* jinja = nullptr;
  size_t jinja_bytes = 0;
  /// Conversations are what the template writes: the format is not known to say the same (chat/prove.h).
  bool runs = false;
  bool always_generates = false;
  bool writes_end = false;
  char begin[kMaxToken] = "";
  char eos[kMaxToken] = "</s>";
  char bos[kMaxToken] = "";           ///< whatever a template writes
  uint32_t default_system_bytes = 0;  ///< 0: the format's own
  /// Byte of default_system at which the date stands, as year-month-day; -1: it tells none.
  int32_t default_system_date = -1;
  char default_system[kMaxDefaultSystem] = "";

  bool exists() const { return runs || format != nullptr; }
  const char* name() const { return runs ? "jinja" : format == nullptr ? "none" : format->name; }
};

/// The format as its tables have it.
ChatTemplate chatTemplateOf(const ChatFormat& format);
/// Of what is longer nothing is run. Real ones have under 30 KiB.
constexpr size_t kMaxChatTemplateBytes = 256 * 1024;
/// The format by the markers that a Jinja template writes, in time linear in it; "plain" when none is known. Whether the
/// template writes the same is for others to find out (chat/prove.h).
ChatTemplate recogniseChatTemplate(const char* text, size_t bytes);
/// From the file's tokenizer.chat_template, which it points to, or, without one, from the vocabulary's control tokens.
ChatTemplate recogniseChat(const GgufFile& file);
/// The same text in an arena, of one that is too long to run a beginning that is; when measuring counts it.
void keepTemplate(Arena* arena, ChatTemplate* chat);
/// A format's name or the text of a Jinja template. Null: the model's own. ORIEL_ERROR_ARGUMENT for what is
/// neither.
Status chooseChat(const ChatTemplate& own, const char* wanted, const Log& log, ChatTemplate* out);

struct ChatMessage {
  const char* role;  ///< ends in NUL
  const char* text;
  size_t text_bytes;
};

/// What the app may choose.
struct ChatOptions {
  bool thinking = true;
  bool thinking_said = false;  ///< the app said whether to think
  uint32_t date = 20240726;    ///< year, month, day: the date of templates that are given none
};

/// Where in a conversation a message stands.
struct ChatPlace {
  bool begins = false;        ///< nothing was written before
  bool writes_bos = false;    ///< with `begins`: as text
  bool leads = false;         ///< no message came before: a system message is the conversation's
  bool turn_open = false;     ///< the system text has opened the user's turn
  bool last_answer = false;   ///< an assistant's message behind the last user's
  bool final_answer = false;  ///< the latest of the assistant's messages
  bool ends = false;          ///< nothing comes behind it
};

/// A rendered piece of conversation. `literal` is what came from the user and must never be read as
/// control tokens.
struct RenderedText {
  char* text = nullptr;  ///< caller's buffer
  size_t capacity = 0;
  size_t needed = 0;  ///< set by the renderer; more than capacity: what was written is of no use
  size_t body = 0;    ///< where the message's own frame begins, behind BOS and default system text
  TextRange literal[2];
  uint32_t n_literal = 0;
  /// If not null: long stretches of the message are not copied into `text` but stay where the caller has them.
  /// `text` then holds the rest; the whole, of `needed` bytes, is the parts one behind another.
  TextParts* parts = nullptr;
  size_t stored = 0;       ///< bytes for `text`: `needed` without those that stay
  bool turn_open = false;  ///< the user's turn goes on with the next message
  bool thinking = true;    ///< as a system message may have switched it
};

constexpr size_t kMaxRoleBytes = 32;
/// A role is 1 to kMaxRoleBytes characters of [a-z_].
bool isRole(const char* role, size_t bytes);
/// The template names it, or every one does: what a model was trained with. Without a template's text the format's own
/// roles.
bool namesRole(const ChatTemplate& chat, const char* role, size_t bytes);
/// A warning for a role that is not named. `number`: of the message, from 1; 0: it is the only one.
void warnOfRole(const ChatTemplate& chat, const char* role, size_t bytes, size_t number,
                const Log& log);
/// One whole message, e.g. "<|im_start|>user\nHello<|im_end|>\n". A role is 1 to 32 characters of
/// [a-z_] that the format has a place for; anything else is ORIEL_ERROR_ARGUMENT.
Status renderMessage(const ChatTemplate& chat, const ChatOptions& options, const ChatPlace& place,
                     const char* role, const char* text, size_t bytes, const Log& log,
                     RenderedText* out);
/// What stands before the first message when that is no system message.
Status renderBeginning(const ChatTemplate& chat, const ChatOptions& options, const ChatPlace& place,
                       RenderedText* out);
/// What opens a reply, e.g. "<|im_start|>assistant\n".
Status renderGeneration(const ChatTemplate& chat, const ChatOptions& options,
                        const ChatPlace& place, RenderedText* out);
/// What closes a reply, e.g. "<|im_end|>\n", of which the first token is the model's own. At most
/// kMaxReplyEnd bytes.
constexpr size_t kMaxReplyEnd = 96;
Status renderReplyEnd(const ChatTemplate& chat, RenderedText* out);

/// A whole conversation in one buffer.
struct RenderedConversation {
  char* text = nullptr;
  size_t capacity = 0;
  size_t needed = 0;
  TextRange* literals = nullptr;  ///< room for two per message, or null
  size_t n_literals = 0;
};

/// As the template renders it: with `generation` the assistant's turn is opened at the end. Without
/// messages: what stands before the first. ORIEL_ERROR_BUFFER_TOO_SMALL as everywhere.
Status renderConversation(const ChatTemplate& chat, ChatOptions options,
                          const ChatMessage* messages, size_t count, bool generation,
                          bool writes_bos, const Log& log, RenderedConversation* out);

/// True if `part` is in a template's text. In `part`, ' matches either quote and a line feed also the
/// escape \n; a template writes both as it likes.
bool templateContains(const char* text, size_t bytes, const char* part);

}  // namespace oriel_internal
