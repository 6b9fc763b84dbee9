// SPDX-License-Identifier: Apache-2.0
#include "hlo/program.h"

namespace torch_tpu::hlo {
namespace {

Values added(const Values& l, const Values& r) { return {l[0] + r[0]}; }
Values replaced(const Values&, const Values& r) { return r; }

// Whole rows of a matrix by a list of row numbers.
const ScatterDims kRows{.update_window_dims = {1},
                        .inserted_window_dims = {0},
                        .input_batching_dims = {},
                        .scatter_indices_batching_dims = {},
                        .scatter_dims_to_operand_dims = {0},
                        .index_vector_dim = 1};

class Gather : public test::OnEachPlugin {};
TT_ON_EACH_CPU_PLUGIN(Gather);

TEST_P(Gather, gathers_windows_at_index_vectors) {
  Program p;
  Value x = p.count<int32_t>({3, 4});
  Value at = p.input<int32_t>({2, 2}, {0, 1, 9, 9});  // the second is clamped to (1, 2)
  GatherDims dims;
  dims.offset_dims = {1, 2};
  dims.start_index_map = {0, 1};
  dims.index_vector_dim = 1;
  const Arrays out = p.run(client(), {gather(x, at, dims, {2, 2})});
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{1, 2, 5, 6, 6, 7, 10, 11}));
}

TEST_P(Gather, gathers_row_by_row) {
  Program p;
  Value x = p.count<int32_t>({2, 3});
  Value at = p.input<int64_t>({2, 2}, {2, 0, 1, 1});
  GatherDims dims;
  dims.operand_batching_dims = dims.start_indices_batching_dims = {0};
  dims.collapsed_slice_dims = dims.start_index_map = {1};
  dims.index_vector_dim = 2;
  const Arrays out = p.run(client(), {gather(x, at, dims, {1, 1})});
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{2, 0, 4, 4}));
}

TEST_P(Gather, takes_by_flat_index_of_any_dtype) {
  for (DType t : {DType::s8, DType::s16, DType::s32, DType::s64, DType::u8, DType::u16, DType::u32,
                  DType::u64}) {
    Program p;
    Value x = p.count<float>({2, 3});
    Value at = convert(p.input<int32_t>({2, 2}, {5, 0, 3, 100}), t);
    const Arrays out =
        p.run(client(), {take(x, at), take(x, constant(p.b, t, 4)),
                         index_select(x, 1, reshape(slice_in_dim(at, 0, 1, 2), {2})),
                         take(slice_in_dim(x, 0, 0, 0), slice_in_dim(at, 0, 0, 0)),
                         take(p.input<bool>({2}, {false, true}), constant(p.b, t, 1))});
    EXPECT_EQ(out[0].values<float>(), (Floats{5, 0, 3, 5})) << name(t);
    EXPECT_EQ(out[1].values<float>(), (Floats{4})) << name(t);
    EXPECT_EQ(out[2].values<float>(), (Floats{2, 2, 5, 5})) << name(t);
    EXPECT_EQ(out[3].type.dims, (Dims{0, 2})) << name(t);
    EXPECT_EQ(out[4].values<bool>(), (Bools{true})) << name(t);
  }
}

TEST_P(Gather, scatters_rows) {
  Program p;
  Value x = p.count<int32_t>({3, 2});
  Value at = p.input<int32_t>({3}, {2, 0, 2});
  Value updates = p.input<int32_t>({3, 2}, {10, 20, 30, 40, 50, 60});
  const auto largest = [](const Values& l, const Values& r) { return Values{maximum(l[0], r[0])}; };
  const Arrays out = p.run(
      client(),
      {scatter({x}, at, {updates}, kRows, added)[0], scatter({x}, at, {updates}, kRows, largest)[0],
       scatter({x}, slice_in_dim(at, 0, 1, 3), {slice_in_dim(updates, 0, 1, 3)}, kRows, replaced,
               false, true)[0],
       scatter({x}, at + 2.0, {updates}, kRows, added)[0],  // out of range: left out
       scatter({x}, slice_in_dim(at, 0, 0, 0), {slice_in_dim(updates, 0, 0, 0)}, kRows, added)[0]});
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{30, 41, 2, 3, 64, 85}));
  EXPECT_EQ(out[1].values<int32_t>(), (Ints{30, 40, 2, 3, 50, 60}));
  EXPECT_EQ(out[2].values<int32_t>(), (Ints{30, 40, 2, 3, 50, 60}));
  EXPECT_EQ(out[3].values<int32_t>(), (Ints{0, 1, 2, 3, 34, 45}));
  EXPECT_EQ(out[4].values<int32_t>(), (Ints{0, 1, 2, 3, 4, 5}));
}

TEST_P(Gather, scatters_row_by_row) {
  Program p;
  Value x = p.count<int32_t>({2, 3});
  Value at = p.input<int32_t>({2, 2}, {2, 0, 1, 1});
  Value updates = p.input<int32_t>({2, 2}, {10, 20, 30, 40});
  ScatterDims dims;
  dims.input_batching_dims = dims.scatter_indices_batching_dims = {0};
  dims.inserted_window_dims = dims.scatter_dims_to_operand_dims = {1};
  dims.index_vector_dim = 2;
  const Arrays out = p.run(client(), scatter({x}, at, {updates}, dims, added));
  EXPECT_EQ(out[0].values<int32_t>(), (Ints{20, 1, 12, 3, 74, 5}));
}

TEST_P(Gather, scatters_several_arrays_at_once) {
  Program p;
  Value x = p.input<float>({3}, {5, 5, 5});
  Value place = p.input<int32_t>({3}, {-1, -1, -1});
  Value at = p.input<int32_t>({4}, {0, 1, 1, 2}), updates = p.input<float>({4}, {7, 6, 8, 1});
  ScatterDims dims;
  dims.inserted_window_dims = dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  const Arrays out =
      p.run(client(), scatter({x, place}, at, {updates, iota(p.b, {DType::s32, {4}}, 0)}, dims,
                              [](const Values& l, const Values& r) {
                                Value left = l[0] >= r[0];
                                return Values{select(left, l[0], r[0]), select(left, l[1], r[1])};
                              }));
  EXPECT_EQ(out[0].values<float>(), (Floats{7, 8, 5}));
  EXPECT_EQ(out[1].values<int32_t>(), (Ints{0, 2, -1}));
}

TEST_P(Gather, scatters_every_dtype) {
  for (int k = 0; k < kNumDTypes; ++k) {
    const DType t = static_cast<DType>(k);
    Program p;
    Value x = convert(p.input<float>({2, 1}, {1, 1}), t),
          updates = convert(p.input<float>({2, 1}, {1, 2}), t);
    Value at = p.input<int32_t>({2}, {1, 1});
    const Arrays out =
        p.run(client(), {convert(scatter({x}, at, {updates}, kRows, added)[0], DType::f32)});
    EXPECT_EQ(out[0].values<float>()[1], t == DType::pred ? 1 : 4) << name(t);
  }
}

TEST(GatherErrors, name_operation_and_shapes) {
  Builder b;
  Value x = b.parameter(0, {DType::f32, {2, 3}}), at = b.parameter(1, {DType::s32, {4}}),
        f = b.parameter(2, {DType::f32, {4}});
  EXPECT_EQ(error_of([&] { take(x, f); }), "gather of f32[4]: indices must be integers");
  EXPECT_EQ(error_of([&] { take(slice_in_dim(x, 0, 0, 0), at); }),
            "take of f32[0,3], s32[4]: there is nothing to take from");
  EXPECT_EQ(error_of([&] { index_select(x, 2, at); }),
            "index_select of f32[2,3]: dimension 2 is out of range");
  EXPECT_EQ(error_of([&] { index_select(slice_in_dim(x, 0, 0, 0), 0, at); }),
            "index_select of f32[0,3], s32[4]: there is nothing to select from");
  EXPECT_EQ(error_of([&] { index_select(x, 0, constant(b, DType::s32, 0)); }),
            "index_select of f32[2,3], s32[]: the index must have rank 1");
  GatherDims dims;
  dims.start_index_map = {0};
  dims.index_vector_dim = 1;
  EXPECT_EQ(error_of([&] { gather(x, at, dims, {1, 4}); }),
            "gather of f32[2,3], s32[4]: slice sizes [1, 4]");
  EXPECT_EQ(error_of([&] { gather(x, at, dims, {1, 3}); }),
            "gather of f32[2,3], s32[4]: offset_dims []");
  EXPECT_EQ(error_of([&] { scatter({x}, at, {f}, kRows, added); }),
            "scatter of f32[2,3], s32[4], f32[4]: the updates' rank is wrong");
  EXPECT_EQ(
      error_of([&] { scatter({x}, at, {b.parameter(3, {DType::f32, {5, 3}})}, kRows, added); }),
      "scatter of f32[2,3], s32[4], f32[5,3]: the updates' shape is wrong");
  EXPECT_EQ(
      error_of([&] { scatter({x}, at, {b.parameter(4, {DType::bf16, {4, 3}})}, kRows, added); }),
      "scatter of f32[2,3], bf16[4,3]: dtypes differ");
}

}  // namespace
}  // namespace torch_tpu::hlo
