import COriel
import Foundation

/// A loaded model. It holds up to "sessions" sessions (load option). Calls may come from any task and run one after the
/// other, in parallel to calls of its sessions.
public final class Model: @unchecked Sendable {
  private let core: ModelCore
  /// The plan of this load.
  public let plan: Plan

  /// Loads a GGUF file. The model and its sessions stay within the option "memory", by default half of the free memory.
  public static func load(
    path: String, options: Options = [:], log: LogListener? = nil, progress: ProgressListener? = nil
  ) async throws -> Model {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global(qos: .userInitiated).async {
        continuation.resume(
          with: Result { try Model(ModelCore(path: path, options: options, log: log, progress: progress)) })
      }
    }
  }

  /// Plans a load. Reads the header of the file only, and uses no device.
  public static func plan(path: String, options: Options = [:]) throws -> Plan {
    try refuseNul(path, "path")
    let log = Log(nil)
    var plan = oriel_plan()
    plan.struct_size = MemoryLayout<oriel_plan>.stride
    try withExtendedLifetime(log) {
      try options.withC(log: log) { try log.check(oriel_plan_file(path, &$0, &plan)) }
    }
    return Plan(plan)
  }

  /// The whole plan.
  public static func describePlan(path: String, options: Options = [:]) throws -> Description {
    try refuseNul(path, "path")
    return try describe(options) { oriel_plan_describe(path, &$0, $1, $2, &$3) }
  }

  /// The content of a file, and the reasons if this build cannot run it.
  public static func describeFile(path: String) throws -> Description {
    try refuseNul(path, "path")
    return try describe([:]) { oriel_file_describe(path, &$0, $1, $2, &$3) }
  }

  /// The devices. `forget`: first deletes the verdicts about drivers in the option "cache_folder".
  public static func describeDevices(options: Options = [:], forget: Bool = false) throws -> Description {
    try describe(options) { oriel_device_describe(&$0, forget ? ORIEL_DEVICE_FORGET : 0, $1, $2, &$3) }
  }

  /// A file of `Session.save`.
  public static func describeSnapshot(path: String) throws -> Description {
    try refuseNul(path, "path")
    return try describe([:]) { oriel_snapshot_describe(path, nil, 0, &$0, $1, $2, &$3) }
  }

  /// All options.
  public static func describeOptions() throws -> Description {
    try describe([:]) { oriel_option_list($1, $2, &$3) }
  }

  private static func describe(
    _ options: Options,
    _ fill: (inout oriel_options, UnsafeMutablePointer<CChar>?, Int, inout Int) -> oriel_status
  ) throws -> Description {
    let log = Log(nil)
    return try withExtendedLifetime(log) {
      try options.withC(log: log) { c in
        Description(try text(log, nuls: 1) { fill(&c, $0, $1, &$2) })
      }
    }
  }

  /// "0.2.0"
  public static var version: String { String(cString: oriel_version()) }

  private init(_ core: ModelCore) throws {
    var plan = oriel_plan()
    plan.struct_size = MemoryLayout<oriel_plan>.stride
    try core.call { try core.log.check(oriel_model_get_plan($0, &plan)) }
    self.core = core
    self.plan = Plan(plan)
  }

  /// File, device, plan, options in force and resident memory.
  public func describe() async throws -> Description {
    try await perform { model, log in
      Description(try text(log, nuls: 1) { oriel_model_describe(model, $0, $1, &$2) })
    }
  }

  /// Creates a session. Status state: all planned sessions exist. `progress` gets the tokens that a call has read,
  /// after each prefill batch. Recurrent models also count tokens that they read again.
  public func session(
    _ options: SessionOptions = [:], progress: ProgressListener? = nil
  ) async throws -> Session {
    let core = self.core
    return try await perform { _, _ in Session(try SessionCore(core, options, progress), of: self) }
  }

  /// Makes the content of the session the beginning of all sessions. The model stores it once and never evicts it. nil
  /// removes the prefix. Needs the load option "prefix_tokens".
  public func setPrefix(_ session: Session?) async throws {
    let core = self.core
    guard let session = session else {
      return try await perform { model, log in try log.check(oriel_prefix_set(model, nil)) }
    }
    try await session.perform { on in
      try core.call { model in try on.call { oriel_prefix_set(model, $0) } }
    }
  }

  public func tokenize(_ text: String) async throws -> [Int32] {
    try await perform { model, log in
      try filled(with: 0, log) { ids, capacity, needed in
        withBytes(text) { oriel_tokenize(model, $0, $1, 0, ids, capacity, &needed) }
      }
    }
  }

  public func detokenize(_ ids: [Int32]) async throws -> String {
    try await perform { model, log in
      try text(log) { oriel_detokenize(model, ids, ids.count, 0, $0, $1, &$2) }
    }
  }

  /// The prompt text of messages, which are JSON as in `Session.addJSON`.
  public func render(
    _ messages: String, options: SessionOptions = [:], generationPrompt: Bool = true
  ) async throws -> String {
    let flags = generationPrompt ? ORIEL_RENDER_PROMPT : 0
    return try await perform { model, log in
      try options.withC { c in
        try text(log) { chars, capacity, needed in
          withBytes(messages) { oriel_render(model, &c, $0, $1, flags, chars, capacity, &needed) }
        }
      }
    }
  }

  /// The tokens of that text.
  public func renderTokens(
    _ messages: String, options: SessionOptions = [:], generationPrompt: Bool = true
  ) async throws -> [Int32] {
    let flags = generationPrompt ? ORIEL_RENDER_PROMPT : 0
    return try await perform { model, log in
      try options.withC { c in
        try filled(with: 0, log) { ids, capacity, needed in
          withBytes(messages) { oriel_render_tokens(model, &c, $0, $1, flags, ids, capacity, &needed) }
        }
      }
    }
  }

  /// Separates the parts of a finished reply, as `Reply.parsed`. `insideThought`: the template opened a thought before
  /// the reply.
  public func parseReply(
    _ text: String, options: SessionOptions = [:], insideThought: Bool = false
  ) async throws -> Parsed {
    try await perform { model, log in
      let sink = Sink(wantsTokens: false) { _ in }
      try withExtendedLifetime(sink) {
        try options.withC { c in
          try log.check(
            withBytes(text) {
              oriel_parse_reply(model, &c, insideThought ? 1 : 0, $0, $1, Sink.receivePart, sink.pointer)
            })
        }
      }
      return sink.reply.parsed
    }
  }

  /// Stops replies between two tokens until `resume`, and leaves the device idle. Memory stays. New calls throw status
  /// state until then.
  public func pause() async throws {
    try await perform { model, log in try log.check(oriel_pause(model)) }
  }

  /// Gives memory back until `resume`. Waits for running calls. A failure changes nothing. `.all` needs the load option
  /// "transcript". `folder` (for cache): the folder of the cache files (mode 0600).
  public func trim(_ level: Trim, folder: String? = nil) async throws {
    try refuseNul(folder, "folder")
    try await perform { model, log in
      try log.check(
        withOptionalCString(folder) { oriel_trim(model, oriel_trim_level(rawValue: level.rawValue), $0) })
    }
  }

  /// Ends `pause` and `trim`. May take as long as a load. After a failure the model stays trimmed, and the call may be
  /// repeated. `progress` gets the bytes of weights.
  public func resume(progress: ProgressListener? = nil) async throws {
    let core = self.core
    try await perform { model, log in
      let sink = ProgressSink { done, total in !core.isClosing && (progress?(done, total) ?? true) }
      try withExtendedLifetime(sink) {
        try log.check(oriel_resume(model, ProgressSink.receive, sink.pointer))
      }
    }
  }

  /// Closes its sessions and frees everything. Cancels running calls first, `resume` included. Later calls throw. An
  /// unreferenced model without referenced sessions is freed too.
  ///
  /// Paused calls end too. If a paused call must undo work on the device, close() resumes the model for it. If that
  /// fails, the log has the reason, nothing is freed, and close() may be called again.
  public func close() async {
    let core = self.core
    core.beginClosing()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      core.queue.async {  // after earlier calls
        guard core.wake() else { return continuation.resume() }
        core.free { continuation.resume() }
      }
    }
  }

  private func perform<Value: Sendable>(
    _ body: @escaping @Sendable (OpaquePointer?, Log) throws -> Value
  ) async throws -> Value {
    let core = self.core
    return try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Value, Error>) in
      core.queue.async {
        continuation.resume(with: Result { try core.call { try body($0, core.log) } })
      }
    }
  }
}
