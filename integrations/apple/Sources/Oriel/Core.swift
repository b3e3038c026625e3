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
  let driver: String

  private let log: Log
  private let chat: Chat
  private let reading: ProgressSink
  private let systemPrompt: String?
  private let lock = NSLock()
  private var model: OpaquePointer?
  private var session: OpaquePointer?
  private var running: Call?  // under the lock
  private var closing = false  // under the lock
  /// What a call could not do to the conversation and the next one does.
  private var owed: ((OpaquePointer?) -> oriel_status)?

  init(path: String, memoryBytes: UInt64, options: Options) throws {
    try options.checkTexts(path: path)
    let pinned = try Core.pinnedTokens(path, memoryBytes, options)
    let log = Log(options.log)
    let chat = Chat(options)
    let progress = options.progress.map(ProgressSink.init)
    let readingAgain = options.readingAgain
    let reading = ProgressSink { done, total in readingAgain?(done, total) ?? true }
    var model: OpaquePointer?
    var session: OpaquePointer?
    var plan = oriel_plan()
    plan.struct_size = MemoryLayout<oriel_plan>.stride
    var info = oriel_model_info()
    info.struct_size = MemoryLayout<oriel_model_info>.stride
    do {
      try options.withC(memoryBytes: memoryBytes, pinnedTokens: pinned, log: log) { c in
        if let progress = progress {
          c.progress = ProgressSink.receive
          c.progress_user = progress.pointer
        }
        try withExtendedLifetime(progress) { try log.check(oriel_model_load(path, &c, &model)) }
      }
      var sessionOptions = oriel_session_options()
      sessionOptions.struct_size = MemoryLayout<oriel_session_options>.stride
      sessionOptions.split_turns = options.splitTurns ? 1 : 0
      sessionOptions.forget_evicted = options.forgetEvicted ? 1 : 0
      sessionOptions.progress = ProgressSink.receive
      sessionOptions.progress_user = reading.pointer
      try withUnsafePointer(to: chat.c) { c in
        sessionOptions.chat = c
        try log.check(oriel_session_create(model, &sessionOptions, &session))
      }
      try log.check(oriel_model_get_plan(model, &plan))
      try log.check(oriel_model_get_info(model, &info))
      if let prompt = options.systemPrompt {
        try log.check(withBytes(prompt) { oriel_chat_add(session, "system", $0, $1) })
      }
    } catch {
      withExtendedLifetime((log, chat, reading)) {
        oriel_session_destroy(session)
        oriel_model_free(model)
      }
      throw error
    }
    self.log = log
    self.chat = chat
    self.reading = reading
    self.model = model
    self.session = session
    self.systemPrompt = options.systemPrompt
    self.plan = Plan(plan)
    self.device = fixedText(info.device)
    self.driver = fixedText(info.driver)
    reading.stopped = { [weak self] in self?.stopRunning() }
    reading.wantsStop = { [weak self] in self?.runningIsCancelled ?? false }
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
    let chat = Chat(options)
    return try withExtendedLifetime((log, chat)) {
      try options.withC(memoryBytes: memoryBytes, pinnedTokens: 0, log: log) { c in
        c.device = ORIEL_DEVICE_NONE
        var model: OpaquePointer?
        try log.check(oriel_model_load(path, &c, &model))
        defer { oriel_model_free(model) }
        var needed = 0
        let status = withBytes(prompt) { text, bytes in
          "system".withCString { role -> oriel_status in
            var message = oriel_message(role: role, text: text, text_bytes: bytes)
            var chat = chat.c
            return oriel_render_tokens(
              model, &chat, &message, 1, 0, ORIEL_TEXT_BOS, nil, 0, &needed)
          }
        }
        if status != ORIEL_ERROR_BUFFER_TOO_SMALL { try log.check(status) }
        return UInt32(needed)
      }
    }
  }

  /// Says `message`, if there is one, and answers; or, unless `inChat`, goes on with what was appended.
  func reply(
    to message: String?, inChat: Bool, _ sampling: Sampling, _ call: Call,
    onEvent: @escaping (Event) -> Void
  ) throws -> Reply {
    try sampling.checkTexts()
    try begin(call)
    defer { end() }
    let settled = settle(call)
    if settled == ORIEL_ERROR_CANCELLED { return Reply() }
    try log.check(settled)
    var before = oriel_stats()
    before.struct_size = MemoryLayout<oriel_stats>.stride
    try log.check(oriel_session_get_stats(session, &before))
    if let message = message {
      let added = run(call) { session in
        withBytes(message) { oriel_chat_add(session, "user", $0, $1) }
      }
      if added == ORIEL_ERROR_CANCELLED { return Reply() }
      try log.check(added)
    }

    let sink = Sink(wantsTokens: sampling.wantsTokens) { [self] event in
      // One that came before C's call had begun.
      if runningIsCancelled { oriel_session_cancel(session) }
      onEvent(event)
    }
    var result = oriel_generation()
    result.struct_size = MemoryLayout<oriel_generation>.stride
    let status = withExtendedLifetime(sink) {
      sampling.withC { options -> oriel_status in
        if inChat {
          options.on_part = Sink.receivePart
          options.part_user = sink.pointer
        }
        let generate = inChat ? oriel_chat_reply : oriel_session_generate
        return run(call) { generate($0, &options, Sink.receive, sink.pointer, &result) }
      }
    }
    if status == ORIEL_ERROR_CANCELLED {
      result.stop_reason = ORIEL_STOP_CANCELLED
      return sink.finished(result)
    }
    do {
      try log.check(status)
    } catch let error as OrielError where message != nil && error.neverBegan {
      let position = before.position
      owed = { session in
        let status = oriel_session_rewind(session, position)
        // One that is too long for that in a full window stays.
        return status == ORIEL_ERROR_CONTEXT ? ORIEL_OK : status
      }
      try? log.check(settle(call))
      throw error
    }
    return sink.finished(result)
  }

  func add(_ role: String, _ text: String) throws {
    try refuseNul(role, "role")
    try call { session in withBytes(text) { oriel_chat_add(session, role, $0, $1) } }
  }

  func reset() throws {
    let this = Call()
    try begin(this)
    defer { end() }
    try log.check(run(this, oriel_session_reset))
    owed = systemPrompt.map { prompt in
      { session in withBytes(prompt) { oriel_chat_add(session, "system", $0, $1) } }
    }
    try log.check(settle(this))
  }

  /// A call on the conversation, behind what is owed.
  func call(_ body: (OpaquePointer?) -> oriel_status) throws {
    let this = Call()
    try begin(this)
    defer { end() }
    try log.check(settle(this))
    try log.check(run(this, body))
  }

  /// Any other call.
  func ask(_ body: (OpaquePointer?) -> oriel_status) throws {
    let this = Call()
    try begin(this)
    defer { end() }
    try log.check(run(this, body))
  }

  func restore(_ path: String) throws {
    try refuseNul(path, "path")
    try ask { session in
      let status = oriel_session_restore_file(session, path)
      if status == ORIEL_OK { owed = nil }
      return status
    }
  }

  /// Returns the device's name.
  func recover() throws -> String {
    let progress = ProgressSink { [self] _, _ in !runningIsCancelled }
    var options = oriel_recover_options()
    options.struct_size = MemoryLayout<oriel_recover_options>.stride
    options.progress = ProgressSink.receive
    options.progress_user = progress.pointer
    var recovered = oriel_recovered()
    recovered.struct_size = MemoryLayout<oriel_recovered>.stride
    try withExtendedLifetime(progress) {
      try ask { oriel_session_recover($0, &options, &recovered) }
    }
    return fixedText(recovered.device_name)
  }

  func stats() throws -> Stats {
    var stats = oriel_stats()
    stats.struct_size = MemoryLayout<oriel_stats>.stride
    try call { oriel_session_get_stats($0, &stats) }
    return Stats(stats)
  }

  func embed(_ text: String, _ pooling: Pooling, normalised: Bool) throws -> Embedding {
    var options = oriel_embed_options()
    options.struct_size = MemoryLayout<oriel_embed_options>.stride
    options.pooling = oriel_pooling(rawValue: pooling.rawValue)
    options.not_normalised = normalised ? 0 : 1
    var tokens: UInt32 = 0
    let values: [Float] = try filled(with: 0, settled: true) { session, values, needed in
      withBytes(text) {
        oriel_embed(
          session, &options, $0, $1, values.baseAddress, values.count, &needed, &tokens)
      }
    }
    return Embedding(values: values, tokens: tokens)
  }

  func tokenize(_ text: String) throws -> [Int32] {
    try filled(with: 0) { _, ids, needed in
      withBytes(text) { oriel_tokenize(model, $0, $1, 0, ids.baseAddress, ids.count, &needed) }
    }
  }

  func detokenize(_ ids: [Int32]) throws -> String {
    try text { chars, needed in
      oriel_detokenize(model, ids, ids.count, 0, chars.baseAddress, chars.count, &needed)
    }
  }

  func render(_ messages: String, generationPrompt: Bool) throws -> String {
    var options = chat.c
    return try text { chars, needed in
      withBytes(messages) {
        oriel_render_json(
          model, &options, $0, $1, generationPrompt ? 1 : 0, chars.baseAddress, chars.count,
          &needed)
      }
    }
  }

  func renderTokens(_ messages: String, generationPrompt: Bool) throws -> [Int32] {
    var options = chat.c
    return try filled(with: 0) { _, ids, needed in
      withBytes(messages) {
        oriel_render_json_tokens(
          model, &options, $0, $1, generationPrompt ? 1 : 0, 0, ids.baseAddress, ids.count, &needed)
      }
    }
  }

  func parseReply(_ text: String, insideThought: Bool) throws -> Parsed {
    var options = chat.c
    var parsed = Parsed()
    try ask { _ in
      let sink = Sink(wantsTokens: false) { _ in }
      let status = withExtendedLifetime(sink) {
        withBytes(text) {
          oriel_parse_reply(
            model, &options, insideThought ? 1 : 0, $0, $1, Sink.receivePart, sink.pointer)
        }
      }
      parsed = sink.reply.parsed
      return status
    }
    return parsed
  }

  /// Beside a call that may run: of the queue for memory.
  func tend(_ body: (OpaquePointer?) -> oriel_status) throws {
    if isClosing { throw OrielError.closed }
    try log.check(body(model))
  }

  /// What `fill(session, buffer, &needed)` gives, asked first how much that is. `settled`: as call().
  private func filled<Element>(
    with empty: Element, settled: Bool = false,
    _ fill: (OpaquePointer?, UnsafeMutableBufferPointer<Element>, inout Int) -> oriel_status
  ) throws -> [Element] {
    var all: [Element] = []
    let make = settled ? call : ask
    try make { session in
      var needed = 0
      let status = fill(session, UnsafeMutableBufferPointer(start: nil, count: 0), &needed)
      guard status == ORIEL_ERROR_BUFFER_TOO_SMALL else { return status }
      all = Array(repeating: empty, count: needed)
      return all.withUnsafeMutableBufferPointer { fill(session, $0, &needed) }
    }
    return all
  }

  private func text(
    _ fill: (UnsafeMutableBufferPointer<CChar>, inout Int) -> oriel_status
  ) throws -> String {
    let chars = try filled(with: CChar(0)) { _, chars, needed in fill(chars, &needed) }
    return String(decoding: chars.map { UInt8(bitPattern: $0) }, as: UTF8.self)
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
    defer { lock.unlock() }
    closing = true
    running?.cancelled = true
    oriel_session_cancel(session)  // resume may be reading a transcript
  }

  /// Behind beginClosing(), of the queue for memory. A call that rests ends at once, or has something to undo
  /// first, for which it needs the device. False: that could not be had, as the log says.
  func wake() -> Bool {
    for _ in 0..<10 where isRunning { Thread.sleep(forTimeInterval: 0.01) }
    guard isRunning else { return true }
    let progress = ProgressSink { [self] _, _ in isRunning }
    let status = withExtendedLifetime(progress) {
      oriel_resume(model, ProgressSink.receive, progress.pointer)
    }
    try? log.check(status)  // which takes its line
    return status == ORIEL_OK || !isRunning
  }

  /// What logs meanwhile may call `cancel`.
  func free() {
    lock.lock()
    let last = (session: session, model: model)
    session = nil
    model = nil
    lock.unlock()
    oriel_session_destroy(last.session)
    oriel_model_free(last.model)
  }

  /// The call that runs is to end, as its own listener said.
  private func stopRunning() {
    lock.lock()
    running?.cancelled = true
    lock.unlock()
  }

  private var runningIsCancelled: Bool {
    lock.lock()
    defer { lock.unlock() }
    return running?.cancelled ?? false
  }

  private var isRunning: Bool {
    lock.lock()
    defer { lock.unlock() }
    return running != nil
  }

  var isClosing: Bool {
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

  /// Does what is owed.
  private func settle(_ call: Call) -> oriel_status {
    guard let body = owed else { return ORIEL_OK }
    let status = run(call, body)
    if status == ORIEL_OK { owed = nil }
    return status
  }

  /// One call of C's, unless it was cancelled before: C knows of cancels only while a call of its own
  /// runs.
  private func run(_ call: Call, _ body: (OpaquePointer?) -> oriel_status) -> oriel_status {
    lock.lock()
    let cancelled = call.cancelled
    lock.unlock()
    return cancelled ? ORIEL_ERROR_CANCELLED : body(session)
  }
}
