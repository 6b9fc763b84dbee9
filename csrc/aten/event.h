// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/device.h"

namespace torch_tpu::aten {

// What torch.Event holds: the end of all that was launched on a device before the last record().
// Any thread may query or wait; destruction does not wait. The time is taken on the host when the
// plugin reports completion.
class Event {
 public:
  // Marks the end of what `device` was given so far; forgets an earlier mark.
  void record(runtime::Device& device);
  bool query() const;
  // Throws pjrt::Error with the message of the work that failed.
  void wait() const;
  // Milliseconds from this event's completion to `end`'s. Both are complete.
  double elapsed_ms(const Event& end) const;

 private:
  struct Mark;
  std::shared_ptr<Mark> mark_;
};

}  // namespace torch_tpu::aten
