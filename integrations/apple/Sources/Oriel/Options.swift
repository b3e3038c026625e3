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
    status: .state, message: "the model or the session is closed: load or make another one")
}

public enum LogLevel: UInt32, Sendable {
  /// "WHAT HAPPENED: WHAT TO DO"; the error that follows has the same line.
  case error = 0
  /// It works, but not as one might expect: a GPU that is not usable, and why.
  case warning = 1
}

/// Told of errors and warnings, on the thread of the call that caused them, for as long as the model is open.
public typealias LogListener = @Sendable (LogLevel, String) -> Void
/// Told of bytes of weights or of tokens that are read, of so many. False stops the call, which then throws with
/// status cancelled.
public typealias ProgressListener = @Sendable (_ done: UInt64, _ total: UInt64) -> Bool

/// What options are of. They are known by name: docs/options.md lists them, the generated file OptionNames.swift has
/// the names, and the library says what is wrong with one.
public protocol OptionScope: Sendable {}
public enum LoadScope: OptionScope {}
public enum SessionScope: OptionScope {}
public enum ReplyScope: OptionScope {}

/// How a model is loaded: `["memory": "600MB", "sessions": 2]`. Every default is sound.
public typealias Options = OptionList<LoadScope>
/// How a conversation is held: `["tools": json]`.
public typealias SessionOptions = OptionList<SessionScope>
/// How a reply is generated: `["max_tokens": 200, "temperature": 0.5]`.
public typealias ReplyOptions = OptionList<ReplyScope>

public struct OptionKey<Scope: OptionScope>: ExpressibleByStringLiteral, Hashable, Sendable {
  public let name: String

  public init(_ name: String) { self.name = name }
  public init(stringLiteral name: String) { self.name = name }
}

/// A text, a number, a boolean, or a list of them.
public protocol OptionValue: Sendable {
  /// One for each element.
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

  /// Calls `body` with these as C sees them.
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
  /// The same in the struct of a load; `log` must outlive what is made with it.
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

/// Hands progress on.
final class ProgressSink {
  private let listener: ProgressListener

  init(_ listener: @escaping ProgressListener) { self.listener = listener }

  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let receive: oriel_progress_fn = { done, total, user in
    guard let user = user else { return 0 }
    return Unmanaged<ProgressSink>.fromOpaque(user).takeUnretainedValue().listener(done, total) ? 0 : 1
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

/// What `fill(buffer, capacity, &needed)` gives, asked first how much that is.
func filled<Element>(
  with empty: Element, _ log: Log, _ fill: (UnsafeMutablePointer<Element>?, Int, inout Int) -> oriel_status
) throws -> [Element] {
  var all: [Element] = []
  var needed = 0
  var status = fill(nil, 0, &needed)
  while status == ORIEL_ERROR_BUFFER_TOO_SMALL {  // another thread may make it longer meanwhile
    all = Array(repeating: empty, count: needed)
    status = all.withUnsafeMutableBufferPointer { fill($0.baseAddress, $0.count, &needed) }
  }
  try log.check(status)
  return Array(all.prefix(needed))
}

/// Text that ends in NUL, or not.
func text(
  _ log: Log, nuls: Int = 0, _ fill: (UnsafeMutablePointer<CChar>?, Int, inout Int) -> oriel_status
) throws -> String {
  let chars = try filled(with: CChar(0), log, fill)
  return String(decoding: chars.dropLast(nuls).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// What the library logs: the latest error is kept for the error that will carry it. The library
/// calls it on the thread that called the library. Of calls that overlap one gives memory back or takes
/// it: each error is its thread's.
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
