"""What all tests share: their order, seeded randomness, real data where present, what is searched for."""

from __future__ import annotations

import gc
import os
import random
import tempfile
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

if TYPE_CHECKING:
    import numpy as np

ROOT = Path(__file__).resolve().parent

pytest_plugins = ["tests.missing_packages"]

# One thread per process: the tests are parallel over processes already. Libraries read these variables when
# they are imported, so nothing above imports one. Numba counts the cores itself and tells OpenMP how many
# threads to use; the networks of later tests would use as many, and spend their time waiting for each other.
for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Kernels for a GPU; their package exists only where one can be.
collect_ignore = [] if find_spec("triton") else ["src/censcore/scores/kernels/energy_pairs_triton.py"]

# The same examples in every run, and no verdict by elapsed time: machines differ.
settings.register_profile("censcore", derandomize=True, deadline=None)
settings.load_profile("censcore")

# Real data may lie beside the checkout; nothing that is installed looks there by itself.
DATA = Path(os.environ.setdefault("CENSCORE_DATA", str(ROOT.parent / "shared" / "data")))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The number of a random order."""
    parser.addoption("--order", type=int, metavar="SEED", help="run the tests in a random order")


def pytest_configure(config: pytest.Config) -> None:
    """Where one may write neither here nor at home, other packages get a folder as long as the tests run.

    Ours needs none, as a test shows; two that it is compared with cannot be imported without.
    """
    writable = any(os.access(folder, os.W_OK) for folder in (ROOT / "src", Path.home()))
    places = ("NUMBA_CACHE_DIR", "PYCOX_DATA_DIR")
    if not writable and not any(name in os.environ for name in places):  # processes of xdist inherit them
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ |= dict.fromkeys(places, folder.name)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end, so the garbage collector need not search it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Libraries report what is not collected at the end."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Tests have no examples in docstrings, so these are not searched for."""
    found = yield
    if "tests" not in file_path.relative_to(ROOT).parts:
        return found
    return [collector for collector in found if not isinstance(collector, DoctestModule)]


@pytest.hookimpl(tryfirst=True)  # pytest then joins the tests that share a parameter of a fixture
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--order``, shuffle the modules and the tests of each, so that a module is prepared once.

    Examples of docstrings keep their order within a module.
    """
    if (seed := config.getoption("order")) is None:
        return
    modules: dict[Any, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault((item.path, isinstance(item, pytest.DoctestItem)), []).append(item)
    shuffle = random.Random(seed).shuffle
    for (_, of_docstrings), tests in modules.items():
        if not of_docstrings:
            shuffle(tests)
    groups = list(modules.values())
    shuffle(groups)
    items[:] = [item for tests in groups for item in tests]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How to repeat the order."""
    if (seed := config.getoption("order")) is not None:
        terminalreporter.write_line(f"order of the tests: make test SEED={seed}")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator seeded alike for every test."""
    import numpy as np

    return np.random.default_rng(20240917)


@pytest.fixture(scope="module")
def brief_members() -> Iterator[None]:
    """The mixture density network trains a twelfth of its steps, and boosting grows five trees.

    For claims that need no accuracy: most of the time of a small fit goes into these two.
    """
    pytest.importorskip("torch", reason="networks need the extra 'torch'")
    from censcore import BoostedHazards

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("censcore.learning.mixture_density_network._STEPS", 1.0)
        patch.setitem(BoostedHazards.__init__.__kwdefaults__, "max_iter", 5)
        yield


@pytest.fixture(autouse=True)
def _errors_of_numpy() -> Iterator[None]:
    """What NumPy warns of is as before: lifelines changes it, and later tests would not see warnings."""
    import numpy as np

    with np.errstate():
        yield


@pytest.fixture(autouse=True)
def _registered_scores() -> Iterator[None]:
    """Scores that a test or an example registers are gone after it."""
    from censcore.scores import SCORES

    known = dict(SCORES)
    yield
    if known != SCORES:
        SCORES.clear()
        SCORES.update(known)


def _data(name: str) -> Path:
    """The folder ``name`` of the real data, or a skip that says how to get it."""
    if not (DATA / name).is_dir():
        pytest.skip(f"no folder {name!r} under {DATA}; set CENSCORE_DATA to the folder that holds it")
    return DATA / name


@pytest.fixture(scope="session")
def survival_data() -> Path:
    """Folder of the survival data sets (colon.csv, mgus2.csv, ...)."""
    return _data("survival")


@pytest.fixture(scope="session")
def mimic_demo() -> Path:
    """Folder of the open MIMIC-IV demo (hosp/, icu/)."""
    return _data("mimic-iv-demo")


@pytest.fixture(scope="session")
def r_data() -> Path:
    """Folder of numbers that R's packages returned, with their data (results.csv, data_*.csv)."""
    return _data("r")


@pytest.fixture(scope="session")
def neutral_benchmark() -> Path:
    """Folder of the tables, folds and scores of the neutral benchmark (gbsg.csv.gz, ...)."""
    return _data("neutral-benchmark")
