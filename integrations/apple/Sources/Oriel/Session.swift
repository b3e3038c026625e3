import COriel
import Foundation

/// A conversation with a model. Calls may come from any task and are done one after the other, on a
/// thread of the session's own; `cancel` and `close` need not wait for their turn. Conversations of one model may go on
/// at the same time.
public final class Session: @unchecked Sendable {
  public let model: Model
  private let core: SessionCore

  init(_ core: SessionCore, of model: Model) {
    self.core = core
    self.model = model
  }

  /// Says something; the stream is the answer as it is generated. Cancelling the task that reads it
  /// cancels the reply. One that `cancel` or `close` ends simply ends the stream; what was
  /// generated stays part of the conversation. With options that are wrong or ask for what is
  /// not there (status argument, unsupported or state) the message is taken back.
  public func chat(
    _ text: String, options: ReplyOptions = [:]
  ) -> AsyncThrowingStream<String, Error> {
    stream { core, call, continuation in
      _ = try core.reply(to: text, inChat: true, options, call) { event in
        if case .text(let piece) = event { continuation.yield(piece) }
      }
    }
  }

  /// The same with all that there is to know: what the answer is, what is thought, which tools are
  /// called, and how it ended.
  public func events(
    _ text: String, options: ReplyOptions = [:]
  ) -> AsyncThrowingStream<Event, Error> {
    events(to: text, inChat: true, options)
  }

  /// Answers what was added, e.g. a tool's result.
  public func reply(options: ReplyOptions = [:]) -> AsyncThrowingStream<Event, Error> {
    events(to: nil, inChat: true, options)
  }

  /// Continues what was appended.
  public func generate(options: ReplyOptions = [:]) -> AsyncThrowingStream<Event, Error> {
    events(to: nil, inChat: false, options)
  }

  /// Says something and waits for the whole answer. Cancelling the task cancels the reply, which is returned as far
  /// as it went; before its turn it throws CancellationError.
  public func ask(_ text: String, options: ReplyOptions = [:]) async throws -> Reply {
    let core = self.core
    let call = SessionCore.Call()
    return try await withTaskCancellationHandler {
      try await perform { try $0.reply(to: text, inChat: true, options, call) { _ in } }
    } onCancel: {
      core.cancel(call)
    }
  }

  /// Adds a message without asking for a reply, e.g. an earlier conversation.
  public func add(role: String, text: String) async throws {
    try refuseNul(role, "role")
    try await call { session in withBytes(text) { oriel_chat_add(session, role, $0, $1) } }
  }

  /// The same of a message, or a list of them, as JSON in the OpenAI form: with tool_calls, roles such
  /// as tool, and whatever else the model's template knows.
  public func addJSON(_ messages: String) async throws {
    try await call { session in withBytes(messages) { oriel_chat_add(session, nil, $0, $1) } }
  }

  /// Appends raw text, for models that do not chat. Control tokens in it count as such.
  public func append(_ text: String) async throws {
    try await call { session in
      withBytes(text) { oriel_session_append_text(session, $0, $1, ORIEL_TEXT_SPECIAL) }
    }
  }

  /// Removes everything from a position on, e.g. to answer again. Where the memory lacks that place the transcript is
  /// read again, if there is one (option "transcript"); else status context.
  public func goBack(to position: UInt64) async throws {
    try await call { oriel_session_go_back($0, ORIEL_BACK_TO_POSITION, position, nil, ORIEL_READ_AGAIN) }
  }

  /// The same, to a `mark`.
  public func goBack(toMark mark: String) async throws {
    try refuseNul(mark, "mark")
    try await call { oriel_session_go_back($0, ORIEL_BACK_TO_MARK, 0, mark, ORIEL_READ_AGAIN) }
  }

  /// Removes the latest turns.
  public func undo(turns: UInt64 = 1) async throws {
    try await call { oriel_session_go_back($0, ORIEL_BACK_BY_TURNS, turns, nil, ORIEL_READ_AGAIN) }
  }

  /// Gives the place that the conversation is at a name, for `goBack(toMark:)`.
  public func mark(_ name: String) async throws {
    try refuseNul(name, "name")
    try await call { oriel_session_mark($0, name) }
  }

  /// A second conversation that goes on from here, with the same options. The model must have room for it.
  public func fork() async throws -> Session {
    let model = self.model
    return try await perform { Session(try $0.fork(), of: model) }
  }

  /// After an error with `isDeviceLost`: the conversation goes on where it was, on a device that is made
  /// anew: the one that was lost, else another, else the CPU. It takes as long as loading, and reading
  /// what was said. What fails may be tried again. Each session of a model is recovered or closed.
  public func recover() async throws -> Recovered { try await perform { try $0.recover() } }

  public func stats() async throws -> Stats { try await perform { try $0.stats() } }

  /// Options in force, turns, marks and counters.
  public func describe() async throws -> Description { try await perform { try $0.describe() } }

  /// A text as a vector. The conversation must be empty (status state), so load without a system
  /// prompt; it is again afterwards. A text that is longer than the window is refused (context).
  public func embed(
    _ text: String, pooling: Pooling = .automatic, normalised: Bool = true
  ) async throws -> Embedding {
    try await perform { try $0.embed(text, pooling, normalised: normalised) }
  }

  /// Back to a new conversation (with the system prompt), which takes no new memory.
  public func reset() async throws { try await perform { try $0.replace { oriel_session_reset($0) } } }

  /// Writes the conversation to a file, atomically. Another file of this name must be a snapshot or empty, unless
  /// `overwrite`.
  public func save(to path: String, overwrite: Bool = false) async throws {
    try refuseNul(path, "path")
    try await call { oriel_session_save($0, path, overwrite ? ORIEL_SAVE_OVERWRITE : 0) }
  }

  /// Goes on where `save` was called, given the same model. With the same memory and options it goes on to the
  /// letter; into another window or cache format it takes what fits. `readAgain`: what cannot be carried over is read
  /// from the transcript.
  @discardableResult
  public func restore(from path: String, readAgain: Bool = false) async throws -> Restored {
    try refuseNul(path, "path")
    return try await perform { core in
      var result = oriel_restored()
      result.struct_size = MemoryLayout<oriel_restored>.stride
      try core.replace { oriel_session_restore($0, path, readAgain ? ORIEL_RESTORE_READ : 0, &result) }
      return Restored(result)
    }
  }

  /// Stops the call that runs, as soon as the device has done what it was given. Without one, nothing happens.
  public func cancel() { core.cancel(nil) }

  /// Gives its place in the model back, after the call that runs was cancelled. Later calls throw. Dropping the last
  /// reference does it, too, some time after nothing runs any more. A call that rests after `Model.pause` is ended as
  /// `Model.close` does it, for which the whole pause may end.
  public func close() async {
    let core = self.core
    core.beginClosing()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      core.model.queue.async {  // behind what is under way there
        guard core.model.wake() else { return continuation.resume() }
        core.queue.async {
          core.model.queue.async {
            core.free()
            continuation.resume()
          }
        }
      }
    }
  }

  private func call(_ body: @escaping @Sendable (OpaquePointer?) -> oriel_status) async throws {
    try await perform { try $0.call(body) }
  }

  func perform<Value: Sendable>(
    _ body: @escaping @Sendable (SessionCore) throws -> Value
  ) async throws -> Value {
    let core = self.core
    return try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Value, Error>) in
      core.queue.async { continuation.resume(with: Result { try body(core) }) }
    }
  }

  private func events(
    to message: String?, inChat: Bool, _ options: ReplyOptions
  ) -> AsyncThrowingStream<Event, Error> {
    stream { core, call, continuation in
      let reply = try core.reply(to: message, inChat: inChat, options, call) {
        continuation.yield($0)
      }
      continuation.yield(.ended(reply))
    }
  }

  /// What `body` yields, in the session's turn.
  private func stream<Element>(
    _ body: @escaping @Sendable (
      SessionCore, SessionCore.Call, AsyncThrowingStream<Element, Error>.Continuation
    ) throws -> Void
  ) -> AsyncThrowingStream<Element, Error> {
    let core = self.core
    return AsyncThrowingStream { continuation in
      let call = SessionCore.Call()
      continuation.onTermination = { termination in
        if case .cancelled = termination { core.cancel(call) }
      }
      core.queue.async {
        continuation.finish(with: Result { try body(core, call, continuation) })
      }
    }
  }
}

extension AsyncThrowingStream.Continuation where Failure == Error {
  fileprivate func finish(with result: Result<Void, Error>) {
    switch result {
    case .success: finish()
    case .failure(let error): finish(throwing: error)
    }
  }
}
