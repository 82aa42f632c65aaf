"""The long run: ``python -m tests.fuzz [--examples N] [--seed N]`` prints how the calls ended."""

from __future__ import annotations

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from tests.fuzz.calls import calls
from tests.fuzz.command_line import fuzz_commands
from tests.fuzz.invariant import Count, judge
from tests.fuzz.recipes import DISTRIBUTIONS, ESTIMATORS, EVALUATION, OUTCOMES, RECIPES, SCENARIOS, SCORES

GROUPS = {
    "distributions": DISTRIBUTIONS,
    "outcomes": OUTCOMES,
    "scores and published rules": SCORES,
    "estimators": ESTIMATORS,
    "comparisons and evaluation": EVALUATION,
    "scenarios": SCENARIOS,
}


def fuzz(name: str, examples: int, count: Count, seconds: float = 10.0, seed: int = 0) -> None:
    """Call one public name, and count how the calls end."""

    @seeded(seed)
    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(call=calls(name))
    def run(call):
        count.add(name, call, *judge(call, seconds))

    run()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--examples", type=int, default=400, help="calls of each name, fewer of what takes long"
    )
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", type=int, default=None, help="calls of the command line")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name] or list(RECIPES)
    total, start = Count(), time.monotonic()
    for group, members in GROUPS.items():
        count = Count()
        for name in (name for name in members if name in names):
            fuzz(name, max(2, int(options.examples * RECIPES[name].share)), count, seed=options.seed)
        if count.calls:
            print(f"{group}: {count}", flush=True)
        total.kinds.update(count.kinds)
        for line in count.lines():
            print(f"  {line}", flush=True)
    commands = options.examples if options.commands is None else options.commands
    if commands and not options.only:
        count = Count()
        fuzz_commands(commands, count, options.seed)
        print(f"command line: {count}", *(f"  {line}" for line in count.lines()), sep="\n", flush=True)
        total.kinds.update(count.kinds)
    print(f"in all: {total} ({time.monotonic() - start:.0f} s)")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
