// Keeping a conversation where there is a file already.
#pragma once

#include <string>

#include <oriel/oriel.h>

namespace cli {

bool isFileWithContent(const std::string& path);

/// As oriel_session_save_file, and over any file, which stays as it was unless all of the conversation is written.
oriel_status saveOver(oriel_session* session, const std::string& path);

}  // namespace cli
