// The routes of Ollama's server.
#pragma once

#include "serve/http_server.h"

namespace cli {

class Service;

void answerOllamaChat(Service* service, Exchange* exchange);
void answerOllamaGenerate(Service* service, Exchange* exchange);
void answerOllamaEmbed(Service* service, Exchange* exchange);
/// The older route, for a single text.
void answerOllamaEmbeddings(Service* service, Exchange* exchange);
void answerOllamaTags(Service* service, Exchange* exchange);
void answerOllamaRunning(Service* service, Exchange* exchange);
void answerOllamaShow(Service* service, Exchange* exchange);
void answerOllamaVersion(Service* service, Exchange* exchange);

}  // namespace cli
