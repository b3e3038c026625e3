import COriel
import Foundation

/// A model with a conversation. Calls may come from any task and are done one after the other, on a
/// thread of the session's own; `cancel` and `close` need not wait for their turn.
public final class Session: @unchecked Sendable {
  private let core: Core
  private let queue = DispatchQueue(label: "oriel.session", qos: .userInitiated)

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
    let log = Log(options.log)
    return try withExtendedLifetime(log) {
      let pinned = try Core.pinnedTokens(path, memoryBytes, options)
      var plan = oriel_plan()
      plan.struct_size = MemoryLayout<oriel_plan>.stride
      try options.withC(memoryBytes: memoryBytes, pinnedTokens: pinned, log: log) { c, _ in
        try log.check(oriel_plan_file(path, &c, &plan))
      }
      return Plan(plan)
    }
  }

  private init(_ core: Core) { self.core = core }

  /// The plan that was carried out.
  public var plan: Plan { core.plan }
  /// What it runs on.
  public var device: String { core.device }

  /// Says something; the stream is the answer as it is generated. Cancelling the task that reads it
  /// cancels the reply. One that `cancel` or `close` ends simply ends the stream; what was
  /// generated stays part of the conversation. With sampling that is out of range (status argument)
  /// the message is taken back.
  public func chat(
    _ text: String, sampling: Sampling = Sampling()
  ) -> AsyncThrowingStream<String, Error> {
    let core = self.core
    return AsyncThrowingStream { continuation in
      let call = Core.Call()
      continuation.onTermination = { termination in
        if case .cancelled = termination { core.cancel(call) }
      }
      queue.async {
        continuation.finish(
          with: Result { try core.chat(text, sampling, call) { continuation.yield($0) } })
      }
    }
  }

  /// Adds a message without asking for a reply, e.g. an earlier conversation.
  public func add(role: String, text: String) async throws {
    try await perform { try $0.add(role, text) }
  }

  /// Back to a new conversation (with the system prompt), which takes no new memory.
  public func reset() async throws { try await perform { try $0.reset() } }

  /// Writes the conversation to a file, atomically.
  public func save(to path: String) async throws {
    try await perform { core in try core.call { oriel_session_save_file($0, path) } }
  }

  /// Goes on where `save` was called, given the same model, memory and options.
  public func restore(from path: String) async throws {
    try await perform { core in try core.call { oriel_session_restore_file($0, path) } }
  }

  /// Stops the call that runs, as soon as the device has done what it was given. Without one, nothing happens.
  public func cancel() { core.cancel(nil) }

  /// Frees everything, after the call that runs was cancelled. Later calls throw. Dropping the last
  /// reference frees, too, once nothing runs.
  public func close() async {
    let core = self.core
    core.beginClosing()
    await withCheckedContinuation { continuation in
      queue.async {
        core.free()
        continuation.resume()
      }
    }
  }

  func perform(_ body: @escaping @Sendable (Core) throws -> Void) async throws {
    let core = self.core
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, Error>) in
      queue.async { continuation.resume(with: Result { try body(core) }) }
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
