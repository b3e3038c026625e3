#include "session_options.h"

#include <CLI/CLI.hpp>

#include "sizes.h"
#include "validators.h"

namespace cli {
namespace {

constexpr char kGroup[] = "Sessions";
/// What the library takes.
constexpr uint32_t kMostSessions = 64;
constexpr uint64_t kMostTranscriptBytes = 1u << 30;

// An item that is missing would give its number to another session.
void setSessionWindows(const std::string& text, CommonOptions* options) {
  options->session_windows.clear();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string why_not = wholeNumber(0, kMostWindowTokens)(item);
    if (!why_not.empty()) {
      throw CLI::ValidationError("--session-windows", why_not);
    }
    options->session_windows.push_back(static_cast<uint32_t>(std::stoul(item)));
  }
}

void setTranscript(const std::string& text, CommonOptions* options) {
  uint64_t bytes = 0;
  if (text != "0" && (!parseSize(text, &bytes) || bytes > kMostTranscriptBytes)) {
    throw CLI::ValidationError("--transcript",
                               "'" + text + "' is not a size up to 1GiB: write e.g. 64KiB");
  }
  options->transcript_bytes = static_cast<uint32_t>(bytes);
}

}  // namespace

void addSessionsOption(CLI::App* command, CommonOptions* options, const char* description) {
  command->add_option("--sessions", options->sessions, description)
      ->type_name("N")
      ->transform(wholeNumber(1, kMostSessions))
      ->group(kGroup);
}

void addSessionOptions(CLI::App* command, CommonOptions* options) {
  addSessionsOption(command, options,
                    "Conversations to have memory for, beside each other (default 1)");
  command
      ->add_option_function<std::string>(
          "--session-windows",
          [options](const std::string& text) { setSessionWindows(text, options); },
          "Windows of the first of them, where they differ: 4096,512; 0: as the others")
      ->type_name("N,...")
      ->group(kGroup);
  command
      ->add_option_function<std::string>(
          "--transcript", [options](const std::string& text) { setTranscript(text, options); },
          "Room for the text of each one's messages, to build it again from (default: none)")
      ->type_name("SIZE")
      ->group(kGroup);
}

void addPrefixTokensOption(CLI::App* command, CommonOptions* options) {
  command
      ->add_option("--prefix-tokens", options->prefix_tokens,
                   "First tokens that all of them share, held once")
      ->type_name("N")
      ->transform(wholeNumber(0, kMostWindowTokens))
      ->group(kGroup);
}

CLI::Option* addPrefixFileOption(CLI::App* command, CommonOptions* options) {
  return command
      ->add_option("--prefix-file", options->prefix_file,
                   "What everything begins behind: keys and values that were trained, or a saved "
                   "conversation")
      ->type_name("FILE")
      ->check(notEmpty())
      ->group(kGroup);
}

}  // namespace cli
