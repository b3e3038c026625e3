#include "serve/http_server.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "output.h"
#include "serve/ids.h"

namespace cli {
namespace {

using namespace std::chrono_literals;

/// Timeout between two requests on a connection.
constexpr auto kIdle = 15s;
/// Time for a body: this factor, plus a second per 64 KiB allowed.
constexpr int64_t kBodyTime = 2;
/// Timeout for a client that stops receiving.
constexpr auto kPatience = 20s;
/// Poll interval for a server stop.
constexpr auto kSlice = 250ms;

/// Ids that clients show in bug reports; Anthropic's clients use the second name.
HttpHeaders identified() {
  const std::string id = newId("req_");
  return {{"x-request-id", id}, {"request-id", id}};
}

/// Increments a counter during its lifetime.
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
    closes_ = true;  // closing marks the end of the body
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

HttpServer::HttpServer(Listener listener, const ServerLimits& limits, Handlers handlers)
    : listener_(std::move(listener)), limits_(limits), handlers_(std::move(handlers)) {}

HttpServer::~HttpServer() {
  stop();
  std::unique_lock<std::mutex> hold(lock_);
  ended_.wait(hold, [this] { return open_.empty(); });
}

void HttpServer::stop() { stopping_ = true; }

void HttpServer::cut() {
  stop();
  const std::lock_guard<std::mutex> hold(lock_);
  cut_ = true;
  for (const Connection& connection : open_) {
    shutDown(connection.descriptor);
  }
}

uint32_t HttpServer::connections() const {
  const std::lock_guard<std::mutex> hold(lock_);
  return static_cast<uint32_t>(open_.size());
}

void HttpServer::run(int wake, const std::function<bool()>& stops) {
  while (!stops()) {
    Socket socket = acceptOne(listener_, wake);
    if (socket.open()) {
      start(std::move(socket));
    } else if (!stops()) {
      std::this_thread::sleep_for(10ms);  // out of descriptors: wait for connections to end
    }
  }
}

void HttpServer::refuse(const Socket& socket, int status) {
  const HttpRequest nothing;
  Exchange exchange(nothing, socket, identified());
  handlers_.refuse(status, &exchange);
  endGently(socket);
}

/// Needs the lock.
bool HttpServer::hasRoom(bool known) const {
  const auto count = std::count_if(open_.begin(), open_.end(),
                                   [known](const Connection& each) { return each.known == known; });
  return count < static_cast<int64_t>(known ? limits_.connections : limits_.strangers);
}

HttpServer::Connection* HttpServer::enter(const Socket& socket) {
  std::unique_lock<std::mutex> hold(lock_);
  const bool known = limits_.strangers == 0;
  if (!known && !hasRoom(known)) {
    const auto oldest = std::find_if(open_.begin(), open_.end(), [](const Connection& each) {
      return !each.known && !each.shut;
    });
    if (oldest != open_.end()) {
      oldest->shut = true;
      shutDown(oldest->descriptor);
    }
    ended_.wait_for(hold, kSlice, [this] { return hasRoom(/*known=*/false); });
  }
  if (!hasRoom(known)) {
    return nullptr;
  }
  open_.push_back({socket.get(), Clock::now(), known, false});
  if (cut_) {
    shutDown(socket.get());
  }
  return &open_.back();
}

/// Runs before the descriptor is closed and reused.
void HttpServer::leave(const Connection* connection) {
  const std::lock_guard<std::mutex> hold(lock_);
  open_.remove_if([connection](const Connection& each) { return &each == connection; });
  ended_.notify_all();
}

bool HttpServer::becomeKnown(Connection* connection) {
  const std::lock_guard<std::mutex> hold(lock_);
  connection->known = connection->known || hasRoom(/*known=*/true);
  return connection->known;
}

void HttpServer::start(Socket socket) {
  Connection* const connection = enter(socket);
  if (connection == nullptr) {
    const HttpRequest nothing;
    Exchange exchange(nothing, socket, identified());
    handlers_.refuse(503, &exchange);
    return;
  }
  try {
    std::thread([this, connection, held = std::move(socket)]() mutable {
      const Socket own = std::move(held);
      try {
        serve(own, connection);
      } catch (const std::exception&) {  // out of memory: only this connection ends
      }
      leave(connection);
    }).detach();
  } catch (const std::exception&) {  // out of threads or memory
    leave(connection);
  }
}

void HttpServer::serve(const Socket& socket, Connection* connection) {
  std::string unread;
  while (!stopping_ && serveOne(socket, connection, &unread)) {
  }
}

/// Receives more of the request. False: the client left, or the server stops. At the deadline nothing is received.
bool HttpServer::receive(const Socket& socket, Clock::time_point deadline, HttpReader* reader,
                         std::string* unread) {
  char bytes[16384];
  size_t count = 0;
  if (stopping_) {
    return false;
  }
  switch (receiveSome(socket, bytes, sizeof(bytes), std::min(deadline, Clock::now() + kSlice),
                      &count)) {
    case Received::kBytes:
      unread->append(bytes, count);
      return true;
    case Received::kTimeout:
      return true;
    case Received::kEnd:
      reader->putEnd();
      return reader->done() || reader->refused() != 0;
    case Received::kFailed:
      break;
  }
  return false;
}

/// Receives until the header is complete or refused. False: the client left or timed out, or the server stops.
bool HttpServer::receiveHeader(const Socket& socket, const Connection& connection,
                               HttpReader* reader, std::string* unread) {
  const Clock::time_point last =
      connection.known ? Clock::time_point::max() : connection.since + limits_.stranger_time;
  Clock::time_point deadline = std::min(last, Clock::now() + kIdle);
  bool begun = false;
  for (;;) {
    unread->erase(0, reader->put(unread->data(), unread->size()));
    if (reader->headerDone() || reader->refused() != 0) {
      return true;
    }
    if (!begun && (reader->begun() || !unread->empty())) {
      begun = true;
      deadline = std::min(last, Clock::now() + limits_.header_time);
    }
    if (Clock::now() >= deadline) {
      if (begun) {
        refuse(socket, 408);
      }
      return false;
    }
    if (!receive(socket, deadline, reader, unread)) {
      return false;
    }
  }
}

/// The same for an authorised request's body.
bool HttpServer::receiveBody(const Socket& socket, HttpReader* reader, std::string* unread) {
  const Clock::time_point deadline = Clock::now() + kBodyTime * limits_.header_time +
                                     std::chrono::seconds(limits_.http.body_bytes >> 16);
  if (reader->waitsForContinue() && !reader->done()) {
    sendAll(socket, "HTTP/1.1 100 Continue\r\n\r\n", kPatience);
  }
  for (;;) {
    unread->erase(0, reader->put(unread->data(), unread->size()));
    if (reader->done() || reader->refused() != 0) {
      return true;
    }
    if (Clock::now() >= deadline) {
      refuse(socket, 408);
      return false;
    }
    if (!receive(socket, deadline, reader, unread)) {
      return false;
    }
  }
}

bool HttpServer::serveOne(const Socket& socket, Connection* connection, std::string* unread) {
  HttpReader reader(limits_.http);
  if (!receiveHeader(socket, *connection, &reader, unread)) {
    return false;
  }
  if (reader.refused() != 0) {
    refuse(socket, reader.refused());
    return false;
  }
  Exchange exchange(reader.request(), socket, identified());
  const Admission admission = handlers_.admit(&exchange);
  if (admission == Admission::kKnown && !becomeKnown(connection)) {
    refuse(socket, 503);
    return false;
  }
  if (admission != Admission::kAnswered) {
    if (!receiveBody(socket, &reader, unread)) {
      return false;
    }
    if (reader.refused() != 0) {
      refuse(socket, reader.refused());
      return false;
    }
    if (stopping_) {
      exchange.closeAfter();
    }
    const Count answering(&answering_);
    handlers_.answer(&exchange);
  }
  if (!reader.done() || !exchange.reusable() || exchange.closes()) {
    endGently(socket);
    return false;
  }
  return true;
}

}  // namespace cli
