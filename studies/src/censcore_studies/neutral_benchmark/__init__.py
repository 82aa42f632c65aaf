"""A published benchmark of 21 survival learners, on its data, its folds and in its convention."""

from censcore_studies.neutral_benchmark.convention import integrated_survival_brier_score
from censcore_studies.neutral_benchmark.data import TASKS, Fold, Task, load_task, published_scores
from censcore_studies.neutral_benchmark.learners import LEARNERS
from censcore_studies.neutral_benchmark.report import report_benchmark
from censcore_studies.neutral_benchmark.rescoring import report_rescoring, rescore_task, run_rescoring
from censcore_studies.neutral_benchmark.study import benchmark_cells, read_scores, run_benchmark, score_fold

__all__ = [
    "LEARNERS",
    "TASKS",
    "Fold",
    "Task",
    "benchmark_cells",
    "integrated_survival_brier_score",
    "load_task",
    "published_scores",
    "read_scores",
    "report_benchmark",
    "report_rescoring",
    "rescore_task",
    "run_benchmark",
    "run_rescoring",
    "score_fold",
]
