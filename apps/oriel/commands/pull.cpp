#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "measure/nearest.h"
#include "models/address.h"
#include "models/catalogue.h"
#include "models/download.h"
#include "models/fetch.h"
#include "models/model_parts.h"
#include "models/model_store.h"
#include "models/repository.h"
#include "models/sha256.h"
#include "options.h"
#include "output.h"
#include "sizes.h"
#include "system.h"
#include "terminal/wrap.h"
#include "validators.h"

namespace cli {
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

}  // namespace cli
