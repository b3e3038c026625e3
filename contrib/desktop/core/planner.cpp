#include "planner.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "board.h"

namespace desktop {
namespace {

/// More than any model needs, but far from overflow.
constexpr uint64_t kNoLimitBytes = uint64_t{1} << 46;

uint64_t mostBytes(PlanSettings settings) {
  settings.memory_bytes = kNoLimitBytes;
  if (settings.kv == "auto") {
    settings.kv = "f16";
  }
  const oriel::Options options = libraryOptions(settings);
  oriel_plan plan = ORIEL_PLAN_INIT;
  return oriel_plan_file(settings.model_path.c_str(), &options, &plan) == ORIEL_OK
             ? plan.total_bytes
             : 0;
}

}  // namespace

PlanPreview planNow(const PlanSettings& settings) {
  PlanPreview preview;
  preview.settings = settings;
  LastError last_error;
  oriel::Options options = libraryOptions(settings);
  last_error.listen(&options);
  preview.plan = ORIEL_PLAN_INIT;
  const oriel_status status = oriel_plan_file(settings.model_path.c_str(), &options, &preview.plan);
  preview.known = status == ORIEL_OK;
  if (!preview.known) {
    preview.error = last_error.text(status);
    return preview;
  }
  preview.least_bytes = preview.plan.minimum_bytes;
  preview.most_bytes = std::max(mostBytes(settings), preview.least_bytes);
  return preview;
}

Planner::Planner(std::function<void()> changed) : changed_(std::move(changed)) {}

void Planner::request(const PlanSettings& settings) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    wanted_ = settings;
    if (asked_) {
      return;  // the waiting job uses the new request
    }
    asked_ = true;
  }
  worker_.post([this] { plan(); });
}

void Planner::plan() {
  PlanSettings wanted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    wanted = wanted_;
    asked_ = false;
  }
  PlanPreview made = planNow(wanted);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    preview_ = std::move(made);
  }
  changed_();
}

PlanPreview Planner::preview() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return preview_;
}

namespace {

/// A command, and the output text that means dark or light.
struct Question {
  const char* command;
  const char* dark;
  const char* light;
};
#if defined(_WIN32)
constexpr Question kQuestions[] = {
    {"reg query HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Themes\\Personalize "
     "/v AppsUseLightTheme 2>nul",
     "0x0", "0x1"}};
#elif defined(__APPLE__)
constexpr Question kQuestions[] = {
    {"defaults read -g AppleInterfaceStyle 2>/dev/null || echo Light", "Dark", "Light"}};
#else
constexpr Question kQuestions[] = {
    {"gdbus call --session --timeout 1 --dest org.freedesktop.portal.Desktop --object-path "
     "/org/freedesktop/portal/desktop --method org.freedesktop.portal.Settings.Read "
     "org.freedesktop.appearance color-scheme 2>/dev/null",
     "uint32 1", "uint32 2"},
    {"gsettings get org.gnome.desktop.interface color-scheme 2>/dev/null", "prefer-dark",
     "prefer-light"}};
#endif

std::string outputOf(const char* command) {
  std::string output;
#ifdef _WIN32
  std::FILE* const pipe = _popen(command, "r");
#else
  std::FILE* const pipe = popen(command, "r");
#endif
  if (pipe != nullptr) {
    char buffer[512];
    const size_t bytes = std::fread(buffer, 1, sizeof(buffer), pipe);
    output.assign(buffer, bytes);
#ifdef _WIN32
    _pclose(pipe);
#else
    pclose(pipe);
#endif
  }
  return output;
}

std::optional<bool> systemIsDark() {
  for (const Question& question : kQuestions) {
    const std::string answer = outputOf(question.command);
    const bool dark = answer.find(question.dark) != std::string::npos;
    if (dark || answer.find(question.light) != std::string::npos) {
      return dark;
    }
  }
  return std::nullopt;
}

}  // namespace

void SystemLook::ask() {
  worker_.post([this] {
    const std::optional<bool> answer = systemIsDark();
    bool other = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      other = answer != dark_;
      dark_ = answer;
    }
    if (other) {
      changed_();
    }
  });
}

std::optional<bool> SystemLook::dark() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return dark_;
}

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::post(std::function<void()> job) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void Worker::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void Worker::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) {
      return;
    }
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace desktop
