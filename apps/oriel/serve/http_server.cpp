#include "serve/http_server.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "output.h"

namespace cli {
namespace {

using namespace std::chrono_literals;

/// Between two requests on a connection.
constexpr auto kIdle = 15s;
/// A body has so many times that, and a second for each 64 KiB there may be.
constexpr int64_t kBodyTime = 2;
/// A client that takes nothing for so long has left.
constexpr auto kPatience = 20s;
/// Between two looks at whether the server stops.
constexpr auto kSlice = 250ms;

/// One more, for as long as it lives.
class Count {
 public:
  explicit Count(std::atomic<uint32_t>* count) : count_(*count) { ++count_; }
  ~Count() { --count_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  std::atomic<uint32_t>& count_;
};

}  // namespace

void Exchange::addHeader(const std::string& name, const std::string& value) {
  headers_.emplace_back(name, value);
}

bool Exchange::put(std::string_view bytes) {
  if (!failed_ && !sendAll(socket_, bytes, kPatience)) {
    failed_ = true;
  }
  return !failed_;
}

std::string Exchange::connection() const {
  return closes_ || !request_.keep_alive ? "close" : "keep-alive";
}

void Exchange::send(int status, const std::string& type, std::string_view body) {
  if (begun_) {
    return;
  }
  begun_ = ended_ = true;
  status_ = status;
  HttpHeaders headers = headers_;
  if (status != 204) {
    headers.emplace_back("Content-Type", type);
    headers.emplace_back("Content-Length", std::to_string(body.size()));
  }
  headers.emplace_back("Connection", connection());
  std::string message = httpHead(status, headers);
  if (request_.method != "HEAD" && status != 204) {
    message += body;
  }
  put(message);
}

bool Exchange::beginStream(const std::string& type) {
  begun_ = true;
  status_ = 200;
  HttpHeaders headers = headers_;
  headers.emplace_back("Content-Type", type);
  headers.emplace_back("Cache-Control", "no-store");
  chunked_ = request_.knows_chunks;
  if (chunked_) {
    headers.emplace_back("Transfer-Encoding", "chunked");
  } else {
    closes_ = true;  // that is how the body ends
  }
  headers.emplace_back("Connection", connection());
  return put(httpHead(200, headers));
}

bool Exchange::write(std::string_view text) {
  if (text.empty() || !chunked_) {
    return put(text);
  }
  return put(formatted("%zx\r\n", text.size()) + std::string(text) + "\r\n");
}

void Exchange::endStream() {
  ended_ = true;
  if (chunked_) {
    put("0\r\n\r\n");
  }
}

class HttpServer::Open {
 public:
  Open(HttpServer* server, const Socket& socket) : server_(*server) {
    const std::lock_guard<std::mutex> hold(server_.lock_);
    at_ = server_.open_.insert(server_.open_.end(), socket.get());
    if (server_.cut_) {
      shutDown(socket.get());
    }
  }
  ~Open() {
    const std::lock_guard<std::mutex> hold(server_.lock_);
    server_.open_.erase(at_);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

 private:
  HttpServer& server_;
  std::list<int>::iterator at_;
};

HttpServer::HttpServer(Listener listener, const ServerLimits& limits, Handler handler,
                       Refusal refusal)
    : listener_(std::move(listener)),
      limits_(limits),
      handler_(std::move(handler)),
      refusal_(std::move(refusal)) {}

HttpServer::~HttpServer() {
  stop();
  std::unique_lock<std::mutex> hold(lock_);
  ended_.wait(hold, [this] { return connections_ == 0; });
}

void HttpServer::stop() { stopping_ = true; }

void HttpServer::cut() {
  stop();
  const std::lock_guard<std::mutex> hold(lock_);
  cut_ = true;
  for (const int descriptor : open_) {
    shutDown(descriptor);
  }
}

uint32_t HttpServer::connections() const {
  const std::lock_guard<std::mutex> hold(lock_);
  return connections_;
}

void HttpServer::run(int wake, const std::function<bool()>& stops) {
  while (!stops()) {
    Socket socket = acceptOne(listener_, wake);
    if (socket.open()) {
      start(std::move(socket));
    } else if (!stops()) {
      std::this_thread::sleep_for(10ms);  // no descriptors are left: some connections end
    }
  }
}

void HttpServer::refuse(const Socket& socket, int status) {
  const HttpRequest nothing;
  Exchange exchange(nothing, socket, {});
  refusal_(status, &exchange);
  endGently(socket);
}

void HttpServer::start(Socket socket) {
  {
    const std::lock_guard<std::mutex> hold(lock_);
    if (connections_ < limits_.connections) {
      ++connections_;
    } else {
      const HttpRequest nothing;
      Exchange exchange(nothing, socket, {});
      refusal_(503, &exchange);
      return;
    }
  }
  const auto one = [this](const Socket& connection) {
    try {
      serve(connection);
    } catch (const std::exception&) {  // no memory: this connection ends, the others go on
    }
  };
  const auto leave = [this] {
    const std::lock_guard<std::mutex> hold(lock_);
    --connections_;
    ended_.notify_all();
  };
  try {
    std::thread([one, leave, connection = std::move(socket)]() mutable {
      one(connection);
      connection = Socket();
      leave();
    }).detach();
  } catch (const std::exception&) {  // no thread, or no memory for one
    leave();
  }
}

void HttpServer::serve(const Socket& socket) {
  const Open open(this, socket);
  std::string unread;
  while (!stopping_ && serveOne(socket, &unread)) {
  }
}

/// Until there is a whole request, or a reason to refuse one. False: the client left or said nothing, or the server
/// stops.
bool HttpServer::receive(const Socket& socket, HttpReader* reader, std::string* unread) {
  const Clock::time_point start = Clock::now();
  Clock::time_point deadline = start + kIdle;
  bool told = false;
  bool begun = false;
  for (;;) {
    unread->erase(0, reader->put(unread->data(), unread->size()));
    if (reader->done() || reader->refused() != 0) {
      return true;
    }
    if (!begun && (reader->begun() || !unread->empty())) {
      begun = true;
      deadline = Clock::now() + limits_.header_time;
    }
    if (!told && reader->headerDone()) {
      told = true;
      deadline = Clock::now() + kBodyTime * limits_.header_time +
                 std::chrono::seconds(limits_.http.body_bytes >> 16);
      if (reader->waitsForContinue()) {
        sendAll(socket, "HTTP/1.1 100 Continue\r\n\r\n", kPatience);
      }
    }
    if (stopping_) {
      return false;
    }
    if (Clock::now() >= deadline) {
      if (begun) {
        refuse(socket, 408);
      }
      return false;
    }
    char bytes[16384];
    size_t count = 0;
    const Clock::time_point slice = std::min(deadline, Clock::now() + kSlice);
    switch (receiveSome(socket, bytes, sizeof(bytes), slice, &count)) {
      case Received::kBytes:
        unread->append(bytes, count);
        break;
      case Received::kTimeout:
        break;
      case Received::kEnd:
        reader->putEnd();
        return reader->done() || reader->refused() != 0;
      case Received::kFailed:
        return false;
    }
  }
}

bool HttpServer::serveOne(const Socket& socket, std::string* unread) {
  HttpReader reader(limits_.http);
  if (!receive(socket, &reader, unread)) {
    return false;
  }
  if (reader.refused() != 0) {
    refuse(socket, reader.refused());
    return false;
  }
  const HttpRequest request = reader.take();
  Exchange exchange(request, socket, {});
  if (stopping_) {
    exchange.closeAfter();
  }
  {
    const Count answering(&answering_);
    handler_(&exchange);
  }
  if (!exchange.reusable() || exchange.closes()) {
    endGently(socket);
    return false;
  }
  return true;
}

}  // namespace cli
