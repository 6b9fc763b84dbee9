// SPDX-License-Identifier: Apache-2.0
#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

class Shape : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Shape);

TEST_P(Shape, moves_elements) {
  Program p;
  Value x = p.count<int32_t>({2, 3});  // 0 1 2 / 3 4 5
  Value i = p.input<int32_t>({}, {1}), far = p.input<int64_t>({}, {100});
  Value nine = constant(p.b, DType::s32, 9);
  const Arrays out =
      p.run(client(), {
                          transpose(x, {1, 0}),
                          transpose(x, {-1, 0}),
                          broadcast_to(slice_in_dim(x, 0, 0, 1), {2, 2, 3}),
                          broadcast_in_dim(flatten(slice_in_dim(x, 1, 1, 2)), {2, 2}, {0}),
                          slice(x, {0, 1}, {2, 3}, {1, 1}),
                          slice(x, {0, 0}, {2, 3}, {1, 2}),
                          dynamic_slice(x, {i, i}, {1, 2}),
                          dynamic_slice(x, {i, far}, {1, 2}),  // clamped
                          dynamic_update_slice(x, full(p.b, {DType::s32, {1, 2}}, 7), {i, far}),
                          pad(x, nine, {1, -1}, {0, 1}, {0, 1}),
                          concatenate({x, slice_in_dim(x, 1, 0, 1)}, -1),
                          reverse(x, {1}),
                          reshape(x, {3, 2}),
                      });
  const std::vector<std::pair<Dims, Ints>> want = {
      {{3, 2}, {0, 3, 1, 4, 2, 5}},
      {{3, 2}, {0, 3, 1, 4, 2, 5}},
      {{2, 2, 3}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}},
      {{2, 2}, {1, 1, 4, 4}},
      {{2, 2}, {1, 2, 4, 5}},
      {{2, 2}, {0, 2, 3, 5}},
      {{1, 2}, {4, 5}},
      {{1, 2}, {4, 5}},
      {{2, 3}, {0, 1, 2, 3, 7, 7}},
      {{3, 5}, {9, 9, 9, 9, 9, 9, 1, 9, 2, 9, 9, 4, 9, 5, 9}},
      {{2, 4}, {0, 1, 2, 0, 3, 4, 5, 3}},
      {{2, 3}, {2, 1, 0, 5, 4, 3}},
      {{3, 2}, {0, 1, 2, 3, 4, 5}},
  };
  for (size_t k = 0; k < want.size(); ++k) {
    EXPECT_EQ(out[k].type.dims, want[k].first) << k;
    EXPECT_EQ(out[k].values<int32_t>(), want[k].second) << k;
  }
}

TEST_P(Shape, handles_every_dtype_and_empty_arrays) {
  for (int k = 0; k < kNumDTypes; ++k) {
    const DType t = static_cast<DType>(k);
    Program p;
    Value x = convert(p.input<float>({2}, {0.5f, 2}), t), i = p.input<int32_t>({}, {1});
    Value empty = slice_in_dim(x, 0, 0, 0);
    const auto f = [](Value v) { return convert(v, DType::f32); };
    const Arrays out =
        p.run(client(),
              {f(reverse(x, {0})), f(dynamic_slice(x, {i}, {1})), f(concatenate({x, empty, x}, 0)),
               f(pad(x, constant(p.b, t, 1), {1}, {0}, {0})),
               f(transpose(broadcast_to(x, {2, 2}), {1, 0})),
               broadcast_to(unsqueeze(empty, 0), {3, 0}), reverse(empty, {0}),
               f(dynamic_update_slice(x, slice_in_dim(x, 0, 1, 2), {constant(p.b, DType::u8, 0)})),
               f(x)});
    const auto v = out[8].values<float>();  // how t rounds the two
    EXPECT_EQ(out[0].values<float>(), (Floats{v[1], v[0]})) << name(t);
    EXPECT_EQ(out[1].values<float>(), (Floats{v[1]})) << name(t);
    EXPECT_EQ(out[2].values<float>(), (Floats{v[0], v[1], v[0], v[1]})) << name(t);
    EXPECT_EQ(out[3].values<float>(), (Floats{1, v[0], v[1]})) << name(t);
    EXPECT_EQ(out[4].values<float>(), (Floats{v[0], v[0], v[1], v[1]})) << name(t);
    EXPECT_EQ(out[5].type.dims, (Dims{3, 0})) << name(t);
    EXPECT_EQ(out[7].values<float>(), (Floats{v[1], v[1]})) << name(t);
  }
}

TEST(ShapeInference, drops_operations_that_do_nothing) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {2, 3}});
  Value zero = constant(b, DType::s32, 0);
  for (Value same : {reshape(x, {2, 3}), transpose(x, {0, 1}), broadcast_to(x, {2, 3}),
                     slice(x, {0, 0}, {2, 3}, {1, 1}), dynamic_slice(x, {zero, zero}, {2, 3}),
                     pad(x, constant(b, DType::f32, 0), {0, 0}, {0, 0}, {0, 0}),
                     concatenate({x}, 0), reverse(x, {}), squeeze(x, {})}) {
    EXPECT_EQ(same.id(), x.id());
  }
  Value scalar = b.parameter(1, {DType::f32, {}});
  EXPECT_EQ(dynamic_update_slice(x, x, {zero, zero}).id(), x.id());
  EXPECT_EQ(dynamic_slice(scalar, {}, {}).id(), scalar.id());
}

TEST(ShapeInference, adds_and_drops_dimensions) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {2, 1, 3}});
  EXPECT_EQ(squeeze(x, {1}).dims(), (Dims{2, 3}));
  EXPECT_EQ(squeeze(x, {-2}).dims(), (Dims{2, 3}));
  EXPECT_EQ(unsqueeze(x, 0).dims(), (Dims{1, 2, 1, 3}));
  EXPECT_EQ(unsqueeze(x, -1).dims(), (Dims{2, 1, 3, 1}));
  EXPECT_EQ(flatten(x).dims(), (Dims{6}));
  EXPECT_EQ(flatten(b.parameter(1, {DType::f32, {}})).dims(), (Dims{1}));
  EXPECT_EQ(broadcast_dims({2, 1, 3}, {4, 1}), (Dims{2, 4, 3}));
  EXPECT_EQ(broadcast_dims({}, {0}), (Dims{0}));
  EXPECT_EQ(broadcast_dims({1}, {0}), (Dims{0}));
  auto [l, r] = broadcast(x, b.parameter(2, {DType::s32, {5, 3}}));
  EXPECT_EQ(l.dims(), (Dims{2, 5, 3}));
  EXPECT_EQ(r.dims(), (Dims{2, 5, 3}));
}

TEST(ShapeErrors, name_operation_and_shapes) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {2, 3}}), i = b.parameter(1, {DType::s32, {}}),
        one = constant(b, DType::f32, 1);
  EXPECT_EQ(error_of([&] { reshape(x, {4}); }),
            "reshape of f32[2,3]: not the number of elements of [4]");
  EXPECT_EQ(error_of([&] { transpose(x, {0, 0}); }),
            "transpose of f32[2,3]: dimension 0 appears twice in [0, 0]");
  EXPECT_EQ(error_of([&] { transpose(x, {0}); }), "transpose of f32[2,3]: [0] is no permutation");
  EXPECT_EQ(error_of([&] { broadcast_to(x, {3}); }),
            "broadcast_to of f32[2,3]: to [3] loses dimensions");
  EXPECT_EQ(error_of([&] { broadcast_to(x, {2, 4}); }),
            "broadcast_in_dim of f32[2,3]: to [2, 4] along [0, 1]");
  EXPECT_EQ(error_of([&] { broadcast_dims({2}, {3}); }), "broadcast of [2], [3]: sizes differ");
  EXPECT_EQ(error_of([&] { slice(x, {0, 0}, {2, 4}, {1, 1}); }),
            "slice of f32[2,3]: [0, 0] to [2, 4] by [1, 1]");
  EXPECT_EQ(error_of([&] { slice_in_dim(x, 2, 0, 1); }),
            "slice_in_dim of f32[2,3]: dimension 2 is out of range");
  EXPECT_EQ(error_of([&] { dynamic_slice(x, {i}, {1, 1}); }),
            "dynamic_slice of f32[2,3]: 1 start indices");
  EXPECT_EQ(error_of([&] { dynamic_slice(x, {i, one}, {1, 1}); }),
            "dynamic_slice of f32[2,3], f32[]: start indices must be rank-0 integers");
  EXPECT_EQ(error_of([&] { dynamic_slice(x, {i, i}, {1, 4}); }),
            "dynamic_slice of f32[2,3]: sizes [1, 4]");
  EXPECT_EQ(error_of([&] { dynamic_update_slice(x, one, {i, i}); }),
            "dynamic_update_slice of f32[2,3], f32[]: ranks differ");
  EXPECT_EQ(error_of([&] { pad(x, one, {-1, -4}, {0, 0}, {0, 0}); }),
            "pad of f32[2,3]: by [-1, -4], [0, 0], [0, 0]");
  EXPECT_EQ(error_of([&] { concatenate({x, transpose(x, {1, 0})}, 0); }),
            "concatenate of f32[2,3], f32[3,2]: sizes differ outside dimension 0");
  EXPECT_EQ(error_of([&] { concatenate({}, 0); }), "concatenate: no operands");
  EXPECT_EQ(error_of([&] { squeeze(x, {0}); }), "squeeze of f32[2,3]: dimension 0 is not 1");
  EXPECT_EQ(error_of([&] { unsqueeze(x, 4); }),
            "unsqueeze of f32[2,3]: dimension 4 is out of range");
}

}  // namespace
}  // namespace torch_tpu::hlo
