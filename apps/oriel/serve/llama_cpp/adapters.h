// LoRA adapters as llama.cpp's server has them: numbers in the order of --lora, each with a scale.
#pragma once

#include "serve/fields.h"

namespace cli {

class Exchange;
class Service;

/// A list [{"id", "scale"}], as the session option "adapters": those that it leaves out are off. Throws ApiError.
std::string readAdapters(const Json& list, const std::string& name);

void answerAdapters(Service* service, Exchange* exchange);
void answerSetAdapters(Service* service, Exchange* exchange);

}  // namespace cli
