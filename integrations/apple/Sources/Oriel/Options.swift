import COriel

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
  /// The device is gone: close the session and open a new one (restoring what was saved).
  public var isDeviceLost: Bool {
    status == .device || status == .timeout
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

/// How to open a model; every default is sound. See oriel_options in oriel.h.
public struct Options: Sendable {
  /// The assistant's instructions. Never forgotten, and back after `reset`.
  public var systemPrompt: String?
  public var device = Device.automatic
  /// Folder for compiled GPU programs: the second start is faster.
  public var cacheDirectory: String?
  /// Tokens that are seen at once. 0: as many as fit.
  public var windowTokens: UInt32 = 0
  /// Fail rather than open with a shorter window than this.
  public var minWindowTokens: UInt32 = 0
  /// Threads that compute on the CPU. 0: one per core, at most 8.
  public var cpuThreads: UInt32 = 0
  /// Name of a chat format or a Jinja template, where the model's own is wrong.
  public var chatTemplate: String?
  /// Models that can think before they answer are told not to.
  public var noThinking = false
  /// Optional features of the GPU to do without, around a faulty driver: names of docs/porting.md,
  /// separated by commas, or "all".
  public var disabledFeatures: String?
  /// Told of errors and warnings, on the thread of the call that caused them, for as long as the
  /// session is open.
  public var log: (@Sendable (LogLevel, String) -> Void)?

  public init() {}
}

/// How a reply is generated. 0 always means the default.
public struct Sampling: Sendable {
  /// 0: until the reply ends.
  public var maxTokens: UInt32 = 0
  /// Always the most likely token.
  public var greedy = false
  /// 0: another one each time.
  public var seed: UInt64 = 0
  public var temperature: Float = 0
  public var topK: UInt32 = 0
  public var topP: Float = 0
  public var minP: Float = 0
  public var repeatPenalty: Float = 0

  public init() {}

  var c: oriel_generate_options {
    var options = oriel_generate_options()
    options.struct_size = MemoryLayout<oriel_generate_options>.stride
    options.max_tokens = maxTokens
    options.greedy = greedy ? 1 : 0
    options.seed = seed
    options.temperature = temperature
    options.top_k = topK
    options.top_p = topP
    options.min_p = minP
    options.repeat_penalty = repeatPenalty
    return options
  }
}

/// What is allocated for what, to the byte.
public struct Plan: Sendable {
  /// False: everything else describes the smallest plan that would run.
  public let fits: Bool
  public let totalBytes: UInt64
  public let weightsBytes: UInt64
  public let kvBytes: UInt64
  /// Least memory that would do.
  public let minimumBytes: UInt64
  public let windowTokens: UInt32
  public let sinkTokens: UInt32

  init(_ plan: oriel_plan) {
    fits = plan.fits != 0
    totalBytes = plan.total_bytes
    weightsBytes = plan.weights_bytes
    kvBytes = plan.kv_bytes
    minimumBytes = plan.minimum_bytes
    windowTokens = plan.window_tokens
    sinkTokens = plan.sink_tokens
  }
}

extension Options {
  /// Calls `body` with these as C sees them; `log` must outlive what is made with them.
  func withC<Result>(
    memoryBytes: UInt64, pinnedTokens: UInt32, log: Log,
    _ body: (inout oriel_options, inout oriel_chat_options) throws -> Result
  ) rethrows -> Result {
    try withOptionalCString(cacheDirectory) { cache in
      try withOptionalCString(chatTemplate) { template in
        try withOptionalCString(disabledFeatures) { features in
          var options = oriel_options()
          options.struct_size = MemoryLayout<oriel_options>.stride
          options.memory_bytes = memoryBytes
          options.window_tokens = windowTokens
          options.min_window_tokens = minWindowTokens
          options.pinned_tokens = pinnedTokens
          options.device = oriel_device_kind(rawValue: device.rawValue)
          options.cpu_threads = cpuThreads
          options.cache_dir = cache
          options.disabled_features = features
          options.log = Log.receive
          options.log_user = log.pointer
          var chat = oriel_chat_options()
          chat.struct_size = MemoryLayout<oriel_chat_options>.stride
          chat.chat_template = template
          chat.no_thinking = noThinking ? 1 : 0
          return try body(&options, &chat)
        }
      }
    }
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
/// calls it on the thread that called the library, and calls on one session never overlap.
final class Log {
  typealias Listener = @Sendable (LogLevel, String) -> Void

  private let listener: Listener?
  private var line = ""

  init(_ listener: Listener?) { self.listener = listener }

  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let receive: oriel_log_fn = { level, message, user in
    guard let level = LogLevel(rawValue: level.rawValue), let message = message, let user = user
    else { return }
    let log = Unmanaged<Log>.fromOpaque(user).takeUnretainedValue()
    let line = String(cString: message)
    if level == .error { log.line = line }
    log.listener?(level, line)
  }

  func check(_ status: oriel_status) throws {
    defer { line = "" }
    if status != ORIEL_OK {
      throw OrielError(
        status: OrielError.Status(rawValue: status.rawValue) ?? .internal,
        message: line.isEmpty ? String(cString: oriel_status_text(status)) : line)
    }
  }
}
