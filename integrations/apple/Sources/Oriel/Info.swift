import COriel
import Foundation

/// int8 takes 8.5 bits a value, int4 takes 4.5.
public enum KvFormat: UInt32, Sendable {
  case automatic = 0
  case f16 = 1
  case int8 = 2
  case int4 = 3
}

/// The planned bytes. `Model.describePlan` and `Model.describe` have more.
public struct Plan: Sendable {
  /// False: the numbers describe the smallest plan.
  public let fits: Bool
  public let memoryBytes: UInt64
  /// Sum of the next five.
  public let totalBytes: UInt64
  public let weightsBytes: UInt64
  /// Caches and recurrent states of all sessions.
  public let kvBytes: UInt64
  public let activationBytes: UInt64
  public let stagingBytes: UInt64
  public let hostBytes: UInt64
  /// Smallest memory for these options.
  public let minimumBytes: UInt64
  public let kvBytesPerToken: UInt64
  public let windowTokens: UInt32
  /// First tokens, never evicted.
  public let sinkTokens: UInt32
  public let prefillBatchTokens: UInt32
  public let sessions: UInt32
  /// 0: unknown.
  public let contextTrainTokens: UInt32
  public let keyFormat: KvFormat
  public let valueFormat: KvFormat
  /// Expected loss a token against an endless f16 cache, in nats.
  public let lossNats: Double

  init(_ plan: oriel_plan) {
    fits = plan.fits != 0
    memoryBytes = plan.memory_bytes
    totalBytes = plan.total_bytes
    weightsBytes = plan.weights_bytes
    kvBytes = plan.kv_bytes
    activationBytes = plan.activation_bytes
    stagingBytes = plan.staging_bytes
    hostBytes = plan.host_bytes
    minimumBytes = plan.minimum_bytes
    kvBytesPerToken = plan.kv_bytes_per_token
    windowTokens = plan.window_tokens
    sinkTokens = plan.sink_tokens
    prefillBatchTokens = plan.prefill_batch_tokens
    sessions = plan.sessions
    contextTrainTokens = plan.context_train_tokens
    keyFormat = KvFormat(rawValue: plan.k_format.rawValue) ?? .automatic
    valueFormat = KvFormat(rawValue: plan.v_format.rawValue) ?? .automatic
    lossNats = plan.loss_nats
  }
}

/// Numbers of a session. `Session.describe` has more.
public struct Stats: Sendable {
  /// Tokens so far, as in `Session.goBack(to:)`.
  public let position: UInt64
  /// Tokens that no query will see again.
  public let evicted: UInt64
  /// First token after the sinks that the newest token saw, and the first that is stored.
  public let firstVisible: UInt64
  public let firstStored: UInt64
  /// Tokens below this number are never evicted.
  public let sinksUsed: UInt32
  /// Tokens that the newest token saw, and their limit.
  public let windowUsed: UInt32
  public let windowCapacity: UInt32
  public let turns: UInt32
  /// Allocated now.
  public let deviceBytes: UInt64
  public let hostBytes: UInt64

  init(_ stats: oriel_stats) {
    position = stats.position
    evicted = stats.evicted
    firstVisible = stats.first_visible
    firstStored = stats.first_stored
    sinksUsed = stats.sinks_used
    windowUsed = stats.window_used
    windowCapacity = stats.window_capacity
    turns = stats.turn_count
    deviceBytes = stats.device_bytes
    hostBytes = stats.host_bytes
  }
}

/// Result of `Session.restore`.
public struct Restored: Sendable {
  public enum How: UInt32, Sendable {
    /// Bit for bit.
    case exactly = 0
    /// Into another window, prefill batch or format.
    case carried = 1
    /// The text was read again.
    case read = 2
  }

  public let how: How
  /// Values were converted to another format.
  public let rounded: Bool
  public let tokensHeld: UInt64
  /// In the file but not in this session.
  public let tokensDropped: UInt64
  public let tokensRead: UInt64

  init(_ result: oriel_restored) {
    how = How(rawValue: result.how.rawValue) ?? .carried
    rounded = result.rounded != 0
    tokensHeld = result.tokens_held
    tokensDropped = result.tokens_dropped
    tokensRead = result.tokens_read
  }
}

/// Result of `Session.recover`.
public struct Recovered: Sendable {
  /// The current device.
  public let device: String
  public let onCPU: Bool
  /// The same device and driver as before.
  public let sameDevice: Bool
  /// The state is bit for bit the lost one.
  public let exact: Bool
  public let tokensHeld: UInt64
  public let tokensRead: UInt64
  /// Unknown tokens between the sinks and the held tokens.
  public let tokensDropped: UInt64

  init(_ result: oriel_recovered) {
    device = withUnsafeBytes(of: result.device_name) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
    onCPU = result.on_cpu != 0
    sameDevice = result.same_device != 0
    exact = result.exact != 0
    tokensHeld = result.tokens_held
    tokensRead = result.tokens_read
    tokensDropped = result.tokens_dropped
  }
}

/// Result of a describe call (docs/reference/describe.md).
public struct Description: @unchecked Sendable {
  public let json: String
  public let members: [String: Any]

  init(_ json: String) {
    self.json = json
    members = (try? JSONSerialization.jsonObject(with: Data(json.utf8))) as? [String: Any] ?? [:]
  }

  public subscript(name: String) -> Any? { members[name] }
}

/// The tokens whose vectors are used.
public enum Pooling: UInt32, Sendable {
  /// As the file says, else the mean.
  case automatic = 0
  case mean = 1
  case last = 2
  case first = 3
}

/// The vector of a text.
public struct Embedding: Sendable {
  /// Length 1 if normalised.
  public let values: [Float]
  /// Tokens of the text.
  public let tokens: UInt32
}

/// Pixels for `Session.add(role:text:pictures:)`.
public struct Picture: Sendable {
  /// Bytes of a pixel. Alpha is ignored.
  public enum Order: Int, Sendable {
    case rgb, rgba, bgra
  }

  /// Top row first.
  public let pixels: Data
  /// From 1 to 16384.
  public let width: Int
  public let height: Int
  /// Bytes from one row to the next.
  public let stride: Int
  public let order: Order

  /// `stride` 0: rows follow each other.
  public init(pixels: Data, width: Int, height: Int, stride: Int = 0, order: Order = .rgba) throws {
    let sides = 1...16384
    let row = sides.contains(width) ? width * (order == .rgb ? 3 : 4) : 0
    let step = stride == 0 ? row : stride
    guard row > 0, sides.contains(height), step >= row, step <= pixels.count,
      pixels.count >= step * (height - 1) + row
    else {
      throw OrielError(
        status: .argument,
        message: "a picture of \(width) x \(height) pixels has \(pixels.count) bytes: check its size and stride")
    }
    self.pixels = pixels
    self.width = width
    self.height = height
    self.stride = step
    self.order = order
  }

  func c(_ pixels: UnsafeRawPointer) -> oriel_picture {
    let orders = [ORIEL_RGB8, ORIEL_RGBA8, ORIEL_BGRA8]
    return oriel_picture(
      pixels: pixels, width: UInt32(width), height: UInt32(height), stride: stride, order: orders[order.rawValue])
  }
}

#if canImport(CoreGraphics)
  import CoreGraphics

  extension Picture {
    /// The pixels of an image in sRGB. A CGImage knows no orientation: turn a photo upright first.
    public init(_ image: CGImage) throws {
      let (width, height) = (image.width, image.height)
      var pixels = Data(count: width * height * 4)
      let drawn = pixels.withUnsafeMutableBytes { bytes -> Bool in
        guard
          let space = CGColorSpace(name: CGColorSpace.sRGB),
          let context = CGContext(
            data: bytes.baseAddress, width: width, height: height, bitsPerComponent: 8, bytesPerRow: width * 4,
            space: space, bitmapInfo: CGImageAlphaInfo.noneSkipLast.rawValue)
        else { return false }
        context.draw(image, in: CGRect(x: 0, y: 0, width: width, height: height))
        return true
      }
      guard drawn else {
        throw OrielError(status: .argument, message: "an image cannot be drawn: give a smaller one")
      }
      try self.init(pixels: pixels, width: width, height: height)
    }
  }
#endif
