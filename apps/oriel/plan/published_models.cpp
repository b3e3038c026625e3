#include "plan/published_models.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "plan/plan_report.h"
#include "plan/plan_source.h"

namespace cli {
namespace {

// Sizes were confirmed by lists that others keep of these files; a size that was not is 0. Of a model that several
// people have converted this is one file of the kind that most take.
// clang-format off
constexpr PublishedModel kModels[] = {
    {"Gemma 4 E2B it", "gemma-4-e2b",
     "https://huggingface.co/ggml-org/gemma-4-E2B-it-GGUF",
     "gemma-4-E2B-it-Q4_0.gguf", 2841481184, "Apache-2.0"},
    {"Gemma 4 E4B it", "gemma-4-e4b",
     "https://huggingface.co/ggml-org/gemma-4-E4B-it-GGUF",
     "gemma-4-E4B-it-Q4_0.gguf", 4590807392, "Apache-2.0"},
    {"Gemma 3 270M it", "gemma-3-270m",
     "https://huggingface.co/ggml-org/gemma-3-270m-it-GGUF",
     "gemma-3-270m-it-Q8_0.gguf", 291545600, "LicenseRef-Gemma"},
    {"Gemma 3 1B it", "gemma-3-1b",
     "https://huggingface.co/ggml-org/gemma-3-1b-it-GGUF",
     "gemma-3-1b-it-Q4_K_M.gguf", 806058240, "LicenseRef-Gemma"},
    {"Gemma 3 4B it", "gemma-3-4b",
     "https://huggingface.co/ggml-org/gemma-3-4b-it-GGUF",
     "gemma-3-4b-it-Q4_K_M.gguf", 2489757856, "LicenseRef-Gemma"},
    {"Gemma 2 2B it", "gemma-2-2b",
     "https://huggingface.co/bartowski/gemma-2-2b-it-GGUF",
     "gemma-2-2b-it-Q4_K_M.gguf", 1708582752, "LicenseRef-Gemma"},
    {"LFM2.5 350M", "lfm2-350m",
     "https://huggingface.co/LiquidAI/LFM2.5-350M-GGUF",
     "LFM2.5-350M-Q4_K_M.gguf", 229312224, "LicenseRef-LFM-1.0"},
    {"LFM2.5 1.2B Instruct", "lfm2-1.2b",
     "https://huggingface.co/LiquidAI/LFM2.5-1.2B-Instruct-GGUF",
     "LFM2.5-1.2B-Instruct-Q4_0.gguf", 695751488, "LicenseRef-LFM-1.0"},
    {"LFM2 2.6B", "lfm2-2.6b",
     "https://huggingface.co/LiquidAI/LFM2-2.6B-GGUF",
     "LFM2-2.6B-Q4_K_M.gguf", 1563668704, "LicenseRef-LFM-1.0"},
    {"LFM2 8B-A1B", "lfm2-8b-a1b",
     "https://huggingface.co/LiquidAI/LFM2-8B-A1B-GGUF",
     "LFM2-8B-A1B-Q4_K_M.gguf", 5044779712, "LicenseRef-LFM-1.0"},
    {"LFM2.5 8B-A1B", "lfm2.5-8b-a1b",
     "https://huggingface.co/LiquidAI/LFM2.5-8B-A1B-GGUF",
     "LFM2.5-8B-A1B-Q4_K_M.gguf", 5155564768, "LicenseRef-LFM-1.0"},
    {"Qwen3 0.6B", "qwen3-0.6b",
     "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF",
     "Qwen3-0.6B-Q8_0.gguf", 639446688, "Apache-2.0"},
    {"Qwen3 1.7B", "qwen3-1.7b",
     "https://huggingface.co/unsloth/Qwen3-1.7B-GGUF",
     "Qwen3-1.7B-Q4_K_M.gguf", 1107409472, "Apache-2.0"},
    {"Qwen3 4B Instruct 2507", "qwen3-4b",
     "https://huggingface.co/unsloth/Qwen3-4B-Instruct-2507-GGUF",
     "Qwen3-4B-Instruct-2507-Q4_K_M.gguf", 2497281120, "Apache-2.0"},
    {"Qwen3 8B", "qwen3-8b",
     "https://huggingface.co/Qwen/Qwen3-8B-GGUF",
     "Qwen3-8B-Q4_K_M.gguf", 5027783488, "Apache-2.0"},
    {"Qwen3 30B-A3B", "qwen3-30b-a3b",
     "https://huggingface.co/Qwen/Qwen3-30B-A3B-GGUF",
     "Qwen3-30B-A3B-Q4_K_M.gguf", 18556685824, "Apache-2.0"},
    {"Qwen3.5 0.8B", "qwen3.5-0.8b",
     "https://huggingface.co/unsloth/Qwen3.5-0.8B-GGUF",
     "Qwen3.5-0.8B-Q4_K_M.gguf", 0, "Apache-2.0"},
    {"Qwen3.5 2B", "qwen3.5-2b",
     "https://huggingface.co/unsloth/Qwen3.5-2B-GGUF",
     "Qwen3.5-2B-Q4_K_M.gguf", 1280835840, "Apache-2.0"},
    {"Qwen3.5 4B", "qwen3.5-4b",
     "https://huggingface.co/unsloth/Qwen3.5-4B-GGUF",
     "Qwen3.5-4B-Q4_K_M.gguf", 0, "Apache-2.0"},
    {"Qwen2.5 0.5B Instruct", "qwen2.5-0.5b",
     "https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF",
     "qwen2.5-0.5b-instruct-q4_k_m.gguf", 491400032, "Apache-2.0"},
    {"Qwen2.5 1.5B Instruct", "qwen2.5-1.5b",
     "https://huggingface.co/Qwen/Qwen2.5-1.5B-Instruct-GGUF",
     "qwen2.5-1.5b-instruct-q4_k_m.gguf", 1117320736, "Apache-2.0"},
    {"Qwen2.5 7B Instruct", "qwen2.5-7b",
     "https://huggingface.co/bartowski/Qwen2.5-7B-Instruct-GGUF",
     "Qwen2.5-7B-Instruct-Q4_K_M.gguf", 4683074240, "Apache-2.0"},
    {"Llama 3.2 1B Instruct", "llama-3.2-1b",
     "https://huggingface.co/bartowski/Llama-3.2-1B-Instruct-GGUF",
     "Llama-3.2-1B-Instruct-Q4_K_M.gguf", 807694464, "LicenseRef-Llama-3.2"},
    {"Llama 3.2 3B Instruct", "llama-3.2-3b",
     "https://huggingface.co/bartowski/Llama-3.2-3B-Instruct-GGUF",
     "Llama-3.2-3B-Instruct-Q4_K_M.gguf", 2019377696, "LicenseRef-Llama-3.2"},
    {"Llama 3.1 8B Instruct", "llama-3.1-8b",
     "https://huggingface.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
     "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", 4920739232, "LicenseRef-Llama-3.1"},
    {"Mistral 7B Instruct v0.3", "mistral-7b-v0.3",
     "https://huggingface.co/bartowski/Mistral-7B-Instruct-v0.3-GGUF",
     "Mistral-7B-Instruct-v0.3-Q4_K_M.gguf", 4372812000, "Apache-2.0"},
    {"SmolLM2 135M Instruct", "smollm2-135m",
     "https://huggingface.co/bartowski/SmolLM2-135M-Instruct-GGUF",
     "SmolLM2-135M-Instruct-Q4_K_M.gguf", 105454432, "Apache-2.0"},
    {"SmolLM2 360M Instruct", "smollm2-360m",
     "https://huggingface.co/bartowski/SmolLM2-360M-Instruct-GGUF",
     "SmolLM2-360M-Instruct-Q8_0.gguf", 386405280, "Apache-2.0"},
    {"SmolLM2 1.7B Instruct", "smollm2-1.7b",
     "https://huggingface.co/bartowski/SmolLM2-1.7B-Instruct-GGUF",
     "SmolLM2-1.7B-Instruct-Q4_K_M.gguf", 1055609824, "Apache-2.0"},
    {"TinyLlama 1.1B Chat", "tinyllama-1.1b",
     "https://huggingface.co/TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF",
     "tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf", 668788096, "Apache-2.0"},
    {"SmolLM3 3B", "smollm3-3b",
     "https://huggingface.co/ggml-org/SmolLM3-3B-GGUF",
     "SmolLM3-Q4_K_M.gguf", 1915305312, "Apache-2.0"},
    {"Phi-3.5 mini Instruct", "phi-3.5-mini",
     "https://huggingface.co/bartowski/Phi-3.5-mini-instruct-GGUF",
     "Phi-3.5-mini-instruct-Q4_K_M.gguf", 2393232672, "MIT"},
    {"Granite 4.0 350M", "granite-4.0-350m",
     "https://huggingface.co/ibm-granite/granite-4.0-350m-GGUF",
     "granite-4.0-350m-Q8_0.gguf", 378138016, "Apache-2.0"},
    {"Granite 4.0 1B", "granite-4.0-1b",
     "https://huggingface.co/ibm-granite/granite-4.0-1b-GGUF",
     "granite-4.0-1b-Q4_K_M.gguf", 1023645440, "Apache-2.0"},
    {"Granite 4.1 3B", "granite-4.1-3b",
     "https://huggingface.co/ibm-granite/granite-4.1-3b-GGUF",
     "granite-4.1-3b-Q4_K_M.gguf", 2099501664, "Apache-2.0"},
    {"Granite 4.0 H 350M", "granite-4.0-h-350m",
     "https://huggingface.co/ibm-granite/granite-4.0-h-350m-GGUF",
     "granite-4.0-h-350m-Q8_0.gguf", 366195616, "Apache-2.0"},
    {"Granite 4.0 H 1B", "granite-4.0-h-1b",
     "https://huggingface.co/ibm-granite/granite-4.0-h-1b-GGUF",
     "granite-4.0-h-1b-Q4_K_M.gguf", 901162208, "Apache-2.0"},
    {"Granite 4.0 H Tiny", "granite-4.0-h-tiny",
     "https://huggingface.co/ibm-granite/granite-4.0-h-tiny-GGUF",
     "granite-4.0-h-tiny-Q4_K_M.gguf", 4230976352, "Apache-2.0"},
    {"Falcon-H1 0.5B Instruct", "falcon-h1-0.5b",
     "https://huggingface.co/tiiuae/Falcon-H1-0.5B-Instruct-GGUF",
     "Falcon-H1-0.5B-Instruct-Q4_K_M.gguf", 314806560, "LicenseRef-Falcon-LLM"},
    {"Falcon-H1 1.5B Instruct", "falcon-h1-1.5b",
     "https://huggingface.co/tiiuae/Falcon-H1-1.5B-Instruct-GGUF",
     "Falcon-H1-1.5B-Instruct-Q8_0.gguf", 1656492736, "LicenseRef-Falcon-LLM"},
    {"Granite 3.1 1B-A400M Instruct", "granite-3.1-1b-a400m",
     "https://huggingface.co/bartowski/granite-3.1-1b-a400m-instruct-GGUF",
     "granite-3.1-1b-a400m-instruct-Q4_K_M.gguf", 821847360, "Apache-2.0"},
    {"OLMo 2 1B Instruct", "olmo-2-1b",
     "https://huggingface.co/allenai/OLMo-2-0425-1B-Instruct-GGUF",
     "OLMo-2-0425-1B-Instruct-Q4_K_M.gguf", 935515296, "Apache-2.0"},
    {"OLMo 3 7B Instruct", "olmo-3-7b",
     "https://huggingface.co/bartowski/allenai_Olmo-3-7B-Instruct-GGUF",
     "allenai_Olmo-3-7B-Instruct-Q4_K_M.gguf", 0, "Apache-2.0"},
    {"OLMoE 1B-7B Instruct", "olmoe-1b-7b",
     "https://huggingface.co/allenai/OLMoE-1B-7B-0924-Instruct-GGUF",
     "olmoe-1b-7b-0924-instruct-q4_k_m.gguf", 4213512672, "Apache-2.0"},
    {"EXAONE 4.0 1.2B", "exaone-4-1.2b",
     "https://huggingface.co/LGAI-EXAONE/EXAONE-4.0-1.2B-GGUF",
     "EXAONE-4.0-1.2B-Q4_K_M.gguf", 812437792, "LicenseRef-EXAONE-1.2-NC"},
    {"ERNIE 4.5 0.3B", "ernie-4.5-0.3b",
     "https://huggingface.co/unsloth/ERNIE-4.5-0.3B-PT-GGUF",
     "ERNIE-4.5-0.3B-PT-Q4_K_M.gguf", 240645600, "Apache-2.0"},
    {"Hunyuan 0.5B Instruct", "hunyuan-0.5b",
     "https://huggingface.co/bartowski/tencent_Hunyuan-0.5B-Instruct-GGUF",
     "tencent_Hunyuan-0.5B-Instruct-Q4_K_M.gguf", 354970464, "LicenseRef-Tencent-Hunyuan-Community"},
    {"Ministral 3 3B Instruct", "ministral-3-3b",
     "https://huggingface.co/mistralai/Ministral-3-3B-Instruct-2512-GGUF",
     "Ministral-3-3B-Instruct-2512-Q4_K_M.gguf", 2147023008, "Apache-2.0"},
    {"MiniCPM4 0.5B", "minicpm4-0.5b",
     "https://huggingface.co/Mungert/MiniCPM4-0.5B-GGUF",
     "MiniCPM4-0.5B-q4_k_m.gguf", 276028992, "Apache-2.0"},
};
// clang-format on

constexpr uint32_t kSinks = 4;
constexpr uint64_t kPlenty = uint64_t{1} << 42;
/// Files in the usual mixes (Q4_K_M and the like) are mostly of Q4_K, whose blocks of 144 bytes take 148 in memory.
constexpr uint64_t kMixGrowth = 36;

bool isMix(const char* file) {
  const std::string name = file;
  return name.find("_K_") != std::string::npos || name.find("_k_") != std::string::npos;
}

/// False when the shape cannot be planned for.
bool planFor(const PublishedModel& model, uint32_t tokens, oriel_plan* plan) {
  oriel_options options = {};
  options.struct_size = sizeof(options);
  options.memory_bytes = kPlenty;
  options.sink_tokens = kSinks;
  options.window_tokens = tokens - kSinks;
  options.k_format = ORIEL_KV_INT8;
  options.v_format = ORIEL_KV_INT4;
  return PlanSource::ofShape(model.shape, ORIEL_WEIGHTS_Q4_0).tryPlan(options, plan) &&
         plan->fits != 0;
}

/// The plan of the shape with the file's weights instead of its own.
uint64_t memoryFor(const PublishedModel& model, uint32_t tokens, uint64_t* on_file_bytes) {
  oriel_plan plan;
  if (model.file_bytes == 0 || !planFor(model, tokens, &plan)) {
    return 0;
  }
  *on_file_bytes = plan.on_file_bytes;
  const uint64_t held = model.file_bytes - plan.on_file_bytes;
  const uint64_t weights = isMix(model.file) ? held + held / kMixGrowth : held;
  return plan.total_bytes - plan.weights_bytes + weights;
}

}  // namespace

std::vector<ListedModel> publishedModels() {
  const std::vector<oriel_shape_info> shapes = knownShapes();
  std::vector<ListedModel> models;
  for (const PublishedModel& published : kModels) {
    const auto shape = std::find_if(
        shapes.begin(), shapes.end(),
        [&](const oriel_shape_info& each) { return std::strcmp(each.name, published.shape) == 0; });
    if (shape == shapes.end()) {
      continue;  // tests look for such a row
    }
    ListedModel model;
    model.published = &published;
    model.shape = *shape;
    model.memory_bytes_4096 = memoryFor(published, 4096, &model.on_file_bytes);
    model.memory_bytes_32768 = memoryFor(published, 32768, &model.on_file_bytes);
    models.push_back(model);
  }
  const auto order = [](const ListedModel& model) {
    return std::make_tuple(model.memory_bytes_4096 == 0, model.memory_bytes_4096,
                           model.shape.parameters);
  };
  std::stable_sort(models.begin(), models.end(),
                   [&](const ListedModel& a, const ListedModel& b) { return order(a) < order(b); });
  return models;
}

}  // namespace cli
