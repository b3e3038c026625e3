// LoRA adapters as llama.cpp's server has them: numbers in the order of --lora, each with a scale.
#pragma once

#include "serve/block_writer.h"
#include "serve/http_server.h"

namespace cli {

class Exchange;
class Service;

void answerAdapters(Service* service, Exchange* exchange);
void answerSetAdapters(Service* service, Exchange* exchange);

// Fill-in-the-middle in the form of llama.cpp's server, for editors.

ReplyRequest readInfillRequest(const Json& body, const ModelFacts& facts);
std::unique_ptr<ReplyWriter> writeInfill(const ReplyContext& context);

// Text and token routes of llama.cpp's server, and Anthropic's token count.

class Service;

void answerTokenize(Service* service, Exchange* exchange);
void answerDetokenize(Service* service, Exchange* exchange);
void answerApplyTemplate(Service* service, Exchange* exchange);
void answerProps(Service* service, Exchange* exchange);
void answerCountTokens(Service* service, Exchange* exchange);

}  // namespace cli
