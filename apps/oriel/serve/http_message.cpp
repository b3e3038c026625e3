#include "serve/http_server.h"

#include <algorithm>

// Beast asserts that the last chunk has at least five bytes. If it is also the first one, it may have three.
#define BOOST_DISABLE_ASSERTS
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace cli {
namespace {

namespace http = boost::beast::http;

std::string text(boost::beast::string_view view) { return {view.data(), view.size()}; }

/// True if the only error is missing input.
bool isWaiting(const boost::beast::error_code& error) { return error == http::error::need_more; }

int statusOf(const boost::beast::error_code& error) {
  if (error == http::error::body_limit) {
    return 413;
  }
  return error == http::error::header_limit ? 431 : 400;
}

/// Length of a leading "http://" or "https://"; 0: none.
size_t schemeBytes(const std::string& target) {
  for (const std::string scheme : {"http://", "https://"}) {
    if (inSmallLetters(target.substr(0, scheme.size())) == scheme) {
      return scheme.size();
    }
  }
  return 0;
}

void setHost(const std::string& host, HttpHeaders* headers) {
  const auto found = std::find_if(headers->begin(), headers->end(),
                                  [](const auto& header) { return header.first == "host"; });
  if (found != headers->end()) {
    found->second = host;
  } else {
    headers->emplace_back("host", host);
  }
}

/// "/path", or "http://host/path", whose host overrides the header's (RFC 9112, 3.2.2). False: invalid.
bool readTarget(std::string target, HttpRequest* request) {
  const size_t scheme = schemeBytes(target);
  if (scheme != 0) {
    const size_t end = std::min(target.find_first_of("/?#", scheme), target.size());
    const std::string host = target.substr(scheme, end - scheme);
    if (host.empty() || host.find('@') != std::string::npos) {
      return false;
    }
    setHost(host, &request->headers);
    target.erase(0, end);
    if (target.empty() || target[0] != '/') {
      target.insert(0, "/");
    }
  }
  const size_t mark = target.find('?');
  request->path = target.substr(0, mark);
  request->query = mark == std::string::npos ? "" : target.substr(mark + 1);
  return true;
}

}  // namespace

std::string inSmallLetters(std::string text) {
  for (char& c : text) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

const std::string* HttpRequest::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found != headers.end() ? &found->second : nullptr;
}

struct HttpReader::Parser : http::request_parser<http::string_body> {
  /// The request's end and its host must be unambiguous for a proxy, too (RFC 9112, 3.2 and 6.3).
  bool isClear() const {
    const auto& message = get();
    const bool encoded = message.count(http::field::transfer_encoding) != 0;
    if (encoded && (!chunked() || message.count(http::field::content_length) != 0)) {
      return false;
    }
    const size_t hosts = message.count(http::field::host);
    return hosts == 1 || (hosts == 0 && message.version() < 11);
  }

  /// False: invalid target.
  bool readHeader(HttpRequest* request) const {
    const auto& message = get();
    request->method = text(message.method_string());
    for (const auto& field : message) {
      request->headers.emplace_back(inSmallLetters(text(field.name_string())), text(field.value()));
    }
    request->keep_alive = message.keep_alive();
    request->knows_chunks = message.version() >= 11;
    return readTarget(text(message.target()), request);
  }
};

HttpReader::HttpReader(const HttpLimits& limits)
    : parser_(std::make_unique<Parser>()), header_bytes_(limits.header_bytes) {
  parser_->header_limit(limits.header_bytes);
  parser_->body_limit(limits.body_bytes);
  parser_->eager(false);  // stops after the header
}

HttpReader::~HttpReader() = default;

size_t HttpReader::put(const char* data, size_t bytes) {
  size_t taken = 0;
  // The parser stops between two parts of a message.
  while (refused_ == 0 && taken < bytes && !parser_->is_done()) {
    boost::beast::error_code error;
    const bool in_header = !parser_->is_header_done();
    const size_t more = parser_->put(boost::asio::const_buffer(data + taken, bytes - taken), error);
    taken += more;
    if (error && !isWaiting(error)) {
      refused_ = statusOf(error);
    } else if (in_header && parser_->is_header_done()) {
      refused_ = parser_->isClear() && parser_->readHeader(&request_) ? 0 : 400;
      return taken;
    } else if (error || more == 0) {
      break;
    }
  }
  if (parser_->is_done()) {
    request_.body = std::move(parser_->get().body());
  }
  // The parser needs whole lines and would buffer them without limit.
  if (refused_ == 0 && !parser_->is_done() && bytes - taken > header_bytes_) {
    refused_ = 431;
  }
  return taken;
}

void HttpReader::putEnd() {
  boost::beast::error_code error;
  if (refused_ == 0 && !parser_->is_done() && parser_->got_some()) {
    parser_->put_eof(error);
    refused_ = error ? statusOf(error) : 0;
  }
}

bool HttpReader::begun() const { return parser_->got_some(); }
bool HttpReader::headerDone() const { return parser_->is_header_done(); }
bool HttpReader::done() const { return parser_->is_done(); }

bool HttpReader::waitsForContinue() const {
  const auto& message = parser_->get();
  return message.version() >= 11 &&
         boost::beast::iequals(message[http::field::expect], "100-continue");
}

const char* httpReason(int status) {
  static constexpr std::pair<int, const char*> kReasons[] = {
      {200, "OK"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {499, "Client Closed Request"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"},
  };
  for (const auto& [known, reason] : kReasons) {
    if (known == status) {
      return reason;
    }
  }
  return "Unknown";
}

std::string httpHead(int status, const HttpHeaders& headers) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " " + httpReason(status) + "\r\n";
  for (const auto& [name, value] : headers) {
    std::string line = name;
    line += ": ";
    line += value;
    line.erase(std::remove_if(line.begin(), line.end(),
                              [](char c) { return c == '\r' || c == '\n' || c == '\0'; }),
               line.end());
    head += line + "\r\n";
  }
  return head + "\r\n";
}

}  // namespace cli
