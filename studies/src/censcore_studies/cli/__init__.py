"""What the studies add to the command line: ``censcore reproduce`` and ``censcore aki``."""

from censcore_studies.cli import engression, neutral_benchmark, stack_scenarios, survset
from censcore_studies.cli.aki import app as aki
from censcore_studies.cli.aki import reproduce_aki
from censcore_studies.cli.reproduce import app as reproduce

__all__ = ["aki", "reproduce"]

reproduce.command("aki")(reproduce_aki)
engression.add_to(reproduce)
neutral_benchmark.add_to(reproduce)
stack_scenarios.add_to(reproduce)
survset.add_to(reproduce)
