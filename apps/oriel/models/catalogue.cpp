#include "models/catalogue.h"

#include <algorithm>
#include <iterator>

#include "options.h"

namespace cli {
namespace {

// Sizes come from published lists of these files. A size without such a source is derived from the tensors, or 0.
// A model with several conversions is listed with one file of the most common kind.
// clang-format off
constexpr PublishedModel kModels[] = {
    {"gemma-4-e2b", "Gemma 4 E2B it", "gemma-4-e2b",
     "https://huggingface.co/ggml-org/gemma-4-E2B-it-GGUF",
     "gemma-4-E2B-it-Q4_0.gguf", 2841481184, "Apache-2.0"},
    {"gemma-4-e4b", "Gemma 4 E4B it", "gemma-4-e4b",
     "https://huggingface.co/ggml-org/gemma-4-E4B-it-GGUF",
     "gemma-4-E4B-it-Q4_0.gguf", 4590807392, "Apache-2.0"},
    {"gemma-3-270m", "Gemma 3 270M it", "gemma-3-270m",
     "https://huggingface.co/ggml-org/gemma-3-270m-it-GGUF",
     "gemma-3-270m-it-Q8_0.gguf", 291545600, "LicenseRef-Gemma"},
    {"gemma-3-1b", "Gemma 3 1B it", "gemma-3-1b",
     "https://huggingface.co/ggml-org/gemma-3-1b-it-GGUF",
     "gemma-3-1b-it-Q4_K_M.gguf", 806058240, "LicenseRef-Gemma"},
    {"gemma-3-4b", "Gemma 3 4B it", "gemma-3-4b",
     "https://huggingface.co/ggml-org/gemma-3-4b-it-GGUF",
     "gemma-3-4b-it-Q4_K_M.gguf", 2489757856, "LicenseRef-Gemma"},
    {"gemma-2-2b", "Gemma 2 2B it", "gemma-2-2b",
     "https://huggingface.co/bartowski/gemma-2-2b-it-GGUF",
     "gemma-2-2b-it-Q4_K_M.gguf", 1708582752, "LicenseRef-Gemma"},
    {"lfm2.5-350m", "LFM2.5 350M", "lfm2-350m",
     "https://huggingface.co/LiquidAI/LFM2.5-350M-GGUF",
     "LFM2.5-350M-Q4_K_M.gguf", 229312224, "LicenseRef-LFM-1.0"},
    {"lfm2.5-1.2b", "LFM2.5 1.2B Instruct", "lfm2-1.2b",
     "https://huggingface.co/LiquidAI/LFM2.5-1.2B-Instruct-GGUF",
     "LFM2.5-1.2B-Instruct-Q4_0.gguf", 695751488, "LicenseRef-LFM-1.0"},
    {"lfm2-2.6b", "LFM2 2.6B", "lfm2-2.6b",
     "https://huggingface.co/LiquidAI/LFM2-2.6B-GGUF",
     "LFM2-2.6B-Q4_K_M.gguf", 1563668704, "LicenseRef-LFM-1.0"},
    {"lfm2-8b-a1b", "LFM2 8B-A1B", "lfm2-8b-a1b",
     "https://huggingface.co/LiquidAI/LFM2-8B-A1B-GGUF",
     "LFM2-8B-A1B-Q4_K_M.gguf", 5044779712, "LicenseRef-LFM-1.0"},
    {"lfm2.5-8b-a1b", "LFM2.5 8B-A1B", "lfm2.5-8b-a1b",
     "https://huggingface.co/LiquidAI/LFM2.5-8B-A1B-GGUF",
     "LFM2.5-8B-A1B-Q4_K_M.gguf", 5155564768, "LicenseRef-LFM-1.0"},
    {"qwen3-0.6b", "Qwen3 0.6B", "qwen3-0.6b",
     "https://huggingface.co/Qwen/Qwen3-0.6B-GGUF",
     "Qwen3-0.6B-Q8_0.gguf", 639446688, "Apache-2.0"},
    {"qwen3-embedding-0.6b", "Qwen3 Embedding 0.6B", "qwen3-0.6b",
     "https://huggingface.co/Qwen/Qwen3-Embedding-0.6B-GGUF",
     "Qwen3-Embedding-0.6B-Q8_0.gguf", 639150592, "Apache-2.0", true},
    {"qwen3-1.7b", "Qwen3 1.7B", "qwen3-1.7b",
     "https://huggingface.co/unsloth/Qwen3-1.7B-GGUF",
     "Qwen3-1.7B-Q4_K_M.gguf", 1107409472, "Apache-2.0"},
    {"qwen3-4b", "Qwen3 4B Instruct 2507", "qwen3-4b",
     "https://huggingface.co/unsloth/Qwen3-4B-Instruct-2507-GGUF",
     "Qwen3-4B-Instruct-2507-Q4_K_M.gguf", 2497281120, "Apache-2.0"},
    {"qwen3-8b", "Qwen3 8B", "qwen3-8b",
     "https://huggingface.co/Qwen/Qwen3-8B-GGUF",
     "Qwen3-8B-Q4_K_M.gguf", 5027783488, "Apache-2.0"},
    {"qwen3-30b-a3b", "Qwen3 30B-A3B", "qwen3-30b-a3b",
     "https://huggingface.co/Qwen/Qwen3-30B-A3B-GGUF",
     "Qwen3-30B-A3B-Q4_K_M.gguf", 18556685824, "Apache-2.0"},
    {"qwen3.5-0.8b", "Qwen3.5 0.8B", "qwen3.5-0.8b",
     "https://huggingface.co/unsloth/Qwen3.5-0.8B-GGUF",
     "Qwen3.5-0.8B-Q4_K_M.gguf", 530000000, "Apache-2.0", true},
    {"qwen3.5-2b", "Qwen3.5 2B", "qwen3.5-2b",
     "https://huggingface.co/unsloth/Qwen3.5-2B-GGUF",
     "Qwen3.5-2B-Q4_K_M.gguf", 1280835840, "Apache-2.0"},
    {"qwen3.5-4b", "Qwen3.5 4B", "qwen3.5-4b",
     "https://huggingface.co/unsloth/Qwen3.5-4B-GGUF",
     "Qwen3.5-4B-Q4_K_M.gguf", 2720000000, "Apache-2.0", true},
    {"qwen3.5-35b-a3b", "Qwen3.5 35B-A3B", "qwen3.5-35b-a3b",
     "https://huggingface.co/unsloth/Qwen3.5-35B-A3B-GGUF",
     "Qwen3.5-35B-A3B-Q4_K_M.gguf", 22016023168, "Apache-2.0"},
    {"lfm3-1.7b", "LFM3 1.7B", "lfm3-1.7b",
     "https://huggingface.co/LiquidAI/LFM3-1.7B-GGUF",
     "LFM3-1.7B-Q4_K_M.gguf", 1095000000, "LicenseRef-LFM-1.0", true},
    {"qwen2.5-0.5b", "Qwen2.5 0.5B Instruct", "qwen2.5-0.5b",
     "https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF",
     "qwen2.5-0.5b-instruct-q4_k_m.gguf", 491400032, "Apache-2.0"},
    {"qwen2.5-1.5b", "Qwen2.5 1.5B Instruct", "qwen2.5-1.5b",
     "https://huggingface.co/Qwen/Qwen2.5-1.5B-Instruct-GGUF",
     "qwen2.5-1.5b-instruct-q4_k_m.gguf", 1117320736, "Apache-2.0"},
    {"qwen2.5-7b", "Qwen2.5 7B Instruct", "qwen2.5-7b",
     "https://huggingface.co/bartowski/Qwen2.5-7B-Instruct-GGUF",
     "Qwen2.5-7B-Instruct-Q4_K_M.gguf", 4683074240, "Apache-2.0"},
    {"llama-3.2-1b", "Llama 3.2 1B Instruct", "llama-3.2-1b",
     "https://huggingface.co/bartowski/Llama-3.2-1B-Instruct-GGUF",
     "Llama-3.2-1B-Instruct-Q4_K_M.gguf", 807694464, "LicenseRef-Llama-3.2"},
    {"llama-3.2-3b", "Llama 3.2 3B Instruct", "llama-3.2-3b",
     "https://huggingface.co/bartowski/Llama-3.2-3B-Instruct-GGUF",
     "Llama-3.2-3B-Instruct-Q4_K_M.gguf", 2019377696, "LicenseRef-Llama-3.2"},
    {"llama-3.1-8b", "Llama 3.1 8B Instruct", "llama-3.1-8b",
     "https://huggingface.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
     "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", 4920739232, "LicenseRef-Llama-3.1"},
    {"mistral-7b-v0.3", "Mistral 7B Instruct v0.3", "mistral-7b-v0.3",
     "https://huggingface.co/bartowski/Mistral-7B-Instruct-v0.3-GGUF",
     "Mistral-7B-Instruct-v0.3-Q4_K_M.gguf", 4372812000, "Apache-2.0"},
    {"smollm2-135m", "SmolLM2 135M Instruct", "smollm2-135m",
     "https://huggingface.co/bartowski/SmolLM2-135M-Instruct-GGUF",
     "SmolLM2-135M-Instruct-Q4_K_M.gguf", 105454432, "Apache-2.0"},
    {"smollm2-360m", "SmolLM2 360M Instruct", "smollm2-360m",
     "https://huggingface.co/bartowski/SmolLM2-360M-Instruct-GGUF",
     "SmolLM2-360M-Instruct-Q8_0.gguf", 386405280, "Apache-2.0"},
    {"smollm2-1.7b", "SmolLM2 1.7B Instruct", "smollm2-1.7b",
     "https://huggingface.co/bartowski/SmolLM2-1.7B-Instruct-GGUF",
     "SmolLM2-1.7B-Instruct-Q4_K_M.gguf", 1055609824, "Apache-2.0"},
    {"tinyllama-1.1b", "TinyLlama 1.1B Chat", "tinyllama-1.1b",
     "https://huggingface.co/TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF",
     "tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf", 668788096, "Apache-2.0"},
    {"smollm3-3b", "SmolLM3 3B", "smollm3-3b",
     "https://huggingface.co/ggml-org/SmolLM3-3B-GGUF",
     "SmolLM3-Q4_K_M.gguf", 1915305312, "Apache-2.0"},
    {"phi-3.5-mini", "Phi-3.5 mini Instruct", "phi-3.5-mini",
     "https://huggingface.co/bartowski/Phi-3.5-mini-instruct-GGUF",
     "Phi-3.5-mini-instruct-Q4_K_M.gguf", 2393232672, "MIT"},
    {"granite-4.0-350m", "Granite 4.0 350M", "granite-4.0-350m",
     "https://huggingface.co/ibm-granite/granite-4.0-350m-GGUF",
     "granite-4.0-350m-Q8_0.gguf", 378138016, "Apache-2.0"},
    {"granite-4.0-1b", "Granite 4.0 1B", "granite-4.0-1b",
     "https://huggingface.co/ibm-granite/granite-4.0-1b-GGUF",
     "granite-4.0-1b-Q4_K_M.gguf", 1023645440, "Apache-2.0"},
    {"granite-4.1-3b", "Granite 4.1 3B", "granite-4.1-3b",
     "https://huggingface.co/ibm-granite/granite-4.1-3b-GGUF",
     "granite-4.1-3b-Q4_K_M.gguf", 2099501664, "Apache-2.0"},
    {"granite-4.0-h-350m", "Granite 4.0 H 350M", "granite-4.0-h-350m",
     "https://huggingface.co/ibm-granite/granite-4.0-h-350m-GGUF",
     "granite-4.0-h-350m-Q8_0.gguf", 366195616, "Apache-2.0"},
    {"granite-4.0-h-1b", "Granite 4.0 H 1B", "granite-4.0-h-1b",
     "https://huggingface.co/ibm-granite/granite-4.0-h-1b-GGUF",
     "granite-4.0-h-1b-Q4_K_M.gguf", 901162208, "Apache-2.0"},
    {"granite-4.0-h-tiny", "Granite 4.0 H Tiny", "granite-4.0-h-tiny",
     "https://huggingface.co/ibm-granite/granite-4.0-h-tiny-GGUF",
     "granite-4.0-h-tiny-Q4_K_M.gguf", 4230976352, "Apache-2.0"},
    {"falcon-h1-0.5b", "Falcon-H1 0.5B Instruct", "falcon-h1-0.5b",
     "https://huggingface.co/tiiuae/Falcon-H1-0.5B-Instruct-GGUF",
     "Falcon-H1-0.5B-Instruct-Q4_K_M.gguf", 314806560, "LicenseRef-Falcon-LLM"},
    {"falcon-h1-1.5b", "Falcon-H1 1.5B Instruct", "falcon-h1-1.5b",
     "https://huggingface.co/tiiuae/Falcon-H1-1.5B-Instruct-GGUF",
     "Falcon-H1-1.5B-Instruct-Q8_0.gguf", 1656492736, "LicenseRef-Falcon-LLM"},
    {"granite-3.1-1b-a400m", "Granite 3.1 1B-A400M Instruct", "granite-3.1-1b-a400m",
     "https://huggingface.co/bartowski/granite-3.1-1b-a400m-instruct-GGUF",
     "granite-3.1-1b-a400m-instruct-Q4_K_M.gguf", 821847360, "Apache-2.0"},
    {"olmo-2-1b", "OLMo 2 1B Instruct", "olmo-2-1b",
     "https://huggingface.co/allenai/OLMo-2-0425-1B-Instruct-GGUF",
     "OLMo-2-0425-1B-Instruct-Q4_K_M.gguf", 935515296, "Apache-2.0"},
    {"olmo-3-7b", "OLMo 3 7B Instruct", "olmo-3-7b",
     "https://huggingface.co/bartowski/allenai_Olmo-3-7B-Instruct-GGUF",
     "allenai_Olmo-3-7B-Instruct-Q4_K_M.gguf", 0, "Apache-2.0"},
    {"olmoe-1b-7b", "OLMoE 1B-7B Instruct", "olmoe-1b-7b",
     "https://huggingface.co/allenai/OLMoE-1B-7B-0924-Instruct-GGUF",
     "olmoe-1b-7b-0924-instruct-q4_k_m.gguf", 4213512672, "Apache-2.0"},
    {"exaone-4-1.2b", "EXAONE 4.0 1.2B", "exaone-4-1.2b",
     "https://huggingface.co/LGAI-EXAONE/EXAONE-4.0-1.2B-GGUF",
     "EXAONE-4.0-1.2B-Q4_K_M.gguf", 812437792, "LicenseRef-EXAONE-1.2-NC"},
    {"ernie-4.5-0.3b", "ERNIE 4.5 0.3B", "ernie-4.5-0.3b",
     "https://huggingface.co/unsloth/ERNIE-4.5-0.3B-PT-GGUF",
     "ERNIE-4.5-0.3B-PT-Q4_K_M.gguf", 240645600, "Apache-2.0"},
    {"hunyuan-0.5b", "Hunyuan 0.5B Instruct", "hunyuan-0.5b",
     "https://huggingface.co/bartowski/tencent_Hunyuan-0.5B-Instruct-GGUF",
     "tencent_Hunyuan-0.5B-Instruct-Q4_K_M.gguf", 354970464, "LicenseRef-Tencent-Hunyuan-Community"},
    {"ministral-3-3b", "Ministral 3 3B Instruct", "ministral-3-3b",
     "https://huggingface.co/mistralai/Ministral-3-3B-Instruct-2512-GGUF",
     "Ministral-3-3B-Instruct-2512-Q4_K_M.gguf", 2147023008, "Apache-2.0"},
    {"minicpm4-0.5b", "MiniCPM4 0.5B", "minicpm4-0.5b",
     "https://huggingface.co/Mungert/MiniCPM4-0.5B-GGUF",
     "MiniCPM4-0.5B-q4_k_m.gguf", 276028992, "Apache-2.0"},
};
// clang-format on

constexpr char kGguf[] = ".gguf";

/// As written at the end of file names.
constexpr const char* kQuantisations[] = {
    "f32",    "f16",     "bf16",  "q8_0",   "q6_k",   "q5_0",    "q5_1",
    "q5_k_s", "q5_k_m",  "q4_0",  "q4_1",   "q4_k_s", "q4_k_m",  "q3_k_s",
    "q3_k_m", "q3_k_l",  "q2_k",  "iq4_nl", "iq4_xs", "iq3_m",   "iq3_s",
    "iq3_xs", "iq3_xxs", "iq2_m", "iq2_s",  "iq2_xs", "iq2_xxs", "mxfp4"};

/// Position of the quantisation in a file name: after the last "-" or "." before the extension.
size_t quantisationAt(const std::string& file) {
  return file.find_last_of("-.", file.size() - sizeof(kGguf)) + 1;
}

std::string upperCase(std::string text) {
  for (char& c : text) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return text;
}

/// The publisher's name for the same model in another quantisation.
std::string withQuantisation(const std::string& file, const std::string& quantisation) {
  const size_t at = quantisationAt(file);
  const std::string old = file.substr(at, file.size() - at - (sizeof(kGguf) - 1));
  return file.substr(0, at) + (old == lowerCase(old) ? quantisation : upperCase(quantisation)) +
         kGguf;
}

}  // namespace

std::vector<const PublishedModel*> catalogue() {
  std::vector<const PublishedModel*> models;
  models.reserve(std::size(kModels));
  for (const PublishedModel& model : kModels) {
    models.push_back(&model);
  }
  return models;
}

std::string quantisationOf(const std::string& name) {
  const std::string file = withoutPart(name);
  const size_t at = quantisationAt(file);
  return lowerCase(file.substr(at, file.size() - at - (sizeof(kGguf) - 1)));
}

std::string CataloguedFile::url() const {
  return std::string(model->page) + "/resolve/main/" + file;
}

std::optional<CataloguedFile> cataloguedFile(const std::string& given) {
  const std::string name = lowerCase(given);
  const size_t colon = name.find(':');
  const std::string id = name.substr(0, colon);
  const auto found = std::find_if(std::begin(kModels), std::end(kModels),
                                  [&](const PublishedModel& model) { return id == model.id; });
  if (found == std::end(kModels)) {
    return std::nullopt;
  }
  if (colon == std::string::npos || name.substr(colon + 1) == quantisationOf(found->file)) {
    return CataloguedFile{found, found->file, found->derived ? 0 : found->file_bytes};
  }
  const std::string quantisation = name.substr(colon + 1);
  const bool known = std::find(std::begin(kQuantisations), std::end(kQuantisations),
                               quantisation) != std::end(kQuantisations);
  return known
             ? std::optional(CataloguedFile{found, withQuantisation(found->file, quantisation), 0})
             : std::nullopt;
}

}  // namespace cli
