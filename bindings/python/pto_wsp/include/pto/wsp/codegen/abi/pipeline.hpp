// Pipelines of an emitted expander: processes that go on in turn, and channels between them.
//
// Each process has a time of its own, in which a task takes the cycles that `submit` gives. Of the processes that can go on, the one that is
// furthest back in time goes on; of several the first. So the order of tasks and tokens is the same in every run. A send to a channel of
// depth d > 0 completes when it was begun, or when the token d before it was taken, whichever is later; for d = 0 sender and receiver meet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "pto/wsp/codegen/abi/plan.hpp"

// What a process is about to do when it returns.
struct PtoWspTurn {
  enum What : uint32_t { TASK, SEND, TAKE, DONE } what = TASK;
  // Of the channel that it sends to, or takes from.
  uint32_t channel = 0;
  // What it sends, or what it has taken.
  int64_t token = 0;
  // Whether there was nothing to take, and nothing will come.
  bool is_closed = false;
  // What its last task takes.
  uint64_t cycles = 0;
};

class PtoWspProcess {
 public:
  virtual ~PtoWspProcess() = default;
  // Goes on up to the next task, send or token.
  virtual int go_on(PtoWspPlan* plan, PtoWspTurn* turn) = 0;

  PtoWspTurn turn;
  uint64_t time = 0;
  bool is_sending = false;
  // The channels that it sends to, a bit for each.
  uint64_t sends = 0;
};

class PtoWspChannel {
 public:
  PtoWspChannel(uint64_t depth, uint64_t latency) : depth_(depth), latency_(latency) {}

  uint32_t senders = 0;

  // A process sends: it waits until there is room, or until the token is taken.
  void send(PtoWspProcess* process) {
    process->is_sending = true;
    pending_.push_back(process);
    admit();
  }

  // When a token could be taken, by who is there since `since`.
  bool next_at(uint64_t since, uint64_t* at) const {
    if (!tokens_.empty()) *at = std::max(since, tokens_.front().time + latency_);
    else *at = since;
    return !tokens_.empty() || (senders == 0 && pending_.empty());
  }

  // The next token, or that there is none any more.
  void take(PtoWspProcess* process) {
    process->turn.is_closed = tokens_.empty();
    if (tokens_.empty()) return;
    const Sent sent = tokens_.front();
    process->time = std::max(process->time, sent.time + latency_);
    process->turn.token = sent.token;
    tokens_.pop_front();
    takes_.push_back(process->time);
    // Only as many as there are places matter.
    if (takes_.size() > depth_) takes_.pop_front();
    if (sent.waits != nullptr) complete(sent.waits, process->time);
    admit();
  }

 private:
  struct Sent {
    int64_t token;
    uint64_t time;
    PtoWspProcess* waits;
  };

  static void complete(PtoWspProcess* process, uint64_t time) {
    process->time = std::max(process->time, time);
    process->is_sending = false;
  }

  // Lets in sends that wait, in the order in which they were begun.
  void admit() {
    while (!pending_.empty() && (depth_ == 0 || tokens_.size() < depth_)) {
      PtoWspProcess* process = pending_.front();
      pending_.pop_front();
      // The place of the token so many before this one is free since it was taken.
      const uint64_t free = depth_ > 0 && sent_ >= depth_ ? takes_[size_t(sent_ - depth_ - taken_before())] : 0;
      const uint64_t time = std::max(process->time, free);
      tokens_.push_back({process->turn.token, time, depth_ == 0 ? process : nullptr});
      ++sent_;
      if (depth_ > 0) complete(process, time);
    }
  }

  // The tokens that were taken before those of which the time is kept.
  uint64_t taken_before() const { return sent_ - tokens_.size() - takes_.size(); }

  uint64_t depth_, latency_, sent_ = 0;
  std::deque<Sent> tokens_;
  std::deque<uint64_t> takes_;
  std::deque<PtoWspProcess*> pending_;
};

// Runs processes until all are done. After a deadlock `plan->waiting` has a bit for each process that waits.
inline int pto_wsp_run_pipeline(PtoWspPlan* plan, const std::vector<PtoWspProcess*>& processes,
                                std::vector<PtoWspChannel>& channels) {
  for (const PtoWspProcess* process : processes)
    for (size_t number = 0; number < channels.size(); ++number) channels[number].senders += process->sends >> number & 1;
  for (;;) {
    PtoWspProcess* next = nullptr;
    uint64_t first = 0;
    plan->waiting = 0;
    for (size_t number = 0; number < processes.size(); ++number) {
      PtoWspProcess* process = processes[number];
      if (process->turn.what == PtoWspTurn::DONE) continue;
      plan->waiting |= uint64_t(1) << number;
      uint64_t at = process->time;
      if (process->is_sending) continue;
      if (process->turn.what == PtoWspTurn::TAKE && !channels[process->turn.channel].next_at(process->time, &at)) continue;
      if (next == nullptr || at < first) {
        next = process;
        first = at;
      }
    }
    if (next == nullptr) return plan->waiting == 0 ? PTO_WSP_OK : PTO_WSP_DEADLOCK;
    if (next->turn.what == PtoWspTurn::TAKE) {
      channels[next->turn.channel].take(next);
      next->turn.what = PtoWspTurn::TASK;
      continue;
    }
    next->turn.cycles = 0;
    if (const int fault = next->go_on(plan, &next->turn)) return fault;
    if (plan->fault != PTO_WSP_OK) return plan->fault;
    next->time += next->turn.cycles;
    plan->total_cycles = std::max(plan->total_cycles, next->time);
    if (next->turn.what == PtoWspTurn::SEND) channels[next->turn.channel].send(next);
    if (next->turn.what == PtoWspTurn::DONE)
      for (size_t number = 0; number < channels.size(); ++number) channels[number].senders -= next->sends >> number & 1;
  }
}
