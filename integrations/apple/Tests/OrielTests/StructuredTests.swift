import Foundation
import XCTest

@testable import Oriel

/// Messages and tools as JSON, what replies mean as they come, and constraints on them.
final class StructuredTests: XCTestCase {
  private let schema = """
    {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
     "additionalProperties": false}
    """

  private func user(_ text: String) -> String {
    "[{\"role\": \"user\", \"content\": \"\(text)\"}]"
  }

  func testMessagesAsJSONAreMessages() async throws {
    let session = try await open()
    let said = try await session.ask(question, options: greedy)
    try await session.reset()
    try await session.addJSON(user(question))
    var answer: Reply?
    for try await event in session.reply(options: greedy) {
      if case .ended(let reply) = event { answer = reply }
    }
    XCTAssertEqual(said.text, answer?.text)
  }

  func testConversationsAreRendered() async throws {
    let session = try await open()
    let text = try await session.model.render(user("Grüße ⛵"))
    XCTAssertTrue(text.contains("<|im_start|>user\nGrüße ⛵<|im_end|>\n"), text)
    XCTAssertTrue(text.hasSuffix("<|im_start|>assistant\n"), text)
    let closed = try await session.model.render(user("Hi"), generationPrompt: false)
    XCTAssertFalse(closed.contains("assistant"), closed)
    let ids = try await session.model.renderTokens(user("Hi"))
    XCTAssertGreaterThan(ids.count, 4)
  }

  func testToolsAreToldForAsLongAsTheSessionLives() async throws {
    let with: SessionOptions = [
      .template:
        "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
      .tools: """
        [{"type": "function", "function": {"name": "weather", "description": "Tells the weather.",
          "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
        """,
    ]
    let session = try await open(nil, with)
    let text = try await session.model.render(user("Hi"), options: with)
    XCTAssertTrue(text.contains("Tells the weather."), text)
    let ids = try await session.model.renderTokens(user("Hi"), options: with)
    for _ in 0..<20 {
      try await session.reset()
      try await session.add(role: "user", text: "Hi")
      let position = try await session.stats().position
      XCTAssertGreaterThan(position + 5, UInt64(ids.count))
    }
  }

  func testPartsOfAReplyAreTold() async throws {
    let session = try await open()
    var text = ""
    var ended: Reply?
    for try await event in session.events(question, options: greedy) {
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

  func testASchemaHoldsWhateverIsDrawn() async throws {
    struct Answer: Decodable {
      let age: Double
    }
    var held = options
    held["constraints"] = true
    let session = try await open(held)
    let plan = try await session.model.describe()["plan"] as? [String: Any]
    XCTAssertGreaterThan(plan?["constraint_bytes"] as? Int ?? 0, 0)
    var sampling = ReplyOptions()
    sampling["schema"] = schema
    sampling["temperature"] = 1.5
    sampling["max_tokens"] = 300
    for seed in 1...5 {
      try await session.reset()
      sampling["seed"] = UInt64(seed)
      let reply = try await session.ask(question, options: sampling)
      if reply.stop != .length {
        _ = try JSONDecoder().decode(Answer.self, from: Data(reply.text.utf8))
      }
    }
    sampling["schema"] = nil
    sampling["grammar"] = "root ::= \"yes\" | \"no\""
    try await session.reset()
    let text = try await session.ask(question, options: sampling).text
    XCTAssertTrue(["yes", "no"].contains(text), text)
  }

  func testASchemaWithoutRoomForItIsRefused() async throws {
    let session = try await open()
    var sampling = greedy
    sampling["schema"] = schema
    do {
      _ = try await session.ask(question, options: sampling)
      XCTFail("it was taken")
    } catch {
      let after = try await session.stats()
      XCTAssertEqual(0, after.position)
    }
  }
}
