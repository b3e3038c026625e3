// Text and token routes of llama.cpp's server, and Anthropic's token count.
#pragma once

#include "serve/http_server.h"

namespace cli {

class Service;

void answerTokenize(Service* service, Exchange* exchange);
void answerDetokenize(Service* service, Exchange* exchange);
void answerApplyTemplate(Service* service, Exchange* exchange);
void answerProps(Service* service, Exchange* exchange);
void answerCountTokens(Service* service, Exchange* exchange);

}  // namespace cli
