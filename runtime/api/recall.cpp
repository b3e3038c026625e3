#include "api/session.h"

#include "os/os.h"

namespace oriel_internal {
namespace {

// Default recall slots after the sinks: a few chat turns, or an eighth of a short context.
constexpr uint32_t kDefaultRecallTokens = 128;
constexpr uint32_t kContextShare = 8;
constexpr uint32_t kLeastRecallTokens = 32;
// Words in the index, 8 bytes each. A longer conversation keeps its latest words.
constexpr uint64_t kMostRecallWords = 1u << 20;
// Fits any path that opening a file accepts. The size is fixed, so plans do not depend on the path's length.
constexpr size_t kFolderBytes = 1024;

const char* folderOf(const LoadOptions& options) {
  return folderOrNone(options.recall_dir != nullptr ? options.recall_dir : options.cache_dir);
}

// True if keys can be rotated to other positions and the model's memory is keys and values only.
bool canRecall(const ModelDesc& desc) {
  bool can = !desc.keepsStates() && desc.attends();
  bool any = false;
  for (uint32_t i = 0; i < desc.n_kinds; ++i) {
    can = can && !desc.kinds[i].norms_after_rope;
    any = any ||
          (desc.kinds[i].attends() && desc.views[desc.kinds[i].view].kind == ViewKind::kSession);
  }
  return can && any;
}

// The recall slots that leave room for a window in the context. Logs a warning if that reduces them.
uint32_t recallBesideWindow(const LoadOptions& options, const ModelDesc& desc, const Log& log,
                            uint32_t wanted) {
  const bool is_chosen = options.window_tokens == 0 || options.window_tokens == ORIEL_WINDOW_MAX;
  if (!is_chosen || options.min_window_tokens >= kLeastRecallWindow) {
    return wanted;  // the requested number
  }
  const uint32_t context = chosenContext(desc);
  const uint32_t sinks = sinksOf(options);
  const uint64_t taken = uint64_t{sinks} + kLeastRecallWindow;
  const uint32_t room = context > taken ? static_cast<uint32_t>(context - taken) : 0;
  if (wanted <= room) {
    return wanted;
  }
  if (room < kRecallBlock) {
    log.write(ORIEL_LOG_WARNING,
              "turns cannot be recalled: a context of %u tokens with %u sinks is too small",
              context, sinks);
    return 0;
  }
  log.write(ORIEL_LOG_WARNING,
            "%u tokens that come back leave no window in a context of %u tokens: %u do", wanted,
            context, room);
  return room;
}

}  // namespace

Status readRecall(const LoadOptions& options, const ModelDesc& desc, const Log& log,
                  RecallSettings* settings) {
  *settings = RecallSettings();
  if (options.recall_bytes == 0) {
    return options.recall_tokens == 0
               ? Status(kOk)
               : log.fail(ORIEL_ERROR_ARGUMENT,
                          "%u tokens are to come back and none are kept: give \"retrieval\" too",
                          options.recall_tokens);
  }
  if (options.prefix_tokens != 0 || options.system_prompt_bytes != 0 ||
      options.prefix_file != nullptr) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "\"retrieval\" needs the slots that a prefix takes (\"system_prompt\", "
                    "\"prefix_file\", \"prefix_tokens\"): leave one out");
  }
  if (!canRecall(desc)) {
    log.write(ORIEL_LOG_WARNING,
              "turns that leave the window do not come back in models of the architecture %s",
              desc.architecture);
    return kOk;
  }
  if (options.window_tokens != 0 && options.window_tokens < kLeastRecallWindow) {
    log.write(ORIEL_LOG_WARNING,
              "turns that leave a window of %u tokens do not come back: give it at least %u",
              options.window_tokens, kLeastRecallWindow);
    return kOk;
  }
  // Sized for the smallest formats.
  CacheShape cache;
  cache.window = cache.ring = kMaxChunk;
  CacheFormats least;
  least.k = least.v = KvFormat::kInt4;
  const uint64_t words =
      RecallFile::tokensIn(options.recall_bytes, RecallFile::tokenBytes(desc, cache, least));
  CacheFormats most;
  const uint64_t block_bytes = kRecallBlock * RecallFile::tokenBytes(desc, cache, most);
  if (options.recall_bytes < block_bytes) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a file of %llu bytes has no room for %u tokens: give it at least %llu",
                    static_cast<unsigned long long>(options.recall_bytes), kRecallBlock,
                    static_cast<unsigned long long>(block_bytes));
  }
  const uint32_t context = desc.visibleTrain();
  const uint32_t share = context != 0 ? context / kContextShare : kDefaultRecallTokens;
  settings->tokens = recallBesideWindow(
      options, desc, log,
      options.recall_tokens != 0 ? options.recall_tokens
                                 : std::clamp(share, kLeastRecallTokens, kDefaultRecallTokens));
  if (settings->tokens == 0) {
    return kOk;
  }
  settings->file_bytes = options.recall_bytes;
  settings->words = std::min(words, kMostRecallWords);
  return kOk;
}

const char* takeRecallFolder(const LoadOptions& options, const RecallSettings& settings,
                             Arena* arena) {
  char* const folder = settings.tokens != 0 ? arena->take<char>(kFolderBytes) : nullptr;
  const char* const given = folderOf(options);
  if (folder != nullptr && given != nullptr) {
    std::strncpy(folder, given, kFolderBytes - 1);
  }
  return folder;
}

Status checkRecallFolder(const LoadOptions& options, const RecallSettings& settings,
                         const Log& log) {
  const char* const folder = folderOf(options);
  if (settings.tokens == 0) {
    return kOk;
  }
  if (folder != nullptr && std::strlen(folder) < kFolderBytes) {
    if (options.recall_dir == nullptr) {
      makeFolder(folder);  // like a cache folder: created if missing
    }
    return kOk;
  }
  return log.fail(
      ORIEL_ERROR_ARGUMENT,
      folder == nullptr
          ? "turns are to be kept in a file and no folder is given: set \"retrieval_folder\""
          : "the name of the folder for turns is too long: set another \"retrieval_folder\"");
}

}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_session_retrieve(oriel_session* handle, const char* text, size_t bytes) {
  if (handle == nullptr || (text == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(handle, [&] { return handle->session->recall(text, bytes); });
}
