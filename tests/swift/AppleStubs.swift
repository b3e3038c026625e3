// Declarations of what the package and its sample use of Apple's frameworks, to compile them where those are not: names,
// labels, types and isolation are Apple's, and nothing runs. Compiled once for each module: -D and -module-name name it.
@_exported import Foundation
@_exported import FoundationNetworking

#if UIKit
  @MainActor open class UIApplication: NSObject {
    public static let shared = UIApplication()
    public nonisolated static let didEnterBackgroundNotification = Notification.Name("background")
    public nonisolated static let willEnterForegroundNotification = Notification.Name("foreground")
    public nonisolated static let didReceiveMemoryWarningNotification = Notification.Name("memory")
    public func beginBackgroundTask(
      withName: String?, expirationHandler: (@MainActor @Sendable () -> Void)? = nil
    ) -> UIBackgroundTaskIdentifier { UIBackgroundTaskIdentifier(rawValue: 0) }
    public func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) {}
  }
  public struct UIBackgroundTaskIdentifier: RawRepresentable, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
  }
#elseif CoreGraphics
  public final class CGImage {
    public var width: Int { 0 }
    public var height: Int { 0 }
  }
  public final class CGColorSpace {
    public static var sRGB: CFString { fatalError() }
    public init?(name: CFString) {}
  }
  public final class CFString {}
  public enum CGImageAlphaInfo: UInt32 {
    case none, premultipliedLast, premultipliedFirst, last, first, noneSkipLast, noneSkipFirst, alphaOnly
  }
  public final class CGContext {
    public init?(
      data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int,
      space: CGColorSpace, bitmapInfo: UInt32
    ) {}
    public func draw(_ image: CGImage, in rect: CGRect, byTiling: Bool = false) {}
  }
#elseif SwiftUI
  @MainActor public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
  }
  extension Never: View {
    public var body: Never { fatalError() }
  }
  @resultBuilder public enum ViewBuilder {
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> Group { Group() }
  }
  public struct Group: View {
    nonisolated init() {}
    public var body: Never { fatalError() }
  }
  @MainActor public protocol Scene {}
  @MainActor public protocol App {
    associatedtype Body: Scene
    var body: Body { get }
    init()
  }
  extension App {
    public static func main() {}
  }
  public struct WindowGroup: Scene {
    public init<Content: View>(@ViewBuilder content: () -> Content) {}
  }

  public protocol ObservableObject: AnyObject {}
  @propertyWrapper public struct Published<Value> {
    public var wrappedValue: Value
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
  }
  @propertyWrapper public struct Binding<Value> {
    public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) {}
    public var wrappedValue: Value { get { fatalError() } nonmutating set {} }
  }
  @propertyWrapper public struct State<Value> {
    public init(wrappedValue: Value) {}
    public var wrappedValue: Value { get { fatalError() } nonmutating set {} }
    public var projectedValue: Binding<Value> { fatalError() }
  }
  @MainActor @propertyWrapper public struct StateObject<Object: ObservableObject> {
    public nonisolated init(wrappedValue make: @autoclosure @escaping () -> Object) {}
    public var wrappedValue: Object { fatalError() }
    public var projectedValue: Wrapper { fatalError() }
    @MainActor @dynamicMemberLookup public struct Wrapper {
      public subscript<Value>(dynamicMember path: ReferenceWritableKeyPath<Object, Value>) -> Binding<Value> {
        fatalError()
      }
    }
  }

  public enum HorizontalAlignment { case leading, center, trailing }
  public enum Alignment { case leading, center, trailing }
  public enum Font { case body, caption }
  public struct VStack: View {
    public var body: Never { fatalError() }
    public init<Content: View>(
      alignment: HorizontalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content
    ) {}
  }
  public struct HStack: View {
    public var body: Never { fatalError() }
    public init<Content: View>(spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {}
  }
  public struct ScrollView: View {
    public var body: Never { fatalError() }
    public init<Content: View>(@ViewBuilder content: () -> Content) {}
  }
  public struct Text: View {
    public var body: Never { fatalError() }
    public init<Words: StringProtocol>(_ content: Words) {}
  }
  public struct TextField: View {
    public var body: Never { fatalError() }
    public init<Words: StringProtocol>(_ title: Words, text: Binding<String>) {}
  }
  public struct Slider: View {
    public var body: Never { fatalError() }
    public init<Value: BinaryFloatingPoint>(
      value: Binding<Value>, in bounds: ClosedRange<Value> = 0...1, onEditingChanged: @escaping (Bool) -> Void = { _ in }
    ) {}
  }
  public struct Button: View {
    public var body: Never { fatalError() }
    public init<Words: StringProtocol>(_ title: Words, action: @escaping @MainActor () -> Void) {}
  }
  extension View {
    public func font(_ font: Font?) -> some View { Group() }
    public func frame(
      minWidth: CGFloat? = nil, maxWidth: CGFloat? = nil, alignment: Alignment = .center
    ) -> some View { Group() }
    public func padding() -> some View { Group() }
    public func disabled(_ disabled: Bool) -> some View { Group() }
  }
#endif
