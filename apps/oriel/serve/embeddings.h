// Vectors of texts: /v1/embeddings, and what they have in common with Ollama's routes.
#pragma once

#include <string>
#include <vector>

#include "serve/http_server.h"

namespace cli {

class Service;

void answerEmbeddings(Service* service, Exchange* exchange);
/// Scores of texts as answers to a query, the best first.
void answerRerank(Service* service, Exchange* exchange);

/// Sends JSON with `vectors` in it, one at a time: as JSON all of them would take many times their bytes. `before` and
/// `after` are what stands around them; `write(i)` is the text of one.
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

}  // namespace cli
