import COriel
import Foundation

/// The C objects. Everything but `cancel` and `beginClosing` is called by one thread at a time (the
/// queue of Session), which is what C asks for; those two take the lock.
final class Core: @unchecked Sendable {
  /// One call, so that a cancelled task stops its own call only.
  final class Call: @unchecked Sendable {
    fileprivate var cancelled = false  // under the core's lock
  }

  let plan: Plan
  let device: String

  private let log: Log
  private let systemPrompt: String?
  private let lock = NSLock()
  private var model: OpaquePointer?
  private var session: OpaquePointer?
  private var running: Call?  // under the lock
  private var closing = false  // under the lock

  init(path: String, memoryBytes: UInt64, options: Options) throws {
    let pinned = try Core.pinnedTokens(path, memoryBytes, options)
    let log = Log(options.log)
    var model: OpaquePointer?
    var session: OpaquePointer?
    var plan = oriel_plan()
    plan.struct_size = MemoryLayout<oriel_plan>.stride
    var info = oriel_model_info()
    info.struct_size = MemoryLayout<oriel_model_info>.stride
    do {
      try options.withC(memoryBytes: memoryBytes, pinnedTokens: pinned, log: log) { c, chat in
        try log.check(oriel_model_load(path, &c, &model))
        try withUnsafePointer(to: &chat) { chat in
          var sessionOptions = oriel_session_options()
          sessionOptions.struct_size = MemoryLayout<oriel_session_options>.stride
          sessionOptions.chat = chat
          try log.check(oriel_session_create(model, &sessionOptions, &session))
        }
      }
      try log.check(oriel_model_get_plan(model, &plan))
      try log.check(oriel_model_get_info(model, &info))
      if let prompt = options.systemPrompt {
        try log.check(withBytes(prompt) { oriel_chat_add(session, "system", $0, $1) })
      }
    } catch {
      oriel_session_destroy(session)
      oriel_model_free(model)
      throw error
    }
    self.log = log
    self.model = model
    self.session = session
    self.systemPrompt = options.systemPrompt
    self.plan = Plan(plan)
    self.device = withUnsafeBytes(of: &info.device) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
  }

  deinit { free() }

  /// Tokens of the system prompt with what stands before it; 0 without one.
  static func pinnedTokens(
    _ path: String, _ memoryBytes: UInt64, _ options: Options
  ) throws -> UInt32 {
    guard let prompt = options.systemPrompt else { return 0 }
    // The file's warnings come when it is opened.
    let listener = options.log
    let log = Log { level, line in if level == .error { listener?(level, line) } }
    return try withExtendedLifetime(log) {
      try options.withC(memoryBytes: memoryBytes, pinnedTokens: 0, log: log) { c, chat in
        c.device = ORIEL_DEVICE_NONE
        var model: OpaquePointer?
        try log.check(oriel_model_load(path, &c, &model))
        defer { oriel_model_free(model) }
        var needed = 0
        let status = withBytes(prompt) { text, bytes in
          "system".withCString { role -> oriel_status in
            var message = oriel_message(role: role, text: text, text_bytes: bytes)
            return oriel_render_tokens(
              model, &chat, &message, 1, 0, ORIEL_TEXT_BOS, nil, 0, &needed)
          }
        }
        if status != ORIEL_ERROR_BUFFER_TOO_SMALL { try log.check(status) }
        return UInt32(needed)
      }
    }
  }

  func chat(
    _ text: String, _ sampling: Sampling, _ call: Call, onText: @escaping (String) -> Void
  ) throws {
    try begin(call)
    defer { end() }
    var before = oriel_stats()
    before.struct_size = MemoryLayout<oriel_stats>.stride
    try log.check(oriel_session_get_stats(session, &before))
    let added = run(call) { session in withBytes(text) { oriel_chat_add(session, "user", $0, $1) } }
    if added == ORIEL_ERROR_CANCELLED { return }
    try log.check(added)

    let sink = Sink(onText)
    var options = sampling.c
    let status = withExtendedLifetime(sink) {
      run(call) { oriel_chat_reply($0, &options, Sink.receive, sink.pointer, nil) }
    }
    if status == ORIEL_ERROR_CANCELLED { return }
    do {
      try log.check(status)
    } catch let error as OrielError where error.status == .argument {
      try? log.check(run(call) { oriel_session_rewind($0, before.position) })
      throw error
    }
  }

  func add(_ role: String, _ text: String) throws {
    try call { session in withBytes(text) { oriel_chat_add(session, role, $0, $1) } }
  }

  func reset() throws {
    let this = Call()
    try begin(this)
    defer { end() }
    try log.check(run(this, oriel_session_reset))
    guard let prompt = systemPrompt else { return }
    var status: oriel_status
    repeat {  // not to be left without it: only closing interrupts this
      status = run(this) { session in
        withBytes(prompt) { oriel_chat_add(session, "system", $0, $1) }
      }
    } while status == ORIEL_ERROR_CANCELLED && !isClosing
    try log.check(status)
  }

  func call(_ body: (OpaquePointer?) -> oriel_status) throws {
    let this = Call()
    try begin(this)
    defer { end() }
    try log.check(run(this, body))
  }

  /// Stops `call`, or with nil the one that runs.
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
    closing = true
    lock.unlock()
    cancel(nil)
  }

  func free() {
    lock.lock()
    defer { lock.unlock() }
    oriel_session_destroy(session)
    oriel_model_free(model)
    session = nil
    model = nil
  }

  private var isClosing: Bool {
    lock.lock()
    defer { lock.unlock() }
    return closing
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

  /// A cancel that came too late for the call before is answered by this one, says
  /// oriel_session_cancel: it had not begun, so it is made again.
  private func run(_ call: Call, _ body: (OpaquePointer?) -> oriel_status) -> oriel_status {
    let status = body(session)
    if status != ORIEL_ERROR_CANCELLED { return status }
    lock.lock()
    let meant = call.cancelled
    lock.unlock()
    return meant ? status : body(session)
  }
}

/// Hands a reply's text on.
private final class Sink {
  private let onText: (String) -> Void

  init(_ onText: @escaping (String) -> Void) { self.onText = onText }

  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let receive: oriel_token_fn = { event, user in
    guard let event = event, let user = user, event.pointee.text_bytes > 0 else { return 0 }
    let bytes = UnsafeRawBufferPointer(start: event.pointee.text, count: event.pointee.text_bytes)
    Unmanaged<Sink>.fromOpaque(user).takeUnretainedValue()
      .onText(String(decoding: bytes, as: UTF8.self))
    return 0
  }
}
