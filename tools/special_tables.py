# SPDX-License-Identifier: Apache-2.0
"""Prints csrc/lower/special_tables.h: Chebyshev coefficients of Bessel, Airy and error functions.

Each function is written so that what remains is smooth on a finite interval, evaluated with mpmath
at the Chebyshev nodes and transformed; coefficients below 1e-18 of the largest are dropped. The
formulas are those of the Digital Library of Mathematical Functions, chapters 7, 9 and 10.

    python tools/special_tables.py > csrc/lower/special_tables.h     (needs mpmath; a minute)
"""

from __future__ import annotations

from collections.abc import Callable

from mpmath import (
    airyai,
    airybi,
    besseli,
    besselj,
    besselk,
    bessely,
    cos,
    erfc,
    exp,
    log,
    mp,
    mpf,
    pi,
    sin,
    sqrt,
)

mp.dps = 40
NODES = 64


def coefficients(f: Callable, low: mpf, high: mpf) -> list[mpf]:
    """c with f(x) = sum c_k T_k(t), t in [-1, 1] the place of x in [low, high]."""
    angles = [pi * (j + mpf(1) / 2) / NODES for j in range(NODES)]
    values = [f(low + (high - low) * (cos(a) + 1) / 2) for a in angles]
    c = [
        2 * sum(v * cos(k * a) for v, a in zip(values, angles, strict=True)) / NODES
        for k in range(NODES)
    ]
    c[0] /= 2
    largest = max(abs(x) for x in c)
    while abs(c[-1]) < largest * mpf("1e-18"):
        c.pop()
    return c


def modulus_phase(nu: int) -> tuple[Callable, Callable]:
    """P and Q of J = sqrt(2 / (pi x)) (P cos w - Q sin w), Y = ... (P sin w + Q cos w), w = x -
    (nu/2 + 1/4) pi; as functions of s = (8 / x)^2, and Q as x Q.
    """

    def parts(s):
        x = 8 / sqrt(s)
        w, scale = x - (mpf(nu) / 2 + mpf(1) / 4) * pi, sqrt(pi * x / 2)
        j, y = besselj(nu, x) * scale, bessely(nu, x) * scale
        return j * cos(w) + y * sin(w), (y * cos(w) - j * sin(w)) * x

    return (lambda s: parts(s)[0]), (lambda s: parts(s)[1])


def airy_phase() -> tuple[Callable, Callable]:
    """F and G of Ai(-z) = z^(-1/4) / sqrt(pi) (sin(a) F - cos(a) G), a = 2/3 z^(3/2) + pi/4, by u =
    1 / (2/3 z^(3/2)).
    """

    def parts(u):
        zeta = 1 / u
        z, a = (mpf(3) / 2 * zeta) ** (mpf(2) / 3), zeta + pi / 4
        ai, bi = airyai(-z), airybi(-z)
        scale = sqrt(pi) * z ** (mpf(1) / 4)
        return scale * (ai * sin(a) + bi * cos(a)), scale * (bi * sin(a) - ai * cos(a))

    return (lambda u: parts(u)[0]), (lambda u: parts(u)[1])


def airy_decay(u):
    """2 sqrt(pi) z^(1/4) e^(1/u) Ai(z)"""
    z = (mpf(3) / 2 / u) ** (mpf(2) / 3)
    return 2 * sqrt(pi) * z ** (mpf(1) / 4) * exp(1 / u) * airyai(z)


def y1_small(s):
    """(Y1(x) - 2/pi (log(x) J1(x) - 1/x)) / x of x = sqrt(s)"""
    x = sqrt(s)
    return (bessely(1, x) - 2 / pi * (log(x) * besselj(1, x) - 1 / x)) / x


def erfcx(t):
    """(1 + 2x) e^(x^2) erfc(x) of t = (x - 3.75) / (x + 3.75)"""
    x = mpf("3.75") * (1 + t) / (1 - t)
    return (1 + 2 * x) * exp(x * x) * erfc(x)


def main() -> None:
    tiny, small = mpf("1e-25"), mpf("1e-6")
    p0, q0 = modulus_phase(0)
    p1, q1 = modulus_phase(1)
    f, g = airy_phase()
    edge = 1 / (mpf(2) / 3 * mpf(2) ** (mpf(3) / 2))  # z = 2
    tables = [
        ("I0Small", "e^-x I0(x), x in [0, 8]", lambda x: exp(-x) * besseli(0, x), tiny, 8),
        (
            "I0Large",
            "e^-x sqrt(x) I0(x) by 8/x in [0, 1]",
            lambda s: exp(-8 / s) * sqrt(8 / s) * besseli(0, 8 / s),
            small,
            1,
        ),
        ("I1Small", "e^-x I1(x) / x, x in [0, 8]", lambda x: exp(-x) * besseli(1, x) / x, tiny, 8),
        (
            "I1Large",
            "e^-x sqrt(x) I1(x) by 8/x in [0, 1]",
            lambda s: exp(-8 / s) * sqrt(8 / s) * besseli(1, 8 / s),
            small,
            1,
        ),
        (
            "K0Small",
            "K0(x) + log(x/2) I0(x) by x^2 in [0, 4]",
            lambda s: besselk(0, sqrt(s)) + log(sqrt(s) / 2) * besseli(0, sqrt(s)),
            tiny,
            4,
        ),
        (
            "K0Large",
            "e^x sqrt(x) K0(x) by 2/x in [0, 1]",
            lambda s: exp(2 / s) * sqrt(2 / s) * besselk(0, 2 / s),
            small,
            1,
        ),
        (
            "K1Small",
            "x (K1(x) - log(x/2) I1(x)) by x^2 in [0, 4]",
            lambda s: sqrt(s) * (besselk(1, sqrt(s)) - log(sqrt(s) / 2) * besseli(1, sqrt(s))),
            tiny,
            4,
        ),
        (
            "K1Large",
            "e^x sqrt(x) K1(x) by 2/x in [0, 1]",
            lambda s: exp(2 / s) * sqrt(2 / s) * besselk(1, 2 / s),
            small,
            1,
        ),
        ("J0Small", "J0(x) by x^2 in [0, 64]", lambda s: besselj(0, sqrt(s)), tiny, 64),
        (
            "J1Small",
            "J1(x) / x by x^2 in [0, 64]",
            lambda s: besselj(1, sqrt(s)) / sqrt(s),
            tiny,
            64,
        ),
        (
            "Y0Small",
            "Y0(x) - 2/pi log(x) J0(x) by x^2 in [0, 64]",
            lambda s: bessely(0, sqrt(s)) - 2 / pi * log(sqrt(s)) * besselj(0, sqrt(s)),
            tiny,
            64,
        ),
        (
            "Y1Small",
            "(Y1(x) - 2/pi (log(x) J1(x) - 1/x)) / x by x^2 in [0, 64]",
            y1_small,
            tiny,
            64,
        ),
        ("P0", "P of order 0 by (8/x)^2 in [0, 1]", p0, small, 1),
        ("Q0", "x Q of order 0 by (8/x)^2 in [0, 1]", q0, small, 1),
        ("P1", "P of order 1 by (8/x)^2 in [0, 1]", p1, small, 1),
        ("Q1", "x Q of order 1 by (8/x)^2 in [0, 1]", q1, small, 1),
        ("AiryF", "F by 1/zeta in [0, 1/zeta(2)]", f, small, edge),
        ("AiryG", "G by 1/zeta in [0, 1/zeta(2)]", g, small, edge),
        (
            "AiryDecay",
            "2 sqrt(pi) z^(1/4) e^zeta Ai(z) by 1/zeta in [0, 1/zeta(2)]",
            airy_decay,
            small,
            edge,
        ),
        (
            "Erfcx",
            "(1 + 2x) e^(x^2) erfc(x) by t = (x - 3.75) / (x + 3.75) in [-1, 1]",
            erfcx,
            -1,
            1,
        ),
    ]
    print("// SPDX-License-Identifier: Apache-2.0\n#pragma once\n\n#include <vector>\n")
    print("// Chebyshev series, made by tools/special_tables.py.")
    print("namespace torch_tpu::lower::tables {\n")
    print("// sum c_k T_k(t), t in [-1, 1] the place of the argument in [low, high].")
    print("struct Series {\n  double low, high;\n  std::vector<double> c;\n};\n")
    for name, what, function, low, high in tables:
        print(f"// {what}\ninline const Series k{name} = {{{float(low)!r}, {float(high)!r}, {{")
        for c in coefficients(function, mpf(low), mpf(high)):
            print(f"    {mp.nstr(c, 20)},")
        print("}};\n")
    print("}  // namespace torch_tpu::lower::tables")


if __name__ == "__main__":
    main()
