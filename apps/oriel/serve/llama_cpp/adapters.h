// LoRA adapters as llama.cpp's server has them: numbers in the order of --lora, each with a scale.
#pragma once

namespace cli {

class Exchange;
class Service;

void answerAdapters(Service* service, Exchange* exchange);
void answerSetAdapters(Service* service, Exchange* exchange);

}  // namespace cli
