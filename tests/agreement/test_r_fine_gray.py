"""Fine and Gray's regression with delayed entry and strata: the numbers of R's finegray and coxph."""

from __future__ import annotations

import numpy as np
import pytest
from tests.agreement.fine_gray_data import CASES, drawn, numbers

# The lines of fine_gray.R, survival 3.5-3, R 4.2.2: coefficients, then hazards at 0.5, 1 and 2, by strata.
RECORDED = {
    "plain": [0.356989876549432, -0.510250536895759, 0.172435830759182, 0.316920399973932, 0.515605961192938],
    "strata": [
        0.379257934025405, -0.461943816404121, 0.221179033178504, 0.43143618210358, 0.852140496074206,
        0.144584644730219, 0.30442415462158, 0.467896923704116, 0.149437266272133, 0.226258883905549,
        0.353986199114574,
    ],
    "entry": [0.315658960966293, -0.52176135782883, 0.217063537866938, 0.358995838107119, 0.542702290878557],
    "both": [
        0.336409161652059, -0.498600444757419, 0.302366615379913, 0.505132198191761, 0.871855488368348,
        0.183475932399925, 0.342665287935432, 0.498073222048197, 0.184076150479218, 0.261749699389509,
        0.383419734577003,
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_recorded_numbers(case):
    np.testing.assert_allclose(numbers(drawn(), case), RECORDED[case], rtol=1e-8)
