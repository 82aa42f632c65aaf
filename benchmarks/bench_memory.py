"""Extra memory of scores on large forecasts, each in a fresh process: the peak above that of the inputs."""

from __future__ import annotations

import subprocess
import sys

CASES = {
    "crps, ensemble 1,000,000 x 200 float32": "crps(y, Ensemble(x), C)",
    "crps, ensemble 1,000,000 x 200 float64": "crps(y, Ensemble(x), C)",
    "pinball, ensemble 1,000,000 x 200 float32, 3 levels": "pinball_score(y, Ensemble(x), C, [.1, .5, .9])",
    "brier, ensemble 1,000,000 x 200 float32, 10 times": "brier_score(y, Ensemble(x), C, times)",
    "crps, Weibull under 2,000 jumps of C, 100,000 subjects float64": "crps(y, Weibull(1 + x[:, 0], 1.0), C)",
}

# The peak is reset after the inputs are made (Linux), so that their making does not count.
PROGRAM = """
import time
import numpy as np
from censcore import *
rng = np.random.default_rng(0)
x = rng.random({shape}, dtype={dtype!r})
c = rng.exponential(2.0, len(x))
T = rng.weibull(1.5, len(x))
y = RightCensored(np.minimum(T, c), c >= T)
times = np.linspace(0.1, 2, 10)
jumps = np.sort(rng.exponential(2.0, 2000))
C = Step(np.r_[jumps, 1e6], sf=np.r_[np.linspace(1, 1e-3, 2001)[1:], 0.0])
small = y[:3000], x[:3000]
y, whole, x = small[0], (y, x), small[1]
{score}  # compile, start the threads
y, x = whole

def memory(key):
    line = next(line for line in open('/proc/self/status') if line.startswith(key))
    return int(line.split()[1]) / 2**20

open('/proc/self/clear_refs', 'w').write('5')
before, start = memory('VmRSS'), time.perf_counter()
{score}
print(f"{{before:.2f}} {{memory('VmHWM') - before:.2f}} {{time.perf_counter() - start:.1f}}")
"""


def main() -> None:
    print(f"{'':64s} {'inputs GB':>10s} {'extra GB':>9s} {'seconds':>8s}")
    for name, score in CASES.items():
        shape = (100_000, 1) if "Weibull" in name else (1_000_000, 200)
        dtype = "float32" if "float32" in name else "float64"
        program = PROGRAM.format(shape=shape, dtype=dtype, score=score)
        done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True)
        held, extra, seconds = done.stdout.split()
        print(f"{name:64s} {held:>10s} {extra:>9s} {seconds:>8s}")


if __name__ == "__main__":
    main()
