// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "pjrt/args.h"
#include "pjrt/client.h"

namespace torch_tpu::pjrt {

Event::Event(Event&& other) noexcept : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(event_, other.event_);
  return *this;
}

Event::~Event() {
  if (event_ == nullptr) return;
  Args<PJRT_Event_Destroy_Args> args;
  args->event = event_;
  ignore(api_, api_->PJRT_Event_Destroy(args));
}

bool Event::is_ready() const {
  Args<PJRT_Event_IsReady_Args> args;
  args->event = event_;
  check(api_, api_->PJRT_Event_IsReady(args), "PJRT_Event_IsReady");
  return args->is_ready;
}

void Event::wait() const {
  Args<PJRT_Event_Await_Args> args;
  args->event = event_;
  check(api_, api_->PJRT_Event_Await(args), "PJRT_Event_Await");
}

}  // namespace torch_tpu::pjrt
