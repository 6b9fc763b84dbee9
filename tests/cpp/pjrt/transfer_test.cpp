// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <future>
#include <numeric>

#include "pjrt/device_test.h"
#include "pjrt/programs.h"
#include "testing/run.h"

namespace torch_tpu::pjrt {
namespace {

class Transfer : public DeviceTest {
 protected:
  std::string bytes_of(const Buffer& buffer) const {
    std::string bytes(buffer.type().nbytes(), '\0');
    buffer.to_host(bytes.data(), buffer.type().nbytes()).wait();
    return bytes;
  }
  PJRT_Device* device() const { return client().devices()[0]; }
};
TT_ON_EACH_CPU_PLUGIN(Transfer);

TEST_P(Transfer, keeps_type_and_bytes_of_every_dtype) {
  for (int i = 0; i < hlo::kNumDTypes; ++i) {
    const Type type = {static_cast<DType>(i), {2, 3}};
    std::string bytes(type.nbytes(), '\0');
    for (size_t k = 0; k < bytes.size(); ++k)
      bytes[k] = static_cast<char>(type.dtype == DType::pred ? k % 2 : k * 7 + i);
    const Buffer buffer = client().from_host(bytes.data(), type, device());
    EXPECT_EQ(buffer.type(), type);
    EXPECT_EQ(bytes_of(buffer), bytes) << type.str();
    EXPECT_EQ(buffer.on_device_nbytes(), type.nbytes()) << type.str();
  }
}

TEST_P(Transfer, takes_scalars_empty_arrays_and_many_dimensions) {
  for (const Dims& dims : {Dims{}, Dims{0}, Dims{3, 0, 2}, Dims{1, 2, 1, 2, 1, 2, 1, 2, 1, 2}}) {
    const Type type = {DType::s64, dims};
    std::vector<int64_t> values(type.numel());
    std::iota(values.begin(), values.end(), 1);
    const Buffer buffer = client().from_host(values.data(), type, device());
    EXPECT_EQ(buffer.type(), type);
    EXPECT_EQ(bytes_of(buffer), std::string(reinterpret_cast<char*>(values.data()), type.nbytes()))
        << type.str();
  }
}

TEST_P(Transfer, lets_go_of_the_host_array_during_the_call) {
  for (int64_t n : {1, 1 << 20}) {
    Floats values(n, 1);
    const Buffer buffer = client().from_host(values.data(), {DType::f32, {n}}, device());
    std::fill(values.begin(), values.end(), 2);
    EXPECT_EQ(download(buffer), Floats(n, 1));
  }
}

TEST_P(Transfer, reads_strided_host_arrays) {
  const Floats values = {0, 1, 2, 3, 4, 5};  // 2 x 3
  const Type transposed = {DType::f32, {3, 2}};
  EXPECT_EQ(download(client().from_host_strided(values.data(), transposed, {4, 12}, device())),
            (Floats{0, 3, 1, 4, 2, 5}));
  const Type backwards = {DType::f32, {6}};
  EXPECT_EQ(download(client().from_host_strided(&values[5], backwards, {-4}, device())),
            (Floats{5, 4, 3, 2, 1, 0}));
  const Type expanded = {DType::f32, {2, 2}};
  EXPECT_EQ(download(client().from_host_strided(values.data() + 1, expanded, {0, 4}, device())),
            (Floats{1, 2, 1, 2}));
}

TEST_P(Transfer, says_when_an_asynchronous_copy_has_read_the_host_array) {
  Floats values(1 << 20, 1);
  Event done;
  const Buffer buffer =
      client().from_host_async(values.data(), {DType::f32, {1 << 20}}, device(), &done);
  done.wait();
  EXPECT_TRUE(done.is_ready());
  std::fill(values.begin(), values.end(), 2);
  EXPECT_EQ(download(buffer), Floats(1 << 20, 1));
}

// XLA may keep a transposed array in its own order; the host gets row-major order whatever the
// device has.
TEST_P(Transfer, gives_a_transposed_result_in_row_major_order) {
  const std::string program = module(
      "%0: tensor<2x3xf32>", "tensor<3x2xf32>",
      R"(    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
    "func.return"(%1) : (tensor<3x2xf32>) -> ())");
  const auto out = test::run(client(), program, {test::array<float>({2, 3}, {0, 1, 2, 3, 4, 5})});
  EXPECT_EQ(out[0].values<float>(), (Floats{0, 3, 1, 4, 2, 5}));
}

TEST_P(Transfer, refuses_a_host_array_that_is_too_small) {
  const Buffer buffer = upload({1, 2, 3, 4});
  float two[2];
  EXPECT_THROW(buffer.to_host(two, sizeof two).wait(), Error);
}

TEST_P(Transfer, copies_between_devices) {
  const Buffer x = upload({1, 2}, 0);
  const Buffer copy = x.copy_to_device(client().devices()[3]);
  EXPECT_EQ(download(copy), (Floats{1, 2}));
  const LoadedExecutable program = client().compile(add("tensor<2xf32>"), {});
  EXPECT_EQ(download(execute(program, {copy.get(), copy.get()}, 3)), (Floats{2, 4}));
}

TEST_P(Transfer, gives_small_results_right_after_the_launch) {
  for (const std::string shape : {"", "2x", "2x2x"}) {
    const LoadedExecutable program = client().compile(add("tensor<" + shape + "f32>"), {});
    for (int i = 0; i < 100; ++i) {
      const Floats values(program.memory_stats().output_bytes / 4, float(i));
      const Type type = {DType::f32, Dims(shape.size() / 2, 2)};
      const Buffer x = client().from_host(values.data(), type, device());
      EXPECT_EQ(download(execute(program, {x.get(), x.get()})),
                Floats(values.size(), 2 * float(i)));
    }
  }
}

TEST(Event, that_was_never_made_lies_in_the_past) {
  EXPECT_TRUE(Event().is_ready());
  EXPECT_FALSE(Event());
  Event().wait();
  bool called = false;
  Event().on_ready([&] { called = true; });
  EXPECT_TRUE(called);
}

TEST_P(Transfer, calls_back_once_when_done) {
  const std::vector<float> values(1 << 20, 1);
  std::promise<void> done;
  {
    Event read;
    const Buffer x =
        client().from_host_async(values.data(), {DType::f32, {1 << 20}}, device(), &read);
    read.on_ready([&] { done.set_value(); });  // a second call would throw
  }
  done.get_future().get();
}

TEST_P(Transfer, is_ready_once_waited_for) {
  const Buffer x = upload({1});
  const Event ready = x.ready();
  ready.wait();
  EXPECT_TRUE(ready.is_ready());
}

TEST_P(Transfer, moves_ownership_of_a_buffer) {
  Buffer x = upload({1}), y = upload({2});
  PJRT_Buffer* handle = x.get();
  y = std::move(x);
  EXPECT_EQ(y.get(), handle);
  EXPECT_EQ(download(y), Floats{1});
  PJRT_Buffer* released = y.release();
  EXPECT_FALSE(y);
  EXPECT_EQ(download(Buffer(plugin().api(), released)), Floats{1});
}

TEST_P(Transfer, refuses_a_pjrt_type_that_torch_lacks) {
  for (int i = 0; i < hlo::kNumDTypes; ++i)
    EXPECT_EQ(from_pjrt(to_pjrt(static_cast<DType>(i))), static_cast<DType>(i));
  EXPECT_THROW(from_pjrt(0), Error);
  EXPECT_THROW(from_pjrt(1000), Error);
}

}  // namespace
}  // namespace torch_tpu::pjrt
