// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "pjrt/args.h"
#include "pjrt/client.h"

namespace torch_tpu::pjrt {

Event::Event(Event&& other) noexcept
    : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}

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
  if (event_ == nullptr) return true;
  Args<PJRT_Event_IsReady_Args> args;
  args->event = event_;
  check(api_, api_->PJRT_Event_IsReady(args), "PJRT_Event_IsReady");
  return args->is_ready;
}

void Event::wait() const {
  if (event_ == nullptr) return;
  Args<PJRT_Event_Await_Args> args;
  args->event = event_;
  check(api_, api_->PJRT_Event_Await(args), "PJRT_Event_Await");
}

namespace {

struct Waiter {
  const PJRT_Api* api;
  std::function<void()> done;
};

void notify(PJRT_Error* error, void* waiter) {
  const std::unique_ptr<Waiter> w(static_cast<Waiter*>(waiter));
  ignore(w->api, error);
  w->done();
}

}  // namespace

void Event::on_ready(std::function<void()> done) const {
  if (event_ == nullptr) return done();
  auto waiter = std::make_unique<Waiter>(Waiter{api_, std::move(done)});
  Args<PJRT_Event_OnReady_Args> args;
  args->event = event_;
  args->callback = notify;
  args->user_arg = waiter.get();
  check(api_, api_->PJRT_Event_OnReady(args), "PJRT_Event_OnReady");
  waiter.release();
}

}  // namespace torch_tpu::pjrt
