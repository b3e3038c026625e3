// The same in C++: hello MODEL.gguf
#include <oriel/oriel.hpp>

#include <iostream>

int main(int argc, char** argv) {
  try {
    oriel::Options options;
    options.memory_bytes = 64u << 20;
    options.set("kv", "k8v4");
    const char* path = argc > 1 ? argv[1] : "model.gguf";
    oriel::Model model = oriel::Model::load(path, options).value();
    oriel::Session session = model.session().value();
    session.add("user", "What is your name?").value();
    std::cout << std::unitbuf;  // shows each piece at once
    session.reply([](std::string_view text) { std::cout << text; }).value();
    std::cout << "\n";
    return 0;
  } catch (const oriel::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
