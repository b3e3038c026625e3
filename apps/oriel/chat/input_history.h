// What was typed in chats, kept across them: a JSON text on each line, for this user alone.
#pragma once

#include <string>
#include <vector>

namespace cli {

/// The file among the user's data; empty: there is no such place.
std::string historyFile();

/// Oldest first; nothing where there is no such file.
std::vector<std::string> readHistory(const std::string& file);
/// Of the texts the last 500, which stay in `texts`. False: it could not be written.
bool writeHistory(const std::string& file, std::vector<std::string>* texts);

}  // namespace cli
