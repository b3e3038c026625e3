import COriel
import Foundation

#if canImport(UIKit) && !os(watchOS)
  import UIKit
#endif

/// Levels of `Model.trim`. Each level includes the levels before it. trim_levels of `Model.describePlan` has the
/// remaining bytes.
public enum Trim: UInt32, Sendable, Comparable {
  case none
  /// Activations, staging, compiled kernels.
  case scratch
  /// Weights. Resuming reads the model file again.
  case weights
  /// Caches, written to files.
  case cache
  /// Caches, without files. Resuming reads the transcripts again (option transcript).
  case all

  public static func < (left: Trim, right: Trim) -> Bool { left.rawValue < right.rawValue }
}

#if canImport(UIKit) && !os(watchOS)
  /// Adapts a model to the state of the app while this object is referenced:
  ///
  /// - In the background it pauses the model, because iOS ends apps that use the GPU there, and trims `inBackground`.
  /// - In the foreground it resumes, and replies continue.
  /// - A memory warning in the background trims `onWarning`. In the foreground the app handles warnings.
  @MainActor public final class ModelFollower {
    private let model: Model
    private let inBackground: Trim
    private let onWarning: Trim
    private let folder: String
    private let onError: @MainActor (Error) -> Void
    private var observations: [Observation] = []
    private var visible = true
    private var turn: Task<Void, Never>?  // the latest one; it waits for earlier ones

    /// `folder` (for cache): by default the app's folder for temporary files.
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
      _ name: Notification.Name, _ body: @escaping @MainActor @Sendable (ModelFollower) -> Void
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
      // Keeps the app running until this is done, within the system's limit.
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

  /// Removes the observer with this object.
  private final class Observation: @unchecked Sendable {
    private let observer: NSObjectProtocol
    init(_ observer: NSObjectProtocol) { self.observer = observer }
    deinit { NotificationCenter.default.removeObserver(observer) }
  }

  /// A paused reply keeps its cache, so weights are trimmed first.
  private func give(_ level: Trim, of model: Model, _ folder: String) async throws {
    if level == .cache { try await model.trim(.weights) }
    try await model.trim(level, folder: level == .cache ? folder : nil)
  }
#else
  /// Reports memory pressure on macOS. The app may then `trim`, and `resume` before its next call.
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
