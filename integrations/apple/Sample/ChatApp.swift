// A chat app: downloads a model, plans for the memory of a slider, streams replies, and pauses in the background. Add the
// package and this file to an empty iOS app. Compiled against declarations of SwiftUI (scripts/bindings.sh); has never run.
import Oriel
import SwiftUI

@main struct ChatApp: App {
  var body: some Scene { WindowGroup { ChatView() } }
}

@MainActor final class Chat: ObservableObject {
  @Published var lines: [String] = []
  @Published var status = ""
  @Published var megabytes = 600.0
  @Published var busy = false
  private let address = URL(
    string: "https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF/resolve/main/qwen2.5-0.5b-instruct-q4_k_m.gguf")!
  private let file = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0]
    .appendingPathComponent("model.gguf")
  private var session: Session?
  private var follower: ModelFollower?
  private var options: Options { ["memory": "\(Int(megabytes))MB"] }

  /// What fits into the slider's memory. Reads the header of the file only.
  func plan() {
    guard let plan = try? Model.plan(path: file.path, options: options) else { return }
    status = plan.fits ? "\(plan.windowTokens) tokens fit" : "needs \(plan.minimumBytes / 1_000_000) MB"
  }

  private func download() async throws {
    guard !FileManager.default.fileExists(atPath: file.path) else { return }
    status = "Downloading"
    let (part, _) = try await URLSession.shared.download(from: address)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try FileManager.default.moveItem(at: part, to: file)
  }

  /// Loads with the slider's memory. The conversation begins anew.
  func load() async {
    busy = true
    defer { busy = false }
    do {
      try await download()
      follower = nil
      await session?.model.close()
      session = nil
      let model = try await Model.load(path: file.path, options: options)
      follower = ModelFollower(model)
      session = try await model.session()
      plan()
    } catch let error as OrielError {
      status = error.message
    } catch {
      status = error.localizedDescription
    }
  }

  func ask(_ question: String) async {
    if session == nil { await load() }
    guard let session = session else { return }
    busy = true
    defer { busy = false }
    lines += ["> \(question)", ""]
    do {
      for try await piece in session.chat(question) { lines[lines.count - 1] += piece }
    } catch let error as OrielError {
      status = error.message
    } catch {}
  }

  func stop() { session?.cancel() }
}

struct ChatView: View {
  @StateObject private var chat = Chat()
  @State private var question = ""

  var body: some View {
    VStack {
      ScrollView { Text(chat.lines.joined(separator: "\n")).frame(maxWidth: .infinity, alignment: .leading) }
      Text(chat.status).font(.caption)
      HStack {
        Slider(value: $chat.megabytes, in: 100...4000, onEditingChanged: { _ in chat.plan() })
        Button("Apply") { Task { await chat.load() } }.disabled(chat.busy)
      }
      HStack {
        TextField("Message", text: $question)
        Button(chat.busy ? "Stop" : "Send") {
          let text = question
          if chat.busy { chat.stop() } else { question = ""; Task { await chat.ask(text) } }
        }
      }
    }
    .padding()
  }
}
