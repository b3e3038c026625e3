// A chat on a worker thread, as a window needs it: worker MODEL.gguf, then a line for each message on stdin.
//
// The window's thread calls ask(), stop() and apply(), which return at once, and takes events. /stop ends the reply,
// /memory MB loads the model again with another budget and carries the conversation over.
#include <oriel/oriel.hpp>

#include <condition_variable>
#include <deque>
#include <iostream>
#include <mutex>
#include <thread>

class ChatWorker {
 public:
  struct Event {
    enum Kind { kReady, kText, kReplyEnded, kFailed } kind;
    std::string text;
  };

  ChatWorker(std::string model, std::string snapshot)
      : model_path_(std::move(model)), snapshot_(std::move(snapshot)), thread_([this] { run(); }) {}
  ~ChatWorker() {
    stop();
    put({kQuit, 0, "", 0});
    thread_.join();
  }

  void apply(uint64_t memory) { put({kApply, 0, "", memory}); }
  void ask(std::string text) { put({kAsk, 0, std::move(text), 0}); }
  /// Ends the reply that runs, and messages that wait.
  void stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = last_;
    if (session_) {
      session_->cancel();  // also while a long message is read
    }
  }
  /// Waits for the next event. A window would be woken instead.
  Event next() {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [this] { return !events_.empty(); });
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  enum Kind { kAsk, kApply, kQuit };
  struct Command {
    Kind kind;
    uint64_t number;
    std::string text;
    uint64_t memory;
  };

  void put(Command command) {
    const std::lock_guard<std::mutex> lock(mutex_);
    command.number = ++last_;
    commands_.push_back(std::move(command));
    wake_.notify_all();
  }
  void tell(Event::Kind kind, std::string text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back({kind, std::move(text)});
    wake_.notify_all();
  }
  bool isStopped(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return number <= stopped_;
  }
  /// Shares the session with stop().
  void setSession(std::optional<oriel::Session> session) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(session_, session);
  }

  void run() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return !commands_.empty(); });
      const Command command = std::move(commands_.front());
      commands_.pop_front();
      lock.unlock();
      if (command.kind == kQuit) {
        return setSession(std::nullopt);
      }
      try {
        command.kind == kApply ? load(command.memory) : reply(command);
      } catch (const oriel::Error& error) {
        tell(Event::kFailed, error.what());
      }
    }
  }
  /// The old model goes first: both together may not fit. If the new one fails the conversation is in the snapshot.
  void load(uint64_t memory) {
    if (session_) {
      session_->save(snapshot_, ORIEL_SAVE_OVERWRITE).value();
      saved_ = true;
      setSession(std::nullopt);
    }
    oriel::Options options;
    options.memory_bytes = memory;
    oriel::Session session = oriel::Model::load(model_path_, options).value().session().value();
    if (saved_) {
      session.restore(snapshot_, ORIEL_RESTORE_READ).value();
    }
    tell(Event::kReady, std::to_string(session.stats().window_capacity) + " tokens");
    setSession(std::move(session));
  }
  void reply(const Command& command) {
    if (!session_ || isStopped(command.number)) {
      return tell(session_ ? Event::kReplyEnded : Event::kFailed,
                  session_ ? "" : "no model is loaded");
    }
    session_->add("user", command.text).value();
    const auto show = [&](std::string_view text) {
      tell(Event::kText, std::string(text));
      return !isStopped(command.number);
    };
    const auto result = session_->reply(show);
    if (!result && result.status() != ORIEL_ERROR_CANCELLED) {
      throw oriel::Error(result.status(), result.error());
    }
    tell(Event::kReplyEnded, "");
  }

  const std::string model_path_;
  const std::string snapshot_;
  std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  std::deque<Command> commands_;
  std::deque<Event> events_;
  uint64_t last_ = 0;                      // command
  uint64_t stopped_ = 0;                   // commands up to here are over
  std::optional<oriel::Session> session_;  // changed by the worker alone
  bool saved_ = false;
  std::thread thread_;  // last: it uses all others
};

int main(int argc, char** argv) {
  ChatWorker worker(argc > 1 ? argv[1] : "model.gguf", argc > 2 ? argv[2] : "worker.snapshot");
  worker.apply(64u << 20);
  std::cout << "(" << worker.next().text << ")\n" << std::flush;
  for (std::string line; std::getline(std::cin, line);) {
    line.rfind("/memory ", 0) == 0 ? worker.apply(std::stoull(line.substr(8)) << 20)
                                   : worker.ask(line);
    for (bool over = false; !over;) {
      const ChatWorker::Event event = worker.next();
      over = event.kind != ChatWorker::Event::kText;
      std::cout << (event.kind == ChatWorker::Event::kText ? event.text : "(" + event.text + ")\n")
                << std::flush;
    }
  }
  return 0;
}
