import COriel
import Foundation

/// A conversation. Calls may come from any task and run one after the other. `cancel` and `close` work at any time.
/// Sessions of one model run in parallel.
public final class Session: @unchecked Sendable {
  public let model: Model
  private let core: SessionCore

  init(_ core: SessionCore, of model: Model) {
    self.core = core
    self.model = model
  }

  /// Adds a user message and streams the reply. Cancelling the reading task cancels the reply. `cancel` and `close` end
  /// the stream without an error, and the generated text stays. If the library refuses the reply (status argument,
  /// unsupported or state), the message is taken back.
  public func chat(
    _ text: String, options: ReplyOptions = [:]
  ) -> AsyncThrowingStream<String, Error> {
    stream { core, call, continuation in
      _ = try core.reply(to: text, inChat: true, options, call) { event in
        if case .text(let piece) = event { continuation.yield(piece) }
      }
    }
  }

  /// As `chat`, with thoughts, tool calls and the end of the reply.
  public func events(
    _ text: String, options: ReplyOptions = [:]
  ) -> AsyncThrowingStream<Event, Error> {
    events(to: text, inChat: true, options)
  }

  /// Replies to the added messages, for example a tool's result.
  public func reply(options: ReplyOptions = [:]) -> AsyncThrowingStream<Event, Error> {
    events(to: nil, inChat: true, options)
  }

  /// Continues appended text.
  public func generate(options: ReplyOptions = [:]) -> AsyncThrowingStream<Event, Error> {
    events(to: nil, inChat: false, options)
  }

  /// Adds a user message and returns the whole reply. Cancelling the task cancels the reply and returns the text so
  /// far. Before its turn the call throws CancellationError.
  public func ask(_ text: String, options: ReplyOptions = [:]) async throws -> Reply {
    let core = self.core
    let call = SessionCore.Call()
    return try await withTaskCancellationHandler {
      try await perform { try $0.reply(to: text, inChat: true, options, call) { _ in } }
    } onCancel: {
      core.cancel(call)
    }
  }

  /// Adds a message without a reply, for example of an earlier conversation.
  public func add(role: String, text: String) async throws {
    try refuseNul(role, "role")
    try await call { session in withBytes(text) { oriel_chat_add(session, role, $0, $1) } }
  }

  /// Adds one message or a list of messages, as JSON in the OpenAI form, with tool_calls, the role tool, and other
  /// members that the template reads.
  public func addJSON(_ messages: String) async throws {
    try await call { session in withBytes(messages) { oriel_chat_add(session, nil, $0, $1) } }
  }

  /// Adds a message with pictures before its text. Needs the load option "mmproj".
  public func add(role: String, text: String, pictures: [Picture]) async throws {
    let parts: [[String: Any]] =
      pictures.indices.map { ["type": "image", "picture": $0] } + [["type": "text", "text": text]]
    let json = try JSONSerialization.data(withJSONObject: ["role": role, "content": parts])
    try await addJSON(String(decoding: json, as: UTF8.self), pictures: pictures)
  }

  /// As `addJSON`. Parts {"type": "image", "picture": N} of a message stand for pictures[N].
  public func addJSON(_ messages: String, pictures: [Picture]) async throws {
    try await call { session in
      let held = pictures.map { NSData(data: $0.pixels) }
      return withExtendedLifetime(held) {
        let given = zip(pictures, held).map { $0.c($1.bytes) }
        return withBytes(messages) { oriel_chat_add_pictures(session, $0, $1, given, given.count) }
      }
    }
  }

  /// Appends raw text, for base models. Control tokens in it become their ids.
  public func append(_ text: String) async throws {
    try await call { session in
      withBytes(text) { oriel_session_append_text(session, $0, $1, ORIEL_TEXT_SPECIAL) }
    }
  }

  /// Removes the tokens after a position. If they need evicted tokens, the transcript is read again (load option
  /// "transcript"), or the call throws status context.
  public func goBack(to position: UInt64) async throws {
    try await call { oriel_session_go_back($0, ORIEL_BACK_TO_POSITION, position, nil, ORIEL_READ_AGAIN) }
  }

  /// Goes back to a `mark`.
  public func goBack(toMark mark: String) async throws {
    try refuseNul(mark, "mark")
    try await call { oriel_session_go_back($0, ORIEL_BACK_TO_MARK, 0, mark, ORIEL_READ_AGAIN) }
  }

  /// Removes the latest turns.
  public func undo(turns: UInt64 = 1) async throws {
    try await call { oriel_session_go_back($0, ORIEL_BACK_BY_TURNS, turns, nil, ORIEL_READ_AGAIN) }
  }

  /// Names the current position, for `goBack(toMark:)`.
  public func mark(_ name: String) async throws {
    try refuseNul(name, "name")
    try await call { oriel_session_mark($0, name) }
  }

  /// The LoRA adapters from here on, as the session option "adapters": "style,sql:0.5". Nil: all as loaded. Tokens that
  /// were read with others are read again.
  public func use(adapters: String?) async throws {
    if let adapters { try refuseNul(adapters, "adapters") }
    try await call { oriel_session_use_adapters($0, adapters) }
  }

  /// Creates a session that continues from here, with the same options. Needs a free session.
  public func fork() async throws -> Session {
    let model = self.model
    return try await perform { Session(try $0.fork(), of: model) }
  }

  /// Continues the conversation after an error with `isDeviceLost`, on the lost device, another one or the CPU. Takes
  /// as long as a load and a prefill. May be repeated after a failure. Recover or close each session of the model.
  public func recover() async throws -> Recovered { try await perform { try $0.recover() } }

  public func stats() async throws -> Stats { try await perform { try $0.stats() } }

  /// Options in force, turns, marks and counters.
  public func describe() async throws -> Description { try await perform { try $0.describe() } }

  /// The vector of a text. The session must be empty, so load without a system prompt. Status context: the text is
  /// longer than the window.
  public func embed(
    _ text: String, pooling: Pooling = .automatic, normalised: Bool = true
  ) async throws -> Embedding {
    try await perform { try $0.embed(text, pooling, normalised: normalised) }
  }

  /// Starts a new conversation in the same memory, after the system prompt.
  public func reset() async throws { try await perform { try $0.replace { oriel_session_reset($0) } } }

  /// Writes the conversation to a file, atomically. Without `overwrite` it replaces only a snapshot or an empty file.
  public func save(to path: String, overwrite: Bool = false) async throws {
    try refuseNul(path, "path")
    try await call { oriel_session_save($0, path, overwrite ? ORIEL_SAVE_OVERWRITE : 0) }
  }

  /// Replaces the conversation by a saved one of the same model. With the same options the state is exact. Into another
  /// window or cache format, the tokens that fit are carried over. `readAgain`: falls back to the transcript.
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

  /// Stops the running call after the current step of the device. No running call: no effect.
  public func cancel() { core.cancel(nil) }

  /// Cancels the running call and frees the session. Later calls throw. An unreferenced session is freed some time
  /// later. If a paused call must undo work on the device, close() resumes the whole model, as `Model.close` does.
  public func close() async {
    let core = self.core
    core.beginClosing()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      core.model.queue.async {  // after earlier calls
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

  /// Streams the elements of `body`, which runs in turn.
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
