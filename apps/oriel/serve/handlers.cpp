#include "serve/handlers.h"

#include "serve/anthropic/messages_request.h"
#include "serve/anthropic/messages_writer.h"
#include "serve/embeddings.h"
#include "serve/llama_cpp/adapters.h"
#include "serve/llama_cpp/infill.h"
#include "serve/llama_cpp/text_routes.h"
#include "serve/model_routes.h"
#include "serve/ollama/ollama_routes.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/chat_writer.h"
#include "serve/openai/responses_request.h"
#include "serve/openai/responses_writer.h"
#include "serve/service.h"

namespace cli {
namespace {

constexpr ReplyProtocol kChat = {readChatRequest, writeChat};
constexpr ReplyProtocol kCompletions = {readCompletionRequest, writeChat};
constexpr ReplyProtocol kResponses = {readResponsesRequest, writeResponses};
constexpr ReplyProtocol kInfill = {readInfillRequest, writeInfill};
constexpr ReplyProtocol kMessages = {readMessagesRequest, writeMessages};

template <const ReplyProtocol& kProtocol>
void answerReply(Service* service, Exchange* exchange) {
  service->replyTo(kProtocol, exchange);
}

void answerHealth(Service* service, Exchange* exchange) { service->health(exchange); }
void answerMetrics(Service* service, Exchange* exchange) { service->metrics(exchange); }

struct Handler {
  Route::Answer answer;
  void (*run)(Service* service, Exchange* exchange);
};

constexpr Handler kHandlers[] = {
    {Route::Answer::kChat, answerReply<kChat>},
    {Route::Answer::kCompletions, answerReply<kCompletions>},
    {Route::Answer::kResponses, answerReply<kResponses>},
    {Route::Answer::kEmbeddings, answerEmbeddings},
    {Route::Answer::kRerank, answerRerank},
    {Route::Answer::kModels, answerModels},
    {Route::Answer::kModel, answerModel},
    {Route::Answer::kMessages, answerReply<kMessages>},
    {Route::Answer::kCountTokens, answerCountTokens},
    {Route::Answer::kOllamaChat, answerOllamaChat},
    {Route::Answer::kOllamaGenerate, answerOllamaGenerate},
    {Route::Answer::kOllamaEmbed, answerOllamaEmbed},
    {Route::Answer::kOllamaEmbeddings, answerOllamaEmbeddings},
    {Route::Answer::kOllamaTags, answerOllamaTags},
    {Route::Answer::kOllamaRunning, answerOllamaRunning},
    {Route::Answer::kOllamaShow, answerOllamaShow},
    {Route::Answer::kOllamaVersion, answerOllamaVersion},
    {Route::Answer::kInfill, answerReply<kInfill>},
    {Route::Answer::kTokenize, answerTokenize},
    {Route::Answer::kDetokenize, answerDetokenize},
    {Route::Answer::kApplyTemplate, answerApplyTemplate},
    {Route::Answer::kProps, answerProps},
    {Route::Answer::kAdapters, answerAdapters},
    {Route::Answer::kSetAdapters, answerSetAdapters},
    {Route::Answer::kHealth, answerHealth},
    {Route::Answer::kMetrics, answerMetrics},
    {Route::Answer::kPage, answerPage},
};

}  // namespace

void answerRoute(Route::Answer answer, Service* service, Exchange* exchange) {
  for (const Handler& handler : kHandlers) {
    if (handler.answer == answer) {
      handler.run(service, exchange);
    }
  }
}

}  // namespace cli
