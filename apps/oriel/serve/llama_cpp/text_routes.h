// Text and tokens in the form of llama.cpp's server, and the count of Anthropic's.
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
