// The routes: paths, methods, and access.
#pragma once

#include <cstdint>
#include <string>

#include "serve/api_error.h"
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
  bool begins = false;  ///< matches as a prefix

  /// Paths are equal with and without /v1. Null: unknown path.
  static const Route* of(const HttpRequest& request);
};

/// The error form of the route; for unknown routes, the error form of the path's protocol.
ErrorForm errorFormOf(const Route* route, const HttpRequest& request);

/// Decides by the headers alone, before the body is read. `route` may be null. False: already answered. Throws ApiError.
bool admit(const RequestGuard& guard, const Route* route, Exchange* exchange);

/// The name after ".../models/", with escapes decoded ("%20"); invalid escapes stay.
std::string modelNameOf(const HttpRequest& request);

}  // namespace cli
