import Foundation
import XCTest

@testable import Oriel

/// Sampling, log-probabilities, embeddings, and the properties of a file and a session.
final class KnobsTests: XCTestCase {
  private func limited(_ maxTokens: UInt32 = 0) -> ReplyOptions {
    ["greedy": true, "max_tokens": maxTokens]
  }

  /// In a new conversation.
  private func again(_ session: Session, _ options: ReplyOptions) async throws -> Reply {
    try await session.reset()
    return try await session.ask(question, options: options)
  }

  func testWhatAFolderSaysAgainstDriversIsForgotten() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("oriel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let other = folder.appendingPathComponent("other.verdict")
    try Data([1]).write(to: other)
    _ = try Model.describeDevices(options: ["cache_folder": folder.path], forget: true)
    XCTAssertTrue(FileManager.default.fileExists(atPath: other.path))
  }

  func testPicturesAreForModelsThatSee() async throws {
    let pixels = Data(repeating: 200, count: 4 * 6 * 5)
    let picture = try Picture(pixels: pixels, width: 6, height: 5)
    let session = try await open()
    await expect(.unsupported) { try await session.add(role: "user", text: "What is \"this\"?", pictures: [picture]) }
    let position = try await session.stats().position
    XCTAssertEqual(0, position)
    try await session.add(role: "user", text: "What is \"this\"?", pictures: [])
    let wrong: [(width: Int, height: Int, stride: Int)] = [
      (0, 5, 0), (6, 0, 0), (-6, 5, 0), (7, 5, 0), (6, 5, 23), (6, 5, 25), (16385, 1, 0), (1, 1, .max),
    ]
    for (width, height, stride) in wrong {
      XCTAssertThrowsError(try Picture(pixels: pixels, width: width, height: height, stride: stride))
    }
  }

  func testARepliesEndIsTold() async throws {
    let session = try await open()
    let whole = try await again(session, limited())
    XCTAssertEqual(.end, whole.stop)
    XCTAssertGreaterThan(whole.tokens, 10)
    XCTAssertGreaterThan(whole.promptTokens, 5)
    XCTAssertGreaterThan(whole.timeToFirstTokenMs, 0)
    XCTAssertGreaterThan(whole.tokensPerSecond, 0)
    let cut = try await again(session, limited(3))
    XCTAssertEqual(.length, cut.stop)
    XCTAssertEqual(3, cut.tokens)
    XCTAssertTrue(whole.text.hasPrefix(cut.text))
    var streamed = ""
    var ends = 0
    try await session.reset()
    for try await event in session.events(question, options: limited()) {
      switch event {
      case .text(let piece): streamed += piece
      case .ended(let reply):
        ends += 1
        XCTAssertEqual(whole.text, reply.text)
      case .part, .token: break
      }
    }
    XCTAssertEqual(whole.text, streamed)
    XCTAssertEqual(1, ends)
  }

  func testACancelledReplySaysSo() async throws {
    let session = try await open()
    var stop = Reply.Stop.end
    for _ in 0..<50 where stop != .cancelled {
      try await session.reset()
      for try await event in session.events("Tell me a story.", options: limited()) {
        if case .text = event { session.cancel() }
        if case .ended(let reply) = event { stop = reply.stop }
      }
    }
    XCTAssertEqual(.cancelled, stop)
  }

  func testAStopTextEndsTheReplyAndIsNotShown() async throws {
    let session = try await open()
    let whole = try await again(session, limited()).text
    let begin = whole.index(whole.startIndex, offsetBy: 5)
    let text = String(whole[begin..<whole.index(begin, offsetBy: 7)])
    var sampling = limited()
    sampling["stop"] = ["never written ⛵", text]
    let reply = try await again(session, sampling)
    XCTAssertEqual(.text, reply.stop)
    XCTAssertEqual(whole.components(separatedBy: text)[0], reply.text)
    sampling["stop"] = [""]
    await expect(.argument) { try await session.ask(self.question, options: sampling) }
  }

  func testBiasesAndPenaltiesReachTheirPlaces() async throws {
    let session = try await open()
    let plain = try await again(session, limited(30)).text
    let first = try await session.model.tokenize(plain)[0]
    var sampling = limited(30)
    sampling[.logitBias] = ["\(first):-inf"]
    let other = try await again(session, sampling).text
    XCTAssertNotEqual(plain, other)
    sampling[.logitBias] = ["-1:1"]
    await expect(.argument) { try await self.again(session, sampling) }
    sampling[.logitBias] = nil
    sampling["presence_penalty"] = 10
    let present = try await again(session, sampling).text
    XCTAssertNotEqual(plain, present)
    sampling["presence_penalty"] = 0
    sampling["frequency_penalty"] = 10
    let frequent = try await again(session, sampling).text
    XCTAssertNotEqual(plain, frequent)
    sampling["repeat_window"] = 257
    await expect(.argument) { try await self.again(session, sampling) }
  }

  func testMinTokensAndIgnoreStopGoOn() async throws {
    let session = try await open()
    let whole = try await again(session, limited()).tokens
    var sampling = limited(whole + 20)
    sampling["min_tokens"] = whole + 5
    let longer = try await again(session, sampling).tokens
    XCTAssertGreaterThanOrEqual(longer, whole + 5)
    sampling["min_tokens"] = 0
    sampling["ignore_stop"] = true
    let endless = try await again(session, sampling)
    XCTAssertEqual(whole + 20, endless.tokens)
    XCTAssertEqual(.length, endless.stop)
  }

  func testLogProbabilitiesComeWithTheTokens() async throws {
    let session = try await open()
    var sampling = limited(9)
    let without = try await again(session, sampling)
    XCTAssertTrue(without.logprobs.isEmpty)
    sampling["top_logprobs"] = 3
    let reply = try await again(session, sampling)
    XCTAssertEqual(9, reply.logprobs.count)
    for token in reply.logprobs {
      XCTAssertEqual(3, token.top.count)
      XCTAssertEqual(token.id, token.top[0].id)
      XCTAssertEqual(token.logprob, token.top[0].logprob)
      XCTAssertGreaterThanOrEqual(token.top[0].logprob, token.top[1].logprob)
      XCTAssertLessThan(token.logprob, 0)
    }
    XCTAssertTrue(reply.text.hasPrefix(reply.logprobs.map { $0.text }.joined()))
  }

  func testRawTextIsContinued() async throws {
    let session = try await open()
    await expect(.state) { for try await _ in session.generate(options: self.limited(1)) {} }
    try await session.append("Once")
    var ended: Reply?
    for try await event in session.generate(options: limited(4)) {
      if case .ended(let reply) = event { ended = reply }
    }
    XCTAssertLessThanOrEqual(1, ended?.tokens ?? 0)
  }

  func testGoingBackAllowsAnotherAnswer() async throws {
    let session = try await open()
    let first = try await session.ask(question, options: limited())
    let stats = try await session.stats()
    XCTAssertGreaterThan(stats.position, UInt64(first.tokens))
    XCTAssertGreaterThan(stats.windowUsed, 0)
    XCTAssertLessThanOrEqual(stats.windowUsed, stats.windowCapacity)
    XCTAssertEqual(stats.deviceBytes, session.model.plan.totalBytes - session.model.plan.hostBytes)
    let submissions = try await session.describe()["submissions"] as? Int
    XCTAssertGreaterThan(submissions ?? 0, 5)
    try await session.goBack(to: 0)
    let second = try await session.ask(question, options: limited())
    XCTAssertEqual(first.text, second.text)
    await expect(.context) { try await session.goBack(to: 1 << 40) }
  }

  func testTokensThereAndBack() async throws {
    let session = try await open()
    for text in ["plain", "", "grüß Gott", "🚀 👩‍💻", "a\0b", "漢字"] {
      let ids = try await session.model.tokenize(text)
      let back = try await session.model.detokenize(ids)
      XCTAssertEqual(text, back)
    }
    await expect(.argument) { try await session.model.detokenize([-1]) }
  }

  func testATextBecomesAVector() async throws {
    let session = try await open()
    let cat = try await session.embed("A cat sleeps.")
    let length = cat.values.reduce(0) { $0 + $1 * $1 }.squareRoot()
    XCTAssertEqual(1, length, accuracy: 1e-5)
    XCTAssertGreaterThan(cat.tokens, 2)
    let same = try await session.embed("A cat sleeps.", pooling: .mean)
    XCTAssertEqual(cat.values, same.values)
    let last = try await session.embed("A cat sleeps.", pooling: .last, normalised: false)
    XCTAssertEqual(cat.values.count, last.values.count)
    XCTAssertNotEqual(cat.values, last.values)
    await expect(.argument) { try await session.embed("") }
    _ = try await session.ask(question, options: limited(2))
    await expect(.state) { try await session.embed("A cat.") }
  }

  func testThoughtAnswerAndCallsAreToldApart() async throws {
    let model = try await load()
    let thinking: SessionOptions = [.template: "qwen3"]
    let call = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Tromsø\"}}\n</tool_call>"
    let parsed = try await model.parseReply(
      "<think>\nWhere is it?\n</think>\n\nYes ⛵." + call, options: thinking)
    XCTAssertTrue(parsed.thought.contains("Where is it?"), parsed.thought)
    XCTAssertTrue(parsed.text.hasPrefix("Yes ⛵."), parsed.text)
    XCTAssertEqual(["weather"], parsed.calls.map { $0.name })
    XCTAssertTrue(parsed.calls[0].arguments.contains("Tromsø"), parsed.calls[0].arguments)
    XCTAssertTrue(parsed.calls[0].complete)
    let cut = try await model.parseReply(String(call.dropLast(20)), options: thinking)
    XCTAssertEqual([false], cut.calls.map { $0.complete })
    let inside = try await model.parseReply(
      "It is\n</think>\n\nYes.", options: thinking, insideThought: true)
    XCTAssertTrue(inside.thought.contains("It is"), inside.thought)
  }

  private final class Seen: @unchecked Sendable {
    private let lock = NSLock()
    private var latest: (done: UInt64, total: UInt64) = (0, 0)

    func see(_ done: UInt64, _ total: UInt64) {
      lock.lock()
      defer { lock.unlock() }
      latest = (done, total)
    }

    var last: (done: UInt64, total: UInt64) {
      lock.lock()
      defer { lock.unlock() }
      return latest
    }
  }

  func testProgressIsToldAndCanStop() async throws {
    let seen = Seen()
    _ = try await Model.load(
      path: path, options: options,
      progress: { done, total in
        seen.see(done, total)
        return true
      })
    XCTAssertGreaterThan(seen.last.total, 4_000_000)
    XCTAssertEqual(seen.last.done, seen.last.total)
    await expect(.cancelled) {
      try await Model.load(path: self.path, options: self.options, progress: { _, _ in false })
    }
  }

  func testAFileTellsWhatItIs() throws {
    let info = try Model.describeFile(path: path)
    XCTAssertEqual("llama", info["architecture"] as? String)
    XCTAssertEqual("chatml", info["chat_template"] as? String)
    XCTAssertEqual(true, info["runs"] as? Bool)
    XCTAssertGreaterThan(info["parameters"] as? Int ?? 0, 3_000_000)
    let vocabulary = root
      .appendingPathComponent("tests/data/tokenizer/vocab-bpe2048.gguf").path
    let other = try Model.describeFile(path: vocabulary)
    XCTAssertEqual(false, other["runs"] as? Bool)
    let missing = other["missing"] as? [String]
    XCTAssertTrue(missing?.first?.contains(": ") ?? false)
    XCTAssertThrowsError(try Model.describeFile(path: "/no/such.gguf"))
    XCTAssertEqual(3, Model.version.split(separator: ".").count)
  }

  func testOptionsReachTheirPlaces() async throws {
    var given = options
    given[.window] = 123
    given[.sinks] = 7
    given["prefill_batch"] = 9
    given["kv"] = "k8v4"
    var plan = try Model.plan(path: path, options: given)
    XCTAssertEqual(123, plan.windowTokens)
    XCTAssertEqual(7, plan.sinkTokens)
    XCTAssertEqual(9, plan.prefillBatchTokens)
    XCTAssertEqual(.int8, plan.keyFormat)
    XCTAssertEqual(.int4, plan.valueFormat)
    XCTAssertEqual("123", given[.window] as? String)
    given[.sinks] = 0
    plan = try Model.plan(path: path, options: given)
    XCTAssertEqual(0, plan.sinkTokens)
    given[.speculate] = 3
    let told = try Model.describePlan(path: path, options: given)
    XCTAssertEqual(3, told["draft_tokens"] as? Int)
    XCTAssertEqual(123, told["window_tokens"] as? Int)
    given[.window] = nil
    given["sessions"] = 2
    plan = try Model.plan(path: path, options: given)
    XCTAssertGreaterThan(plan.windowTokens, 123)
    XCTAssertEqual(2, plan.sessions)
    let wrong: [Options] = [
      ["speculate": 16], ["windw": 5], ["kv": "k9"], ["max_tokens": 5], ["constraints": 0.5],
    ]
    for options in wrong {
      await expect(.argument) { try Model.plan(path: self.path, options: options) }
    }
    await expect(.io) { try Model.plan(path: self.path, options: ["draft_model": "/no/such.gguf"]) }
    let model = try await load()
    await expect(.argument) { try await model.session(["evict": "tokens", "forget": true]) }
    let session = try await model.session(["evict": "tokens"])
    let inForce = try await session.describe()["options"] as? [String: String]
    XCTAssertEqual("tokens", inForce?["evict"])
  }

  private struct Table: Decodable {
    struct Option: Decodable {
      let name: String
      let scope: String
      let type: String
      let least: Double?
      let most: Double?
      let choices: [String]?
      let `default`: String
    }
    let options: [Option]

    /// Another value than the default, of an option for which any will do.
    static func value(_ option: Option) -> String? {
      switch option.type {
      case "flag": return option.default == "true" ? "false" : "true"
      case "choice": return option.choices?.first { $0 != option.default && $0 != "vulkan" }
      case "count", "number":
        guard let least = option.least, let most = option.most else { return nil }
        let value = max(least, min(most, 3))
        return value == value.rounded() ? String(Int(value)) : String(value)
      default: return nil
      }
    }
  }

  /// tests/jni/Options.java covers the meaning of texts, files and lists.
  func testEveryOptionOfTheTableArrives() async throws {
    let json = try Model.describeOptions().json
    let table = try JSONDecoder().decode(Table.self, from: Data(json.utf8)).options
    XCTAssertGreaterThan(table.count, 50)
    // One device, of known speed; no tools, no eyes; no number.
    let leftOut = ["device", "min_speed", "tool_choice", "image_tokens", "date"]
    for option in table where !leftOut.contains(option.name) {
      guard let value = Table.value(option) else { continue }
      var load = options
      load["memory"] = 64 << 20
      if option.name == "retrieval_tokens" {
        load["retrieval"] = 1 << 20
        load["retrieval_folder"] = NSTemporaryDirectory()
      }
      var said: SessionOptions = [:]
      var reply: ReplyOptions = ["max_tokens": 4]
      switch option.scope {
      case "load": load[OptionKey(option.name)] = value
      case "session": said[OptionKey(option.name)] = value
      default: reply[OptionKey(option.name)] = value
      }
      let model = try await self.load(load)
      let session = try await model.session(said)
      let inForce =
        option.scope == "load" ? try await model.describe()["options"] : try await session.describe()["options"]
      if option.scope == "reply" {
        _ = try await session.ask(question, options: reply)
        reply[OptionKey(option.name)] = "no such value"
        let wrong = reply
        await expect(.argument) { try await session.ask(self.question, options: wrong) }
      } else {
        XCTAssertEqual(value, (inForce as? [String: String])?[option.name], option.name)
      }
      await model.close()
    }
  }

  func testConstantsAreTheNamesOfTheTable() throws {
    XCTAssertEqual("cache_folder", OptionKey<LoadScope>.cacheFolder.name)
    XCTAssertEqual("template", OptionKey<SessionScope>.template.name)
    XCTAssertEqual("top_logprobs", OptionKey<ReplyScope>.topLogprobs.name)
    let values: ReplyOptions = [.stop: ["a", "b"], .seed: 5, .greedy: true, .topP: 0.5]
    XCTAssertEqual(["a", "b"], values[.stop] as? [String])
    XCTAssertEqual("true", values[.greedy] as? String)
    XCTAssertEqual("0.5", values[.topP] as? String)
  }
}
