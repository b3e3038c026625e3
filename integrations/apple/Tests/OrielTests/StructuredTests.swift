import Foundation
import XCTest

@testable import Oriel

/// Messages and tools as JSON, and what replies mean as they come.
final class StructuredTests: XCTestCase {
  private static let root = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../../..").standardized
  private let model = root.appendingPathComponent("models/oriel-tiny/oriel-tiny-q8_0.gguf").path
  private let memory: UInt64 = 16 << 20
  private let question = "What can you do?"
  private var options: Options {
    var options = Options()
    options.device = .cpu
    return options
  }
  private var greedy: Sampling {
    var sampling = Sampling()
    sampling.greedy = true
    return sampling
  }

  private func open(_ options: Options? = nil) async throws -> Session {
    try await Session.open(path: model, memoryBytes: memory, options: options ?? self.options)
  }

  private func user(_ text: String) -> String {
    "[{\"role\": \"user\", \"content\": \"\(text)\"}]"
  }

  func testMessagesAsJSONAreMessages() async throws {
    let session = try await open()
    let said = try await session.ask(question, sampling: greedy)
    try await session.reset()
    try await session.addJSON(user(question))
    var answer: Reply?
    for try await event in session.reply(sampling: greedy) {
      if case .ended(let reply) = event { answer = reply }
    }
    XCTAssertEqual(said.text, answer?.text)
  }

  func testConversationsAreRendered() async throws {
    let session = try await open()
    let text = try await session.render(user("Grüße ⛵"))
    XCTAssertTrue(text.contains("<|im_start|>user\nGrüße ⛵<|im_end|>\n"), text)
    XCTAssertTrue(text.hasSuffix("<|im_start|>assistant\n"), text)
    let closed = try await session.render(user("Hi"), generationPrompt: false)
    XCTAssertFalse(closed.contains("assistant"), closed)
    let ids = try await session.renderTokens(user("Hi"))
    XCTAssertGreaterThan(ids.count, 4)
  }

  func testToolsAreToldForAsLongAsTheSessionLives() async throws {
    var with = options
    with.chatTemplate =
      "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    with.tools = """
      [{"type": "function", "function": {"name": "weather", "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
      """
    let session = try await open(with)
    for _ in 0..<20 {
      let text = try await session.render(user("Hi"))
      XCTAssertTrue(text.contains("Tells the weather."), text)
    }
  }

  func testPartsOfAReplyAreTold() async throws {
    let session = try await open()
    var text = ""
    var ended: Reply?
    for try await event in session.events(question, sampling: greedy) {
      switch event {
      case .part(let part):
        XCTAssertEqual(.text, part.kind)
        text += part.text
      case .ended(let reply): ended = reply
      case .text, .token: break
      }
    }
    XCTAssertFalse(text.isEmpty)
    XCTAssertEqual(text, ended?.parsed.text)
    XCTAssertEqual("", ended?.parsed.thought)
  }
}
