import COriel
import Foundation

#if canImport(UIKit) && !os(watchOS)
  import UIKit
#endif

/// How much memory `Model.trim` gives back. Each level gives back what those before it do;
/// trim_levels of `Model.describePlan` says what stays.
public enum Trim: UInt32, Sendable, Comparable {
  case none
  /// Activations, staging, compiled kernels.
  case scratch
  /// Weights, which are read from the model's file again.
  case weights
  /// The conversations' caches, which go to files.
  case cache
  /// The same without a file: conversations are built again from their transcripts (option transcript).
  case all

  public static func < (left: Trim, right: Trim) -> Bool { left.rawValue < right.rawValue }
}

#if canImport(UIKit) && !os(watchOS)
  /// Lets a model follow the app into the background and out of it, for as long as this object is held:
  ///
  /// - in the background the device rests (iOS ends apps that use the GPU there), a reply waits, and
  ///   memory is given back, so that the system ends this app later;
  /// - back in the foreground everything is taken again, and the reply goes on;
  /// - a memory warning in the foreground finds nothing that could be done without and is left to the app;
  ///   one in the background gives back what is asked for with `onWarning`.
  @MainActor public final class ModelFollower {
    private let model: Model
    private let inBackground: Trim
    private let onWarning: Trim
    private let folder: String
    private let onError: @MainActor (Error) -> Void
    private var observations: [Observation] = []
    private var visible = true
    private var turn: Task<Void, Never>?  // the latest, which waits for those before it

    /// `folder` (for cache): by default the app's own for temporary files.
    public init(
      _ model: Model, inBackground: Trim = .scratch, onWarning: Trim = .weights,
      folder: String = NSTemporaryDirectory(),
      onError: @escaping @MainActor (Error) -> Void = { _ in }
    ) {
      self.model = model
      self.inBackground = inBackground
      self.onWarning = onWarning
      self.folder = folder
      self.onError = onError
      observe(UIApplication.didEnterBackgroundNotification) { $0.hide() }
      observe(UIApplication.willEnterForegroundNotification) { $0.show() }
      observe(UIApplication.didReceiveMemoryWarningNotification) { $0.warn() }
    }

    private func observe(
      _ name: Notification.Name, _ body: @escaping @MainActor (ModelFollower) -> Void
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
      perform { model, folder in
        try await model.pause()
        try await give(level, of: model, folder)
      }
      let last = turn
      Task { @MainActor in
        await last?.value
        UIApplication.shared.endBackgroundTask(time)
      }
    }

    private func show() {
      visible = true
      perform { model, _ in try await model.resume() }
    }

    private func warn() {
      guard !visible else { return }
      let level = onWarning
      perform { model, folder in try await give(level, of: model, folder) }
    }

    private func perform(_ body: @escaping @Sendable (Model, String) async throws -> Void) {
      let before = turn
      let model = self.model
      let folder = self.folder
      turn = Task { @MainActor [weak self] in
        await before?.value
        do { try await body(model, folder) } catch { self?.onError(error) }
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
  private func give(_ level: Trim, of model: Model, _ folder: String) async throws {
    if level == .cache { try await model.trim(.weights) }
    try await model.trim(level, folder: level == .cache ? folder : nil)
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
