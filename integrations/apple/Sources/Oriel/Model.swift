import COriel
import Foundation

/// A model with room for conversations: so many as the option "sessions" says. Calls may come from any task and are
/// done one after the other, beside those of its sessions.
public final class Model: @unchecked Sendable {
  private let core: ModelCore
  /// The plan that was carried out.
  public let plan: Plan

  /// Loads a GGUF file, inside the memory of the option "memory" (by default half of what the system has free), in
  /// which its conversations find room, too.
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

  /// What would be allocated. Reads the file's header only; fast, touches no device.
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

  /// What a file is and whether this library can run it; also for files it cannot run.
  public static func describeFile(path: String) throws -> Description {
    try refuseNul(path, "path")
    return try describe([:]) { oriel_file_describe(path, &$0, $1, $2, &$3) }
  }

  /// What models can run on. `forget`: first forgets what the folder of the option "cache_folder" says against devices
  /// and their drivers: kernels that were wrong, and where a driver ended the process. For apps that know better.
  public static func describeDevices(options: Options = [:], forget: Bool = false) throws -> Description {
    try describe(options) { oriel_device_describe(&$0, forget ? ORIEL_DEVICE_FORGET : 0, $1, $2, &$3) }
  }

  /// A file that `Session.save` wrote.
  public static func describeSnapshot(path: String) throws -> Description {
    try refuseNul(path, "path")
    return try describe([:]) { oriel_snapshot_describe(path, nil, 0, &$0, $1, $2, &$3) }
  }

  /// The options that there are.
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

  /// File, device, plan, options in force, what is allocated now.
  public func describe() async throws -> Description {
    try await perform { model, log in
      Description(try text(log, nuls: 1) { oriel_model_describe(model, $0, $1, &$2) })
    }
  }

  /// Begins a conversation. All that were planned for may be open at a time. `progress` hears of tokens that its calls
  /// read, after each prefill batch: those of a message, and those that are read again, to go back or to forget (models
  /// that keep a state).
  public func session(
    _ options: SessionOptions = [:], progress: ProgressListener? = nil
  ) async throws -> Session {
    let core = self.core
    return try await perform { _, _ in Session(try SessionCore(core, options, progress), of: self) }
  }

  /// What `session` holds becomes the beginning of every session: it is held once, and never evicted. With nil there is
  /// none any more. Load with the option "prefix_tokens".
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

  /// The text that a conversation becomes, given as `Session.addJSON` takes it.
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

  /// Its tokens.
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

  /// What the whole text of a reply means, as `Reply.parsed`. `insideThought`: the model's template
  /// opened a thought itself.
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

  /// Lets the device rest, for an app that goes to the background: replies that run stop between two
  /// tokens and wait for `resume`. Returns when that is so. All memory stays. Until then new calls
  /// throw (status state).
  public func pause() async throws {
    try await perform { model, log in try log.check(oriel_pause(model)) }
  }

  /// Gives memory back, until `resume`. Waits for replies that run, or, after `pause`, until they rest.
  /// What fails leaves everything as it is. `folder` (for cache): where caches are written, to files
  /// that nobody else can read and that go with them.
  public func trim(_ level: Trim, folder: String? = nil) async throws {
    try refuseNul(folder, "folder")
    try await perform { model, log in
      try log.check(
        withOptionalCString(folder) { oriel_trim(model, oriel_trim_level(rawValue: level.rawValue), $0) })
    }
  }

  /// Goes on after `pause` and `trim`, as if nothing had been. Reading weights takes as long as
  /// loading. What fails, for want of memory say, leaves everything as it is, and may be tried again.
  /// `progress` hears of weights that are read, and stops that with false.
  public func resume(progress: ProgressListener? = nil) async throws {
    let core = self.core
    try await perform { model, log in
      let sink = ProgressSink { done, total in !core.isClosing && (progress?(done, total) ?? true) }
      try withExtendedLifetime(sink) {
        try log.check(oriel_resume(model, ProgressSink.receive, sink.pointer))
      }
    }
  }

  /// Closes its sessions and frees everything, after calls that run were cancelled, `resume`, too. Later calls throw.
  /// Dropping the last reference to it and its sessions frees, too, once nothing runs.
  ///
  /// After `pause` a call that rests is ended, too. One that has to undo something on the device takes back
  /// for that what `trim` gave; where that fails the log says why, nothing is freed, and this may be called again.
  public func close() async {
    let core = self.core
    core.beginClosing()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      core.queue.async {  // behind what is under way there
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
