// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

namespace torch_tpu::aten {

// Counter-based generator: its whole state is (seed, offset), 16 bytes as CUDA's. The offset counts
// 32-bit random values and stays a multiple of 4.
class TpuGenerator final : public c10::GeneratorImpl {
 public:
  explicit TpuGenerator(c10::DeviceIndex index);
  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

  void set_current_seed(uint64_t seed) override;  // also sets the offset to 0
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;  // a non-deterministic one, and sets it
  void set_state(const c10::TensorImpl& new_state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // Reserves `count` values: returns (seed, offset before) and advances. Call with mutex_ held, as
  // core's generators.
  std::pair<uint64_t, uint64_t> reserve(uint64_t count);

 private:
  TpuGenerator* clone_impl() const override;
  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

const at::Generator& default_generator(c10::DeviceIndex index);  // -1: the current device's
at::Generator make_generator(c10::DeviceIndex index);
// The generator of an operator's `Generator?` argument, or the device's default; checks that it is
// a tpu one.
TpuGenerator* generator_or_default(const std::optional<at::Generator>& g, c10::DeviceIndex index);

}  // namespace torch_tpu::aten
