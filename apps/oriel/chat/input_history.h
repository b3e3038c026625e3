// The input history of all chats: a private file with one JSON text per line.
#pragma once

#include <string>
#include <vector>

namespace cli {

/// The file in the user's data folder; empty: no such folder.
std::string historyFile();

/// Oldest first; empty if the file does not exist.
std::vector<std::string> readHistory(const std::string& file);
/// Keeps the last 500 texts, also in `texts`. False: writing failed.
bool writeHistory(const std::string& file, std::vector<std::string>* texts);

}  // namespace cli
