// A conversation in progress: what an app does with it, from its first token to its end.
//
// Session is the upper floor of four parts. Each calls only the ones below it:
//
//   Session        messages, going back, saving, recovering
//   Replier        writes replies                                     exec/replier.h
//   Feeder         reads tokens: the only prefill loop                exec/feeder.h
//   Stepper        one step of the executor                           exec/stepper.h
//   SessionMemory  rings, sinks, states, prefix, retrieved turns      exec/session_memory.h, exec/session_recall.h
//
// They share one Conversation, a value that says where it stands (exec/conversation.h).
//
// It knows:
// - the transcript, and the text that the template writes for all messages
// - which source a conversation is built again from: its memory, its messages, a snapshot, what the host knows
// - where the conversation stood before a call, so that a failed one leaves it there
// - the prefix: its messages, and that nothing goes back behind it
// It must never know:
// - step blocks, slots, formats of keys and values
// - batches, and how far the device is
// - how a token is chosen, what ends a reply
// - handles, options, threads: those are the API's
#pragma once

#include "chat/turn.h"
#include "exec/prefix.h"
#include "exec/replier.h"
#include "exec/snapshot.h"
#include "exec/whole_texts.h"

namespace oriel_internal {

/// The source of a conversation that is built again.
struct RebuildSource {
  enum class From : uint8_t {
    kMemory,  ///< the session's own memory; states may read tokens again
    kTranscript,  ///< its messages that end at `position` or before, read from the beginning. Other text is gone.
    kEither,    ///< kMemory where it leads there, else kTranscript
    kMessages,  ///< a JSON list, into an empty session
    kSnapshot,
    kLost,  ///< all that the host knows: the device's objects are others now
    /// Of the model's prefix, in place of this session's own memory, which is zeros then. The session has the longest window.
    kPrefix,
  };
  From from = From::kMemory;
  uint64_t position = UINT64_MAX - 1;  ///< to go back to; the default is all
  const void* data = nullptr;          ///< of kMessages and kSnapshot
  uint64_t bytes = 0;
  Log log;  ///< of kSnapshot: names the file
  // Of kSnapshot:
  bool exact = false;  ///< the same layout, or nothing
  bool reads = false;  ///< if nothing can be carried over, its transcript is read
  // Of kLost:
  bool in_batches = false;   ///< prefill batches, which are faster than the steps of the first time
  bool prefix_exact = true;  ///< Rebuilt::exact, of the prefix
  Prefix* prefix = nullptr;  ///< of kPrefix
};

/// The way a conversation was built again.
struct Rebuilt {
  enum class How : uint8_t { kExactly, kCarried, kRead };
  How how = How::kExactly;
  bool rounded = false;  ///< keys, values or states were, to other formats
  uint64_t held = 0;     ///< tokens that the session holds now
  uint64_t dropped = 0;  ///< tokens that were held before and are not now
  uint64_t read = 0;     ///< tokens that were read for that
  bool exact = true;     ///< read from the ids of all tokens, in the steps of the first time
};

/// The parts of a session, to look at.
struct SessionFacts {
  const SessionContext& context;
  const Conversation& at;
  const RunningCall& call;
  const Transcript& transcript;
  const SessionMemory& memory;
  const SessionRecall& retrieved;
  const Stepper& stepper;
  const Replier& replier;
};

/// One thread at a time makes calls; call().cancel() is for any thread. A failed call leaves the conversation as it was,
/// where that is possible without reading tokens again.
class Session {
 public:
  /// Takes all memory the session will ever need from `arena` (null when measuring).
  static Session* create(const SessionContext& context, uint64_t first_position, bool whole_turns,
                         Arena* arena);
  SessionFacts facts() const {
    return {context_, at_, call_, transcript_, memory_, recall_, stepper_, replier_};
  }
  RunningCall& call() { return call_; }

  // Beginning and end.

  enum class Begin : uint8_t {
    kNew,     ///< the first time: it makes its retrieval file, or fails
    kAgain,   ///< an empty conversation, behind the prefix if there is one
    kLost,    ///< the same on a lost device: rebuild() starts from there
    kUnread,  ///< the memory is gone: all of the transcript is to be read
    kNever,   ///< the session ends: overwrites all that it holds, with zeros
  };
  Status reset(Begin how);
  /// Goes on from where `other` is, which has the same ring; this session is at its beginning.
  Status fork(const Session& other);
  /// Makes the session's tokens, all of them in sinks, the model's prefix, and begins behind it.
  Status becomePrefix(Prefix* prefix);
  /// Builds the conversation again from another source than it has now: going back, resuming, importing, restoring,
  /// recovering. On failure of kLost that is still to be done; of kTranscript, unread messages stay in the transcript.
  Status rebuild(const RebuildSource& source, Rebuilt* result);
  /// Nothing was read since it began, and no message is unread.
  bool isFresh() const {
    return at_.position == context_.prefixTokens() && !transcript_.hasUnread();
  }

  // Reading.

  Status append(const TokenSource& source);
  /// Messages in the OpenAI form, an object or a list of them; with a `role`, one of this text.
  Status appendMessages(const char* role, const char* text, size_t bytes);
  /// The vector of ids or a text, n_embd `values`; *n_tokens: of them. The session is empty, before and after.
  Status embed(const TokenSource& source, Pooling pooling, float* values, uint32_t* n_tokens);
  /// Of an encoder: as WholeTexts::read() says.
  Status embedWhole(const WholeText* texts, size_t count, uint32_t pooling, float* values,
                    uint32_t* tokens);
  /// Shows the turns that the text asks for behind the sinks, from here on.
  Status recall(const char* text, size_t bytes) { return recall_.recall(text, bytes); }
  Status mark(const char* name);
  /// A scale for each of the model's adapters, which there are. Tokens that were read with others are read again.
  Status useAdapters(const float* scales);

  // Replies.

  Replier& replier() { return replier_; }
  /// Opens the assistant's turn. `tools`: of templateScratchBytes(); it stays as long as the reply goes on.
  Status openReply(const GenerateSettings& settings, Scratch* tools, ReplyPlace* place);
  /// Ends a turn that openReply() opened. A reply that failed before its first token is taken back, so that it can be
  /// asked for again; a cancelled one has begun.
  Status closeReply(const ReplyCall& call);

  // Saving. With several sessions the device's objects come and go.

  /// Bytes of a snapshot, which `out` has room for; null: only counts them. `saved_at`: seconds since 1970; 0: not said.
  Status save(void* out, uint64_t* bytes, int64_t saved_at = 0) const;
  /// Before the arenas for steps are given back, and (`back`) after they were taken again.
  Status moveLogits(bool back) { return back ? stepper_.enterDevice() : stepper_.leaveDevice(); }
  /// The device's objects are others from now on.
  void moveTo(Executor* executor);
  /// For timing only: as if so many tokens had been committed, whatever the cache holds.
  void pretendPosition(uint64_t position);

 private:
  struct Rooms;
  struct Kept;
  class RecoverySteps;
  class ReadMessages;
  class BorderFinder;

  Session(const SessionContext& context, uint64_t first_position, bool whole_turns,
          const Rooms& rooms);
  void stand(const Conversation& at);
  void standAtBeginning(uint64_t first_position);
  void forgetOnHost();
  Status beginBehindPrefix();
  void takePrefixMessages();
  Status makePrefix(Prefix* prefix);
  Status expectLoadedScales(const float* scales) const;
  uint32_t ownSinks() const;
  Status checkUtf8(const char* what, const char* text, size_t bytes) const;
  Status countToEmbed(const TokenSource& source, uint64_t* count) const;
  Status forgetText(bool was_blank);

  // Going back.

  bool canGoBack(uint64_t position) const {
    return memory_.wayBack(position).how != WayBack::How::kNone;
  }
  Status goBack(uint64_t position);
  Status goBackOverStates(uint64_t position, const WayBack& way);
  Status standAtState(uint64_t tokens, bool lost);
  void goBackOnHost(uint64_t position);
  void truncate(uint64_t position);
  void cutReply(const Transcript::Entry& reply, uint64_t position);
  Status rollBack(Status done, const Conversation& before);

  // The transcript.

  Status readMessages(const char* json, size_t bytes);
  Status parseMessages(const char* json, size_t bytes, Scratch* scratch,
                       const JsonValue** messages);
  Status readStored(const uint8_t* entries, uint64_t bytes, uint64_t position);
  uint64_t ownMessages() const { return transcript_.behind(context_.prefixTokens()); }
  Status checkStored(uint64_t position) const;
  void standUnread(uint64_t position);
  Status readTranscript(uint64_t position);
  Status readUnread();

  // Snapshots.

  SnapshotOwner snapshotOwner() const;
  Status readFrom(const Snapshot& snapshot, Rebuilt* result);
  Status restore(const RebuildSource& source, Rebuilt* result);

  // A lost device.

  Kept keep() const;
  void putBack(const Kept& kept);
  Status forgetDevice();
  Status emptyDevice();
  Status readUnfinished(Rebuilt* result);
  Status recover(const RebuildSource& source, Rebuilt* result);
  Status recoverPrefix(Prefix* prefix, Rebuilt* result);
  Status recoverUnread(Rebuilt* result);
  Status readAllAgain(const Kept& kept, bool in_batches, Rebuilt* result);
  Status readHeldAgain(const Kept& kept, bool in_batches, Rebuilt* result);
  Status readStreamAgain(const Kept& kept, uint64_t first_held, bool in_batches, Rebuilt* result,
                         bool* fits);
  Status streamMessages(uint64_t end, bool in_batches, bool* fits);
  Status streamMessage(const JsonValue& message, const Transcript::Entry& entry, uint64_t end,
                       bool in_batches, bool* fits);
  Status streamReply(const JsonText& text, const Transcript::Entry& entry, uint64_t end,
                     bool in_batches, bool* fits);

  // Messages.

  bool continuesAt(uint64_t position) const;
  EncodeOptions encodeAt(const NewText& text, uint64_t base, size_t bytes) const;
  Status compareHeld(const NewText& text, size_t bytes, uint64_t begin, Workspace* workspace,
                     bool* same, bool* more) const;
  Status conversation(const JsonValue* added, Scratch* scratch, Messages* out) const;
  Status findBase(const NewText& text, Workspace* workspace, uint64_t* base) const;
  Status findBorders(const NewText& text, Workspace* workspace, ReadMessages* messages) const;
  Status findStop(Workspace* workspace, int32_t* id) const;
  Status readTurns(const NewText& text, ReadMessages* messages, Workspace* workspace);
  Status openTurn(ReplyPlace* reply, uint64_t* base);
  Status withLastReply(const JsonValue& added, Scratch* scratch, const JsonValue** out) const;
  Status followTemplate(const JsonValue& added, size_t bytes, bool* done);
  Status readNew(const JsonValue& added, size_t bytes, const uint64_t* records);
  Status readRendered(const JsonValue& added, const uint64_t* records, const NewText& text,
                      Scratch* scratch);
  Status addMessages(const JsonValue& added, size_t bytes, const uint64_t* records = nullptr);
  Status appendJson(const char* json, size_t bytes);
  Status showAskedTurns(const Conversation& before);
  Status readWith(const RecallSpans& found, uint64_t opening, const SamplerState& before);

  SessionContext context_;
  Conversation at_;
  RunningCall call_;
  Transcript transcript_;
  Sampler sampler_;
  void* const workspace_;
  SessionMemory memory_;
  SessionRecall recall_;
  Stepper stepper_;
  Feeder feeder_;
  Replier replier_;
};

}  // namespace oriel_internal
