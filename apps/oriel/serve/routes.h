// What can be asked: paths, methods, and who may.
#pragma once

#include <cstdint>

#include "serve/guard.h"
#include "serve/http_server.h"

namespace cli {

struct Route {
  enum class Answer : uint8_t {
    kChat,
    kCompletions,
    kEmbeddings,
    kModels,
    kModel,
    kHealth,
    kMetrics,
    kPage
  };

  const char* method;
  const char* path;
  Answer answer;
  bool needs_key;
  bool begins = false;  ///< paths that begin so

  /// Null: there is nothing of that path.
  static const Route* of(const HttpRequest& request);
};

/// Whether the request may be answered by `route`, which may be null: by its headers alone, before its body is read.
/// False: it is answered already. Throws ApiError.
bool admit(const RequestGuard& guard, const Route* route, Exchange* exchange);

/// The name behind "/v1/models/", with its escapes read ("%20"); what is none stays as it is.
std::string modelNameOf(const HttpRequest& request);

}  // namespace cli
