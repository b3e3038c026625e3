// The fault matrix: oriel_fault_matrix --device cpu|vulkan=ICD --model FILE [OPTION...]
//
//   --device vulkan=ICD   the Vulkan driver with this manifest, and no other, behind the layer in --layer FOLDER; two,
//                         for limits that need two: ICD:ICD
//   --on-file             keeps weights on file where possible
//   --recall              turns come back: the phase recall (its faults alone: --only recall:)
//   --kinds LETTERS       v: results of Vulkan, m: functions that are missing, l: limits of a device, a: allocations,
//                         f: calls of the system
//   --take N              N faults, evenly chosen of all; 0: all
//   --only TEXT           faults whose description contains this
//   --jobs N              processes that share the work
//   --results FILE        a line for each fault, for page.py
//   --list                lists the faults, and the number of calls seen
//   --verbose             a line for each fault on stdout
//
// Ends with the line "N passed, N failed". A fault that hangs (Patience), or ends its process, has failed; the others
// go on in a new process.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "faults/file_faults.h"
#include "faults/runner.h"
#include "os/os.h"

namespace oriel_internal::test {
namespace {

/// Limits for detecting a hang: this much computing without output, or this long waiting without computing. Both are
/// independent of other load.
struct Patience {
  double computes_ms, waits_ms;
};
constexpr Patience kInFault = {60000, 20000};
/// Outside a fault, and in a limit: drivers compile everything for the first time, and time limits of devices end.
constexpr Patience kElsewhere = {600000, 120000};
/// In place of a fault's number.
constexpr char kNoFault[] = "999999999";

struct Wanted {
  Device device;
  std::string layer, icd, kinds = "vmlaf", only, results;
  size_t take = 0, jobs = 1;
  bool list = false, verbose = false;
};

bool readOptions(int argc, char** argv, Wanted* options) {
  options->device.timeout_ms = 30000;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (name == "--device") {
      const std::string device = value();
      const bool vulkan = device.rfind("vulkan=", 0) == 0;
      options->icd = vulkan ? device.substr(7) : "";
      options->device.vulkan = vulkan;
    } else if (name == "--model") {
      options->device.model = value();
    } else if (name == "--layer") {
      options->layer = value();
    } else if (name == "--kinds") {
      options->kinds = value();
    } else if (name == "--take") {
      options->take = std::stoul(value());
    } else if (name == "--jobs") {
      options->jobs = std::stoul(value());
    } else if (name == "--only") {
      options->only = value();
    } else if (name == "--results") {
      options->results = value();
    } else if (name == "--on-file") {
      options->device.on_file = "all";
    } else if (name == "--recall") {
      options->device.recall = true;
    } else if (name == "--list") {
      options->list = true;
    } else if (name == "--verbose") {
      options->verbose = true;
    } else {
      std::cerr << "no such option: " << name << "\n";
      return false;
    }
  }
  return !options->device.model.empty();
}

char letterOf(FaultKind kind) {
  return kind == FaultKind::kVulkan       ? 'v'
         : kind == FaultKind::kMissing    ? 'm'
         : kind == FaultKind::kAllocation ? 'a'
                                          : 'f';
}

std::vector<Fault> wanted(const Runner& runner, const Wanted& options) {
  std::vector<Fault> all;
  for (const Fault& fault : runner.faults()) {
    if (options.kinds.find(letterOf(fault.kind)) != std::string::npos &&
        fault.text().find(options.only) != std::string::npos) {
      all.push_back(fault);
    }
  }
  if (options.take == 0 || options.take >= all.size()) {
    return all;
  }
  std::vector<Fault> some;
  for (size_t i = 0; i < options.take; ++i) {
    some.push_back(all[i * all.size() / options.take]);
  }
  return some;
}

// ---- The process that fails ----------------------------------------------------------------------

void tell(int pipe, const std::string& line) {
  const std::string all = line + "\n";
  if (::write(pipe, all.data(), all.size()) != static_cast<ssize_t>(all.size())) {
    _exit(3);
  }
}

std::string onOneLine(std::string text) {
  for (char& c : text) {
    c = c == '\n' || c == '\t' ? ' ' : c;
  }
  return text;
}

size_t vulkanDevices() {
  std::vector<char> json(1 << 16);
  size_t needed = 0;
  (void)oriel_device_describe(nullptr, 0, json.data(), json.size(), &needed);
  const std::string text = json.data();
  size_t all = 0;
  for (size_t at = 0; (at = text.find("\"kind\":", at)) != std::string::npos; ++at) {
    ++all;
  }
  return all - 1;  // the CPU is the last
}

/// Lines to the watching process: "count ...", "begin N TEXT", "end N ...".
int work(const Wanted& options, size_t job, size_t first, int pipe) {
  if (!options.icd.empty()) {
    setenv("VK_ICD_FILENAMES", options.icd.c_str(), 1);
    setenv("VK_DRIVER_FILES", options.icd.c_str(), 1);
    if (loadFaultLayer(options.layer) == nullptr) {
      std::cerr << "the layer cannot be loaded: " << options.layer << "\n";
      return 2;
    }
  }
  Device device = options.device;
  device.folder =
      std::filesystem::temp_directory_path() / ("oriel-faults-" + std::to_string(entropy()));
  std::filesystem::create_directories(device.folder);
  {
    Runner runner(device);
    if (options.kinds != "l" && !runner.count(options.only)) {
      return 2;
    }
    for (const Count& count : runner.counts()) {
      const std::string phase = phases()[count.phase].name + std::string(": ");
      if (phase.find(options.only) == std::string::npos) {
        continue;  // of phases without faults
      }
      tell(pipe, std::string("count\t") + letterOf(count.sites.kind) + "\t" +
                     phases()[count.phase].name + "\t" + count.sites.site + "\t" +
                     std::to_string(count.sites.calls));
    }
    const std::vector<Fault> faults = wanted(runner, options);
    tell(pipe, "faults\t" + std::to_string(faults.size()));
    for (size_t i = job; i < faults.size() && !options.list; i += options.jobs) {
      if (i < first) {
        continue;
      }
      const Fault& fault = faults[i];
      tell(pipe, "begin\t" + std::to_string(i) + "\t" + letterOf(fault.kind) + "\t" +
                     phases()[fault.phase].name + "\t" + fault.site + "\t" + fault.text());
      const Outcome outcome = runner.run(fault);
      char ms[32];
      std::snprintf(ms, sizeof(ms), "%.0f", outcome.ms);
      tell(pipe, "end\t" + std::to_string(i) + "\t" + (outcome.fired ? "1" : "0") + "\t" +
                     std::to_string(outcome.status) + "\t" + (outcome.lost ? "1" : "0") + "\t" +
                     ms + "\t" + onOneLine(outcome.problems));
    }
  }
  if (job == 0 && !options.icd.empty() && options.kinds.find('l') != std::string::npos &&
      !options.list) {
    for (const Limit& limit : limits()) {
      if (limit.devices > vulkanDevices() ||
          std::string(limit.name).find(options.only) == std::string::npos) {
        continue;
      }
      tell(pipe,
           std::string("begin\t") + kNoFault + "\tl\tlimits\t" + limit.name + "\t" + limit.name);
      const std::string problems = limit.check(device);
      tell(pipe, std::string("end\t") + kNoFault + "\t1\t" + std::to_string(limit.comes) + "\t" +
                     (limit.lost ? "1" : "0") + "\t0\t" + onOneLine(problems));
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(device.folder, ignored);
  tell(pipe, "done");
  return 0;
}

// ---- The process that watches --------------------------------------------------------------------

struct Totals {
  size_t passed = 0, failed = 0, not_reached = 0;
  double slowest_ms = 0;
  std::string slowest;
  std::map<std::string, size_t> by_outcome;
  std::set<std::string> counted;
  uint64_t calls = 0;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> parts;
  std::istringstream in(line);
  for (std::string part; std::getline(in, part, '\t');) {
    parts.push_back(part);
  }
  parts.resize(std::max<size_t>(parts.size(), 7));
  return parts;
}

/// Processor time of a process and its threads. 0: it has ended.
double computedMs(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string ignored;
  for (int i = 3; i < 14; ++i) {  // proc(5): the state is field 3, utime 14, stime 15
    fields >> ignored;
  }
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) * 1000 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// A process of a job, and its final state.
class Watch {
 public:
  Watch(const Wanted& options, size_t job, Totals* totals, std::ostream* results)
      : options_(options), job_(job), totals_(totals), results_(results) {}

  void start() {
    int ends[2];
    if (::pipe(ends) != 0) {
      std::perror("pipe");
      std::exit(1);
    }
    std::cout.flush();
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[0]);
      std::exit(work(options_, job_, next_, ends[1]));
    }
    ::close(ends[1]);
    pipe_ = ends[0];
    done_ = false;
    began_ = false;
    hears();
  }
  int pipe() const { return pipe_; }
  bool over() const { return pipe_ < 0; }

  /// Something can be read, or nothing was for a while.
  void look(bool readable) {
    if (readable) {
      readLines();
    } else if (hangs()) {
      ::kill(process_, SIGKILL);
      ended("hangs");
    }
  }

 private:
  void hears() {
    idle_since_ms_ = nowMs();
    told_at_ = last_seen_ = computedMs(process_);
  }

  bool hangs() {
    const double computed = computedMs(process_);
    if (computed != last_seen_) {
      last_seen_ = computed;
      idle_since_ms_ = nowMs();
    }
    const Patience& patience = began_ && kind_ != "l" ? kInFault : kElsewhere;
    return computed - told_at_ > patience.computes_ms ||
           nowMs() - idle_since_ms_ > patience.waits_ms;
  }

  void readLines() {
    char buffer[65536];
    const ssize_t got = ::read(pipe_, buffer, sizeof(buffer));
    if (got <= 0) {
      ended("");
      return;
    }
    hears();
    rest_.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = rest_.find('\n')) != std::string::npos;) {
      take(split(rest_.substr(0, end)));
      rest_.erase(0, end + 1);
    }
  }

  void take(const std::vector<std::string>& parts) {
    if (parts[0] == "count") {
      if (totals_->counted.insert(parts[2] + "\t" + parts[3]).second) {
        totals_->calls += std::stoull(parts[4]);
        *results_ << "count\t" << parts[1] << "\t" << parts[2] << "\t" << parts[3] << "\t"
                  << parts[4] << "\n";
        if (options_.list) {
          std::cout << parts[1] << " " << parts[2] << ": " << parts[3] << " " << parts[4] << "\n";
        }
      }
    } else if (parts[0] == "faults") {
      faults_ = std::stoul(parts[1]);
    } else if (parts[0] == "begin") {
      began_ = true;
      next_ = std::stoul(parts[1]) + 1;
      kind_ = parts[2];
      phase_ = parts[3];
      site_ = parts[4];
      text_ = parts[5];
    } else if (parts[0] == "end") {
      finish(parts);
    } else if (parts[0] == "done") {
      done_ = true;
    }
  }

  void finish(const std::vector<std::string>& parts) {
    began_ = false;
    const double ms = std::stod(parts[5]);
    if (parts[2] == "0" && parts[6].empty()) {
      ++totals_->not_reached;
      return;
    }
    if (ms > totals_->slowest_ms) {
      totals_->slowest_ms = ms;
      totals_->slowest = text_;
    }
    const std::string outcome =
        std::string(oriel_status_text(static_cast<oriel_status>(std::stoi(parts[3])))) +
        (parts[4] == "1" ? ", lost" : "");
    tell(outcome, parts[3] + (parts[4] == "1" ? "L" : ""), parts[6]);
  }

  void tell(const std::string& outcome, const std::string& code, const std::string& problems) {
    ++totals_->by_outcome[outcome];
    *results_ << "fault\t" << kind_ << "\t" << phase_ << "\t" << site_ << "\t" << code << "\t"
              << text_ << "\n";
    ++(problems.empty() ? totals_->passed : totals_->failed);
    if (!problems.empty()) {
      std::cout << "FAILED " << text_ << ": " << outcome << ": " << problems << "\n" << std::flush;
    } else if (options_.verbose) {
      std::cout << text_ << ": " << outcome << "\n";
    }
  }

  void ended(const std::string& why) {
    int status = 0;
    ::waitpid(process_, &status, 0);
    ::close(pipe_);
    pipe_ = -1;
    if (done_ && status == 0) {
      return;
    }
    const std::string how =
        !why.empty()          ? why
        : WIFSIGNALED(status) ? std::string("ends with signal ") + std::to_string(WTERMSIG(status))
                              : "ends with code " + std::to_string(WEXITSTATUS(status));
    if (!began_) {  // at its start or end: not due to a fault
      ++totals_->failed;
      std::cout << "FAILED the process " << how << "\n";
      return;
    }
    began_ = false;
    tell(how, "X", "the process " + how);
    if (next_ < faults_) {
      start();
    }
  }

  const Wanted& options_;
  const size_t job_;
  Totals* const totals_;
  std::ostream* const results_;
  pid_t process_ = -1;
  int pipe_ = -1;
  size_t next_ = 0, faults_ = 0;
  bool done_ = false, began_ = false;
  double idle_since_ms_ = 0;  ///< since when it has not computed
  double told_at_ = 0,
         last_seen_ = 0;  ///< processor time at its last output, and now
  std::string rest_, kind_, phase_, site_, text_;
};

int watch(const Wanted& options) {
  std::ofstream file(options.results.empty() ? "/dev/null" : options.results);
  Totals totals;
  std::vector<Watch> jobs;
  for (size_t job = 0; job < options.jobs; ++job) {
    jobs.emplace_back(options, job, &totals, &file);
  }
  for (Watch& job : jobs) {
    job.start();
  }
  for (bool more = true; more;) {
    more = false;
    for (Watch& job : jobs) {
      if (!job.over()) {
        struct pollfd wait = {job.pipe(), POLLIN, 0};
        const int ready = ::poll(&wait, 1, 50);
        job.look(ready > 0);
        more = more || !job.over();
      }
    }
  }
  std::cout << totals.counted.size() << " sites, " << totals.calls
            << " calls in an undisturbed run\n";
  for (const auto& [outcome, count] : totals.by_outcome) {
    std::cout << "  " << count << " " << outcome << "\n";
  }
  if (totals.not_reached != 0) {
    std::cout << "  " << totals.not_reached << " not reached this time\n";
  }
  std::cout << "slowest: " << totals.slowest_ms << " ms, " << totals.slowest << "\n"
            << totals.passed << " passed, " << totals.failed << " failed\n";
  return totals.failed == 0 && (options.list || totals.passed > 0) ? 0 : 1;
}

}  // namespace
}  // namespace oriel_internal::test

int main(int argc, char** argv) {
  oriel_internal::test::Wanted options;
  return oriel_internal::test::readOptions(argc, argv, &options)
             ? oriel_internal::test::watch(options)
             : 2;
}
