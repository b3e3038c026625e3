// Answers from the text files of a folder, with their sources: search CHAT.gguf ENCODER.gguf INDEX FOLDER
//
// Every paragraph becomes a vector. The file INDEX keeps the vectors, so that only new paragraphs are
// encoded. A question on stdin finds the nearest paragraphs. The chat model answers in JSON: a text,
// and the numbers of the paragraphs that it used.
#include <oriel/oriel.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <set>

namespace {

constexpr size_t kFound = 3;
constexpr size_t kParagraph = 1500;
constexpr const char* kSchema = R"({"type": "object", "additionalProperties": false,
  "properties": {"answer": {"type": "string", "maxLength": 600},
                 "sources": {"type": "array", "maxItems": 3,
                             "items": {"type": "integer", "minimum": 1, "maximum": 3}}},
  "required": ["answer", "sources"]})";

using Vector = std::vector<float>;

struct Paragraph {
  std::string place;
  std::string text;
  Vector vector;
};

/// Paragraphs of the .txt files below a folder, which empty lines divide. The end of a very long one is left out.
std::vector<Paragraph> readFolder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Paragraph> paragraphs;
  for (const auto& path : files) {
    std::ifstream file(path);
    const std::string name = std::filesystem::relative(path, folder).generic_string();
    int number = 0;
    bool inside = false;
    for (std::string line; std::getline(file, line); inside = !line.empty()) {
      if (line.empty()) continue;
      if (!inside) paragraphs.push_back({name + ", paragraph " + std::to_string(++number), "", {}});
      std::string& text = paragraphs.back().text;
      if (text.size() + line.size() + 1 < kParagraph) text += (inside ? "\n" : "") + line;
    }
  }
  return paragraphs;
}

/// FNV-1a.
uint64_t keyOf(const std::string& text) {
  uint64_t key = 14695981039346656037u;
  for (const char letter : text) key = (key ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  return key;
}

/// Turns texts into vectors of length 1.
class Encoder {
 public:
  explicit Encoder(const std::string& path)
      : model_(oriel::Model::load(path).value()), session_(model_.session().value()) {
    (void)oriel_embed(session_.get(), ORIEL_POOLING_AUTO, 0, "x", 1, nullptr, 0, &width_, nullptr);
  }
  size_t width() const { return width_; }
  Vector operator()(const std::string& text, uint32_t flags) const {
    Vector vector(width_);
    size_t needed = 0;
    const oriel_status status = oriel_embed(session_.get(), ORIEL_POOLING_AUTO, flags, text.data(),
                                            text.size(), vector.data(), width_, &needed, nullptr);
    return oriel::resultOf(status, vector, oriel_session_last_error(session_.get())).value();
  }

 private:
  oriel::Model model_;
  oriel::Session session_;
  size_t width_ = 0;
};

template <typename T>
void put(std::ostream& file, const T* values, size_t count) {
  file.write(reinterpret_cast<const char*>(values),
             static_cast<std::streamsize>(count * sizeof(T)));
}
template <typename T>
bool get(std::istream& file, T* values, size_t count) {
  const auto bytes = static_cast<std::streamsize>(count * sizeof(T));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(values), bytes));
}

/// The index has the bytes of the encoder's file and the width of a vector, then a key and a vector for each paragraph.
/// An index of another encoder is not used. Returns the number of paragraphs that it lacked.
size_t updateIndex(const std::string& path, uint64_t encoder_bytes, const Encoder& encoder,
                   std::vector<Paragraph>& paragraphs) {
  const uint64_t head[2] = {encoder_bytes, encoder.width()};
  std::map<uint64_t, Vector> known;
  {
    std::ifstream file(path, std::ios::binary);
    uint64_t given[2] = {0, 0};
    uint64_t key = 0;
    Vector vector(encoder.width());
    if (get(file, given, 2) && std::equal(given, given + 2, head)) {
      while (get(file, &key, 1) && get(file, vector.data(), vector.size())) known[key] = vector;
    }
  }
  std::ofstream file(path, std::ios::binary);
  put(file, head, 2);
  size_t added = 0;
  for (Paragraph& one : paragraphs) {
    const uint64_t key = keyOf(one.text);
    const auto found = known.find(key);
    added += found == known.end();
    one.vector = found != known.end() ? found->second : encoder(one.text, ORIEL_EMBED_DOCUMENT);
    put(file, &key, 1);
    put(file, one.vector.data(), one.vector.size());
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path + ": check the folder");
  return added;
}

/// The nearest paragraphs, best first.
std::vector<const Paragraph*> nearest(const Vector& asked,
                                      const std::vector<Paragraph>& paragraphs) {
  std::vector<std::pair<float, const Paragraph*>> scores;
  for (const Paragraph& one : paragraphs) {
    scores.emplace_back(std::inner_product(asked.begin(), asked.end(), one.vector.begin(), 0.0f),
                        &one);
  }
  std::stable_sort(scores.begin(), scores.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const Paragraph*> found;
  for (size_t i = 0; i < std::min(kFound, scores.size()); ++i) found.push_back(scores[i].second);
  return found;
}

/// Shows the answer as it grows, then the sources that it names.
void answer(oriel::Session& chat, const std::string& question,
            const std::vector<const Paragraph*>& found) {
  std::string prompt = "Answer from these sources.\n";
  for (size_t i = 0; i < found.size(); ++i) {
    prompt += "\n[" + std::to_string(i + 1) + "] " + found[i]->text + "\n";
  }
  std::set<size_t> named;
  oriel::ReplyOptions how;
  how.schema = kSchema;
  how.max_tokens = 400;
  how.set("value_parts", true);
  how.part_user = &named;
  how.on_part = [](const oriel_part* part, void* user) {
    const std::string text(part->text, part->text_bytes);
    if (part->kind == ORIEL_PART_STRING) std::cout << text << std::flush;
    if (part->kind == ORIEL_PART_LITERAL)
      static_cast<std::set<size_t>*>(user)->insert(std::stoul(text));
    return 0;
  };
  chat.reset().value();
  chat.add("user", prompt + "\nQuestion: " + question).value();
  chat.reply([](std::string_view) {}, how).value();
  for (const size_t n : named) {
    if (n <= found.size()) std::cout << "\n  [" << n << "] " << found[n - 1]->place;
  }
  std::cout << "\n" << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: search CHAT.gguf ENCODER.gguf INDEX FOLDER\n";
    return 2;
  }
  try {
    std::vector<Paragraph> paragraphs = readFolder(argv[4]);
    if (paragraphs.empty())
      throw std::runtime_error("the folder has no .txt files with text: give another one");
    const Encoder encoder(argv[2]);
    const size_t added =
        updateIndex(argv[3], std::filesystem::file_size(argv[2]), encoder, paragraphs);
    oriel::Options options;
    options.set("constraints", true);
    oriel::Model model = oriel::Model::load(argv[1], options).value();
    oriel::Session chat = model.session().value();
    std::cout << paragraphs.size() << " paragraphs, " << added << " new. Ask, or press Ctrl-D."
              << std::endl;
    for (std::string question; std::getline(std::cin, question);) {
      answer(chat, question, nearest(encoder(question, ORIEL_EMBED_QUERY), paragraphs));
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "search: " << error.what() << "\n";
    return 1;
  }
}
