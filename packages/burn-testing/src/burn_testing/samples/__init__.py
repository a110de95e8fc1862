"""Inputs worth testing and calls that must be refused, for every operation of the catalogue.

One module per family, as everywhere. A third party adds samples of its own operations with
`sample(...)` and `error(...)`, and the conformance suite picks them up.
"""

from burn_testing.samples import (  # noqa: F401 - importing fills the tables
    conv,
    edges,
    index,
    linalg,
    loss,
    maps,
    norm,
    optim,
    pool,
    quant,
    random,
    recurrent,
    reduce,
    resample,
    shape,
    special,
)
from burn_testing.samples.sample import (
    ERRORS as ERRORS,
    SAMPLES as SAMPLES,
    Draw as Draw,
    ErrorSample as ErrorSample,
    Sample as Sample,
    arrays as arrays,
    as_bfloat16 as as_bfloat16,
    dtype_of as dtype_of,
    error as error,
    ints as ints,
    sample as sample,
    t as t,
    v as v,
)
