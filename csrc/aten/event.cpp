// SPDX-License-Identifier: Apache-2.0
#include "aten/event.h"

#include <atomic>
#include <chrono>
#include <vector>

namespace torch_tpu::aten {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// Outlives the Event while the plugin still owes it calls.
struct Event::Mark {
  std::vector<pjrt::Event> pending;
  std::atomic<size_t> left{0};
  std::atomic<int64_t> done_ns{0};  // steady clock; 0: not yet

  void one_done() {
    if (left.fetch_sub(1) == 1) done_ns = now_ns();
  }
};

void Event::record(runtime::Device& device) {
  mark_ = std::make_shared<Mark>();
  mark_->pending = device.pending();
  mark_->left = mark_->pending.size() + 1;
  for (const pjrt::Event& e : mark_->pending) e.on_ready([mark = mark_] { mark->one_done(); });
  mark_->one_done();
}

bool Event::query() const { return !mark_ || mark_->done_ns != 0; }

void Event::wait() const {
  if (!mark_) return;
  for (const pjrt::Event& e : mark_->pending) e.wait();
  // The waiter can wake before the plugin's thread has called back; the time is the same to within
  // that gap.
  int64_t unset = 0;
  mark_->done_ns.compare_exchange_strong(unset, now_ns());
}

double Event::elapsed_ms(const Event& end) const {
  if (!mark_ || !end.mark_) return 0;
  return static_cast<double>(end.mark_->done_ns - mark_->done_ns) * 1e-6;
}

}  // namespace torch_tpu::aten
