import Foundation
import XCTest

@testable import Oriel

/// What replies are held to.
final class ConstraintsTests: XCTestCase {
  private static let root = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../../..").standardized
  private let model = root.appendingPathComponent("models/oriel-tiny/oriel-tiny-q8_0.gguf").path
  private let memory: UInt64 = 16 << 20
  private let question = "What can you do?"
  private let schema = """
    {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
     "additionalProperties": false}
    """
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

  func testASchemaHoldsWhateverIsDrawn() async throws {
    struct Answer: Decodable {
      let age: Double
    }
    var held = options
    held.constraints = true
    let session = try await open(held)
    XCTAssertGreaterThan(session.plan.constraintBytes, 0)
    var sampling = Sampling()
    sampling.jsonSchema = schema
    sampling.temperature = 1.5
    sampling.maxTokens = 300
    for seed in 1...5 {
      try await session.reset()
      sampling.seed = UInt64(seed)
      let reply = try await session.ask(question, sampling: sampling)
      if reply.stop != .length {
        _ = try JSONDecoder().decode(Answer.self, from: Data(reply.text.utf8))
      }
    }
    sampling.jsonSchema = nil
    sampling.grammar = "root ::= \"yes\" | \"no\""
    try await session.reset()
    let text = try await session.ask(question, sampling: sampling).text
    XCTAssertTrue(["yes", "no"].contains(text), text)
  }

  func testASchemaWithoutRoomForItIsRefused() async throws {
    let session = try await open()
    var sampling = greedy
    sampling.jsonSchema = schema
    do {
      _ = try await session.ask(question, sampling: sampling)
      XCTFail("it was taken")
    } catch {
      let after = try await session.stats()
      XCTAssertEqual(0, after.position)
    }
  }
}
