// Addresses of files, as people see them.
#pragma once

#include <string>

namespace cli {

/// UTF-8 on one line, without control characters of either set.
bool isPlainText(const std::string& text);
/// Whether a user's name or a password stands in it.
bool hasLogin(const std::string& url);
/// `url` as it may be shown: without a login in it.
std::string shownUrl(const std::string& url);
/// Its server, with the port, without a login.
std::string hostOf(const std::string& url);
/// The name of its last part. Empty: it has none that could be a file's.
std::string fileOfUrl(const std::string& url);

}  // namespace cli
