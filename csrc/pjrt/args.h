// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pjrt_c_api.h>

#include <cstddef>
#include <cstring>
#include <string_view>

// What every call of the C API needs: a zeroed argument struct and a look at the error it returns.
//   Args<PJRT_Event_Await_Args> args;
//   args->event = event;
//   check(api, api->PJRT_Event_Await(args), "PJRT_Event_Await");
namespace torch_tpu::pjrt {

// An argument struct, zeroed, in a buffer that is longer than our header's idea of it and says so.
// A plugin refuses structs that are shorter than its own header's; structs only grow at the end and
// zero means "not given", so the slack lets a plugin newer than our header accept the call. Not for
// structs that travel in arrays: their stride is fixed.
template <typename T>
class Args {
 public:
  Args() { padded_.args.struct_size = sizeof(Padded); }
  T* operator->() { return &padded_.args; }
  operator T*() { return &padded_.args; }

 private:
  struct Padded {
    T args;
    std::byte slack[64];
  };
  Padded padded_{};
};

// Throws pjrt::Error "<call>: <plugin's message>" unless `error` is null. Frees `error`.
[[noreturn]] void raise(const PJRT_Api* api, PJRT_Error* error, std::string_view call);
inline void check(const PJRT_Api* api, PJRT_Error* error, std::string_view call) {
  if (error != nullptr) [[unlikely]]
    raise(api, error, call);
}

// For destructors: frees `error` and goes on.
void ignore(const PJRT_Api* api, PJRT_Error* error) noexcept;

// An enum that the plugin wrote, which may hold a number that our header does not list.
template <typename Enum>
int number(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int raw;
  std::memcpy(&raw, &value, sizeof raw);
  return raw;
}

// Whether the plugin has this function, which its header may be too old to know.
template <typename Function>
bool provides(const PJRT_Api* api, Function* PJRT_Api::* slot) {
  const auto offset =
      reinterpret_cast<const std::byte*>(&(api->*slot)) - reinterpret_cast<const std::byte*>(api);
  return static_cast<size_t>(offset) + sizeof(Function*) <= api->struct_size &&
         api->*slot != nullptr;
}

}  // namespace torch_tpu::pjrt
