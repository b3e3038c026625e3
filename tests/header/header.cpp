// The header for C++ on its own, with exceptions and without.
#include <oriel/oriel.hpp>

oriel::Result<oriel::Session> testHeader();
oriel::Result<oriel::Session> testHeader() {
  oriel::Options options;
  options.set("kv", "k8v4").set("constraints", true).set("min_speed", 2.5).set("sinks", 8u);
  options.onLog([](oriel_log_level, std::string_view) {});
  oriel::Result<oriel::Model> model = oriel::Model::load("model.gguf", options);
  if (!model) {
    return {model.status(), model.error().c_str()};
  }
  oriel::Session session = model->session().value();
  (void)session.add("user", "Hello!");
  (void)session.reply([](std::string_view) {});
  (void)session.reply([](std::string_view text) { return text.empty(); });
  return session;
}
