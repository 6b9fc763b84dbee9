// SPDX-License-Identifier: Apache-2.0
#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

void multinomial(CheckArgs a) {
  const at::Tensor& weights = a[0].toTensor();
  TORCH_CHECK(weights.dim() == 1 || weights.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(
      at::isFloatingType(weights.scalar_type()),
      "multinomial only supports floating-point dtypes for input, got: ", weights.scalar_type());
  TORCH_CHECK(a[1].toInt() > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(a[2].toBool() || a[1].toInt() <= weights.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(weights.size(-1) <= (int64_t{1} << 24), "number of categories cannot exceed 2^24");
}

void multinomial_out(CheckArgs a) {
  TORCH_CHECK(a[4].toTensor().scalar_type() == at::kLong,
              "multinomial expects Long tensor out, got: ", a[4].toTensor().scalar_type());
}

void uniform(CheckArgs a) {
  const double from = a[1].toDouble(), to = a[2].toDouble();
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from,
              " > to=", to);
}

void random_from(CheckArgs a) {
  if (a[2].isNone()) return;
  TORCH_CHECK(a[1].toInt() < a[2].toInt(),
              "random_ expects 'from' to be less than 'to', but got from=", a[1].toInt(),
              " >= to=", a[2].toInt());
}

void normal(CheckArgs a) {
  TORCH_CHECK(a[2].toDouble() >= 0.0, "normal expects std >= 0.0, but found std ", a[2].toDouble());
}

void exponential_dtype(CheckArgs a) {
  const at::ScalarType t = a[0].toTensor().scalar_type();
  TORCH_CHECK(at::isFloatingType(t),
              "Exponential distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              t);
}

void cauchy_dtype(CheckArgs a) {
  const at::Tensor& self = a[0].toTensor();
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "Cauchy distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              self.dtype());
}

// self, p: p has self's shape once expanded.
void bernoulli_tensor(CheckArgs a) {
  const at::Tensor &self = a[0].toTensor(), &p = a[1].toTensor();
  p.expand(self.sizes());
  if (!at::isFloatingType(p.scalar_type()))
    refuse_dtype("bernoulli_tensor_cpu_p_", p.scalar_type());
}

// self, noise, lower, upper, training.
void rrelu_with_noise(CheckArgs a) {
  const at::Tensor &self = a[0].toTensor(), &noise = a[1].toTensor();
  TORCH_CHECK(self.sizes() == noise.sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
              " noise.shape = ", noise.sizes());
  if (at::isFloatingType(self.scalar_type())) return;
  refuse_dtype(a[4].toBool() ? "rrelu_with_noise_out_cpu" : "leaky_relu_cpu", self.scalar_type());
}

// Draws of continuous distributions into a tensor: the dtype first, as on CPU.
template <const char* kName, const char* kRange, int kArgument, bool (*kFits)(double)>
void draw(CheckArgs a) {
  if (!at::isFloatingType(a[0].toTensor().scalar_type())) return;
  const double v = a[kArgument].toDouble();
  TORCH_CHECK(kFits(v), kName, kRange, v);
}
bool is_positive(double v) { return v > 0.0; }
bool is_probability(double v) { return v > 0.0 && v < 1.0; }
constexpr char kExponential[] = "exponential_", kGeometric[] = "geometric_", kCauchy[] = "cauchy_",
               kLogNormal[] = "log_normal_", kLambda[] = " expects lambda > 0.0, but found lambda=",
               kP[] = " expects p to be in (0, 1), but got p=",
               kSigma[] = " expects sigma > 0.0, but found sigma=",
               kStd[] = " expects std > 0.0, but found std=";

}  // namespace

void add_random_checks(CheckTable& table) {
  table.insert({
      {"aten::multinomial", multinomial},
      {"aten::multinomial.out", multinomial_out},
      {"aten::exponential", exponential_dtype},
      {"aten::cauchy", cauchy_dtype},
      {"aten::bernoulli.Tensor", bernoulli_tensor},
      {"aten::rrelu_with_noise", rrelu_with_noise},
      {"aten::rrelu_with_noise_functional", rrelu_with_noise},
      {"aten::rrelu_with_noise_", rrelu_with_noise},
  });
}

void add_random_number_checks(CheckTable& table) {
  table.insert({
      {"aten::uniform", uniform},
      {"aten::random.from", random_from},
      {"aten::normal_functional", normal},
      {"aten::exponential", draw<kExponential, kLambda, 1, is_positive>},
      {"aten::geometric", draw<kGeometric, kP, 1, is_probability>},
      {"aten::cauchy", draw<kCauchy, kSigma, 2, is_positive>},
      {"aten::log_normal", draw<kLogNormal, kStd, 2, is_positive>},
  });
}

}  // namespace torch_tpu::aten
