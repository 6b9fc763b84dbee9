// SPDX-License-Identifier: Apache-2.0
#include "aten/generator.h"

#include <array>
#include <cstring>
#include <limits>
#include <mutex>

#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "aten/storage.h"
#include "aten/stream.h"

namespace torch_tpu::aten {
namespace {

constexpr size_t kStateBytes =
    2 * sizeof(uint64_t);  // seed, offset: CUDA's layout, which DTensor's tracker reads

}  // namespace

TpuGenerator::TpuGenerator(c10::DeviceIndex index)
    : c10::GeneratorImpl(c10::Device(c10::kPrivateUse1, index),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void TpuGenerator::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

void TpuGenerator::set_offset(uint64_t offset) {
  TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4");
  offset_ = offset;
}

uint64_t TpuGenerator::get_offset() const { return offset_; }

uint64_t TpuGenerator::current_seed() const { return seed_; }

uint64_t TpuGenerator::seed() {
  const uint64_t random = c10::detail::getNonDeterministicRandom(
      /*is_cuda=*/true);  // 53 bits: exact in Python and JSON
  set_current_seed(random);
  return random;
}

void TpuGenerator::set_state(const c10::TensorImpl& new_state) {
  at::detail::check_rng_state(new_state);
  const auto nbytes = static_cast<size_t>(new_state.numel());
  TORCH_CHECK(nbytes == kStateBytes || nbytes == sizeof(uint64_t), "RNG state is wrong size");
  uint64_t words[2] = {0, 0};
  std::memcpy(words, new_state.data(), nbytes);
  set_current_seed(words[0]);
  set_offset(words[1]);
}

c10::intrusive_ptr<c10::TensorImpl> TpuGenerator::get_state() const {
  at::Tensor state = at::empty({static_cast<int64_t>(kStateBytes)},
                               at::TensorOptions().dtype(at::kByte).device(at::kCPU));
  const uint64_t words[2] = {seed_, offset_};
  std::memcpy(state.mutable_data_ptr(), words, kStateBytes);
  return state.getIntrusivePtr();
}

std::pair<uint64_t, uint64_t> TpuGenerator::reserve(uint64_t count) {
  const uint64_t before = offset_;
  offset_ += (count + 3) / 4 * 4;
  return {seed_, before};
}

TpuGenerator* TpuGenerator::clone_impl() const {
  auto* copy = new TpuGenerator(device().index());
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  return copy;
}

// Made on demand and without a client, so that torch.manual_seed at the top of a script costs no
// start-up.
const at::Generator& default_generator(c10::DeviceIndex index) {
  static std::mutex mutex;
  static auto* generators =
      new std::array<at::Generator, std::numeric_limits<c10::DeviceIndex>::max() + 1>;  // leaked
  at::Generator& generator = (*generators)[normalize(index)];
  const std::lock_guard<std::mutex> lock(mutex);
  if (!generator.defined()) generator = make_generator(normalize(index));
  return generator;
}

at::Generator make_generator(c10::DeviceIndex index) {
  return at::make_generator<TpuGenerator>(normalize(index));
}

TpuGenerator* generator_or_default(const std::optional<at::Generator>& g, c10::DeviceIndex index) {
  return at::get_generator_or_default<TpuGenerator>(g, default_generator(index));
}

}  // namespace torch_tpu::aten
