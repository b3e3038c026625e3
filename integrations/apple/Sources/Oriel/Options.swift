import COriel
import Foundation

/// A failed call. The message is the library's line, "WHAT HAPPENED: WHAT TO DO".
public struct OrielError: Error, CustomStringConvertible {
  /// As oriel_status in oriel.h.
  public enum Status: UInt32, Sendable {
    case ok, argument, io, format, unsupported, memoryBudget, outOfMemory, noDevice, device, timeout
    case cancelled, bufferTooSmall, state, context, text, `internal`, speed
  }

  public let status: Status
  public let message: String

  public var description: String { message }
  /// The device was lost: call `Session.recover`.
  public var isDeviceLost: Bool {
    status == .device || status == .timeout
  }

  /// The library refused the reply before the first token.
  var neverBegan: Bool {
    status == .argument || status == .unsupported || status == .state || status == .text
  }

  static let closed = OrielError(
    status: .state, message: "the model or the session is closed: load or make another one")
}

public enum LogLevel: UInt32, Sendable {
  /// "WHAT HAPPENED: WHAT TO DO"; the error that follows has the same line.
  case error = 0
  /// The call works, with an unexpected effect, such as an unusable GPU.
  case warning = 1
}

/// Gets errors and warnings, on the thread of the call, until the model is closed.
public typealias LogListener = @Sendable (LogLevel, String) -> Void
/// Gets the progress of a call, in bytes of weights or in tokens. False stops the call, which then throws status
/// cancelled.
public typealias ProgressListener = @Sendable (_ done: UInt64, _ total: UInt64) -> Bool

/// The scope of options, which are known by name (docs/reference/options.md). The library checks names and values. The generated
/// file OptionNames.swift has the names.
public protocol OptionScope: Sendable {}
public enum LoadScope: OptionScope {}
public enum SessionScope: OptionScope {}
public enum ReplyScope: OptionScope {}

/// Options of a load: `["memory": "600MB", "sessions": 2]`.
public typealias Options = OptionList<LoadScope>
/// Options of a session: `["tools": json]`.
public typealias SessionOptions = OptionList<SessionScope>
/// Options of a reply: `["max_tokens": 200, "temperature": 0.5]`.
public typealias ReplyOptions = OptionList<ReplyScope>

public struct OptionKey<Scope: OptionScope>: ExpressibleByStringLiteral, Hashable, Sendable {
  public let name: String

  public init(_ name: String) { self.name = name }
  public init(stringLiteral name: String) { self.name = name }
}

/// A text, a number, a boolean, or a list of them.
public protocol OptionValue: Sendable {
  /// One text for each element.
  var optionTexts: [String] { get }
}

extension OptionValue where Self: CustomStringConvertible {
  public var optionTexts: [String] { [description] }
}

extension String: OptionValue {}
extension Bool: OptionValue {}
extension Int: OptionValue {}
extension UInt: OptionValue {}
extension Int32: OptionValue {}
extension UInt32: OptionValue {}
extension Int64: OptionValue {}
extension UInt64: OptionValue {}
extension Float: OptionValue {}
extension Double: OptionValue {}
extension Array: OptionValue where Element: OptionValue {
  public var optionTexts: [String] { flatMap { $0.optionTexts } }
}

public struct OptionList<Scope: OptionScope>: ExpressibleByDictionaryLiteral, Sendable {
  private var texts: [(name: String, value: String)] = []

  public init() {}

  public init(dictionaryLiteral elements: (OptionKey<Scope>, any OptionValue)...) {
    for (key, value) in elements { self[key] = value }
  }

  /// nil: the default.
  public subscript(key: OptionKey<Scope>) -> (any OptionValue)? {
    get {
      let values = texts.filter { $0.name == key.name }.map { $0.value }
      return values.count > 1 ? values : values.first
    }
    set {
      texts.removeAll { $0.name == key.name }
      for text in newValue?.optionTexts ?? [] { texts.append((key.name, text)) }
    }
  }

  /// Calls `body` with the settings for C.
  func withC<Result>(_ body: (UnsafePointer<oriel_setting>?, Int) throws -> Result) throws -> Result {
    var joined: [CChar] = []
    var starts: [(name: Int, value: Int)] = []
    for (name, value) in texts {
      try refuseNul(name, "the name of an option")
      try refuseNul(value, name)
      starts.append((joined.count, joined.count + name.utf8.count + 1))
      for text in [name, value] { joined += text.utf8.map { CChar(bitPattern: $0) } + [0] }
    }
    return try joined.withUnsafeBufferPointer { text in
      let settings = starts.map { start in
        oriel_setting(name: text.baseAddress! + start.name, value: text.baseAddress! + start.value)
      }
      return try settings.withUnsafeBufferPointer { try body($0.baseAddress, $0.count) }
    }
  }
}

extension OptionList where Scope == LoadScope {
  /// Calls `body` with the struct of a load. `log` must outlive the model.
  func withC<Result>(log: Log, _ body: (inout oriel_options) throws -> Result) throws -> Result {
    try withC { settings, count in
      var options = oriel_options()
      options.struct_size = MemoryLayout<oriel_options>.stride
      options.settings = settings
      options.setting_count = count
      options.log = Log.receive
      options.log_user = log.pointer
      return try body(&options)
    }
  }
}

extension OptionList where Scope == SessionScope {
  func withC<Result>(_ body: (inout oriel_session_options) throws -> Result) throws -> Result {
    try withC { settings, count in
      var options = oriel_session_options()
      options.struct_size = MemoryLayout<oriel_session_options>.stride
      options.settings = settings
      options.setting_count = count
      return try body(&options)
    }
  }
}

extension OptionList where Scope == ReplyScope {
  func withC<Result>(_ body: (inout oriel_reply_options) throws -> Result) throws -> Result {
    try withC { settings, count in
      var options = oriel_reply_options()
      options.struct_size = MemoryLayout<oriel_reply_options>.stride
      options.settings = settings
      options.setting_count = count
      return try body(&options)
    }
  }
}

/// Forwards progress to a listener.
final class ProgressSink {
  private let listener: ProgressListener

  init(_ listener: @escaping ProgressListener) { self.listener = listener }

  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let receive: oriel_progress_fn = { done, total, user in
    guard let user = user else { return 0 }
    return Unmanaged<ProgressSink>.fromOpaque(user).takeUnretainedValue().listener(done, total) ? 0 : 1
  }
}

/// For C texts that end in NUL.
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
  // The NUL gives an empty text an address.
  let bytes = text.utf8.map { CChar(bitPattern: $0) } + [0]
  return try bytes.withUnsafeBufferPointer { try body($0.baseAddress!, $0.count - 1) }
}

/// Calls `fill(buffer, capacity, &needed)` with a buffer of the needed size.
func filled<Element>(
  with empty: Element, _ log: Log, _ fill: (UnsafeMutablePointer<Element>?, Int, inout Int) -> oriel_status
) throws -> [Element] {
  var all: [Element] = []
  var needed = 0
  var status = fill(nil, 0, &needed)
  while status == ORIEL_ERROR_BUFFER_TOO_SMALL {  // it may have grown meanwhile
    all = Array(repeating: empty, count: needed)
    status = all.withUnsafeMutableBufferPointer { fill($0.baseAddress, $0.count, &needed) }
  }
  try log.check(status)
  return Array(all.prefix(needed))
}

/// The same for text with `nuls` NULs at its end.
func text(
  _ log: Log, nuls: Int = 0, _ fill: (UnsafeMutablePointer<CChar>?, Int, inout Int) -> oriel_status
) throws -> String {
  let chars = try filled(with: CChar(0), log, fill)
  return String(decoding: chars.dropLast(nuls).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Receives the library's log and keeps the latest error line of each thread, for the error that is thrown. The library
/// logs on the calling thread.
final class Log {
  private let listener: LogListener?
  private let lock = NSLock()
  private var lines: [ObjectIdentifier: String] = [:]  // under the lock, by thread

  init(_ listener: LogListener?) { self.listener = listener }

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
