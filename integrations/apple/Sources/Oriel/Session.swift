import COriel
import Foundation

/// A model with a conversation. Calls may come from any task and are done one after the other, on a
/// thread of the session's own; `cancel` and `close` need not wait for their turn.
public final class Session: @unchecked Sendable {
  private let core: Core
  private let queue = DispatchQueue(label: "oriel.session", qos: .userInitiated)
  private let memory = DispatchQueue(label: "oriel.memory", qos: .userInitiated)

  /// Loads a GGUF file and makes a conversation with it, all inside `memoryBytes` (0: half of what
  /// the system has free).
  public static func open(
    path: String, memoryBytes: UInt64, options: Options = Options()
  ) async throws -> Session {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global(qos: .userInitiated).async {
        continuation.resume(
          with: Result {
            try Session(Core(path: path, memoryBytes: memoryBytes, options: options))
          })
      }
    }
  }

  /// What would be allocated. Reads the file's header only; fast, touches no device.
  public static func plan(
    path: String, memoryBytes: UInt64, options: Options = Options()
  ) throws -> Plan {
    try options.checkTexts(path: path)
    let log = Log(options.log)
    return try withExtendedLifetime(log) {
      let pinned = try Core.pinnedTokens(path, memoryBytes, options)
      var plan = oriel_plan()
      plan.struct_size = MemoryLayout<oriel_plan>.stride
      try options.withC(memoryBytes: memoryBytes, pinnedTokens: pinned, log: log) { c in
        try log.check(oriel_plan_file(path, &c, &plan))
      }
      return Plan(plan)
    }
  }

  /// What a file is and whether this library can run it; also for files it cannot run.
  public static func inspect(path: String) throws -> FileInfo {
    try refuseNul(path, "path")
    let log = Log(nil)
    return try withExtendedLifetime(log) {
      var options = oriel_options()
      options.struct_size = MemoryLayout<oriel_options>.stride
      options.log = Log.receive
      options.log_user = log.pointer
      var info = oriel_file_info()
      info.struct_size = MemoryLayout<oriel_file_info>.stride
      try log.check(oriel_inspect(path, &options, &info))
      return FileInfo(info)
    }
  }

  /// Forgets what `Options.cacheDirectory` says against devices and their drivers: kernels that were
  /// wrong, and where a driver ended the process. For apps that know better.
  public static func forgetDevices(cacheDirectory: String) throws {
    try refuseNul(cacheDirectory, "cacheDirectory")
    let log = Log(nil)
    try withExtendedLifetime(log) {
      try cacheDirectory.withCString { folder in
        var options = oriel_options()
        options.struct_size = MemoryLayout<oriel_options>.stride
        options.cache_dir = folder
        options.log = Log.receive
        options.log_user = log.pointer
        try log.check(oriel_device_forget(&options))
      }
    }
  }

  /// "0.1.0"
  public static var version: String { String(cString: oriel_version()) }

  private init(_ core: Core) { self.core = core }

  /// The plan that was carried out.
  public var plan: Plan { core.plan }
  /// What it runs on.
  public var device: String { core.device }
  /// Name and version of its driver.
  public var driver: String { core.driver }

  /// Says something; the stream is the answer as it is generated. Cancelling the task that reads it
  /// cancels the reply. One that `cancel` or `close` ends simply ends the stream; what was
  /// generated stays part of the conversation. With sampling that is out of range or asks for what is
  /// not there (status argument, unsupported or state) the message is taken back.
  public func chat(
    _ text: String, sampling: Sampling = Sampling()
  ) -> AsyncThrowingStream<String, Error> {
    stream { core, call, continuation in
      _ = try core.reply(to: text, inChat: true, sampling, call) { event in
        if case .text(let piece) = event { continuation.yield(piece) }
      }
    }
  }

  /// The same with all that there is to know: what the answer is, what is thought, which tools are
  /// called, and how it ended.
  public func events(
    _ text: String, sampling: Sampling = Sampling()
  ) -> AsyncThrowingStream<Event, Error> {
    events(to: text, inChat: true, sampling)
  }

  /// Answers what was added, e.g. a tool's result.
  public func reply(sampling: Sampling = Sampling()) -> AsyncThrowingStream<Event, Error> {
    events(to: nil, inChat: true, sampling)
  }

  /// Continues what was appended.
  public func generate(sampling: Sampling = Sampling()) -> AsyncThrowingStream<Event, Error> {
    events(to: nil, inChat: false, sampling)
  }

  /// Says something and waits for the whole answer. Cancelling the task cancels the reply, which is returned as far
  /// as it went; before its turn it throws CancellationError.
  public func ask(_ text: String, sampling: Sampling = Sampling()) async throws -> Reply {
    let core = self.core
    let call = Core.Call()
    return try await withTaskCancellationHandler {
      try await perform { try $0.reply(to: text, inChat: true, sampling, call) { _ in } }
    } onCancel: {
      core.cancel(call)
    }
  }

  /// Adds a message without asking for a reply, e.g. an earlier conversation.
  public func add(role: String, text: String) async throws {
    try await perform { try $0.add(role, text) }
  }

  /// The same of a message, or a list of them, as JSON in the OpenAI form: with tool_calls, roles such
  /// as tool, and whatever else the model's template knows.
  public func addJSON(_ messages: String) async throws {
    try await perform { core in
      try core.call { session in
        withBytes(messages) { oriel_chat_add_json(session, $0, $1) }
      }
    }
  }

  /// Appends raw text, for models that do not chat. Control tokens in it count as such.
  public func append(_ text: String) async throws {
    try await perform { core in
      try core.call { session in
        withBytes(text) { oriel_session_append_text(session, $0, $1, ORIEL_TEXT_SPECIAL) }
      }
    }
  }

  /// Forgets everything from a position on, e.g. to answer again; see oriel_session_rewind for how far.
  public func rewind(to position: UInt64) async throws {
    try await perform { core in try core.call { oriel_session_rewind($0, position) } }
  }

  /// After an error with `isDeviceLost`: the conversation goes on where it was, on a device that is made
  /// anew: the one that was lost, else another, else the CPU. It takes as long as opening, and reading
  /// what was said. What fails may be tried again. Returns the device's name.
  public func recover() async throws -> String {
    try await perform { try $0.recover() }
  }

  public func stats() async throws -> Stats { try await perform { try $0.stats() } }

  public func tokenize(_ text: String) async throws -> [Int32] {
    try await perform { try $0.tokenize(text) }
  }

  public func detokenize(_ ids: [Int32]) async throws -> String {
    try await perform { try $0.detokenize(ids) }
  }

  /// The text that a conversation becomes, given as `addJSON` takes it.
  public func render(_ messages: String, generationPrompt: Bool = true) async throws -> String {
    try await perform { try $0.render(messages, generationPrompt: generationPrompt) }
  }

  /// Its tokens.
  public func renderTokens(
    _ messages: String, generationPrompt: Bool = true
  ) async throws -> [Int32] {
    try await perform { try $0.renderTokens(messages, generationPrompt: generationPrompt) }
  }

  /// What the whole text of a reply means, as `Reply.parsed`. `insideThought`: the model's template
  /// opened a thought itself.
  public func parseReply(_ text: String, insideThought: Bool = false) async throws -> Parsed {
    try await perform { try $0.parseReply(text, insideThought: insideThought) }
  }

  /// A text as a vector. The conversation must be empty (status state), so open without a system
  /// prompt; it is again afterwards. A text that is longer than the window is refused (context).
  public func embed(
    _ text: String, pooling: Pooling = .automatic, normalised: Bool = true
  ) async throws -> Embedding {
    try await perform { try $0.embed(text, pooling, normalised: normalised) }
  }

  /// Back to a new conversation (with the system prompt), which takes no new memory. Where the prompt
  /// could not be read, as this was cancelled or the session paused meanwhile, it throws, and the next call
  /// on the conversation reads it first.
  public func reset() async throws { try await perform { try $0.reset() } }

  /// Writes the conversation to a file, atomically.
  public func save(to path: String) async throws {
    try refuseNul(path, "path")
    try await perform { core in try core.call { oriel_session_save_file($0, path) } }
  }

  /// Goes on where `save` was called, given the same model, memory and options.
  public func restore(from path: String) async throws {
    try await perform { try $0.restore(path) }
  }

  /// Stops the call that runs, as soon as the device has done what it was given. Without one, nothing happens.
  public func cancel() { core.cancel(nil) }

  /// Frees everything, after the call that runs was cancelled, or `resume`. Later calls throw. Dropping the
  /// last reference frees, too, once nothing runs.
  ///
  /// After `pause` a call that rests is ended, too. One that has to undo something on the device takes back
  /// for that what `trim` gave; where that fails the log says why, nothing is freed, and this may be called again.
  public func close() async {
    let core = self.core
    core.beginClosing()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      memory.async { [queue, memory] in  // behind what is under way there
        guard core.wake() else { return continuation.resume() }
        queue.async {
          memory.async {
            core.free()
            continuation.resume()
          }
        }
      }
    }
  }

  /// As perform(), beside a call that runs.
  func tend(_ body: @escaping @Sendable (Core, OpaquePointer?) -> oriel_status) async throws {
    let core = self.core
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, Error>) in
      memory.async { continuation.resume(with: Result { try core.tend { body(core, $0) } }) }
    }
  }

  func perform<Value: Sendable>(
    _ body: @escaping @Sendable (Core) throws -> Value
  ) async throws -> Value {
    let core = self.core
    return try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Value, Error>) in
      queue.async { continuation.resume(with: Result { try body(core) }) }
    }
  }

  private func events(
    to message: String?, inChat: Bool, _ sampling: Sampling
  ) -> AsyncThrowingStream<Event, Error> {
    stream { core, call, continuation in
      let reply = try core.reply(to: message, inChat: inChat, sampling, call) {
        continuation.yield($0)
      }
      continuation.yield(.ended(reply))
    }
  }

  /// What `body` yields, in the session's turn.
  private func stream<Element>(
    _ body: @escaping @Sendable (
      Core, Core.Call, AsyncThrowingStream<Element, Error>.Continuation
    ) throws -> Void
  ) -> AsyncThrowingStream<Element, Error> {
    let core = self.core
    return AsyncThrowingStream { continuation in
      let call = Core.Call()
      continuation.onTermination = { termination in
        if case .cancelled = termination { core.cancel(call) }
      }
      queue.async {
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
