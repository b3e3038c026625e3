#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "command_line.h"
#include "measure/divergence.h"
#include "model_handle.h"
#include "models/catalogue.h"
#include "models/download.h"
#include "options.h"
#include "output.h"
#include "system.h"
#include "terminal/line_editor.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

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

namespace {

namespace fs = std::filesystem;

struct PullOptions : CommonOptions {
  std::string what;
  std::string to;
  std::string sha256;
  uint32_t retries = 4;
};

/// The file to download, and its resulting name.
struct Source {
  std::string name;
  std::string url;
  std::string file;
  uint64_t bytes = 0;  ///< 0: not known
  std::string folder;  ///< subfolder of the models folder; empty: none
};

bool isUrl(const std::string& text) { return text.find("://") != std::string::npos; }

Source sourceOfUrl(std::string url) {
  if (!isPlainText(url) || url.find(' ') != std::string::npos) {
    throw Failure{kExitUsage,
                  "the address has characters that no address has: write them as %20 and the like"};
  }
  const std::string scheme = lowerCase(url.substr(0, url.find("://")));
  if (scheme != "https" && scheme != "http") {
    throw Failure{kExitUsage,
                  "'" + scheme + "' is not an address: begin it with https:// or http://"};
  }
  url = scheme + url.substr(scheme.size());
  // The file's address for the address of a page that shows it.
  const std::string host = "://huggingface.co/";
  const size_t blob = url.find("/blob/");
  if (url.compare(scheme.size(), host.size(), host) == 0 && blob != std::string::npos) {
    url.replace(blob, 6, "/resolve/");
  }
  Source source;
  source.url = url;
  source.file = fileOfUrl(url);
  const std::string ending = ".gguf";
  source.name = withoutPart(source.file);
  if (source.name.size() > ending.size() &&
      lowerCase(source.name.substr(source.name.size() - ending.size())) == ending) {
    source.name.resize(source.name.size() - ending.size());
  }
  return source;
}

Source sourceOf(const std::string& what) {
  if (isUrl(what)) {
    return sourceOfUrl(what);
  }
  if (const auto known = cataloguedFile(what)) {
    return {lowerCase(what), known->url(), known->file, known->bytes, ""};
  }
  if (isRepository(what)) {
    const RepositoryFile found = repositoryFile(what);
    return {found.name, found.url, found.file, found.bytes,
            found.name.substr(0, found.name.find(':'))};
  }
  std::vector<std::string> names;
  for (const PublishedModel* const model : catalogue()) {
    names.emplace_back(model->id);
  }
  const std::string near = nearest(lowerCase(what), names);
  throw Failure{kExitUsage, what == "oriel-tiny"
                                ? "oriel-tiny comes with the program: `oriel chat` uses it"
                                : "no model of the name " + what + " is listed: " +
                                      (near.empty() ? "" : "did you mean " + near + "? ") +
                                      "`oriel models` names them; an address begins with https://"};
}

/// The target path; creates the models folder.
std::string targetOf(const PullOptions& options, const Source& source) {
  std::error_code error;
  const fs::path to = fs::u8path(options.to);
  // A name without an extension that does not exist is taken for a missing folder.
  const bool is_folder = options.to.empty() || options.to.back() == '/' ||
                         fs::is_directory(to, error) ||
                         (!to.has_extension() && !fs::exists(fs::symlink_status(to, error)));
  if (is_folder && source.file.empty()) {
    throw Failure{kExitUsage, "the address ends with no file's name: name a file with --to"};
  }
  if (!is_folder) {
    return options.to;
  }
  fs::path folder = fs::u8path(options.to);
  if (options.to.empty()) {
    folder = modelsFolder();
    if (folder.empty()) {
      throw Failure{kExitFailed,
                    "no home folder for models: set ORIEL_MODELS to a folder, or give --to"};
    }
    folder /= fs::u8path(source.folder);
    fs::create_directories(folder, error);
    if (error) {
      throw Failure{kExitFailed, folder.u8string() + " cannot be made (" + error.message() +
                                     "): set ORIEL_MODELS to a folder, or name a place with --to"};
    }
  } else if (!fs::is_directory(folder, error)) {
    throw Failure{kExitFailed, "there is no folder " + options.to + ": make it first"};
  }
  return (folder / fs::u8path(source.file)).u8string();
}

/// Quoted as one word for a shell.
std::string quoted(const std::string& text) {
  const bool plain = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789-_./:%+=@,~") == std::string::npos;
  if (plain && !text.empty()) {
    return text;
  }
  std::string word = "'";
  for (const char c : text) {
    word += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return word + "'";
}

/// The MODEL argument to use from now on.
std::string modelWord(const PullOptions& options, const Source& source, const std::string& target) {
  const auto stored = options.to.empty() ? storedModel(source.name) : std::nullopt;
  return quoted(stored && *stored == target ? source.name : target);
}

/// The command that continues after a stop. It omits a login, since others may see the terminal.
std::string again(const PullOptions& options) {
  return hasLogin(options.what)
             ? "the same command"
             : "`oriel pull " + quoted(options.what) +
                   (options.to.empty() ? "" : " --to " + quoted(options.to)) +
                   (options.sha256.empty() ? "" : " --sha256 " + options.sha256) + "`";
}

Json resultJson(const Source& source, const std::string& target, const Downloaded& result) {
  Json json;
  json["name"] = source.name;
  json["path"] = target;
  json["url"] = shownUrl(source.url);
  json["file_bytes"] = result.bytes;
  json["sha256"] = result.sha256.empty() ? Json(nullptr) : Json(result.sha256);
  json["checked_by"] = result.checked_by == CheckedBy::kUser     ? Json("user")
                       : result.checked_by == CheckedBy::kServer ? Json("server")
                                                                 : Json(nullptr);
  json["verified"] = result.checked_by != CheckedBy::kNothing;
  json["was_there"] = result.was_there;
  json["resumed_from"] = result.resumed_from;
  json["runs"] = result.missing.empty();
  return json;
}

std::string describe(const PullOptions& options, const Source& source, const std::string& target,
                     const Downloaded& result) {
  std::string text =
      result.was_there
          ? source.name + " is there already (" + formatSize(result.bytes) + "): " + target + "\n"
          : "Downloaded " + source.name + " (" + formatSize(result.bytes) + ") to " + target + "\n";
  text +=
      result.checked_by == CheckedBy::kUser     ? "Its SHA-256 is the one that was given.\n"
      : result.checked_by == CheckedBy::kServer ? "Its SHA-256 is the one that the server says.\n"
      : result.was_there                        ? ""
                         : "Not verified: the server gave no checksum, so only the length and the "
                           "GGUF structure were checked." +
                               (result.sha256.empty() ? "" : " SHA-256: " + result.sha256) + "\n";
  if (!result.missing.empty()) {
    return text + "This build cannot run it: " + result.missing + "\n";
  }
  return text + "\n  oriel chat " + modelWord(options, source, target) + "\n";
}

Download downloadOf(const PullOptions& options, const Source& source) {
  Download wanted;
  wanted.title = source.name;
  wanted.url = source.url;
  wanted.target = targetOf(options, source);
  wanted.sha256 = lowerCase(options.sha256);
  wanted.expected_bytes = source.bytes;
  wanted.retries = options.retries;
  wanted.verbose = options.verbose;
  wanted.again = again(options);
  return wanted;
}

/// Each part on its own, so that a stop loses none; then all of them are opened as one model.
Downloaded downloadParts(const PullOptions& options, const Source& source, std::string* first) {
  const std::vector<std::string> files = allParts(source.file);
  const std::vector<std::string> urls = allParts(source.url);
  Download wanted = downloadOf(options, source);
  const std::string folder = wanted.target.substr(0, wanted.target.size() - source.file.size());
  const bool named = folder + source.file != wanted.target;
  if (files.size() != urls.size() || named || !options.sha256.empty()) {
    throw Failure{kExitUsage, source.name + " has " + std::to_string(files.size()) +
                                  " files: name the address of one, a folder with --to, and no "
                                  "--sha256"};
  }
  *first = folder + files.front();
  wanted.is_part = true;
  wanted.expected_bytes = 0;
  Downloaded all;
  all.was_there = true;
  all.checked_by = CheckedBy::kServer;
  for (size_t i = 0; i < files.size(); ++i) {
    wanted.title = source.name + " " + std::to_string(i + 1) + "/" + std::to_string(files.size());
    wanted.url = urls[i];
    wanted.target = folder + files[i];
    const Downloaded got = download(wanted);
    all.was_there = all.was_there && got.was_there;
    all.bytes += got.bytes;
    all.resumed_from += got.resumed_from;
    all.checked_by = std::min(all.checked_by, got.checked_by);
  }
  const std::string why_not = inspected(*first, &all.missing);
  if (!why_not.empty()) {
    throw Failure{kExitFailed, "the parts are not a complete model (" + why_not +
                                   "): remove them, or try another address"};
  }
  return all;
}

int runPull(const PullOptions& options) {
  const Source source = sourceOf(options.what);
  std::string target;
  Downloaded result;
  if (partNumber(source.file) != 0) {
    result = downloadParts(options, source, &target);
  } else {
    const Download wanted = downloadOf(options, source);
    target = wanted.target;
    result = download(wanted);
  }
  if (options.json) {
    printJson(resultJson(source, target, result));
  } else {
    printText(describe(options, source, target, result));
  }
  return kExitDone;
}

CLI::Validator sha256Text() {
  return CLI::Validator(
      [](const std::string& text) {
        return isSha256(text) ? std::string()
                              : "'" + text + "' is not a SHA-256: write 64 hexadecimal digits";
      },
      "");
}

}  // namespace

Command addPullCommand(CLI::App* program) {
  auto options = std::make_shared<PullOptions>();
  PullOptions* const raw = options.get();
  CLI::App* app = program->add_subcommand("pull", "Download a model");
  app->footer(
      "An interrupted download continues from its last byte. Needs the program curl.\n"
      "Examples:\n"
      "  oriel pull smollm2-135m\n"
      "  oriel pull bartowski/SmolLM2-360M-Instruct-GGUF:Q4_K_M\n"
      "  oriel pull https://example.org/model.gguf --to .");
  app->add_option(
         "NAME|URL", raw->what,
         "A model that `oriel models` lists, or ORG/REPO of huggingface.co (HF_TOKEN is sent "
         "there), both with :q8_0 or the like for another quantisation; or the address of "
         "a GGUF file")
      ->type_name("")
      ->required();
  app->add_option("--to", raw->to,
                  "A folder, or the file to make (default: the folder that the environment "
                  "variable ORIEL_MODELS names, else one among the user's data)")
      ->type_name("DIR|FILE");
  app->add_option("--sha256", raw->sha256,
                  "The required checksum of the file (default: the server's, if it sends one)")
      ->type_name("HEX")
      ->check(sha256Text());
  app->add_option("--retries", raw->retries,
                  "Attempts after a connection that broke and got no further (default 4)")
      ->type_name("N")
      ->transform(wholeNumber(0, 1000));
  addCommonOptions(app, raw, Uses::kText);
  return {app, [options] { return runPull(*options); }};
}

namespace {

struct RemoveOptions : CommonOptions {
  std::string name;
  bool yes = false;
};

bool agrees(const std::string& question) {
  if (!isTerminal(Stream::kIn) || !isTerminal(Stream::kErr)) {
    throw Failure{kExitUsage, "stdin is not a terminal: add --yes to delete the file"};
  }
  tell(question + " [y/N] ");
  LineReader reader;
  std::string answer;
  return reader.next(&answer) == LineReader::Result::kLine &&
         (answer == "y" || answer == "Y" || answer == "yes");
}

int runRemove(const RemoveOptions& options) {
  const auto path = storedModel(options.name);
  if (!path) {
    throw Failure{kExitFailed, "no model " + options.name + " is stored in " +
                                   modelsFolder().u8string() +
                                   ": `oriel list` names those that are"};
  }
  const uint64_t bytes = bytesOfModel(*path);
  std::error_code error;
  const std::string what = oneLine(*path) + " (" + formatSize(bytes) + ")";
  if (!options.yes && !agrees("Delete " + what + "?")) {
    tell("Nothing was deleted\n");
    return kExitCancelled;
  }
  for (const std::string& file : allParts(*path)) {
    (void)std::filesystem::remove(std::filesystem::u8path(file), error);
    if (error) {
      throw Failure{kExitFailed, file + " cannot be deleted (" + error.message() +
                                     "): check the permissions of its folder"};
    }
  }
  if (options.json) {
    printJson({{"removed", *path}, {"file_bytes", bytes}});
  } else {
    print("Deleted " + what + "\n");
  }
  return kExitDone;
}

}  // namespace

Command addRemoveCommand(CLI::App* program) {
  auto options = std::make_shared<RemoveOptions>();
  CLI::App* app = program->add_subcommand("rm", "Delete a model that `oriel pull` downloaded");
  app->footer("Example:\n  oriel rm smollm2-135m");
  app->add_option("NAME", options->name, "As `oriel list` shows it")->type_name("")->required();
  app->add_flag("-y,--yes", options->yes, "Do not ask");
  addCommonOptions(app, options.get(), Uses::kText);
  return {app, [options] { return runRemove(*options); }};
}

}  // namespace cli
