// Runs faults one after the other in this process.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "faults/faults.h"

namespace oriel_internal::test {

struct Outcome {
  bool fired = false;
  oriel_status status = ORIEL_OK;
  bool lost = false;
  double ms = 0;         ///< of the call that was failed
  std::string problems;  ///< "" if all is as it should be
};

/// Every site of every phase, without a fault.
struct Count {
  size_t phase;
  Sites sites;
};

class Runner {
 public:
  explicit Runner(const Device& device);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs the phases of faults that match this text without faults, and stores the results. False, with a line on
  /// stderr: they fail.
  bool count(const std::string& only);
  const std::vector<Count>& counts() const { return counts_; }
  /// In the order in which it is best to carry them out.
  std::vector<Fault> faults() const;

  Outcome run(const Fault& fault);

 private:
  struct Twin {
    Point before, after;
    std::vector<int32_t> proof;
  };

  bool prepare(size_t phase);
  oriel_status runPhase(size_t phase);
  bool endWorld(std::string* problems);
  /// Ids that follow, from wherever the phase has left the world.
  std::vector<int32_t> proof();
  void expectLost(Outcome* outcome);
  void expectUnchanged(const Fault& fault, const Twin& twin, Outcome* outcome);
  void expectWorksAgain(const Fault& fault, const Twin& twin, Outcome* outcome);

  const Device device_;
  std::unique_ptr<World> world_;
  std::vector<Count> counts_;
  std::map<size_t, Twin> twins_;
};

}  // namespace oriel_internal::test
