import Foundation
import XCTest

@testable import Oriel

/// Shared helpers of the tests.
extension XCTestCase {
  var root: URL {
    URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../..").standardized
  }
  var path: String { root.appendingPathComponent("models/oriel-tiny/oriel-tiny-q8_0.gguf").path }
  var question: String { "What can you do?" }
  var options: Options { ["memory": "16MiB", "device": "cpu"] }
  var greedy: ReplyOptions { ["greedy": true] }

  func load(_ options: Options? = nil) async throws -> Model {
    try await Model.load(path: path, options: options ?? self.options)
  }

  func open(_ options: Options? = nil, _ session: SessionOptions = [:]) async throws -> Session {
    try await load(options).session(session)
  }

  func expect<Value>(_ status: OrielError.Status, _ body: () async throws -> Value) async {
    do {
      _ = try await body()
      XCTFail("nothing was thrown")
    } catch {
      XCTAssertEqual(status, (error as? OrielError)?.status, "\(error)")
    }
  }
}
