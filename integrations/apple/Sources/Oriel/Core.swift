import COriel
import Foundation

/// Owns a C model. Its queue serialises the model's calls, in parallel to calls of the sessions.
final class ModelCore: @unchecked Sendable {
  let log: Log
  let queue = DispatchQueue(label: "oriel.model", qos: .userInitiated)
  private let lock = NSLock()
  private var model: OpaquePointer?  // used on the queue
  private var closing = false  // under the lock
  private var sessions: [Weak] = []  // under the lock

  private final class Weak {
    weak var core: SessionCore?
    init(_ core: SessionCore) { self.core = core }
  }

  init(path: String, options: Options, log: LogListener?, progress: ProgressListener?) throws {
    try refuseNul(path, "path")
    let log = Log(log)
    let sink = progress.map(ProgressSink.init)
    var model: OpaquePointer?
    try withExtendedLifetime((log, sink)) {
      try options.withC(log: log) { c in
        if let sink = sink {
          c.progress = ProgressSink.receive
          c.progress_user = sink.pointer
        }
        try log.check(oriel_model_load(path, &c, &model))
      }
    }
    self.log = log
    self.model = model
  }

  deinit { oriel_model_free(model) }

  /// Runs a call on the model's queue.
  func call<Value>(_ body: (OpaquePointer?) throws -> Value) throws -> Value {
    if isClosing { throw OrielError.closed }
    return try body(model)
  }

  func add(_ session: SessionCore) {
    lock.lock()
    sessions.removeAll { $0.core == nil }
    sessions.append(Weak(session))
    let closes = closing
    lock.unlock()
    if closes { session.beginClosing() }
  }

  private var open: [SessionCore] {
    lock.lock()
    defer { lock.unlock() }
    return sessions.compactMap { $0.core }
  }

  var isClosing: Bool {
    lock.lock()
    defer { lock.unlock() }
    return closing
  }

  func beginClosing() {
    lock.lock()
    closing = true
    lock.unlock()
    for session in open { session.beginClosing() }  // resume may be reading its transcript
  }

  /// Called on the queue after beginClosing() of this or of a session. A paused call ends at once, or must undo work on
  /// the device first. For that this resumes the model. False: resuming failed, and the log has the reason.
  func wake() -> Bool {
    for _ in 0..<10 where someoneRests { Thread.sleep(forTimeInterval: 0.01) }
    guard someoneRests else { return true }
    let progress = ProgressSink { [self] _, _ in someoneRests }
    let status = withExtendedLifetime(progress) {
      oriel_resume(model, ProgressSink.receive, progress.pointer)
    }
    try? log.check(status)  // takes the log line
    return status == ORIEL_OK || !someoneRests
  }

  private var someoneRests: Bool { open.contains { $0.rests } }

  /// Called after wake(). Frees everything, then calls `done`.
  func free(_ done: @escaping @Sendable () -> Void) {
    let group = DispatchGroup()
    let all = open
    for session in all { session.queue.async(group: group) {} }
    group.notify(queue: queue) { [self] in
      for session in all { session.free() }
      let last = model
      model = nil
      oriel_model_free(last)
      done()
    }
  }
}

/// Owns a C session. Its queue makes all calls, because C allows one thread at a time. `cancel` and `beginClosing` may
/// come from any thread and take the lock.
final class SessionCore: @unchecked Sendable {
  /// Identifies a call, so that a cancelled task stops only its own call.
  final class Call: @unchecked Sendable {
    fileprivate var cancelled = false  // under the core's lock
  }

  /// Receives the progress of calls. Forks share it, so the current queue tells which session calls.
  private final class Reading: Sendable {
    private let listener: ProgressListener?
    init(_ listener: ProgressListener?) { self.listener = listener }

    static let receive: oriel_progress_fn = { done, total, user in
      if DispatchQueue.getSpecific(key: Here.key.value)?.core?.runningIsCancelled ?? false { return 1 }
      guard let user = user else { return 0 }
      let reading = Unmanaged<Reading>.fromOpaque(user).takeUnretainedValue()
      return reading.listener?(done, total) ?? true ? 0 : 1
    }
  }

  /// Finds the session of a queue.
  private final class Here: @unchecked Sendable {
    struct Key: @unchecked Sendable {
      let value = DispatchSpecificKey<Here>()
    }
    static let key = Key()
    weak var core: SessionCore?
  }

  let model: ModelCore
  let queue = DispatchQueue(label: "oriel.session", qos: .userInitiated)
  private let reading: Reading
  private let lock = NSLock()
  private var session: OpaquePointer?
  private var running: Call?  // under the lock
  private var closing = false  // under the lock
  /// Start of a message that the next call takes back first.
  private var owed: UInt64?

  /// Called on the model's queue.
  convenience init(_ model: ModelCore, _ options: SessionOptions, _ progress: ProgressListener?) throws {
    let reading = Reading(progress)
    var session: OpaquePointer?
    try options.withC { c in
      c.progress = Reading.receive
      c.progress_user = Unmanaged.passUnretained(reading).toOpaque()
      try model.call { try model.log.check(oriel_session_create($0, &c, &session)) }
    }
    self.init(model, reading, session)
  }

  private init(_ model: ModelCore, _ reading: Reading, _ session: OpaquePointer?) {
    self.model = model
    self.reading = reading
    self.session = session
    let here = Here()
    here.core = self
    queue.setSpecific(key: Here.key.value, value: here)
    model.add(self)
  }

  /// Frees on the model's queue: in a listener C would refuse it.
  deinit {
    guard let last = Pointer(session) else { return }
    model.queue.async { [model, reading] in
      withExtendedLifetime((model, reading)) { oriel_session_destroy(last.value) }
    }
  }

  func fork() throws -> SessionCore {
    var fork: OpaquePointer?
    try call { oriel_session_fork($0, &fork) }
    return SessionCore(model, reading, fork)
  }

  /// Adds `message` if given, then replies. `inChat` false: continues appended text.
  func reply(
    to message: String?, inChat: Bool, _ options: ReplyOptions, _ call: Call,
    onEvent: @escaping (Event) -> Void
  ) throws -> Reply {
    try begin(call)
    defer { end() }
    let settled = settle(call)
    if settled == ORIEL_ERROR_CANCELLED { return Reply() }
    try model.log.check(settled)
    var before = oriel_stats()
    before.struct_size = MemoryLayout<oriel_stats>.stride
    try model.log.check(oriel_session_get_stats(session, &before))
    if let message = message {
      let added = run(call) { session in
        withBytes(message) { oriel_chat_add(session, "user", $0, $1) }
      }
      if added == ORIEL_ERROR_CANCELLED { return Reply() }
      try model.log.check(added)
    }

    let sink = Sink(wantsTokens: options["top_logprobs"] != nil) { [self] event in
      // A cancel that came before the C call.
      if runningIsCancelled { oriel_session_cancel(session) }
      onEvent(event)
    }
    var result = oriel_generation()
    result.struct_size = MemoryLayout<oriel_generation>.stride
    let generate = inChat ? oriel_chat_reply : oriel_session_generate
    do {
      let status = try withExtendedLifetime(sink) {
        try options.withC { c -> oriel_status in
          if inChat {
            c.on_part = Sink.receivePart
            c.part_user = sink.pointer
          }
          return run(call) { generate($0, &c, Sink.receive, sink.pointer, &result) }
        }
      }
      if status == ORIEL_ERROR_CANCELLED {
        result.stop_reason = ORIEL_STOP_CANCELLED
      } else {
        try model.log.check(status)
      }
    } catch let error as OrielError where message != nil && error.neverBegan {
      owed = before.position
      try? model.log.check(settle(call))
      throw error
    }
    return sink.finished(result)
  }

  /// Runs a call after taking back an owed message.
  func call(_ body: (OpaquePointer?) -> oriel_status) throws {
    let this = Call()
    try begin(this)
    defer { end() }
    try model.log.check(settle(this))
    try model.log.check(run(this, body))
  }

  /// Runs a call that does not depend on an owed message.
  func ask(_ body: (OpaquePointer?) -> oriel_status) throws {
    let this = Call()
    try begin(this)
    defer { end() }
    try model.log.check(run(this, body))
  }

  /// Runs a call that replaces the conversation.
  func replace(_ body: (OpaquePointer?) -> oriel_status) throws {
    try ask(body)
    owed = nil
  }

  func recover() throws -> Recovered {
    let progress = ProgressSink { [self] _, _ in !runningIsCancelled }
    var recovered = oriel_recovered()
    recovered.struct_size = MemoryLayout<oriel_recovered>.stride
    try withExtendedLifetime(progress) {
      try ask { oriel_session_recover($0, nil, 0, ProgressSink.receive, progress.pointer, &recovered) }
    }
    return Recovered(recovered)
  }

  func stats() throws -> Stats {
    var stats = oriel_stats()
    stats.struct_size = MemoryLayout<oriel_stats>.stride
    try call { oriel_session_get_stats($0, &stats) }
    return Stats(stats)
  }

  func describe() throws -> Description {
    let this = Call()
    try begin(this)
    defer { end() }
    try model.log.check(settle(this))
    return Description(try text(model.log, nuls: 1) { oriel_session_describe(session, $0, $1, &$2) })
  }

  func embed(_ text: String, _ pooling: Pooling, normalised: Bool) throws -> Embedding {
    let this = Call()
    try begin(this)
    defer { end() }
    try model.log.check(settle(this))
    var tokens: UInt32 = 0
    let values = try filled(with: Float(0), model.log) { values, capacity, needed in
      withBytes(text) { bytes, count in
        run(this) {
          oriel_embed(
            $0, oriel_pooling(rawValue: pooling.rawValue), normalised ? 0 : ORIEL_EMBED_RAW, bytes, count, values,
            capacity, &needed, &tokens)
        }
      }
    }
    return Embedding(values: values, tokens: tokens)
  }

  /// Stops `call`; nil: the running call.
  func cancel(_ call: Call?) {
    lock.lock()
    defer { lock.unlock() }
    call?.cancelled = true
    if let now = running, call == nil || call === now {
      now.cancelled = true
      oriel_session_cancel(session)
    }
  }

  func beginClosing() {
    lock.lock()
    defer { lock.unlock() }
    closing = true
    running?.cancelled = true
    oriel_session_cancel(session)
  }

  /// True: closed, but still in a call.
  var rests: Bool {
    lock.lock()
    defer { lock.unlock() }
    return closing && running != nil
  }

  /// A log listener may call `cancel` meanwhile.
  func free() {
    lock.lock()
    let last = session
    session = nil
    lock.unlock()
    oriel_session_destroy(last)
  }

  private var runningIsCancelled: Bool {
    lock.lock()
    defer { lock.unlock() }
    return running?.cancelled ?? false
  }

  private func begin(_ call: Call) throws {
    lock.lock()
    defer { lock.unlock() }
    if closing { throw OrielError.closed }
    if call.cancelled { throw CancellationError() }
    running = call
  }

  private func end() {
    lock.lock()
    running = nil
    lock.unlock()
  }

  /// Takes an owed message back. It stays if it is too long for this in a full window.
  private func settle(_ call: Call) -> oriel_status {
    guard let position = owed else { return ORIEL_OK }
    let status = run(call) { oriel_session_go_back($0, ORIEL_BACK_TO_POSITION, position, nil, 0) }
    guard status == ORIEL_OK || status == ORIEL_ERROR_CONTEXT else { return status }
    owed = nil
    return ORIEL_OK
  }

  /// Runs one C call unless `call` was cancelled: C drops a cancel while no call runs.
  private func run(_ call: Call, _ body: (OpaquePointer?) -> oriel_status) -> oriel_status {
    lock.lock()
    let cancelled = call.cancelled
    lock.unlock()
    return cancelled ? ORIEL_ERROR_CANCELLED : body(session)
  }
}

/// Carries a C object to another queue.
private struct Pointer: @unchecked Sendable {
  let value: OpaquePointer
  init?(_ value: OpaquePointer?) {
    guard let value = value else { return nil }
    self.value = value
  }
}
