// SPDX-License-Identifier: Apache-2.0
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"

// One step of an LSTM or GRU after its two matrix products, and its gradient. h is the hidden size,
// n the batch. Computed in f32 for 16-bit gates, rounded once.
namespace torch_tpu::lower {
namespace {

using hlo::convert;
using hlo::logistic;
using hlo::slice_in_dim;
using hlo::sum;
using hlo::tanh;
using MaybeValue = std::optional<Value>;

Value widen(Value x) { return convert(x, hlo::accumulate_type(x.dtype())); }

// The i-th of the gates that lie side by side in [n, k h].
Value gate(Value gates, int64_t i, int64_t h) { return slice_in_dim(gates, 1, i * h, (i + 1) * h); }

// x with a bias [k h] or None added.
Value biased(Value x, const MaybeValue& bias) { return bias ? x + convert(*bias, x.dtype()) : x; }

Value sigmoid_slope(Value y) { return (1.0 - y) * y; }
Value tanh_slope(Value y) { return 1.0 - y * y; }

// i, f, o = logistic, g = tanh of the four gates of input_gates + hidden_gates + biases [n, 4 h],
// in the order i, f, g, o:
//   cy = f cx + i g,   hy = o tanh(cy)
//   results  hy, cy [n, h], and (for the gradient) i, f, g, o side by side
Values lstm_cell(Value input_gates, Value hidden_gates, Value cx, const MaybeValue& input_bias,
                 const MaybeValue& hidden_bias) {
  const int64_t h = cx.dim(1);
  Value gates = biased(widen(input_gates), input_bias) + biased(widen(hidden_gates), hidden_bias);
  Value i = logistic(gate(gates, 0, h)), f = logistic(gate(gates, 1, h));
  Value g = tanh(gate(gates, 2, h)), o = logistic(gate(gates, 3, h));
  Value cy = f * widen(cx) + i * g;
  Value workspace = hlo::concatenate({i, f, g, o}, 1);
  return {convert(o * tanh(cy), cx.dtype()), convert(cy, cx.dtype()),
          convert(workspace, input_gates.dtype())};
}

// Gradients of the gates [n, 4 h], of cx, and of the biases [4 h] if there were any. A gradient of
// hy or cy may be None.
Values lstm_cell_backward(const MaybeValue& grad_hy, const MaybeValue& grad_cy, Value cx, Value cy,
                          Value workspace, bool has_bias) {
  if (!grad_hy && !grad_cy) return {Value(), Value(), Value()};
  const int64_t h = cx.dim(1);
  Value saved = widen(workspace);
  Value i = gate(saved, 0, h), f = gate(saved, 1, h), g = gate(saved, 2, h), o = gate(saved, 3, h);
  Value t = tanh(widen(cy));
  Value dh = grad_hy ? widen(*grad_hy) : hlo::zeros_like(t);
  Value dc = dh * o * tanh_slope(t);
  if (grad_cy) dc = dc + widen(*grad_cy);
  Value gates = hlo::concatenate({dc * g * sigmoid_slope(i), dc * widen(cx) * sigmoid_slope(f),
                                  dc * i * tanh_slope(g), dh * t * sigmoid_slope(o)},
                                 1);
  Value bias = has_bias ? convert(sum(gates, {0}), workspace.dtype()) : Value();
  return {convert(gates, workspace.dtype()), convert(dc * f, cx.dtype()), bias};
}

// With input gates a and hidden gates b [n, 3 h], biases added, in the order r, z, n:
//   r = logistic(a_r + b_r),   z = logistic(a_z + b_z),   n = tanh(a_n + r b_n),   hy = n + z (hx -
//   n) results  hy [n, h], and (for the gradient) r, z, n, hx, b_n side by side
Values gru_cell(Value input_gates, Value hidden_gates, Value hx, const MaybeValue& input_bias,
                const MaybeValue& hidden_bias) {
  const int64_t h = hx.dim(1);
  Value a = biased(widen(input_gates), input_bias), b = biased(widen(hidden_gates), hidden_bias),
        x = widen(hx);
  Value r = logistic(gate(a, 0, h) + gate(b, 0, h)), z = logistic(gate(a, 1, h) + gate(b, 1, h));
  Value hidden = gate(b, 2, h);
  Value n = tanh(gate(a, 2, h) + r * hidden);
  return {convert(n + z * (x - n), hx.dtype()),
          convert(hlo::concatenate({r, z, n, x, hidden}, 1), hx.dtype())};
}

// Gradients of the input gates, the hidden gates, hx, and the two biases if there were any.
Values gru_cell_backward(Value grad_hy, Value workspace, bool has_bias) {
  const int64_t h = grad_hy.dim(1);
  const DType type = workspace.dtype();
  Value saved = widen(workspace), dh = widen(grad_hy);
  Value r = gate(saved, 0, h), z = gate(saved, 1, h), n = gate(saved, 2, h), x = gate(saved, 3, h);
  Value hidden = gate(saved, 4, h);
  Value dz = dh * (x - n) * sigmoid_slope(z);
  Value dn = dh * (1.0 - z) * tanh_slope(n);
  Value dr = dn * hidden * sigmoid_slope(r);
  Value da = hlo::concatenate({dr, dz, dn}, 1), db = hlo::concatenate({dr, dz, dn * r}, 1);
  Value none;
  return {convert(da, type), convert(db, type), convert(dh * z, type),
          has_bias ? convert(sum(da, {0}), type) : none,
          has_bias ? convert(sum(db, {0}), type) : none};
}

}  // namespace

void register_rnn(Registry& r) {
  r.add("aten::_thnn_fused_lstm_cell", lstm_cell);
  r.add("aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward);
  r.add("aten::_thnn_fused_gru_cell", gru_cell);
  r.add("aten::_thnn_fused_gru_cell_backward", gru_cell_backward);
}

}  // namespace torch_tpu::lower
