// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>

#include "lower/dims.h"
#include "lower/families.h"
#include "lower/maths.h"
#include "lower/registry.h"
#include "lower/require.h"

// Connectionist temporal classification: -log of the probability that the frames spell the target,
// any number of blanks between its labels and any repetition of a label.
//   log_probs  [t, n, c] f32 or f64     targets  [n, s]     lengths  [n] each, run-time
// A target of length l is read as l' = blank, y_1, blank, .., y_l, blank, 2 l + 1 places of the
// 2 s + 1 that the arrays have. Sums over paths go frame by frame in a loop, in log space.
namespace torch_tpu::lower {
namespace {

using hlo::convert;
using hlo::reshape;
using hlo::select;

Value s32(Value like, int64_t v) { return hlo::constant(like.builder(), DType::s32, v); }

struct Ctc {
  Value lp;       // [t, n, places]: log_probs of each place's label
  Value at;       // [n, places] s32: each place's label
  Value skips;    // [n, places] pred: a path may come from two places before
  Value lengths;  // [n, 1] s32: places in use, 2 l + 1
  Value frames;   // [n, 1] s32
  Value place;    // [n, places] s32
  Value minus_inf;
  int64_t t, n, c, places;
};

Ctc prepare(Context& ctx, Value log_probs, Value targets, Value input_lengths, Value target_lengths,
            int64_t blank) {
  if (targets.rank() != 2)  // whose rows would depend on the lengths' values
    throw UserError("tpu: ctc_loss in a graph takes targets as [batch, longest], not concatenated",
                    UserError::Kind::not_implemented);
  Ctc k;
  k.t = log_probs.dim(0), k.n = log_probs.dim(1), k.c = log_probs.dim(2);
  const int64_t s = targets.dim(1);
  k.places = 2 * s + 1;
  hlo::Builder& b = ctx.builder;
  const Dims row{k.n, k.places};
  k.place = hlo::iota(b, {DType::s32, row}, 1);
  k.frames = reshape(convert(input_lengths, DType::s32), {k.n, 1});
  k.lengths = reshape(convert(target_lengths, DType::s32), {k.n, 1}) * 2.0 + 1.0;
  Value labels = convert(targets, DType::s32), first = s32(labels, blank);
  k.at = hlo::pad(labels, first, {0, 1}, {0, s > 0 ? 1 : 0}, {0, s > 0 ? 1 : 0});
  k.at = hlo::clamp(s32(k.at, 0), select(k.place < k.lengths, k.at, first), s32(k.at, k.c - 1));
  Value before = hlo::pad(k.at, first, {0, 2}, {0, -2}, {0, 0});
  k.skips = (k.at != first) & (k.at != before) & (k.place >= 2.0);
  Value flat = hlo::broadcast_to(hlo::unsqueeze(k.at, 0), {k.t, k.n, k.places});
  const hlo::Type all{DType::s32, flat.dims()};
  flat = flat + (hlo::iota(b, all, 0) * static_cast<double>(k.n) + hlo::iota(b, all, 1)) *
                    static_cast<double>(k.c);
  k.lp = reshape(hlo::take(log_probs, flat), flat.dims());
  k.minus_inf = hlo::lowest(b, log_probs.dtype());
  return k;
}

// log(e^a + e^b + e^c); -inf if all are.
Value log_sum_exp(Value a, Value b, Value c) {
  Value m = hlo::maximum(a, hlo::maximum(b, c));
  Value safe = select(hlo::is_inf(m), scalar(m, 0), m);
  return hlo::log(hlo::exp(a - safe) + hlo::exp(b - safe) + hlo::exp(c - safe)) + safe;
}

Value frame(const Ctc& k, Value x, Value t) {
  return reshape(hlo::dynamic_slice(x, {t, s32(t, 0), s32(t, 0)}, {1, k.n, k.places}),
                 {k.n, k.places});
}

// Runs `step`(row, frame number) -> row over the frames, forwards or backwards; all rows, [t, n,
// places].
Value over_frames(const Ctc& k, bool forwards, const std::function<Value(Value, Value)>& step) {
  hlo::Builder& b = k.lp.builder();
  const DType type = k.lp.dtype();
  Value none = hlo::broadcast_to(k.minus_inf, {k.n, k.places});
  return hlo::while_(
      {s32(k.lp, 0), none, hlo::full(b, {type, k.lp.dims()}, 0)},
      [&](const Values& v) { return compare(v[0], s32(v[0], k.t), hlo::Compare::lt); },
      [&](const Values& v) {
        Value t = forwards ? v[0] : s32(v[0], k.t - 1) - v[0];
        Value row = step(v[1], t);
        Value all =
            hlo::dynamic_update_slice(v[2], hlo::unsqueeze(row, 0), {t, s32(t, 0), s32(t, 0)});
        return Values{v[0] + 1.0, row, all};
      })[2];
}

// x with its places moved by `by`, -inf moving in.
Value shifted(const Ctc& k, Value x, int64_t by) {
  return hlo::pad(x, k.minus_inf, {0, by}, {0, -by}, {0, 0});
}

// alpha[t, n, p]: log of the probability of frames 0..t spelling places 0..p and ending there.
Value forward_sums(const Ctc& k) {
  return over_frames(k, true, [&](Value row, Value t) {
    Value skip = select(k.skips, shifted(k, row, 2), k.minus_inf);
    Value sum = log_sum_exp(row, shifted(k, row, 1), skip);
    Value start = select(k.place < 2.0, scalar(row, 0), k.minus_inf);
    sum = select(hlo::broadcast_to(t == 0.0, sum.dims()), start, sum);
    Value inside = k.place < k.lengths;
    return select(inside, sum + frame(k, k.lp, t), k.minus_inf);
  });
}

// beta[t, n, p]: log of the probability of frames t.. of the sample spelling places p.., from p on.
Value backward_sums(const Ctc& k) {
  Value skips = hlo::pad(k.skips, hlo::constant(k.skips.builder(), DType::pred, false), {0, -2},
                         {0, 2}, {0, 0});  // to two places after
  return over_frames(k, false, [&](Value row, Value t) {
    Value skip = select(skips, shifted(k, row, -2), k.minus_inf);
    Value sum = log_sum_exp(row, shifted(k, row, -1), skip);
    Value end = select(k.place >= k.lengths - 2.0, scalar(row, 0), k.minus_inf);
    Value last = hlo::broadcast_to(k.frames - 1.0 == t, sum.dims());
    sum = select(last, end, sum);
    Value inside = (k.place < k.lengths) & (hlo::broadcast_to(t, k.frames.dims()) < k.frames);
    return select(inside, sum + frame(k, k.lp, t), k.minus_inf);
  });
}

// results  -log p [n], inf where no path fits; alpha [n, t, places] for the backward
std::pair<Value, Value> ctc_loss(Context& ctx, Value log_probs, Value targets, Value input_lengths,
                                 Value target_lengths, int64_t blank, bool /*zero_infinity*/) {
  if (log_probs.dtype() != DType::f32 && log_probs.dtype() != DType::f64)
    refuse("ctc_loss_cpu", log_probs.dtype());
  const Ctc k = prepare(ctx, log_probs, targets, input_lengths, target_lengths, blank);
  // Eager code refuses these before, with the numbers; a graph finds them out here.
  const auto outside = [&](Value lengths, int64_t most) {
    return hlo::any((lengths < 0.0) | (lengths > static_cast<double>(most)), {0, 1});
  };
  ctx.builder.check(outside(k.frames, k.t),
                    "RuntimeError: Expected input_lengths to have values from 0 to " +
                        std::to_string(k.t) + " (while checking arguments for ctc_loss)");
  ctx.builder.check(outside(k.lengths, k.places),
                    "RuntimeError: Expected target_lengths to have values from 0 to " +
                        std::to_string(targets.dim(1)) +
                        " (while checking arguments for ctc_loss)");
  Value alpha = forward_sums(k);
  Value ends =
      (k.place >= k.lengths - 2.0) & (k.place < k.lengths);  // the last label, the last blank
  const Dims all = alpha.dims();
  Value frame_of = hlo::iota(ctx.builder, {DType::s32, all}, 0);
  Value here = (frame_of == hlo::unsqueeze(k.frames - 1.0, 0)) & hlo::unsqueeze(ends, 0);
  Value last = hlo::max(select(here, alpha, k.minus_inf), {0});  // [n, places]
  // No frame at all spells the empty target only.
  Value nothing = select((k.frames == 0.0) & (k.lengths == 1.0) & (k.place == 0.0), scalar(last, 0),
                         k.minus_inf);
  last = select(hlo::broadcast_to(k.frames == 0.0, last.dims()), nothing, last);
  Value m = hlo::max(last, {1}, hlo::keep_dims);
  Value safe = select(hlo::is_inf(m), scalar(m, 0), m);
  Value p = hlo::log(hlo::sum(hlo::exp(last - safe), {1}, hlo::keep_dims)) + safe;
  return {reshape(0.0 - p, {k.n}), hlo::transpose(alpha, {1, 0, 2})};
}

// dlog_probs[t, n, c] = grad_n (e^lp - sum over the places of label c of e^(alpha + beta + loss -
// lp)), 0 after the sample's frames. Where the loss is inf: NaN, or 0 with zero_infinity.
Value ctc_loss_backward(Context& ctx, Value grad, Value log_probs, Value targets,
                        Value input_lengths, Value target_lengths, Value loss, Value log_alpha,
                        int64_t blank, bool zero_infinity) {
  const Ctc k = prepare(ctx, log_probs, targets, input_lengths, target_lengths, blank);
  Value alpha = hlo::transpose(log_alpha, {1, 0, 2}), beta = backward_sums(k);
  Value nll = reshape(loss, {1, k.n, 1}), both = alpha + beta;
  Value reached = both > k.minus_inf;
  Value share = select(reached, hlo::exp(both + nll - k.lp), scalar(both, 0));
  Value label = hlo::iota(ctx.builder, {DType::s32, {k.n, k.places, k.c}}, 2);
  Value hot = convert(label == hlo::unsqueeze(k.at, 2), share.dtype());
  Value by_label =  // [n, t, c]
      hlo::dot_general(share, hot, {{1}, {0}, {2}, {1}}, share.dtype(), hlo::Precision::highest);
  Value d = hlo::exp(log_probs) - hlo::transpose(by_label, {1, 0, 2});
  d = d * reshape(hlo::broadcast_to(grad, {k.n}), {1, k.n, 1});
  Value infinite = hlo::is_inf(nll);
  d = select(hlo::broadcast_to(infinite, d.dims()), zero_infinity ? scalar(d, 0) : nan_like(d), d);
  Value t = hlo::iota(ctx.builder, {DType::s32, d.dims()}, 0);
  return select(t < hlo::unsqueeze(k.frames, 0), d, scalar(d, 0));
}

}  // namespace

void register_ctc_loss(Registry& r) {
  r.add("aten::_ctc_loss.Tensor", ctc_loss);
  r.add("aten::_ctc_loss_backward.Tensor", ctc_loss_backward);
}

}  // namespace torch_tpu::lower
