// A conversation: everything that an app does with it, from its first token to its end.
//
// Session is the top layer of five. Each layer calls only the ones below it:
//
//   Session        messages, going back, saving, recovering
//   Replier        writes replies                                     exec/replier.h
//   Feeder         reads tokens: the only prefill loop                exec/feeder.h
//   Stepper        one step of the executor                           exec/stepper.h
//   SessionMemory  rings, sinks, states, prefix, retrieved turns      exec/session_memory.h, exec/recall_file.h
//
// They share one Conversation, a value with the current state (exec/session_context.h).
//
// It knows:
// - the transcript, and the text that the template writes for all messages
// - the sources for rebuilding a conversation: its memory, its messages, a snapshot, the host's records
// - the state before a call, so that a failed call restores it
// - the prefix: its messages, and that no call goes back into it
// It must never know:
// - step blocks, slots, formats of keys and values
// - batches, and the device's progress
// - how a token is chosen, and the end of a reply
// - handles, options, threads: they belong to the API
#pragma once

#include "chat/turn.h"
#include "exec/picture_store.h"
#include "exec/replier.h"
#include "exec/snapshot.h"
#include "exec/whole_texts.h"

namespace oriel_internal {

/// The source for rebuilding a conversation.
struct RebuildSource {
  enum class From : uint8_t {
    kMemory,  ///< the session's own memory; states may need tokens to be read again
    /// the messages that end at `position` or before, read from the beginning. Drops other text.
    kTranscript,
    kEither,    ///< kMemory if that is possible, else kTranscript
    kMessages,  ///< a JSON list, into an empty session
    kSnapshot,
    kLost,  ///< the host's records, after the device's objects were replaced
    /// The model's prefix, in place of this session's own memory, which is all zeros then. The session has the longest
    /// window.
    kPrefix,
  };
  From from = From::kMemory;
  uint64_t position = UINT64_MAX - 1;  ///< where to go back to; the default keeps all tokens
  const void* data = nullptr;          ///< for kMessages and kSnapshot
  size_t bytes = 0;
  Log log;  ///< for kSnapshot: names the file
  // For kSnapshot:
  bool exact = false;  ///< require the same layout
  bool reads = false;  ///< read the transcript if no data can be carried over
  // For kLost:
  bool in_batches = false;   ///< use prefill batches, which are faster than the original steps
  bool prefix_exact = true;  ///< Rebuilt::exact, of the prefix
  Prefix* prefix = nullptr;  ///< for kPrefix
};

/// The result of rebuilding a conversation.
struct Rebuilt {
  enum class How : uint8_t { kExactly, kCarried, kRead };
  How how = How::kExactly;
  bool rounded = false;  ///< keys, values or states were rounded to other formats
  uint64_t held = 0;     ///< tokens that the session holds now
  uint64_t dropped = 0;  ///< tokens that were held before and are not now
  uint64_t read = 0;     ///< tokens that were read to rebuild it
  bool exact = true;     ///< read from the ids of all tokens, in the original steps
};

/// Read-only access to the parts of a session.
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

/// Use from one thread at a time; call().cancel() is allowed from any thread. A failed call restores the conversation
/// if that needs no tokens to be read again.
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
    kNew,     ///< the first time: creates the retrieval file, or fails
    kAgain,   ///< an empty conversation, after the prefix if there is one
    kLost,    ///< the same on a lost device, as a start for rebuild()
    kUnread,  ///< the memory is lost: the whole transcript must be read
    kNever,   ///< the session ends: overwrites its data with zeros
  };
  Status reset(Begin how);
  /// Continues from the state of `other`, which has the same ring. This session must be at its beginning.
  Status fork(const Session& other);
  /// Makes the session's tokens the model's prefix, and begins after it. All of the tokens must be in sinks.
  Status becomePrefix(Prefix* prefix);
  /// Builds the conversation again from another source: going back, resuming, importing, restoring, recovering. After a
  /// failure, kLost must be repeated, and kTranscript leaves unread messages in the transcript.
  Status rebuild(const RebuildSource& source, Rebuilt* result);
  /// True if no token was read since the beginning and no message is unread.
  bool isFresh() const {
    return at_.position == context_.prefixTokens() && !transcript_.hasUnread();
  }

  // Reading.

  Status append(const TokenSource& source);
  /// Adds messages in the OpenAI form: an object or a list. With a `role`: one message with this text.
  /// `pictures`: the source for parts {"type": "image", "picture": N}, or null.
  Status appendMessages(const char* role, const char* text, size_t bytes,
                        PictureSource* pictures = nullptr);
  /// Computes the vector of ids or a text: n_embd `values`, and the number of tokens. The session must be empty and
  /// stays empty.
  Status embed(const TokenSource& source, Pooling pooling, float* values, uint32_t* n_tokens);
  /// Runs an encoder, as described at WholeTexts::read().
  Status embedWhole(const WholeText* texts, size_t count, uint32_t pooling, float* values,
                    uint32_t* tokens);
  /// Puts the turns that match the text after the sinks, from this position on.
  Status recall(const char* text, size_t bytes) { return recall_.recall(text, bytes); }
  Status mark(const char* name);
  /// Sets a scale for each of the model's adapters; the model must have some. Reads tokens again that used other
  /// scales.
  Status useAdapters(const float* scales);

  // Replies.

  Replier& replier() { return replier_; }
  /// Opens the assistant's turn. `tools` has templateScratchBytes() and must stay valid until the reply ends.
  Status openReply(const GenerateSettings& settings, Scratch* tools, ReplyPlace* place);
  /// Ends a turn that openReply() opened. If the reply failed before its first token, removes the turn, so that the app
  /// can ask again. A cancelled reply keeps its turn.
  Status closeReply(const ReplyCall& call);

  // Saving. With several sessions the device's objects may be freed and allocated again.

  /// Writes a snapshot of `bytes` bytes to `out`; null: only counts them. `saved_at`: seconds since 1970; 0: unknown.
  Status save(void* out, uint64_t* bytes, int64_t saved_at = 0) const;
  /// Call before the arenas for steps are freed, and with `back` after they were allocated again.
  Status moveLogits(bool back) { return back ? stepper_.enterDevice() : stepper_.leaveDevice(); }
  /// Uses this executor from now on.
  void moveTo(Executor* executor);
  /// For timing only: sets the number of committed tokens without changing the cache.
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
  Status sharePictures(Prefix* prefix);
  void forgetPictures();
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
  Status followTemplate(const JsonValue& added, uint64_t bytes, bool* done);
  Status readNew(const JsonValue& added, uint64_t bytes, const uint64_t* records);
  Status readRendered(const JsonValue& added, const uint64_t* records, const NewText& text,
                      Scratch* scratch);
  Status addMessages(const JsonValue& added, uint64_t bytes, const uint64_t* records = nullptr);
  Status appendJson(const char* json, size_t bytes, PictureSource* source);
  Status readPictures(const JsonValue& messages, PictureSource* source, Scratch* scratch,
                      const JsonValue** out);
  Status readPicture(const JsonValue& given, PictureSource* source, uint32_t first,
                     Scratch* scratch, JsonMade** part);
  Status expectPictures(const JsonValue& added);
  uint64_t pictureTokens(uint32_t index) const;
  int32_t placeholder() const;
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
