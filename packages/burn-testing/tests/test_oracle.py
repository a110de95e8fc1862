import numpy as np

from burn_ir import CATALOG
from burn_std.dtypes import float32, int32, int64
from burn_testing.oracle import ORACLES, map_oracle
from burn_testing.oracle.random import block


def test_philox_gives_the_known_answers() -> None:
    # kat_vectors of the Random123 distribution, philox4x32-10
    assert block((0, 0), 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 2**64 - 1
    assert block((ones, ones), ones) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    seed = 0x299F31D0_A4093822
    counter, number = 0x03707344_13198A2E, 0x85A308D3_243F6A88
    assert block((seed, counter), number) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_every_operation_without_decomposition_has_a_reference() -> None:
    covered_elsewhere = {"grid_sample_backward"}  # by the gradient checks of grid_sample
    missing = [
        e.name for e in CATALOG
        if e.decompose is None and e.expr is None and e.name not in ORACLES
        and e.name not in covered_elsewhere and "::" not in e.name
    ]  # fmt: skip
    assert missing == []


def test_maps_follow_their_expression() -> None:
    x = np.array([-1.5, 0.0, 2.0])
    assert map_oracle(CATALOG["relu"], [x], (), float32).tolist() == [0, 0, 2]
    y, zero = np.array([7, -7], np.int32), np.array([0, 0], np.int32)
    assert map_oracle(CATALOG["floor_divide"], [y, zero], (), int32).tolist() == [0, 0]
    assert map_oracle(
        CATALOG["pow"], [np.array([2, 3]), np.array([-1, 2])], (), int64
    ).tolist() == [0, 9]
