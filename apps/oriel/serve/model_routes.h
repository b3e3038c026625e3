// OpenAI's model and server routes, and the chat page.
#pragma once

#include "output.h"
#include "serve/http_server.h"

namespace cli {

class Service;

void answerModels(Service* service, Exchange* exchange);
void answerModel(Service* service, Exchange* exchange);
void answerPage(Service* service, Exchange* exchange);

}  // namespace cli
