// The handlers of the routes.
#pragma once

#include <string>
#include <vector>

#include "output.h"
#include "serve/http_server.h"
#include "serve/routes.h"

namespace cli {

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
