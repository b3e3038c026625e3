import COriel

/// A stretch of a reply and what it is.
public struct Part: Sendable {
  public enum Kind: UInt32, Sendable {
    /// Of the answer.
    case text = 0
    /// What the model thinks before it answers.
    case thought = 1
    /// A tool call: the text is the tool's name.
    case callBegun = 2
    /// More of its arguments: joined they are one JSON object.
    case callArguments = 3
    /// The call is complete.
    case callEnded = 4
  }

  public let kind: Kind
  /// Of a call: its number in the reply, from 0.
  public let call: Int
  public let text: String
}

/// What a reply means.
public struct Parsed: Sendable {
  /// A tool that the model calls.
  public struct Call: Sendable {
    public let name: String
    /// One JSON object; the beginning of one where the call is not complete.
    public fileprivate(set) var arguments = ""
    /// False: the reply was cut off in it.
    public fileprivate(set) var complete = false
  }

  /// The answer, without thought and calls.
  public private(set) var text = ""
  /// Empty where there was none.
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
    case .callArguments, .callEnded: break
    }
  }
}

/// A token of a reply.
public struct Token: Sendable {
  public let id: Int32
  /// Whole characters that it completed; may be empty.
  public let text: String
  /// By the model's own distribution, before any option.
  public let logprob: Float
  /// The most likely ones, best first.
  public let top: [(id: Int32, logprob: Float)]
}

/// How a reply ended, and what it was.
public struct Reply: Sendable {
  public enum Stop: UInt32, Sendable {
    /// max_tokens
    case length = 0
    /// The model was done.
    case end = 1
    case listener = 2
    /// `cancel` or `close`.
    case cancelled = 3
    /// One of the texts of the option stop.
    case text = 4
  }

  /// All that was written, thoughts and calls as the model writes them.
  public internal(set) var text = ""
  /// What that means. Of a reply in a chat.
  public internal(set) var parsed = Parsed()
  public internal(set) var stop = Stop.cancelled
  public internal(set) var tokens: UInt32 = 0
  /// Read for this reply.
  public internal(set) var promptTokens: UInt32 = 0
  /// Of them, those that the window was too short for: the model does not see them.
  public internal(set) var promptTokensEvicted: UInt32 = 0
  /// Guesses that were verified (option speculate), and those that were right.
  public internal(set) var tokensDrafted: UInt32 = 0
  public internal(set) var tokensAccepted: UInt32 = 0
  public internal(set) var timeToFirstTokenMs = 0.0
  /// 0 with fewer than two tokens.
  public internal(set) var tokensPerSecond = 0.0
  /// Every token with its log-probability; empty without the option top_logprobs.
  public internal(set) var logprobs: [Token] = []
}

/// What happens while a reply is generated.
public enum Event: Sendable {
  /// Of all that is written, as `Reply.text`: whole characters, never empty.
  case text(String)
  /// The answer, what is thought, and calls, told apart. In a chat.
  case part(Part)
  /// With the option top_logprobs.
  case token(Token)
  /// The last one.
  case ended(Reply)
}

/// Hands a reply on, and puts it together.
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

  /// With what C says of it.
  func finished(_ result: oriel_generation) -> Reply {
    reply.stop = Reply.Stop(rawValue: result.stop_reason.rawValue) ?? .end
    reply.tokens = result.tokens
    reply.promptTokens = result.prompt_tokens
    reply.promptTokensEvicted = result.prompt_tokens_evicted
    reply.tokensDrafted = result.tokens_drafted
    reply.tokensAccepted = result.tokens_accepted
    reply.timeToFirstTokenMs = result.time_to_first_token_ms
    reply.tokensPerSecond = result.decode_tokens_per_s
    // The last event may be the rest of a character.
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
      kind: kind, call: Int(part.call), text: decoded(part.text, part.text_bytes))
    reply.parsed.add(told)
    onEvent(.part(told))
  }
}

private func decoded(_ text: UnsafePointer<CChar>?, _ bytes: Int) -> String {
  String(decoding: UnsafeRawBufferPointer(start: text, count: bytes), as: UTF8.self)
}
