"""Learning algorithms, and what one of your own is made of; see `ludus.algorithms.algorithm`."""

from ludus.algorithms.algorithm import Algorithm, LearnerParts, find_algorithm, register_algorithm
from ludus.algorithms.learner import Groups, Learner, Part
from ludus.rollout.collector import Collector
from ludus.rollout.learner_batch import LearnerBatch

__all__ = [
    "Algorithm",
    "Collector",
    "Groups",
    "Learner",
    "LearnerBatch",
    "LearnerParts",
    "Part",
    "find_algorithm",
    "register_algorithm",
]
