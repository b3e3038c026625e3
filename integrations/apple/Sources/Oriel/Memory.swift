import COriel
import Foundation

#if canImport(UIKit) && !os(watchOS)
  import UIKit
#endif

/// How much memory `Session.trim` gives back. Each level gives back what those before it do;
/// `Plan.trimBytes` says what stays.
public enum Trim: UInt32, Sendable, Comparable {
  case none
  /// Activations, staging, compiled kernels.
  case scratch
  /// Weights, which are read from the model's file again.
  case weights
  /// The conversation's cache, which goes to a file.
  case cache
  /// The same without a file: the conversation is built again from its transcript
  /// (`Options.transcriptBytes`).
  case all

  public static func < (left: Trim, right: Trim) -> Bool { left.rawValue < right.rawValue }
}

/// What is allocated now.
public struct Resident: Sendable {
  public let level: Trim
  public let paused: Bool
  public let totalBytes: UInt64
}

extension Session {
  /// Lets the device rest, for an app that goes to the background: a reply that runs stops between two
  /// tokens and waits for `resume`. Returns when that is so. All memory stays. Until then new calls
  /// throw (status state).
  public func pause() async throws { try await tend { oriel_pause($1) } }

  /// Gives memory back, until `resume`. Waits for a reply that runs, or, after `pause`, until it rests.
  /// What fails leaves everything as it is. `folder` (for cache): where the cache is written, to a file
  /// that nobody else can read and that goes with it.
  public func trim(_ level: Trim, folder: String? = nil) async throws {
    try refuseNul(folder, "folder")
    try await tend { _, model in
      withOptionalCString(folder) { oriel_trim(model, oriel_trim_level(rawValue: level.rawValue), $0) }
    }
  }

  /// Goes on after `pause` and `trim`, as if nothing had been. Reading weights takes as long as
  /// opening. What fails, for want of memory say, leaves everything as it is, and may be tried again.
  /// `progress` hears of weights that are read, and stops that with false.
  public func resume(progress: (@Sendable (UInt64, UInt64) -> Bool)? = nil) async throws {
    try await tend { core, model in
      let sink = ProgressSink { done, total in
        !core.isClosing && (progress?(done, total) ?? true)
      }
      return withExtendedLifetime(sink) {
        oriel_resume(model, ProgressSink.receive, sink.pointer)
      }
    }
  }

  public func resident() async throws -> Resident {
    let box = ResidentBox()
    try await tend { oriel_model_get_resident($1, &box.c) }
    return Resident(
      level: Trim(rawValue: box.c.level.rawValue) ?? .none, paused: box.c.paused != 0,
      totalBytes: box.c.total_bytes)
  }
}

private final class ResidentBox: @unchecked Sendable {
  var c = oriel_resident()
  init() { c.struct_size = MemoryLayout<oriel_resident>.stride }
}

#if canImport(UIKit) && !os(watchOS)
  /// Lets a session follow the app into the background and out of it, for as long as this object is held:
  ///
  /// - in the background the device rests (iOS ends apps that use the GPU there), a reply waits, and
  ///   memory is given back, so that the system ends this app later;
  /// - back in the foreground everything is taken again, and the reply goes on;
  /// - a memory warning in the foreground finds nothing that could be done without and is left to the app;
  ///   one in the background gives back what is asked for with `onWarning`.
  @MainActor public final class SessionFollower {
    private let session: Session
    private let inBackground: Trim
    private let onWarning: Trim
    private let folder: String
    private let onError: @MainActor (Error) -> Void
    private var observations: [Observation] = []
    private var visible = true
    private var turn: Task<Void, Never>?  // the latest, which waits for those before it

    /// `folder` (for cache): by default the app's own for temporary files.
    public init(
      _ session: Session, inBackground: Trim = .scratch, onWarning: Trim = .weights,
      folder: String = NSTemporaryDirectory(),
      onError: @escaping @MainActor (Error) -> Void = { _ in }
    ) {
      self.session = session
      self.inBackground = inBackground
      self.onWarning = onWarning
      self.folder = folder
      self.onError = onError
      observe(UIApplication.didEnterBackgroundNotification) { $0.hide() }
      observe(UIApplication.willEnterForegroundNotification) { $0.show() }
      observe(UIApplication.didReceiveMemoryWarningNotification) { $0.warn() }
    }

    private func observe(
      _ name: Notification.Name, _ body: @escaping @MainActor (SessionFollower) -> Void
    ) {
      let observer = NotificationCenter.default.addObserver(
        forName: name, object: nil, queue: .main
      ) { [weak self] _ in
        Task { @MainActor in if let self = self { body(self) } }
      }
      observations.append(Observation(observer))
    }

    private func hide() {
      visible = false
      // The app goes on until this is done, or for the seconds that the system allows.
      let time = UIApplication.shared.beginBackgroundTask(withName: "oriel")
      let level = inBackground
      perform { session, folder in
        try await session.pause()
        try await give(level, of: session, folder)
      }
      let last = turn
      Task { @MainActor in
        await last?.value
        UIApplication.shared.endBackgroundTask(time)
      }
    }

    private func show() {
      visible = true
      perform { session, _ in try await session.resume() }
    }

    private func warn() {
      guard !visible else { return }
      let level = onWarning
      perform { session, folder in try await give(level, of: session, folder) }
    }

    private func perform(_ body: @escaping @Sendable (Session, String) async throws -> Void) {
      let before = turn
      let session = self.session
      let folder = self.folder
      turn = Task { @MainActor [weak self] in
        await before?.value
        do { try await body(session, folder) } catch { self?.onError(error) }
      }
    }
  }

  /// Ends with this object.
  private final class Observation: @unchecked Sendable {
    private let observer: NSObjectProtocol
    init(_ observer: NSObjectProtocol) { self.observer = observer }
    deinit { NotificationCenter.default.removeObserver(observer) }
  }

  /// A reply that rests keeps its cache, so what goes before goes first.
  private func give(_ level: Trim, of session: Session, _ folder: String) async throws {
    if level == .cache { try await session.trim(.weights) }
    try await session.trim(level, folder: level == .cache ? folder : nil)
  }
#else
  /// Tells when the system is short of memory, where there is no app that goes to the background (macOS):
  /// then, and while nothing runs, an app may `trim` and `resume` before its next call.
  public func onMemoryPressure(
    _ handler: @escaping @Sendable () -> Void
  ) -> AnyObject? {
    #if os(macOS)
      let source = DispatchSource.makeMemoryPressureSource(
        eventMask: [.warning, .critical], queue: .global(qos: .utility))
      source.setEventHandler(handler: handler)
      source.resume()
      return source
    #else
      return nil
    #endif
  }
#endif
