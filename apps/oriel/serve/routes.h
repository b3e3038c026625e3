// The routes and their handlers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output.h"
#include "serve/api_error.h"
#include "serve/http_server.h"

namespace cli {

// The routes: paths, methods, and access.

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

// The handlers of the routes.

class Service;

void answerRoute(Route::Answer answer, Service* service, Exchange* exchange);

// Embeddings: /v1/embeddings, and code shared with Ollama's routes.

class Service;

void answerEmbeddings(Service* service, Exchange* exchange);
/// Scores of texts as answers to a query, the best first.
void answerRerank(Service* service, Exchange* exchange);

/// Sends JSON with vectors one at a time, since all of them as JSON would take many times their bytes. `before` and
/// `after` surround them; `write(i)` gives the text of one.
template <typename Write>
void sendVectors(const std::string& before, size_t count, const Write& write,
                 const std::string& after, Exchange* exchange) {
  if (!exchange->beginStream("application/json") || !exchange->write(before)) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!exchange->write((i == 0 ? "" : ",") + write(i))) {
      return;
    }
  }
  exchange->write(after);
  exchange->endStream();
}

/// As a JSON list.
std::string numbersText(const std::vector<float>& values);

// OpenAI's model and server routes, and the chat page.

class Service;

void answerModels(Service* service, Exchange* exchange);
void answerModel(Service* service, Exchange* exchange);
void answerPage(Service* service, Exchange* exchange);

}  // namespace cli
