// State of a running template with the lifetime of a block.
#pragma once

#include <utility>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// One nesting level of calls, blocks and expressions.
class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter* run) : run_(run) { ++run->depth_; }
  ~Deeper() { --run_->depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  bool ok() const {
    return run_->depth_ <= run_->world_.limits.depth ||
           run_->fail("it nests deeper than %u levels", run_->world_.limits.depth);
  }

 private:
  Interpreter* const run_;
};

/// A scope below `parent`; restores the previous scope.
class Interpreter::NewScope {
 public:
  NewScope(Interpreter* run, Scope* parent) : run_(run), before_(run->scope_) {
    run->scope_ = Ref<Scope>(make<Scope>(run->heap_, Kind::kScope));
    if (run->scope_) {
      run->scope_->parent = parent;
      retain(parent);
    }
  }
  ~NewScope() { run_->scope_ = before_; }
  NewScope(const NewScope&) = delete;
  NewScope& operator=(const NewScope&) = delete;
  bool ok() const { return static_cast<bool>(run_->scope_) || run_->failMemory(); }

 private:
  Interpreter* const run_;
  const Ref<Scope> before_;
};

}  // namespace oriel_internal::jinja
