#include "models/address.h"

#include <algorithm>

#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr size_t kNone = std::string::npos;

/// After "://", up to the path.
size_t serverBegin(const std::string& url) {
  const size_t begin = url.find("://");
  return begin == kNone ? url.size() : begin + 3;
}
size_t serverEnd(const std::string& url) {
  return std::min(url.find_first_of("/?#", serverBegin(url)), url.size());
}
/// Position of the login's '@'; kNone: no login.
size_t loginEnd(const std::string& url) {
  const size_t at = url.substr(0, serverEnd(url)).rfind('@');
  return at == kNone || at < serverBegin(url) ? kNone : at;
}

/// Decodes "%20" and the like.
std::string decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string digits = text.substr(i + 1, 2);
    const bool coded = text[i] == '%' && digits.size() == 2 &&
                       digits.find_first_not_of("0123456789abcdefABCDEF") == kNone;
    out += coded ? static_cast<char>(std::stoi(digits, nullptr, 16)) : text[i];
    i += coded ? 2 : 0;
  }
  return out;
}

}  // namespace

bool isPlainText(const std::string& text) { return oneLine(text) == text; }

bool hasLogin(const std::string& url) { return loginEnd(url) != kNone; }

std::string shownUrl(const std::string& url) {
  const size_t at = loginEnd(url);
  return at == kNone ? url : url.substr(0, serverBegin(url)) + url.substr(at + 1);
}

std::string hostOf(const std::string& url) {
  const std::string shown = shownUrl(url);
  const size_t begin = serverBegin(shown);
  return shown.substr(begin, serverEnd(shown) - begin);
}

std::string fileOfUrl(const std::string& url) {
  const size_t path = url.find('/', serverBegin(url));
  if (path == kNone) {
    return "";
  }
  const std::string whole = url.substr(path, url.find_first_of("?#", path) - path);
  const std::string file = decoded(whole.substr(whole.rfind('/') + 1));
  const bool safe = !file.empty() && isPlainText(file) && file.find_first_of("/\\:") == kNone &&
                    file.front() != '.' && file.front() != '-';
  return safe ? file : "";
}

}  // namespace cli
