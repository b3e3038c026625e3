import Foundation
import XCTest

@testable import Oriel

/// Constraints on replies.
final class ConstraintsTests: XCTestCase {
  private let schema = """
    {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
     "additionalProperties": false}
    """
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
