"""Print the kernels of OpenBLAS and NumPy that this processor can run besides those it picks by itself.

One line for each, as settings of the environment: ``OPENBLAS_CORETYPE=Haswell``. Results of matrix products
differ between kernels in the last digits, so a tolerance that is too tight holds under one and fails under
another.
"""

from __future__ import annotations

from threadpoolctl import threadpool_info

try:
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
except ImportError:  # NumPy before 2.0
    from numpy.core._multiarray_umath import __cpu_dispatch__, __cpu_features__

# The feature that each kernel of OpenBLAS needs, from the oldest processor to the newest.
NEEDS = {"Prescott": "SSE3", "Haswell": "AVX2", "Zen": "AVX2", "SkylakeX": "AVX512_SKX"}


def other_kernels() -> list[str]:
    """List settings for the kernels that the processor has and does not use by default."""
    chosen = {library.get("architecture") for library in threadpool_info()}
    settings = {
        kernel: f"OPENBLAS_CORETYPE={kernel}"
        for kernel, feature in NEEDS.items()
        if kernel not in chosen and __cpu_features__.get(feature)
    }
    dispatched = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    if dispatched:  # an old processor has neither the new kernels of OpenBLAS nor those of NumPy
        oldest = settings.get("Prescott", "")
        settings["Prescott"] = f"{oldest} NPY_DISABLE_CPU_FEATURES={','.join(dispatched)}".strip()
    return list(settings.values())


if __name__ == "__main__":
    print(*other_kernels(), sep="\n")
