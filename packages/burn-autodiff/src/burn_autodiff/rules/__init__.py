"""One backward rule per differentiable entry of the catalogue; importing this fills `RULES`."""

from burn_autodiff.rules import (
    activation as activation,
    attention as attention,
    fft as fft,
    index as index,
    linalg as linalg,
    loss as loss,
    maps as maps,
    nn as nn,
    norm as norm,
    quant as quant,
    random as random,
    recurrent as recurrent,
    reduce as reduce,
    shape as shape,
    special as special,
)
from burn_autodiff.rules.table import RULES as RULES, Call as Call, Rule as Rule, rule as rule
