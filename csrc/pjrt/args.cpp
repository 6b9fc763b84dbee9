// SPDX-License-Identifier: Apache-2.0
#include "pjrt/args.h"

#include <string>

#include "pjrt/error.h"

namespace torch_tpu::pjrt {

void ignore(const PJRT_Api* api, PJRT_Error* error) noexcept {
  if (error == nullptr) return;
  Args<PJRT_Error_Destroy_Args> args;
  args->error = error;
  api->PJRT_Error_Destroy(args);
}

void raise(const PJRT_Api* api, PJRT_Error* error, std::string_view call) {
  Args<PJRT_Error_Message_Args> message;
  message->error = error;
  api->PJRT_Error_Message(message);
  std::string text =
      std::string(call) + ": " + std::string(message->message, message->message_size);

  Args<PJRT_Error_GetCode_Args> code;
  code->error = error;
  ignore(api, api->PJRT_Error_GetCode(code));
  const auto value =
      number(code->code) == 0 ? Code::unknown : static_cast<Code>(number(code->code));

  ignore(api, error);
  throw Error(value, text);
}

}  // namespace torch_tpu::pjrt
