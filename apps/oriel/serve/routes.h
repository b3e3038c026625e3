// What can be asked: paths, methods, and who may.
#pragma once

#include <cstdint>
#include <string>

#include "serve/api_error.h"
#include "serve/guard.h"
#include "serve/http_server.h"

namespace cli {

struct Route {
  /// serve/handlers.cpp has a row for each.
  enum class Answer : uint8_t {
    kChat,
    kCompletions,
    kResponses,
    kEmbeddings,
    kRerank,
    kModels,
    kModel,
    kMessages,
    kCountTokens,
    kOllamaChat,
    kOllamaGenerate,
    kOllamaEmbed,
    kOllamaEmbeddings,
    kOllamaTags,
    kOllamaRunning,
    kOllamaShow,
    kOllamaVersion,
    kInfill,
    kTokenize,
    kDetokenize,
    kApplyTemplate,
    kProps,
    kAdapters,
    kSetAdapters,
    kHealth,
    kMetrics,
    kPage,
  };

  const char* method;
  const char* path;
  Answer answer;
  ErrorForm error;
  bool needs_key = true;
  bool begins = false;  ///< paths that begin so

  /// Paths with and without /v1 are the same. Null: there is nothing of that path.
  static const Route* of(const HttpRequest& request);
};

/// How errors of the route look; where there is none, how those of the protocol that the path is of do.
ErrorForm errorFormOf(const Route* route, const HttpRequest& request);

/// Whether the request may be answered by `route`, which may be null: by its headers alone, before its body is read.
/// False: it is answered already. Throws ApiError.
bool admit(const RequestGuard& guard, const Route* route, Exchange* exchange);

/// The name behind ".../models/", with its escapes read ("%20"); what is none stays as it is.
std::string modelNameOf(const HttpRequest& request);

}  // namespace cli
