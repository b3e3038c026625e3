// The handlers of the routes.
#pragma once

#include "serve/http_server.h"
#include "serve/routes.h"

namespace cli {

class Service;

void answerRoute(Route::Answer answer, Service* service, Exchange* exchange);

}  // namespace cli
