import COriel
import Foundation

/// Why a call failed. The message is the library's line, "WHAT HAPPENED: WHAT TO DO".
public struct OrielError: Error, CustomStringConvertible {
  /// As oriel_status in oriel.h.
  public enum Status: UInt32, Sendable {
    case ok, argument, io, format, unsupported, memoryBudget, outOfMemory, noDevice, device, timeout
    case cancelled, bufferTooSmall, state, context, text, `internal`, speed
  }

  public let status: Status
  public let message: String

  public var description: String { message }
  /// The device is gone: `Session.recover` goes on, on that one or another.
  public var isDeviceLost: Bool {
    status == .device || status == .timeout
  }

  /// A reply was refused for what was asked of it.
  var neverBegan: Bool {
    status == .argument || status == .unsupported || status == .state || status == .text
  }

  static let closed = OrielError(
    status: .state, message: "the session is closed: open another one")
}

public enum LogLevel: UInt32, Sendable {
  /// "WHAT HAPPENED: WHAT TO DO"; the error that follows has the same line.
  case error = 0
  /// It works, but not as one might expect: a GPU that is not usable, and why.
  case warning = 1
}

public enum Device: UInt32, Sendable {
  case automatic = 0
  case vulkan = 1
  case cpu = 2
}

/// How keys and values are stored.
public enum KvFormat: UInt32, Sendable {
  case automatic = 0
  case f16 = 1
  case int8 = 2
  case int4 = 3
}

/// How the states of recurrent layers are stored; int8 only where it is asked for.
public enum StateFormat: UInt32, Sendable {
  case automatic = 0
  case f32 = 1
  case f16 = 2
  case int8 = 3
}

/// Which weights stay in the model's file and are read when tokens need them.
public enum OnFile: UInt32, Sendable {
  /// Tables of which a token needs one row; experts, too, where the model does not fit with them.
  case automatic = 0
  /// All weights are held.
  case none = 1
  /// Such tables, never experts.
  case rows = 2
  /// Such tables and experts.
  case all = 3
}

/// Whether the kernels that a model needs are tested on a GPU before they are used.
public enum DeviceTest: UInt32, Sendable {
  /// Once for each driver, where there is a cache directory.
  case automatic = 0
  /// At every start.
  case always = 1
  /// Nothing is tested, and nothing that was found before is believed.
  case never = 2
}

/// How to open a model; every default is sound. See oriel_options in oriel.h.
public struct Options: Sendable {
  /// The assistant's instructions. Never forgotten, and back after `reset`.
  public var systemPrompt: String?
  public var device = Device.automatic
  /// Folder for compiled GPU programs: the second start is faster.
  public var cacheDirectory: String?
  /// Tokens that are seen at once. 0: as many as fit, up to 8192 and the trained context. ``UInt32/max``: the whole
  /// trained context, where it fits.
  public var windowTokens: UInt32 = 0
  /// Fail rather than open with a shorter window than this.
  public var minWindowTokens: UInt32 = 0
  /// First tokens that are never forgotten. 0: 4; `Options.none`: none.
  public var sinkTokens: UInt32 = 0
  /// Prompt tokens that are read together. 0: chosen.
  public var chunkTokens: UInt32 = 0
  public var keyFormat = KvFormat.automatic
  public var valueFormat = KvFormat.automatic
  public var stateFormat = StateFormat.automatic
  /// What stays in the file is read for as long as the session is open: it must stay as it is.
  public var onFile = OnFile.automatic
  /// Experts that each layer has room for while the others stay in the file. 0: as many as fit.
  public var expertSlots: UInt32 = 0
  /// In models that keep a state: how many earlier ones are kept, so that `rewind` need not read
  /// everything again. 0: up to 4; `Options.none`: none.
  public var checkpoints: UInt32 = 0
  /// Next tokens that are guessed from the conversation and verified in one step, at most 15: the
  /// same replies, sooner where text repeats. 0: none.
  public var draftTokens: UInt32 = 0
  /// Turns that have left the window are kept in a file of at most so many bytes, in
  /// `cacheDirectory`, and come back when a message asks for them. 0: they are gone.
  public var recallBytes: UInt64 = 0
  /// Tokens of them that are seen at a time, at most 1024. 0: 128, or fewer in a short context.
  public var recallTokens: UInt32 = 0
  /// A file of a small model that guesses next tokens where the conversation has nothing to guess by:
  /// the assistant of a Gemma 4. draftTokens 0 is 3 with it. nil: none.
  public var draftModel: String?
  /// The conversation's messages are kept as text, the latest of them in so many bytes, which `Trim.all` needs.
  /// 0: none are.
  public var transcriptBytes: UInt32 = 0
  /// A file of `oriel calibrate`. nil: the one beside the model; "": none.
  public var calibrationFile: String?
  /// Replies can be held to a JSON schema, a grammar or the tools' schemas, which takes memory.
  public var constraints = false
  /// What is forgotten goes token by token, not as whole turns.
  public var splitTurns = false
  /// In models that keep a state: it is made anew when turns have left the window.
  public var forgetEvicted = false
  /// Threads that compute on the CPU. 0: one per core, at most 8.
  public var cpuThreads: UInt32 = 0
  /// Bits that the CPU rounds activations to: 16, or 8, faster with prompts and less exact. 0: 16.
  public var activationBits: UInt32 = 0
  /// Longest wait for the GPU. 0: 60 s.
  public var deviceTimeoutMs: UInt32 = 0
  /// Name of a chat format or a Jinja template, where the model's own is wrong.
  public var chatTemplate: String?
  /// Models that can think before they answer are told not to.
  public var noThinking = false
  /// Models that can think are told to, where they would not by themselves.
  public var thinking = false
  /// For formats that tell the model a date: year * 10000 + month * 100 + day.
  public var date: UInt32 = 0
  /// Tools that the model may call: a JSON list in the OpenAI form. What it calls is in
  /// `Parsed.calls`; answers go back with `Session.addJSON`.
  public var tools: String?
  /// Documents to answer from: a JSON list.
  public var documents: String?
  /// More of the chat template's variables: a JSON object.
  public var variables: String?
  /// Optional features of the GPU to do without, around a faulty driver: names of docs/porting.md,
  /// separated by commas, or "all".
  public var disabledFeatures: String?
  /// What of a GPU is used though it is known or was found to be faulty: names as above, or "device".
  public var enabledFeatures: String?
  /// Whether kernels are tested on the GPU before they are used: once for each driver, by default.
  public var deviceTest = DeviceTest.automatic
  /// Told of errors and warnings, on the thread of the call that caused them, for as long as the
  /// session is open.
  public var log: (@Sendable (LogLevel, String) -> Void)?
  /// Told of bytes of weights that are loaded, of so many. False stops loading: `open` then throws
  /// with status cancelled.
  public var progress: (@Sendable (_ done: UInt64, _ total: UInt64) -> Bool)?
  /// Told of tokens that a call has read, of so many: those of a message, and those that it reads
  /// again, to go back or to forget (models that keep a state). After every prefill batch, for as long
  /// as the session is open. False cancels the call.
  public var readingAgain: (@Sendable (_ done: UInt64, _ total: UInt64) -> Bool)?

  /// As `sinkTokens` and `checkpoints`.
  public static let none = UInt32.max

  public init() {}
}

extension Options {
  func checkTexts(path: String) throws {
    try refuseNul(path, "path")
    try refuseNul(cacheDirectory, "cacheDirectory")
    try refuseNul(chatTemplate, "chatTemplate")
    try refuseNul(calibrationFile, "calibrationFile")
    try refuseNul(draftModel, "draftModel")
    try refuseNul(disabledFeatures, "disabledFeatures")
    try refuseNul(enabledFeatures, "enabledFeatures")
  }

  /// Calls `body` with these as C sees them; `log` must outlive what is made with them.
  func withC<Result>(
    memoryBytes: UInt64, pinnedTokens: UInt32, log: Log,
    _ body: (inout oriel_options) throws -> Result
  ) rethrows -> Result {
    try withOptionalCString(cacheDirectory) { cache in
      try withOptionalCString(calibrationFile) { calibration in
        try withOptionalCString(disabledFeatures) { features in
          var options = oriel_options()
          options.struct_size = MemoryLayout<oriel_options>.stride
          options.memory_bytes = memoryBytes
          options.window_tokens = windowTokens
          options.min_window_tokens = minWindowTokens
          options.sink_tokens = sinkTokens
          options.pinned_tokens = pinnedTokens
          options.chunk_tokens = chunkTokens
          options.k_format = oriel_kv_format(rawValue: keyFormat.rawValue)
          options.v_format = oriel_kv_format(rawValue: valueFormat.rawValue)
          options.state_format = oriel_state_format(rawValue: stateFormat.rawValue)
          options.on_file = oriel_on_file(rawValue: onFile.rawValue)
          options.expert_slots = expertSlots
          options.checkpoints = checkpoints
          options.draft_tokens = draftTokens
          options.recall_bytes = recallBytes
          options.recall_tokens = recallTokens
          options.transcript_bytes = transcriptBytes
          options.constraints = constraints ? 1 : 0
          options.calibration_file = calibration
          options.device = oriel_device_kind(rawValue: device.rawValue)
          options.device_timeout_ms = deviceTimeoutMs
          options.cpu_threads = cpuThreads
          options.activation_bits = activationBits
          options.cache_dir = cache
          options.disabled_features = features
          options.device_test = oriel_device_test(rawValue: deviceTest.rawValue)
          options.log = Log.receive
          options.log_user = log.pointer
          return try withOptionalCString(enabledFeatures) { enabled in
            options.enabled_features = enabled
            return try withOptionalCString(draftModel) { draft in
              options.draft_model = draft
              return try body(&options)
            }
          }
        }
      }
    }
  }
}

/// A copy of a text for C, with a NUL behind it.
final class CText {
  let start: UnsafeMutablePointer<CChar>
  /// Without the NUL.
  let count: Int

  init(_ text: String) {
    let bytes = text.utf8.map { CChar(bitPattern: $0) } + [0]
    start = UnsafeMutablePointer.allocate(capacity: bytes.count)
    start.initialize(from: bytes, count: bytes.count)
    count = bytes.count - 1
  }

  deinit { start.deallocate() }
}

/// How conversations become text. A session reads the texts for as long as it is there.
final class Chat {
  private let template: CText?
  private let tools: CText?
  private let documents: CText?
  private let variables: CText?
  private let noThinking: Bool
  private let thinking: Bool
  private let date: UInt32

  init(_ options: Options) {
    template = options.chatTemplate.map(CText.init)
    tools = options.tools.map(CText.init)
    documents = options.documents.map(CText.init)
    variables = options.variables.map(CText.init)
    noThinking = options.noThinking
    thinking = options.thinking
    date = options.date
  }

  /// Points into this.
  var c: oriel_chat_options {
    var chat = oriel_chat_options()
    chat.struct_size = MemoryLayout<oriel_chat_options>.stride
    chat.chat_template = template.map { UnsafePointer($0.start) }
    chat.no_thinking = noThinking ? 1 : 0
    chat.thinking = thinking ? 1 : 0
    chat.date = date
    chat.tools = tools.map { UnsafePointer($0.start) }
    chat.tools_bytes = tools?.count ?? 0
    chat.documents = documents.map { UnsafePointer($0.start) }
    chat.documents_bytes = documents?.count ?? 0
    chat.variables = variables.map { UnsafePointer($0.start) }
    chat.variables_bytes = variables?.count ?? 0
    return chat
  }
}

/// Hands progress on.
final class ProgressSink {
  private let listener: @Sendable (UInt64, UInt64) -> Bool
  /// Called when the listener wants to stop.
  var stopped: () -> Void = {}
  /// Whether somebody else does.
  var wantsStop: () -> Bool = { false }

  init(_ listener: @escaping @Sendable (UInt64, UInt64) -> Bool) { self.listener = listener }

  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let receive: oriel_progress_fn = { done, total, user in
    guard let user = user else { return 0 }
    let sink = Unmanaged<ProgressSink>.fromOpaque(user).takeUnretainedValue()
    if sink.wantsStop() { return 1 }
    if sink.listener(done, total) { return 0 }
    sink.stopped()
    return 1
  }
}

/// Of what ends in NUL in C.
func refuseNul(_ text: String?, _ what: String) throws {
  if let text = text, text.utf8.contains(0) {
    throw OrielError(
      status: .argument, message: "\(what) has a NUL in it: check where it comes from")
  }
}

func withOptionalCString<Result>(
  _ text: String?, _ body: (UnsafePointer<CChar>?) throws -> Result
) rethrows -> Result {
  guard let text = text else { return try body(nil) }
  return try text.withCString { try body($0) }
}

/// Text as (pointer, bytes); it may contain NUL.
func withBytes<Result>(
  _ text: String, _ body: (UnsafePointer<CChar>, Int) throws -> Result
) rethrows -> Result {
  // One byte more: an empty array may have no address.
  let bytes = text.utf8.map { CChar(bitPattern: $0) } + [0]
  return try bytes.withUnsafeBufferPointer { try body($0.baseAddress!, $0.count - 1) }
}

/// What the library logs: the latest error is kept for the error that will carry it. The library
/// calls it on the thread that called the library. Of calls that overlap one gives memory back or takes
/// it: each error is its thread's.
final class Log {
  typealias Listener = @Sendable (LogLevel, String) -> Void

  private let listener: Listener?
  private let lock = NSLock()
  private var lines: [ObjectIdentifier: String] = [:]  // under the lock, by thread

  init(_ listener: Listener?) { self.listener = listener }

  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let receive: oriel_log_fn = { level, message, user in
    guard let level = LogLevel(rawValue: level.rawValue), let message = message, let user = user
    else { return }
    let log = Unmanaged<Log>.fromOpaque(user).takeUnretainedValue()
    let line = String(cString: message)
    if level == .error { log.keep(line) }
    log.listener?(level, line)
  }

  private func keep(_ line: String) {
    lock.lock()
    lines[ObjectIdentifier(Thread.current)] = line
    lock.unlock()
  }

  private func takeLine() -> String {
    lock.lock()
    defer { lock.unlock() }
    return lines.removeValue(forKey: ObjectIdentifier(Thread.current)) ?? ""
  }

  func check(_ status: oriel_status) throws {
    let line = takeLine()
    if status != ORIEL_OK {
      throw OrielError(
        status: OrielError.Status(rawValue: status.rawValue) ?? .internal,
        message: line.isEmpty ? String(cString: oriel_status_text(status)) : line)
    }
  }
}
