#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "described.h"
#include "failure.h"
#include "models/model_store.h"
#include "models/published_models.h"
#include "options.h"
#include "output.h"
#include "sizes.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"
#include "validators.h"

namespace cli {
namespace {

struct ModelsOptions : CommonOptions {
  std::string name;
  bool markdown = false;
  bool local = false;
  bool names = false;
};

using Models = std::vector<ListedModel>;

/// Letters and digits only, in lower case: "Qwen3 4B" is "qwen3-4b".
std::string bare(const std::string& text) {
  std::string out;
  for (const char c : lowerCase(text)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      out += c;
    }
  }
  return out;
}

/// Models whose name, shape, architecture or file contains the text; exact matches first.
Models named(const Models& models, const std::string& text) {
  const std::string wanted = bare(text);
  Models whole;
  Models part;
  for (const ListedModel& model : models) {
    const PublishedModel& published = *model.published;
    bool is_whole = false;
    bool is_part = false;
    for (const std::string& name :
         {bare(published.id), bare(published.name), bare(published.shape), bare(published.file),
          bare(textIn(model.shape, "architecture"))}) {
      is_whole = is_whole || name == wanted;
      is_part = is_part || name.find(wanted) != std::string::npos;
    }
    if (is_whole) {
      whole.push_back(model);
    } else if (is_part) {
      part.push_back(model);
    }
  }
  return whole.empty() ? part : whole;
}

Models chosen(const ModelsOptions& options) {
  Models models = publishedModels();
  if (!options.name.empty()) {
    models = named(models, options.name);
    if (models.empty()) {
      throw Failure{kExitUsage, "no published model of the name " + options.name +
                                    " is listed: `oriel models` names them"};
    }
  }
  if (const uint64_t memory = options.load.number("memory"); memory != 0) {
    const auto fits = [&](const ListedModel& model) {
      return model.memory_bytes_4096 != 0 && model.memory_bytes_4096 <= memory;
    };
    models.erase(std::remove_if(models.begin(), models.end(),
                                [&](const ListedModel& model) { return !fits(model); }),
                 models.end());
    if (models.empty()) {
      throw Failure{kExitDoesNotFit, "none of these models fits in " + formatSize(memory) +
                                         ": `oriel models` says what each takes"};
    }
  }
  return models;
}

// ---- JSON ----------------------------------------------------------------------------------------

Json knownOr(uint64_t bytes) { return bytes != 0 ? Json(bytes) : Json(nullptr); }

Json modelJson(const ListedModel& model) {
  const PublishedModel& published = *model.published;
  Json json;
  json["id"] = published.id;
  json["name"] = published.name;
  json["architecture"] = model.shape["architecture"];
  json["shape"] = published.shape;
  json["parameters"] = numberIn(model.shape, "parameters");
  json["context_train"] = model.shape["context_train"];
  json["file"] = published.file;
  json["file_bytes"] = knownOr(published.file_bytes);
  json["file_bytes_derived"] = published.derived;
  json["on_file_bytes"] = published.file_bytes != 0 ? Json(model.on_file_bytes) : Json(nullptr);
  json["memory_bytes_4096"] = knownOr(model.memory_bytes_4096);
  json["memory_bytes_32768"] = knownOr(model.memory_bytes_32768);
  json["license"] = published.license;
  json["page"] = published.page;
  const auto file = cataloguedFile(published.id);
  json["url"] = file ? Json(file->url()) : Json(nullptr);
  const auto local = storedModel(published.id);
  json["path"] = local ? Json(*local) : Json(nullptr);
  return json;
}

// ---- Text ----------------------------------------------------------------------------------------

std::string sizeOr(uint64_t bytes, const char* otherwise) {
  return bytes != 0 ? formatSize(bytes) : otherwise;
}

std::string parametersOf(const ListedModel& model) {
  return formatted("%.2fB", realIn(model.shape, "parameters") / 1e9);
}

std::string licenseOf(const PublishedModel& model) {
  const std::string license = model.license;
  const std::string own = "LicenseRef-";
  return license.compare(0, own.size(), own) == 0 ? license.substr(own.size()) : license;
}

std::string describeModels(const Models& models) {
  Table table({{"model"},
               {"params", true, 2},
               {"file", true, 1},
               {"4,096 tokens", true},
               {"32,768", true, 3},
               {"", false, 4}});
  for (const ListedModel& model : models) {
    const PublishedModel& published = *model.published;
    table.row({published.id, parametersOf(model), sizeOr(published.file_bytes, "?"),
               sizeOr(model.memory_bytes_4096, "?"), sizeOr(model.memory_bytes_32768, "?"),
               storedModel(published.id) ? "here" : ""});
  }
  return table.text(resultColumns()) +
         "\n\"4,096 tokens\", \"32,768\": memory needed with that much context. `oriel pull MODEL` "
         "downloads one, `oriel models MODEL` shows its file, licence and page, `--memory SIZE` "
         "lists those that fit, `oriel list` those you have.\n";
}

std::string describeModel(const ListedModel& model) {
  const PublishedModel& published = *model.published;
  std::string text = std::string(published.name) + "\n\n";
  text += "  name        " + std::string(published.id) + "\n";
  text += "  model       " + parametersOf(model) + " parameters, " +
          textIn(model.shape, "architecture") + ", context " +
          countOf(numberIn(model.shape, "context_train"), "token") + "\n";
  if (numberIn(model.shape, "n_experts") != 0) {
    text += formatted("  experts     %u a layer; a token uses %u\n",
                      countIn(model.shape, "n_experts"), countIn(model.shape, "n_experts_used"));
  }
  text += "  file        " + std::string(published.file) + "\n";
  text += "  page        " + std::string(published.page) + "\n";
  text += "  licence     " + licenseOf(published) + "\n";
  if (published.file_bytes == 0) {
    text += "  size        not confirmed\n";
  } else {
    text += "  size        " + formatSize(published.file_bytes) + " (" +
            (published.derived ? "derived from the tensors, not confirmed"
                               : grouped(published.file_bytes) + " bytes") +
            ")\n";
  }
  if (model.on_file_bytes != 0) {
    text += "  on file     " + formatSize(model.on_file_bytes) +
            " of that stay in the file; its rows are read as tokens need them\n";
  }
  if (model.memory_bytes_4096 != 0) {
    text += "  memory      " + formatSize(model.memory_bytes_4096) +
            " with a context of 4,096 tokens, " + formatSize(model.memory_bytes_32768) +
            " with 32,768\n";
  }
  if (const auto local = storedModel(published.id)) {
    return text + "  here        " + oneLine(*local) + "\n\n  oriel plan " + published.id +
           "\n  oriel chat " + published.id + "\n";
  }
  return text + "\n  oriel pull " + published.id + "\n  oriel chat " + published.id + "\n";
}

/// The table of docs/reference/models.md.
std::string markdown(const Models& models) {
  std::string text =
      "| model | name | parameters | file | size | 4,096 tokens | 32,768 tokens | licence |\n"
      "|---|---|---:|---|---:|---:|---:|---|\n";
  for (const ListedModel& model : models) {
    const PublishedModel& published = *model.published;
    text += "| [" + std::string(published.name) + "](" + published.page + ") | `" + published.id +
            "` | " + parametersOf(model) + " | `" + published.file + "` | " +
            sizeOr(published.file_bytes, "not confirmed") + (published.derived ? " *" : "") +
            " | " + sizeOr(model.memory_bytes_4096, "?") + " | " +
            sizeOr(model.memory_bytes_32768, "?") + " | " + licenseOf(published) + " |\n";
  }
  return text;
}

// ---- Local models --------------------------------------------------------------------------------

int listStored(const ModelsOptions& options) {
  const std::vector<StoredModel> stored = storedModels();
  const std::string folder = modelsFolder().u8string();
  if (options.names) {
    for (const StoredModel& model : stored) {
      print(oneLine(model.name) + "\n");
    }
    return kExitDone;
  }
  if (options.json) {
    Json json;
    json["folder"] = folder;
    json["models"] = Json::array();
    for (const StoredModel& model : stored) {
      json["models"].push_back(
          {{"id", model.name}, {"path", model.path}, {"file_bytes", model.bytes}});
    }
    printJson(json);
    return kExitDone;
  }
  if (stored.empty() && folder.empty()) {
    throw Failure{kExitFailed, "no folder for models: set ORIEL_MODELS, XDG_DATA_HOME or HOME"};
  }
  if (stored.empty()) {
    printText("There are no models in " + oneLine(folder) +
              " yet: `oriel pull NAME` gets one, `oriel models` names them.\n");
    return kExitDone;
  }
  Table table({{"model"}, {"file", true}});
  for (const StoredModel& model : stored) {
    table.row({oneLine(model.name), formatSize(model.bytes)}, oneLine(model.path));
  }
  printText(table.text(resultColumns()));
  return kExitDone;
}

int runModels(const ModelsOptions& options) {
  if (options.local) {
    return listStored(options);
  }
  const Models models = chosen(options);
  if (options.json) {
    Json json;
    json["models"] = Json::array();
    for (const ListedModel& model : models) {
      json["models"].push_back(modelJson(model));
    }
    printJson(json);
  } else if (options.markdown) {
    print(markdown(models));
  } else {
    printText(models.size() == 1 ? describeModel(models.front()) : describeModels(models));
  }
  return kExitDone;
}

}  // namespace

Command addModelsCommand(CLI::App* program) {
  auto options = std::make_shared<ModelsOptions>();
  ModelsOptions* const raw = options.get();
  CLI::App* app =
      program->add_subcommand("models", "List published models that run, with their memory");
  app->footer("Example:\n  oriel models --memory 2GiB");
  app->add_option("NAME", raw->name, "Only models whose name, file or architecture holds this")
      ->type_name("");
  app->add_flag("--markdown", raw->markdown, "As a table in Markdown");
  app->add_flag("--local", raw->local,
                "List the models you have, also those you put into the folder yourself")
      ->excludes(app->get_option("NAME"))
      ->excludes(app->get_option("--markdown"));
  app->add_flag("--names", raw->names, "With --local: only names, one a line, for shells")
      ->needs(app->get_option("--local"))
      ->group("");
  addCommonOptions(app, raw, Uses::kText);
  app->get_option("--memory")
      ->description("Only models that take at most SIZE with a context of 4096 tokens")
      ->group("Options");
  app->get_option("--markdown")->excludes(app->get_option("--json"));
  return {app, [options] { return runModels(*options); }};
}

}  // namespace cli
