"""Special functions: gamma and its derivatives, the error function's kin.

The expressions are written out by a few helpers, from Chebyshev fits (relative errors below 2e-16)
and the classical expansions; all terms of a sum have one sign wherever that is possible, so f32 is
accurate too. `decompose_special` runs the same expressions as operations.
"""

from burn_ir.entry import op
from burn_ir.rules import basic as r

# Coefficients of rising powers. lgamma(y) / ((y - 1) (y - 2)) of y - 2, for y in [1.5, 2.5]
_LGAMMA = (
    0.42278433509846713, -0.10031730167435392, 0.03296500062115582, -0.012384192193371354,
    0.004998641164697329, -0.002108130833949211, 0.0009153769222493582, -0.00040570739776849235,
    0.00018255263918030617, -8.309512065991473e-05, 3.8168886839303915e-05,
    -1.7661749741053172e-05, 8.222223538994353e-06, -3.846729097394708e-06,
    1.8078213148269973e-06, -8.559853958872399e-07, 4.0516857334255604e-07,
    -1.8231384052730353e-07, 8.673205951095157e-08, -5.9191034539430366e-08,
    2.8331179755524595e-08,
)  # fmt: skip
# erfinv(x) / x of w - 3.125, s - 3.25 and s - 5.0625, with w = -log(1 - x^2) and s = sqrt(w), for
# w below 6.25, below 16, and up to where x rounds to 1.
_NEAR = (
    1.6536545626831027, 0.24015818242558834, -0.006033670871426851, -0.0007407025341546431,
    0.00018673420801981186, -1.3882523393957483e-05, -1.3654691758785656e-06,
    4.23478816822246e-07, -2.907039127564132e-08, -4.1126604371632185e-09, 1.051223377050429e-09,
    -5.414303283919504e-11, -1.2978805369932565e-11, 2.6305268312595183e-12,
    -8.07192593899004e-14, -4.0020031087558496e-14, 6.521333511502239e-15, -3.94018812230432e-17,
    -1.2215637192404172e-16, 1.5510787009902526e-17, 6.075050702072414e-19,
    -3.4734793888538036e-19, 1.999259988861535e-20, 3.194015548136271e-21,
    -3.5932028927020693e-22,
)  # fmt: skip
_MIDDLE = (
    3.0838856104922208, 1.0052589676941655, 0.005370914553555033, -0.0037512085082247342,
    0.00249144209795696, -0.0016882755354488555, 0.0009532893415794137, -0.0003550378137852452,
    2.4031512865758357e-05, 6.828711739251955e-05, -4.732068066544697e-05, 1.2465028224217455e-05,
    2.93257845538535e-06, -3.985705945648173e-06, 1.4815977874022539e-06, -2.761716223816241e-08,
    -2.4549818963339823e-07, 1.3158663683192966e-07, -2.091453334773126e-08,
    -1.5305397964152548e-08, 7.680200479077053e-09,
)  # fmt: skip
_FAR = (
    4.913049587233785, 1.0102806778035616, -0.0001773033612940883, -0.00019677853808005522,
    7.010167454796058e-05, -1.8062951474179973e-05, 4.11535735939531e-06, -8.872288603049178e-07,
    1.955868508334529e-07, -5.2295574459178795e-08, 2.0345516823606276e-08,
    -1.0372598334526127e-08, 5.382653799987644e-09, -2.449011385263865e-09, 9.87011400656914e-10,
    -3.7346007841372697e-10, 7.826551524548171e-11, 2.6048228659691358e-11,
    -1.4386446242363291e-11,
)  # fmt: skip
# log(erfc(z) / t) + z^2 of t - 0.5, with t = 2 / (2 + z), for z >= 0.
_ERFC = (
    -0.6717940840566923, 1.3452864479553135, 0.18937322736761625, -0.3751648818494049,
    -0.15796302986185742, 0.28239803382629247, 0.11257174766026243, -0.3002640000846862,
    -0.03743919495901435, 0.3449235441764796, -0.09598473769766268, -0.3569724551321226,
    0.29245991115741155, 0.26005680558505023, -0.49461731370787637, 0.004509968898301778,
    0.561345716691358, -0.3863763292710932, -0.3348056945069408, 0.6552623437040956,
    -0.17052049889303997, -0.5230277267086562, 0.6227414431129573, 0.011254853162232958,
    -0.6129079543658122, 0.3760189076418078, 0.21597949611726697, -0.2543669034060866,
    0.03223272456081211,
)  # fmt: skip
# digamma(y) / (y - root) of y - 1.5, for y in [1, 2]; the root in two parts, one exact in f32.
_NEAR_ROOT = (
    0.9510558760318328, -0.4236274212814606, 0.24054248424078697, -0.14840492305388092,
    0.09498872445289039, -0.06192213327548831, 0.040760833940846085, -0.026975796659787055,
    0.017907248317313294, -0.011908220105959716, 0.007927021796868154, -0.005279937255532708,
    0.003518106563802472, -0.0023454947397380833, 0.0015633696313653504, -0.0010364584817312839,
    0.0006909255761282986, -0.00048595039220036254, 0.00032395945401345196,
    -0.00014480643368061614, 9.653646261410062e-05, -0.0001782188548855923,
    0.00011881232908510335,
)  # fmt: skip
_ROOT = (1.4616321325302124, 1.2438149938918909e-08)
# B[2k] / (2k (2k - 1)), of the expansion of lgamma, and B[2k] / 2k, of that of digamma.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156,
             -3617 / 122400, 43867 / 244188)  # fmt: skip
_PSI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def _series(t: str, coefficients: tuple[float, ...]) -> str:
    """Return a polynomial in t by Horner's scheme."""
    out = repr(coefficients[-1])
    for c in coefficients[-2::-1]:
        out = f"({c!r} + {t} * {out})"
    return out


def _lgamma() -> str:
    """From [1.5, 2.5] by steps of one up to 8.5 and down to 0, beyond by Stirling's series.

    Below 0 by reflection, log(pi) - log|x| - log|sin(pi x)| - lgamma|x|.
    """
    a = "abs(x)"
    n = f"maximum(minimum(floor({a} - 1.5), 6), -2)"
    # The distance from 2 after n steps, without the rounding of a step up.
    u, far = f"({a} - ({n} + 2))", f"{a} >= 8.5"
    above = " * ".join(f"where({n} > {k}, {u} + {k + 2}, 1)" for k in range(6))
    below = f"{a} * where({n} < -1, {a} + 1, 1)"
    log = f"log(where({far}, {a}, where({n} < 0, {below}, {above})))"
    middle = f"where({n} < 0, -{log}, {log}) + {u} * ({u} + 1) * {_series(u, _LGAMMA)}"
    tail = f"1 / {a} * {_series(f'(1 / ({a} * {a}))', _STIRLING)}"
    size = f"where({far}, ({a} - 0.5) * ({log} - 1) + 0.4189385332046727 + {tail}, {middle})"
    turn = f"1.1447298858494002 - log({a}) - log(abs(sin(3.141592653589793 * ({a} - round({a})))))"
    signed = f"where(x < 0, {turn}, 0) + where(x < 0, -1, 1) * {size}"
    return f"where({a} == inf, inf, {signed})"


def _digamma() -> str:
    """From [1, 2] by steps of one up to 10 and down to 0, beyond by the asymptotic series.

    Below 0 by reflection, digamma(1 - x) - pi / tan(pi x).
    """
    t = "where(x < 0, 1 - x, x)"
    n = f"minimum(floor({t}) - 1, 8)"
    y = f"({t} - {n})"
    # The smallest first; of -0.0 nothing but the reciprocal keeps the sign.
    above = "0"
    for k in range(7, -1, -1):
        above = f"({above} + where({n} > {k}, 1 / ({y} + {k}), 0))"
    steps = f"where({n} < 0, -1 / {t}, {above})"
    middle = (
        f"({y} - {_ROOT[0]!r} - {_ROOT[1]!r}) * {_series(f'({y} - 1.5)', _NEAR_ROOT)} + {steps}"
    )
    z = f"(1 / ({t} * {t}))"
    far = f"log({t}) - 0.5 / {t} - {z} * {_series(z, _PSI)}"
    value = f"where({t} >= 10, {far}, {middle})"
    turn = "where(x < 0, 3.141592653589793 / tan(3.141592653589793 * (x - round(x))), 0)"
    return f"where((x < 0) & (floor(x) == x), inf - inf, {value} - {turn})"


def _erfinv() -> str:
    w = "(-log((1 - x) * (1 + x)))"
    near = _series(f"({w} - 3.125)", _NEAR)
    middle = _series(f"(sqrt({w}) - 3.25)", _MIDDLE)
    far = _series(f"(sqrt({w}) - 5.0625)", _FAR)
    return (
        f"where(abs(x) == 1, x * inf,"
        f" x * where({w} < 6.25, {near}, where({w} < 16, {middle}, {far})))"
    )


def _erfc() -> str:
    t = "(2 / (2 + abs(x)))"
    value = f"{t} * exp({_series(f'({t} - 0.5)', _ERFC)} - abs(x) * abs(x))"
    return f"where(x < 0, 2 - {value}, {value})"


# A table reads better with one entry on as few lines as it needs.
# fmt: off

for _name, _text, _doc in (
    ("lgamma", _lgamma(), "logarithm of the magnitude of gamma(x)"),
    ("digamma", _digamma(), "derivative of lgamma; NaN at negative integers, -inf at 0"),
    ("erfinv", _erfinv(), "inverse of erf; NaN outside [-1, 1]"),
    ("erfc", _erfc(), "1 - erf(x), exact where erf rounds to 1"),
):
    op(_name, "x", "", r.unary(_name, "float"), "map", _doc, lift=True, accepts="float",
       expr=_text, autocast="f32", derived="special")
op("polygamma", "x", "n", r.polygamma, "opaque", "derivative of digamma, n times; n is at least 1",
   lift=True, accepts="float", autocast="f32", derived="special")
op("logcumsumexp", "x", "dim", r.scan_float("logcumsumexp"), "reduce",
   "log(cumsum(exp(x))) along one dim, stable", lift=True, accepts="float", autocast="f32",
   edges="nan_propagates", derived="special")
