#include "cpu/cpu_executor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "cpu/kernels.h"
#include "cpu/ops.h"
#include "cpu/pool.h"
#include "cpu/products.h"
#include "exec/host_executor.h"
#include "exec/sampler.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kDefaultThreads = 8;  // default limit: memory bandwidth dominates

/// Every thread of the team walks the op list, and skips work that others finished while it was delayed.
/// Large ops are divided into pieces. Small ops run on thread 0, or on every thread if all of them need
/// the result: an op that feeds a product of one token. Staged
/// activations are in the upload ring, which is otherwise unused while ops run.
class CpuExecutor final : public HostExecutor {
 public:
  CpuExecutor(const Plan& plan, const ExecutorOptions& options, SimdTarget target)
      : HostExecutor(plan, options),
        target_(target),
        matmul_(matmulKernels(target, options.activation_bits)),
        small_(smallKernels(target)),
        state_(stateKernels(target)),
        fetch_(options.experts),
        products_(*this, &pool_, matmul_),
        experts_(&pool_, matmul_, small_),
        attention_(&pool_, target),
        states_(&pool_, state_) {
    // More threads than cores would wait for each other, but tests may request them.
    pool_.start(
        options.cpu_threads != 0 ? options.cpu_threads : std::min(allowedCores(), kDefaultThreads),
        options.cpu_threads == 0);
  }

  Status finishLoad() override {
    uint32_t units = 0;
    uint32_t private_cols = 0;
    uint64_t least_ring = 0;
    for (uint32_t list = 0; list < kStepLists; ++list) {
      for (uint32_t n = 0; n < plan_.n_ops[list]; ++n) {
        const Op& op = plan_.ops[list][n];
        if (op.kind == OpKind::kMatmul) {
          units = std::max(units, op.push.matmul.units);
        }
        if (feedsMatmul(plan_.ops[list], plan_.n_ops[list], n, 1)) {
          const uint32_t cols = opTraits(op.kind).columns(op).end;
          private_cols = std::max(private_cols, static_cast<uint32_t>(alignUp(cols, kUnit)));
        }
        if (op.kind == OpKind::kExpertMatmul) {
          least_ring = std::max(least_ring,
                                ExpertProducts::leastRing(op.weights, op.push.expert_matmul.units));
        }
      }
    }
    const uint64_t room = plan_.upload.size_bytes;
    products_.setRing(at(plan_.upload), room, units, private_cols);
    experts_.setRing(at(plan_.upload), room);
    if (std::max(Products::leastRing(units), least_ring) > room) {
      return log_.fail(ORIEL_ERROR_INTERNAL, "the upload ring holds no row of %u values",
                       units * kUnit);
    }
    return kOk;
  }

  Status giveBack(ArenaSet arenas) override {
    pool_.settle();
    return HostExecutor::giveBack(arenas);
  }

  Status run(StepRun what, const StopCheck& stop) override {
    if (what != StepRun::kHead && stop()) {
      return ORIEL_ERROR_CANCELLED;
    }
    if (mustCheck()) {
      pool_.run([](void* self, uint32_t thread) { static_cast<CpuExecutor*>(self)->check(thread); },
                this);
      ORIEL_TRY(prepared_->endCheck(log_));
    }
    what_ = what;
    stop_ = &stop;
    ended_ = kOk;
    stopped_at_.store(UINT32_MAX, std::memory_order_relaxed);
    pool_.run([](void* self, uint32_t thread) { static_cast<CpuExecutor*>(self)->walk(thread); },
              this);
    return ended_;
  }

  const char* driverName() const override { return simdTargetName(target_); }

 private:
  struct Walk {
    uint32_t thread;
    const Op* ops;
    uint32_t n_ops;
    uint32_t rows;          ///< tokens, or outputs
    bool apart;             ///< each belongs to a different session and is computed as if alone
    uint32_t first_number;  ///< of op 0 among all ops of the run
  };

  /// How a kind of op runs: row by row on single threads, or on all threads together. A row is written to
  /// its place in the output at `out`.
  struct Way {
    void (CpuExecutor::*row)(const Op& op, uint32_t row, float* out) const;
    void (CpuExecutor::*shared)(const Walk& walk, const Op& op);
  };
  static const Way kWays[kOpKinds];
  static const Way& wayOf(const Op& op) { return kWays[static_cast<uint32_t>(op.kind)]; }

  StepBlock block() const { return StepBlock(at(plan_.step)); }

  // Checks prepared weights, block by block.
  void check(uint32_t thread) {
    for (uint32_t block = 0; (block = pool_.claim(thread)) < prepared_->blockCount();) {
      prepared_->checkBlock(block);
    }
    pool_.sync(thread);
  }

  uint32_t claim(const Walk& walk) { return pool_.claim(walk.thread); }
  void sync(const Walk& walk) { pool_.sync(walk.thread); }

  void walk(uint32_t thread) {
    const StepRun what = what_;
    // A copy: a worker that missed the run's last sections must not look at the next one's block.
    const StepHeader header = block().header();
    if (hasBody(what) &&
        !walkList(thread, bodyOf(what), bodyOps(plan_, what), header.n_tokens, 0)) {
      return;
    }
    if (hasHead(what)) {
      const StepList list = headOf(what, header.n_outputs);
      const uint32_t n_ops = plan_.n_ops[static_cast<uint32_t>(list)];
      (void)walkList(thread, list, n_ops, header.n_outputs, 1u << 30);
    }
    if (what == StepRun::kChunkNorms) {
      (void)walkList(thread, StepList::kHead, plan_.norm_ops, header.n_outputs, 1u << 30);
    }
  }

  // False if the run must end.
  bool walkList(uint32_t thread, StepList list, uint32_t n_ops, uint32_t rows,
                uint32_t first_number) {
    const uint32_t i = static_cast<uint32_t>(list);
    const bool is_head = isHead(list);
    const Walk walk = {thread, plan_.ops[i], n_ops, rows, isBatch(list), first_number};
    for (uint32_t n = 0; n < walk.n_ops;) {
      n = runFrom(walk, n);
      const uint32_t number = first_number + n;
      if (thread == 0) {
        if (ended_.ok() && !is_head && (*stop_)()) {
          ended_ = ORIEL_ERROR_CANCELLED;
        }
        if (!ended_.ok()) {
          stopped_at_.store(number, std::memory_order_relaxed);
        }
      }
      sync(walk);
      // Thread 0 may be past the next op and have stopped there; all threads must leave at the same op.
      if (stopped_at_.load(std::memory_order_relaxed) <= number) {
        return false;
      }
    }
    return true;
  }

  // Runs ops from `n` on that need no synchronisation. Returns the index of the next op.
  uint32_t runFrom(const Walk& walk, uint32_t n) {
    const Op& op = walk.ops[n];
    if (feedsNext(walk, n)) {
      return matmuls(walk, n + 1, &op);
    }
    if (op.kind == OpKind::kMatmul) {
      return matmuls(walk, n, nullptr);
    }
    if (feedsExperts(walk.ops, walk.n_ops, n, ExpertGroup::kMostStacks)) {
      return expertMatmuls(walk, n + 1, &op);
    }
    if (op.kind == OpKind::kExpertMatmul) {
      return expertMatmuls(walk, n, nullptr);
    }
    const Way& way = wayOf(op);
    if (way.shared != nullptr) {
      // A thread that missed the section must not read the step block: the caller may be filling the next one.
      if (pool_.present(walk.thread)) {
        (this->*way.shared)(walk, op);
      }
      return n + 1;
    }
    const uint32_t rows = rowsOf(walk, op);
    if (rows > 1) {
      for (uint32_t row = claim(walk); row < rows; row = claim(walk)) {
        (this->*way.row)(op, row, floats(op, kOpOut));
      }
      return n + 1;
    }
    // One thread runs the following small ops, in order, up to the next matmul.
    do {
      const Op& next = walk.ops[n];
      if (walk.thread == 0 && rowsOf(walk, next) != 0) {
        (this->*wayOf(next).row)(next, 0, floats(next, kOpOut));
      }
      ++n;
    } while (n < walk.n_ops && opTraits(walk.ops[n].kind).small && !feedsNext(walk, n) &&
             rowsOf(walk, walk.ops[n]) == 1);
    return n;
  }

  static uint32_t rowsOf(const Walk& walk, const Op& op) {
    if (opTraits(op.kind).once) {
      const bool of_all = op.kind == OpKind::kTopBlocks || op.kind == OpKind::kTopTokens;
      return of_all && op.push.top.all_outputs != 0 ? walk.rows : 1;
    }
    return op.kind == OpKind::kGatedActivation ? walk.rows * op.push.gated_activation.rows_per_token
           : op.kind == OpKind::kExpertBias    ? walk.rows * op.push.expert_bias.n_used
                                               : walk.rows;
  }

  // Every thread computes its own input of the product after op `n`.
  bool feedsNext(const Walk& walk, uint32_t n) const {
    return products_.privateRows() && feedsMatmul(walk.ops, walk.n_ops, n, walk.rows);
  }

  // ---- Rows ----

  void rmsNorm(const Op& op, uint32_t row, float* out) const {
    const RmsNormPush& p = op.push.rms_norm;
    const uint32_t source = p.of_outputs != 0 ? block().token(row).output : row;
    small_.rmsNorm(p, floats(op, 0) + uint64_t{source} * p.in_stride + p.first, floats(op, 3),
                   p.has_factor != 0 ? *floats(op, 4) : 1.0f,
                   out + uint64_t{row} * p.out_stride + p.out_first);
  }

  void addBias(const Op& op, uint32_t row, float* out) const {
    const AddBiasPush& p = op.push.add_bias;
    const uint64_t at = uint64_t{row} * p.out_stride + p.out_first;
    const float number = p.change == kChangeGated ? block().gate(row, p) : p.limit;
    small_.change(floats(op, 0) + (p.change == kChangeAddRows ? at : 0), p.change, number, p.cols,
                  out + at);
  }

  void pool(const Op& op, uint32_t row, float*) const { poolText(op, block(), row); }

  void attentionMerge(const Op& op, uint32_t row, float* out) const {
    const AttentionMergePush& p = op.push.attention_merge;
    const uint64_t in_stride = uint64_t{p.n_heads} * p.splits * (p.head_dim + kPartialExtra);
    small_.attentionMerge(p, floats(op, 0) + row * in_stride, 0, p.n_heads,
                          out + uint64_t{row} * p.out_stride);
  }

  void gatedActivation(const Op& op, uint32_t row, float* out) const {
    const GatedActivationPush& p = op.push.gated_activation;
    small_.gatedActivation(p, floats(op, 0) + uint64_t{row} * p.in_stride, 0, p.cols,
                           out + uint64_t{row} * p.out_stride);
  }

  void shortConv(const Op& op, uint32_t row, float* out) const {
    const ShortConvPush& p = op.push.short_conv;
    ShortConvTask task = shortConvTask(p, block(), row, floats(op, 0), floats(op, 3));
    task.weights = floats(op, 4);
    task.out = out + uint64_t{row} * p.out_stride;
    small_.shortConv(task);
  }

  void softCap(const Op& op, uint32_t row, float* out) const {
    const SoftCapPush& p = op.push.soft_cap;
    small_.softCap(p.cap, p.cols, out + uint64_t{row} * p.stride);
  }

  void topBlocks(const Op& op, uint32_t row, float*) const { findTopBlocks(op, block(), row); }
  void topTokens(const Op& op, uint32_t row, float*) const { findTopTokens(op, block(), row); }
  void keepLogits(const Op& op, uint32_t row, float*) const { keepOutput(op, block(), row); }

  void embed(const Op& op, uint32_t t, float* out) const {
    const EmbedPush& p = op.push.embed;
    const WeightRows rows = {op.weights, words(op, 0), p.group_words, p.side_word};
    const uint32_t row = embeddedRow(p, block(), t);
    if (row >= p.rows) {
      return;
    }
    out += uint64_t{t} * p.out_stride;
    for (uint32_t c = 0; c < p.cols; c += kUnit) {
      float values[kUnit];
      rows.unpack(row, c / kUnit, values);
      for (uint32_t i = 0; i < std::min(kUnit, p.cols - c); ++i) {
        const float value = p.scale * values[i];
        out[c + i] = p.accumulate != 0 ? out[c + i] + value : value;
      }
    }
  }

  void tail(const Op& op, uint32_t, float* out) const {
    const TailPush& p = op.push.tail;
    std::memmove(out, floats(op, 0) + uint64_t{block().header().tail} * p.stride,
                 p.cols * sizeof(float));
  }

  // ---- States ----

  StateInputsTask stateInputsTask(const Op& op, uint32_t first) const {
    StateInputsTask task;
    task.push = op.push.state_inputs;
    task.in = floats(op, 0) + uint64_t{first} * task.push.in_stride;
    task.state = stepState(op, task.push, first);
    task.taps = floats(op, 4);
    task.gates = floats(op, 5);
    task.out = floats(op, kOpOut) + uint64_t{first} * task.push.out_stride;
    return task;
  }
  void stateInputs(const Walk& walk, const Op& op) {
    if (walk.apart) {
      const auto taskOf = [&](uint32_t t) { return stateInputsTask(op, t); };
      return states_.inputsApart(op.push.state_inputs, walk.rows, taskOf, walk.thread);
    }
    StateInputsTask task = stateInputsTask(op, 0);
    task.n_tokens = walk.rows;
    states_.inputs(task, walk.thread);
  }

  StateScanTask stateScanTask(const Op& op, uint32_t first) const {
    StateScanTask task;
    const StateScanPush& p = task.push = op.push.state_scan;
    task.in = floats(op, 0) + uint64_t{first} * p.in_stride;
    task.state = stepState(op, p, first);
    task.skip = p.delta != 0 ? nullptr : floats(op, 4) + 2 * p.heads;
    task.out = floats(op, kOpOut) + uint64_t{first} * p.out_stride;
    return task;
  }
  void stateScan(const Walk& walk, const Op& op) {
    if (walk.apart) {
      const auto taskOf = [&](uint32_t t) { return stateScanTask(op, t); };
      return states_.scanApart(op.push.state_scan, walk.rows, taskOf, walk.thread);
    }
    StateScanTask task = stateScanTask(op, 0);
    task.n_tokens = walk.rows;
    states_.scan(task, walk.thread);
  }

  void gatedNorm(const Op& op, uint32_t row, float* out) const {
    const GatedNormPush& p = op.push.gated_norm;
    if (p.gate == kGateStep) {
      const float gate = block().gate(p.of_outputs != 0 ? block().token(row).output : row, p);
      const float* const in = floats(op, 0) + uint64_t{row} * p.in_stride;
      std::transform(in, in + p.cols, out + uint64_t{row} * p.out_stride,
                     [gate](float x) { return gate * x; });
      return;
    }
    state_.gatedNorm(p, floats(op, 0) + uint64_t{row} * p.in_stride,
                     floats(op, 3) + uint64_t{row} * p.gate_stride + p.gate_first,
                     p.has_norm != 0 ? floats(op, 4) : nullptr, out + uint64_t{row} * p.out_stride);
  }

  // ---- Experts ----

  void route(const Op& op, uint32_t t, float*) const {
    const RoutePush& p = op.push.route;
    routeToken(p, floats(op, 0) + uint64_t{t} * p.in_stride,
               p.has_bias != 0 ? floats(op, 3) : nullptr, t, Routes(words(op, kOpOut), p.routes));
  }

  void sortRoutes(const Op& op, uint32_t, float*) const {
    const SortRoutesPush& p = op.push.sort_routes;
    oriel_internal::sortRoutes(p, block().header().n_tokens, Routes(words(op, kOpOut), p.routes));
  }

  void expertCombine(const Op& op, uint32_t t, float* out) const {
    const ExpertCombinePush& p = op.push.expert_combine;
    const Routes routes(words(op, 3), p.routes);
    const uint32_t first = t * p.n_used;
    const float* rows[kMaxExpertsUsed];
    for (uint32_t k = 0; k < p.n_used; ++k) {
      rows[k] = floats(op, 0) + uint64_t{routes.place[first + k]} * p.in_stride;
    }
    small_.addWeighted(rows, routes.weight + first, p.n_used, p.cols, p.accumulate != 0,
                       out + uint64_t{t} * p.out_stride + p.out_first);
  }

  // Computes place `row`.
  void expertBias(const Op& op, uint32_t row, float* out) const {
    const ExpertBiasPush& p = op.push.expert_bias;
    const Routes routes(words(op, 3), p.routes);
    const uint32_t route = routes.route_at[row];
    const uint64_t expert = routes.expert[route];
    if (p.change == kChangeGated) {
      const float gate = block().gate(route / p.n_used, p);
      small_.change(&gate, kChangeTimes, 0, p.cols,
                    out + uint64_t{row} * p.out_stride + p.out_first);
      return;
    }
    small_.change(floats(op, 0) + expert * (p.change == kChangeAdd ? p.cols : 1), p.change, 0,
                  p.cols, out + uint64_t{row} * p.out_stride + p.out_first);
  }

  // Called by the thread that called run(), while the others wait.
  void fetchExperts(const Walk& walk, const Op& op) {
    if (walk.thread == 0) {
      ended_ = fetch_->fetch(op.push.fetch_experts, block().header().n_tokens, words(op, 0),
                             words(op, kOpOut), this);
    }
  }

  // Runs a group of expert products from `first` on, fed by `activation` if not null.
  uint32_t expertMatmuls(const Walk& walk, uint32_t first, const Op* activation) {
    const uint32_t end = endOfExperts(walk.ops, walk.n_ops, first, ExpertGroup::kMostStacks);
    const Op& head = walk.ops[first];
    ExpertGroup group;
    for (uint32_t n = first; n < end; ++n) {
      const Op& op = walk.ops[n];
      ExpertStack& stack = group.stacks[group.n_stacks++];
      stack.push = op.push.expert_matmul;
      stack.type = op.weights;
      stack.weights = words(op, 0);
      stack.out = floats(op, kOpOut);
      stack.slots = stack.push.has_slots != 0 ? words(op, kExpertSlots) : nullptr;
    }
    group.routes = Routes(words(head, kExpertRoutes), head.push.expert_matmul.routes);
    group.n_tokens = walk.rows;
    group.apart = walk.apart;
    group.in = floats(head, kMatmulInput);
    if (activation != nullptr) {
      group.activation = &activation->push.gated_activation;
      group.gate_up = floats(*activation, 0);
    }
    experts_.run(group, walk.thread);
    return end;
  }

  // ---- Products ----

  // Runs matmuls from `first` on that read the same vectors, fed by `producer` if not null.
  uint32_t matmuls(const Walk& walk, uint32_t first, const Op* producer) {
    const uint32_t end = endOfMatmuls(walk.ops, walk.n_ops, first);
    const float* in = floats(walk.ops[first], kMatmulInput);
    if (producer != nullptr && pool_.present(walk.thread)) {
      float* out = floats(*producer, kOpOut);
      if (walk.thread != 0) {
        out = products_.privateInput(walk.thread, opTraits(producer->kind).columns(*producer).end);
      }
      (this->*wayOf(*producer).row)(*producer, 0, out);
      in = out;
    }
    products_.run({walk.ops + first, end - first, in, walk.rows, walk.apart}, walk.thread);
    return end;
  }

  // ---- Attention ----

  void ropeAppend(const Walk& walk, const Op& op) {
    RopeAppendTask task{block()};
    task.push = op.push.rope_append;
    task.k_format = op.k_format;
    task.v_format = op.v_format;
    task.qkv = floats(op, 0);
    task.norms = op.n_bindings > kRopeNorms ? floats(op, kRopeNorms) : nullptr;
    task.queries = floats(op, 2);
    task.keys = words(op, 3);
    task.values = words(op, 4);
    attention_.ropeAppend(task, walk.rows, walk.thread);
  }

  void attention(const Walk& walk, const Op& op) {
    AttentionTask task{block()};
    task.push = op.push.attention;
    task.k_format = op.k_format;
    task.v_format = op.v_format;
    task.queries = floats(op, 0);
    task.keys = words(op, 3);
    task.values = words(op, 4);
    task.more_scores = op.n_bindings > kMoreScores ? floats(op, kMoreScores) : nullptr;
    task.out = floats(op, 2);
    task.n_tokens = walk.rows;
    task.apart = walk.apart;
    attention_.attention(task, walk.thread);
  }

  // ---- Latent attention ----

  void headMatmul(const Walk& walk, const Op& op) {
    HeadTask task;
    task.push = op.push.head_matmul;
    task.type = op.weights;
    task.weights = words(op, 0);
    task.in = floats(op, kMatmulInput);
    task.out = floats(op, kOpOut);
    task.n_tokens = walk.rows;
    task.apart = walk.apart;
    runHeads(task, matmul_, {at(plan_.upload), plan_.upload.size_bytes}, &pool_, walk.thread);
  }

  void latentAppend(const Walk& walk, const Op& op) {
    LatentAppendTask task{block()};
    task.push = op.push.latent_append;
    task.format = op.k_format;
    task.heads = floats(op, 0);
    task.queries = floats(op, kOpOut);
    task.memory = words(op, 3);
    task.vectors = floats(op, 4);
    attention_.latentAppend(task, walk.rows, walk.thread);
  }

  void latentAttention(const Walk& walk, const Op& op) {
    LatentAttentionTask task{block()};
    task.push = op.push.latent_attention;
    task.format = op.k_format;
    task.queries = floats(op, 0);
    task.memory = words(op, 3);
    task.out = floats(op, kOpOut);
    task.n_tokens = walk.rows;
    attention_.latentAttention(task, walk.apart, walk.thread);
  }

  void hadamard(const Walk& walk, const Op& op) {
    attention_.hadamard(op.push.hadamard, floats(op, kOpOut), walk.rows, walk.thread);
  }

  const SimdTarget target_;
  const MatmulKernels& matmul_;
  const SmallKernels& small_;
  const StateKernels& state_;
  StepRun what_ = StepRun::kDecode;
  const StopCheck* stop_ = nullptr;               // of the present run; polled by thread 0
  Status ended_ = kOk;                            // reason of an early end
  std::atomic<uint32_t> stopped_at_{UINT32_MAX};  // index of the op after which the team stopped
  ExpertFetch* const fetch_;
  Products products_;
  ExpertProducts experts_;
  AttentionOps attention_;
  StateOps states_;
  Pool pool_;  // last: its threads end before anything they use
};
static_assert(sizeof(CpuExecutor) <= kExecutorObjectBytes, "raise kExecutorObjectBytes");

// In the order of OpKind.
const CpuExecutor::Way CpuExecutor::kWays[kOpKinds] = {
    {&CpuExecutor::embed, nullptr},
    {&CpuExecutor::rmsNorm, nullptr},
    {nullptr, nullptr},  // matmuls()
    {&CpuExecutor::addBias, nullptr},
    {nullptr, &CpuExecutor::ropeAppend},
    {nullptr, &CpuExecutor::attention},
    {&CpuExecutor::attentionMerge, nullptr},
    {&CpuExecutor::gatedActivation, nullptr},
    {&CpuExecutor::shortConv, nullptr},
    {&CpuExecutor::softCap, nullptr},
    {&CpuExecutor::topBlocks, nullptr},
    {&CpuExecutor::topTokens, nullptr},
    {&CpuExecutor::route, nullptr},
    {&CpuExecutor::sortRoutes, nullptr},
    {nullptr, nullptr},  // expertMatmuls()
    {&CpuExecutor::expertCombine, nullptr},
    {nullptr, &CpuExecutor::fetchExperts},
    {&CpuExecutor::tail, nullptr},
    {nullptr, &CpuExecutor::stateInputs},
    {nullptr, &CpuExecutor::stateScan},
    {&CpuExecutor::gatedNorm, nullptr},
    {nullptr, &CpuExecutor::headMatmul},
    {nullptr, &CpuExecutor::latentAppend},
    {nullptr, &CpuExecutor::latentAttention},
    {nullptr, &CpuExecutor::hadamard},
    {&CpuExecutor::keepLogits, nullptr},
    {&CpuExecutor::expertBias, nullptr},
    {&CpuExecutor::pool, nullptr},
};

}  // namespace

bool cpuExecutorUsable() {
  SimdTarget target;
  return chooseSimdTarget(kBestSimdTarget, &target);
}

bool cpuGainsFrom8Bits() {
  SimdTarget target;
  return chooseSimdTarget(kBestSimdTarget, &target) && gainsFrom8Bits(target);
}

const char* cpuExecutorDriver() {
  SimdTarget target;
  return chooseSimdTarget(kBestSimdTarget, &target) ? simdTargetName(target) : "";
}

Status createCpuExecutor(const Plan& plan, const ExecutorOptions& options,
                         const ExecutorMemory& memory, Executor** executor) {
  SimdTarget target;
  const uint32_t most = std::min(options.cpu_simd_level, kSimdTargets - 1);
  if (!chooseSimdTarget(static_cast<SimdTarget>(most), &target)) {
    return ORIEL_ERROR_NO_DEVICE;
  }
  CpuExecutor* made = new (memory.object) CpuExecutor(plan, options, target);
  const Status status = made->allocate();
  if (!status.ok()) {
    destroyExecutor(made);
    return status;
  }
  *executor = made;
  return kOk;
}

}  // namespace oriel_internal
