// File addresses for display.
#pragma once

#include <string>

namespace cli {

/// UTF-8 on one line, without control characters (C0 and C1).
bool isPlainText(const std::string& text);
/// True if it contains a user name or a password.
bool hasLogin(const std::string& url);
/// `url` for display: without a login.
std::string shownUrl(const std::string& url);
/// The server with its port, without a login.
std::string hostOf(const std::string& url);
/// The last part of the path. Empty: not a file name.
std::string fileOfUrl(const std::string& url);

}  // namespace cli
