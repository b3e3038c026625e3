import COriel

/// A piece of a reply.
public struct Part: Sendable {
  public enum Kind: UInt32, Sendable {
    /// A piece of the answer.
    case text = 0
    /// Reasoning before the answer.
    case thought = 1
    /// A tool call begins; the text is the tool's name.
    case callBegun = 2
    /// A piece of the arguments; joined they are one JSON object.
    case callArguments = 3
    /// The call is complete.
    case callEnded = 4
    /// With the option value_parts, in addition: a piece of a string of an answer in JSON, escapes decoded.
    case string = 5
    /// A whole number, true, false or null.
    case literal = 6
    /// A string, an object or an array is complete.
    case valueEnded = 7
  }

  public let kind: Kind
  /// Number of the call in the reply, from 0.
  public let call: Int
  public let text: String
  /// Of a value: its JSON Pointer (RFC 6901). Else nil.
  public let path: String?
}

/// The parts of a reply.
public struct Parsed: Sendable {
  /// A tool call.
  public struct Call: Sendable {
    public let name: String
    /// A JSON object, cut off if the call is not complete.
    public fileprivate(set) var arguments = ""
    /// False: the reply ended inside the call.
    public fileprivate(set) var complete = false
  }

  /// The answer, without thought and calls.
  public private(set) var text = ""
  /// Empty: none.
  public private(set) var thought = ""
  public private(set) var calls: [Call] = []

  mutating func add(_ part: Part) {
    switch part.kind {
    case .text: text += part.text
    case .thought: thought += part.text
    case .callBegun: calls.append(Call(name: part.text))
    case .callArguments where calls.indices.contains(part.call):
      calls[part.call].arguments += part.text
    case .callEnded where calls.indices.contains(part.call):
      calls[part.call].complete = true
    case .callArguments, .callEnded, .string, .literal, .valueEnded: break
    }
  }
}

/// A token of a reply.
public struct Token: Sendable {
  public let id: Int32
  /// Whole characters, may be empty.
  public let text: String
  /// From the model's own distribution.
  public let logprob: Float
  /// The most likely tokens, best first.
  public let top: [(id: Int32, logprob: Float)]
}

/// A finished reply.
public struct Reply: Sendable {
  public enum Stop: UInt32, Sendable {
    /// max_tokens
    case length = 0
    /// End of turn or text.
    case end = 1
    case listener = 2
    /// `cancel` or `close`.
    case cancelled = 3
    /// A text of the option stop.
    case text = 4
  }

  /// The whole text, including the markers of thoughts and calls.
  public internal(set) var text = ""
  /// Answer, thought and calls. Only in a chat.
  public internal(set) var parsed = Parsed()
  public internal(set) var stop = Stop.cancelled
  public internal(set) var tokens: UInt32 = 0
  /// Read for this reply.
  public internal(set) var promptTokens: UInt32 = 0
  /// Those of promptTokens that did not fit into the window.
  public internal(set) var promptTokensEvicted: UInt32 = 0
  /// Verified guesses (option speculate), and correct ones.
  public internal(set) var tokensDrafted: UInt32 = 0
  public internal(set) var tokensAccepted: UInt32 = 0
  public internal(set) var timeToFirstTokenMs = 0.0
  /// 0 for fewer than two tokens.
  public internal(set) var tokensPerSecond = 0.0
  /// The tokens. Empty without the option top_logprobs.
  public internal(set) var logprobs: [Token] = []
}

/// An event of a reply.
public enum Event: Sendable {
  /// Text as in `Reply.text`: whole characters, never empty.
  case text(String)
  /// Answer, thoughts and calls. Only in a chat.
  case part(Part)
  /// With the option top_logprobs.
  case token(Token)
  /// The last event.
  case ended(Reply)
}

/// Forwards the events of a reply and joins them.
final class Sink {
  private let onEvent: (Event) -> Void
  private let wantsTokens: Bool
  var reply = Reply()

  init(wantsTokens: Bool, _ onEvent: @escaping (Event) -> Void) {
    self.wantsTokens = wantsTokens
    self.onEvent = onEvent
  }

  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let receive: oriel_token_fn = { event, user in
    guard let event = event?.pointee, let user = user else { return 0 }
    Unmanaged<Sink>.fromOpaque(user).takeUnretainedValue().take(event)
    return 0
  }

  static let receivePart: oriel_part_fn = { part, user in
    guard let part = part?.pointee, let user = user else { return 0 }
    Unmanaged<Sink>.fromOpaque(user).takeUnretainedValue().take(part)
    return 0
  }

  /// Completes the reply with the result of C.
  func finished(_ result: oriel_generation) -> Reply {
    reply.stop = Reply.Stop(rawValue: result.stop_reason.rawValue) ?? .end
    reply.tokens = result.tokens
    reply.promptTokens = result.prompt_tokens
    reply.promptTokensEvicted = result.prompt_tokens_evicted
    reply.tokensDrafted = result.tokens_drafted
    reply.tokensAccepted = result.tokens_accepted
    reply.timeToFirstTokenMs = result.time_to_first_token_ms
    reply.tokensPerSecond = result.decode_tokens_per_s
    // The last event may be the end of a character, not a token.
    reply.logprobs = Array(reply.logprobs.prefix(Int(result.tokens)))
    return reply
  }

  private func take(_ event: oriel_token_event) {
    let text = decoded(event.text, event.text_bytes)
    if wantsTokens {
      let top = UnsafeBufferPointer(start: event.top, count: Int(event.top_count))
      let token = Token(
        id: event.id, text: text, logprob: event.logprob,
        top: top.map { (id: $0.id, logprob: $0.logprob) })
      reply.logprobs.append(token)
      onEvent(.token(token))
    }
    if !text.isEmpty {
      reply.text += text
      onEvent(.text(text))
    }
  }

  private func take(_ part: oriel_part) {
    guard let kind = Part.Kind(rawValue: part.kind.rawValue) else { return }
    let told = Part(
      kind: kind, call: Int(part.call), text: decoded(part.text, part.text_bytes),
      path: part.path.map { String(cString: $0) })
    reply.parsed.add(told)
    onEvent(.part(told))
  }
}

private func decoded(_ text: UnsafePointer<CChar>?, _ bytes: Int) -> String {
  String(decoding: UnsafeRawBufferPointer(start: text, count: bytes), as: UTF8.self)
}
