// SPDX-License-Identifier: Apache-2.0
// CTC loss with lengths given as lists: they become operands, so that batches of other lengths
// share a program, and targets that stand one after another become rows of one length.
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>

#include "aten/run.h"

namespace torch_tpu::aten {
namespace {

// CPU's refusals; most are in its allocation of results, which PyTorch runs for meta tensors too.
void check_call(const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef frames,
                at::IntArrayRef labels, int64_t blank, bool zero_infinity) {
  TORCH_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
  TORCH_CHECK_NOT_IMPLEMENTED(
      log_probs.scalar_type() == at::kFloat || log_probs.scalar_type() == at::kDouble,
      "\"ctc_loss_cpu\" not implemented for '", log_probs.scalar_type(), "'");
  at::_ctc_loss(at::empty_like(log_probs, at::kMeta), at::empty_like(targets, at::kMeta), frames,
                labels, blank, zero_infinity);
}

at::Tensor on_device(const std::vector<int64_t>& values, const at::Tensor& like) {
  return at::tensor(values, at::kLong).to(like.device());
}

std::vector<int64_t> on_host(const at::Tensor& lengths) {
  const at::Tensor t = lengths.to(at::kCPU, at::kLong).contiguous();
  return {t.const_data_ptr<int64_t>(), t.const_data_ptr<int64_t>() + t.numel()};
}

// The targets as [n, s]: s is at least the longest, in steps, so that few programs serve many
// batches.
at::Tensor rows(const at::Tensor& targets, at::IntArrayRef labels) {
  if (targets.dim() == 2) return targets;
  constexpr int64_t step = 16;
  const auto n = static_cast<int64_t>(labels.size());
  int64_t longest = n == 0 ? 0 : *std::max_element(labels.begin(), labels.end());
  longest = (longest + step - 1) / step * step;
  std::vector<int64_t> at;
  int64_t begin = 0;
  for (const int64_t length : labels) {
    for (int64_t k = 0; k < longest; ++k) at.push_back(k < length ? begin + k : 0);
    begin += length;
  }
  if (at.empty()) return targets.new_zeros({n, longest});
  return targets.index_select(0, on_device(at, targets)).view({n, longest});
}

std::tuple<at::Tensor, at::Tensor> ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets,
                                            at::IntArrayRef frames, at::IntArrayRef labels,
                                            int64_t blank, bool zero_infinity) {
  check_call(log_probs, targets, frames, labels, blank, zero_infinity);
  static Callable& kernel =
      callable_of(c10::Dispatcher::singleton().findSchemaOrThrow("aten::_ctc_loss", "Tensor"));
  torch::jit::Stack stack{log_probs,
                          rows(targets, labels),
                          on_device(frames.vec(), log_probs),
                          on_device(labels.vec(), log_probs),
                          blank,
                          zero_infinity};
  kernel(&stack);
  return {stack.at(0).toTensor(), stack.at(1).toTensor()};
}

at::Tensor ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs,
                             const at::Tensor& targets, at::IntArrayRef frames,
                             at::IntArrayRef labels, const at::Tensor& loss,
                             const at::Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  static Callable& kernel = callable_of(
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_ctc_loss_backward", "Tensor"));
  torch::jit::Stack stack{grad,
                          log_probs,
                          rows(targets, labels),
                          on_device(frames.vec(), log_probs),
                          on_device(labels.vec(), log_probs),
                          loss,
                          log_alpha,
                          blank,
                          zero_infinity};
  kernel(&stack);
  return stack.at(0).toTensor();
}

// Lengths as tensors: read by the host, as on CPU; they say whether the call is right.
std::tuple<at::Tensor, at::Tensor> ctc_loss_tensor(const at::Tensor& log_probs,
                                                   const at::Tensor& targets,
                                                   const at::Tensor& frames,
                                                   const at::Tensor& labels, int64_t blank,
                                                   bool zero_infinity) {
  return ctc_loss(log_probs, targets, on_host(frames), on_host(labels), blank, zero_infinity);
}
at::Tensor ctc_loss_backward_tensor(const at::Tensor& grad, const at::Tensor& log_probs,
                                    const at::Tensor& targets, const at::Tensor& frames,
                                    const at::Tensor& labels, const at::Tensor& loss,
                                    const at::Tensor& log_alpha, int64_t blank,
                                    bool zero_infinity) {
  return ctc_loss_backward(grad, log_probs, targets, on_host(frames), on_host(labels), loss,
                           log_alpha, blank, zero_infinity);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_ctc_loss", &ctc_loss);
  m.impl("_ctc_loss.Tensor", &ctc_loss_tensor);
  m.impl("_ctc_loss_backward", &ctc_loss_backward);
  m.impl("_ctc_loss_backward.Tensor", &ctc_loss_backward_tensor);
}

}  // namespace torch_tpu::aten
