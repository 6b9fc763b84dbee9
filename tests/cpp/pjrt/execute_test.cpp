// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pjrt_c_api.h>

#include <thread>

#include "pjrt/args.h"
#include "pjrt/device_test.h"
#include "pjrt/programs.h"
#include "testing/run.h"

namespace torch_tpu::pjrt {
namespace {

using test::array;

class Execute : public DeviceTest {
 protected:
  PJRT_Device* device_of(const Buffer& buffer) const {
    Args<PJRT_Buffer_Device_Args> args;
    args->buffer = buffer.get();
    check(plugin().api(), plugin().api()->PJRT_Buffer_Device(args), "PJRT_Buffer_Device");
    return args->device;
  }
  bool is_deleted(const Buffer& buffer) const {
    Args<PJRT_Buffer_IsDeleted_Args> args;
    args->buffer = buffer.get();
    check(plugin().api(), plugin().api()->PJRT_Buffer_IsDeleted(args), "PJRT_Buffer_IsDeleted");
    return args->is_deleted;
  }
  uintptr_t address(const Buffer& buffer) const {
    Args<PJRT_Buffer_UnsafePointer_Args> args;
    args->buffer = buffer.get();
    check(plugin().api(), plugin().api()->PJRT_Buffer_UnsafePointer(args),
          "PJRT_Buffer_UnsafePointer");
    return args->buffer_pointer;
  }
};
TT_ON_EACH_CPU_PLUGIN(Execute);

TEST_P(Execute, adds_two_arrays) {
  const auto out = test::run(client(), add("tensor<3xf32>"),
                             {array<float>({3}, {1, 2, 3}), array<float>({3}, {10, 20, 30})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].type.str(), "f32[3]");
  EXPECT_EQ(out[0].values<float>(), (Floats{11, 22, 33}));
}

TEST_P(Execute, returns_several_results_of_different_types) {
  const std::string program =
      module("%0: tensor<2xi32>", "tensor<2xi32>, tensor<2xi1>",
             R"(    %1 = "stablehlo.negate"(%0) : (tensor<2xi32>) -> tensor<2xi32>
    %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    "func.return"(%1, %2) : (tensor<2xi32>, tensor<2xi1>) -> ())");
  const auto out = test::run(client(), program, {array<int32_t>({2}, {5, -7})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].values<int32_t>(), (std::vector<int32_t>{-5, 7}));
  EXPECT_EQ(out[1].values<bool>(), (std::vector<bool>{false, true}));
}

TEST_P(Execute, takes_no_arguments) {
  const std::string program = module(
      "", "tensor<f64>",
      R"(    %0 = "stablehlo.constant"() <{value = dense<2.5> : tensor<f64>}> : () -> tensor<f64>
    "func.return"(%0) : (tensor<f64>) -> ())");
  const auto out = test::run(client(), program, {});
  EXPECT_EQ(out[0].type.str(), "f64[]");
  EXPECT_EQ(out[0].values<double>(), std::vector<double>{2.5});
}

TEST_P(Execute, runs_one_portable_program_on_every_device) {
  const LoadedExecutable program = client().compile(add("tensor<2xf32>"), {});
  ASSERT_EQ(client().devices().size(), 4u);
  for (int device : {3, 0, 2, 1}) {
    const Buffer x = upload({1, 2}, device), y = upload({float(device), 0}, device);
    const Buffer out = execute(program, {x.get(), y.get()}, device);
    EXPECT_EQ(device_of(out), client().devices()[device]);
    EXPECT_EQ(download(out), (Floats{1 + float(device), 2}));
  }
}

TEST_P(Execute, refuses_an_argument_on_another_device) {
  const LoadedExecutable program = client().compile(add("tensor<2xf32>"), {});
  const Buffer x = upload({1, 2}, 0), y = upload({3, 4}, 1);
  EXPECT_THROW(download(execute(program, {x.get(), y.get()}, 0)), Error);
}

TEST_P(Execute, refuses_a_wrong_number_of_arguments) {
  const LoadedExecutable program = client().compile(add("tensor<2xf32>"), {});
  const Buffer x = upload({1, 2});
  EXPECT_THROW(execute(program, {x.get()}), Error);
}

TEST_P(Execute, sums_across_partitions_launched_from_one_thread_each) {
  const LoadedExecutable executable =
      client().compile(all_reduce("tensor<1xf32>", 2), {.num_partitions = 2, .device_ids = {0, 1}});
  const Buffer x[] = {upload({1}, 0), upload({41}, 1)};
  Floats out[2];
  std::vector<std::thread> threads;
  for (int device : {0, 1}) {
    threads.emplace_back([&, device] {
      out[device] = download(execute(executable, {x[device].get()}, device, {}, 7));
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(out[0], Floats{42});
  EXPECT_EQ(out[1], Floats{42});
}

// --- donation: what the runtime may rely on ---

TEST_P(Execute, consumes_an_input_aliased_to_an_output) {
  const LoadedExecutable program = client().compile(add_over_x("tensor<1024xf32>"), {});
  Buffer x = upload(Floats(1024, 1)), y = upload(Floats(1024, 2));
  x.ready().wait();
  const uintptr_t before = address(x);
  const Buffer out = execute(program, {x.get(), y.get()});
  EXPECT_EQ(download(out), Floats(1024, 3));
  EXPECT_EQ(address(out), before);
  EXPECT_TRUE(is_deleted(x));
  EXPECT_FALSE(is_deleted(y));
  EXPECT_THROW(download(x), Error);
  EXPECT_THROW(execute(program, {x.get(), y.get()}), Error);
}

TEST_P(Execute, keeps_an_aliased_input_that_is_named_non_donatable) {
  const LoadedExecutable program = client().compile(add_over_x("tensor<1024xf32>"), {});
  const Buffer x = upload(Floats(1024, 1)), y = upload(Floats(1024, 2));
  const Buffer out = execute(program, {x.get(), y.get()}, 0, {0});
  EXPECT_EQ(download(out), Floats(1024, 3));
  EXPECT_FALSE(is_deleted(x));
  EXPECT_NE(address(out), address(x));
  EXPECT_EQ(download(x), Floats(1024, 1));
}

TEST_P(Execute, refuses_to_donate_one_array_that_is_passed_twice) {
  const LoadedExecutable program = client().compile(add_over_x("tensor<4xf32>"), {});
  const Buffer x = upload({1, 2, 3, 4});
  EXPECT_THROW(execute(program, {x.get(), x.get()}), Error);
  const Buffer z = upload({1, 2, 3, 4});
  EXPECT_EQ(download(execute(program, {z.get(), z.get()}, 0, {0})), (Floats{2, 4, 6, 8}));
}

TEST_P(Execute, frees_a_result_that_is_dropped_while_it_is_computed) {
  const std::string type = "tensor<256x256xf32>";
  const LoadedExecutable program = client().compile(
      module("%0: " + type, type,
             "    %1 = \"stablehlo.dot_general\"(%0, %0) <{dot_dimension_numbers = #stablehlo.dot<"
             "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (" +
                 type + ", " + type + ") -> " + type + "\n    \"func.return\"(%1) : (" + type +
                 ") -> ()"),
      {});
  const Floats ones(256 * 256, 1);
  Buffer x = client().from_host(ones.data(), {DType::f32, {256, 256}}, client().devices()[0]);
  Buffer last;
  for (int i = 0; i < 20; ++i) last = execute(program, {x.get()});  // each drops the one before
  x = Buffer();                                                     // and an input in use
  EXPECT_EQ(download(last), Floats(256 * 256, 256));
}

}  // namespace
}  // namespace torch_tpu::pjrt
