from __future__ import annotations

import pandas as pd
import pytest
from tests.evaluation.streaming.tables import make_table


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    return make_table()
