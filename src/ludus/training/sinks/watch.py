"""What is known of a run at this moment, gathered from what the loop tells; the console shows it."""

import time
from collections import deque
from collections.abc import Callable

import psutil

from ludus.training.callbacks import Counters, Evaluated, Iteration
from ludus.training.sinks.recent import WINDOW, RecentMatches

_SPEED_WINDOW_S = 10.0  # over which the speed "now" is taken
_TIME_DECAY = 0.9  # of an iteration's times in the shares of the next one
_TIME_ORDER = {"simulation": 0, "inference": 1, "opponents": 2, "update": 3}
_LAST_MESSAGES = 4


class Watch:
    """Follows a run.

    Attributes:
        title: What is trained.
        total_env_steps: The budget.
        counters: How far the run is.
        stage: Of the curriculum; empty without one.
        metrics: The newest number of each name.
        recent: The last matches by opponent.
        evaluation: The last one.
        best_score: Score of the agent that is kept as the best, of those that were evaluated in this session.
        milestones: Env steps at which something was reached, by name; what was not yet is left out.
        checkpoints: Saved in this session.
        checkpoint: Name of the last one.
        messages: The last warnings and alarms: level, text and the env steps at which they came.
    """

    def __init__(self, title: str, total_env_steps: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self.title, self.total_env_steps = title, total_env_steps
        self.counters = Counters()
        self.stage = ""
        self.metrics: dict[str, float] = {}
        self.recent = RecentMatches()
        self.evaluation: Evaluated | None = None
        self.best_score: float | None = None
        self.milestones: dict[str, int] = {}
        self.checkpoints = 0
        self.checkpoint = ""
        self.messages: deque[tuple[str, str, int]] = deque(maxlen=_LAST_MESSAGES)
        self._rewards: deque[float] = deque(maxlen=WINDOW)
        self._lengths: deque[int] = deque(maxlen=WINDOW)
        self._times_s: dict[str, float] = {}
        self._process = psutil.Process()
        self._clock = clock
        self.start(Counters())

    def start(self, counters: Counters) -> None:
        """The run begins or goes on."""
        self.counters = counters
        self._started_s = self._clock()
        self._started_steps = counters.env_steps
        self._marks = deque([(self._started_s, counters.env_steps)])

    def iteration(self, iteration: Iteration) -> None:
        """Takes a finished iteration."""
        self.counters, self.stage = iteration.counters, iteration.stage
        self.metrics |= {name: value for name, value in iteration.metrics.items() if value is not None}
        self.recent.add(iteration.episodes)
        self._rewards.extend(iteration.episodes.rewards[-WINDOW:].tolist())
        self._lengths.extend(iteration.episodes.lengths[-WINDOW:].tolist())
        for name, seconds in iteration.times_s.items():
            self._times_s[name] = _TIME_DECAY * self._times_s.get(name, 0.0) + seconds
        now_s = self._clock()
        self._marks.append((now_s, self.counters.env_steps))
        while len(self._marks) > 2 and now_s - self._marks[0][0] > _SPEED_WINDOW_S:
            self._marks.popleft()

    def evaluated(self, evaluated: Evaluated) -> None:
        """Takes an evaluation."""
        self.evaluation = evaluated
        self.milestones |= {name: steps for name, steps in evaluated.milestones.items() if steps is not None}
        if evaluated.is_best or self.best_score is None or evaluated.score > self.best_score:
            self.best_score = evaluated.score

    def saved(self, name: str) -> None:
        """Takes the name of a checkpoint that is safe."""
        self.checkpoint = name
        self.checkpoints += 1

    def message(self, level: str, text: str, counters: Counters) -> None:
        """Takes a message; information is not kept."""
        if level != "info":
            self.messages.append((level, text, counters.env_steps))

    @property
    def progress(self) -> float:
        """Share of the budget that is used up, 0 to 1."""
        return min(self.counters.env_steps / max(self.total_env_steps, 1), 1.0)

    @property
    def elapsed_s(self) -> float:
        """Time since the start of this session."""
        return self._clock() - self._started_s

    @property
    def speed_now(self) -> float:
        """Env steps a second in the last seconds."""
        (first_s, first_steps), (last_s, last_steps) = self._marks[0], self._marks[-1]
        return (last_steps - first_steps) / max(last_s - first_s, 1e-9)

    @property
    def speed_average(self) -> float:
        """Env steps a second in this session."""
        return (self.counters.env_steps - self._started_steps) / max(self._marks[-1][0] - self._started_s, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Time until the budget is used up, at the speed of now; None while nothing was done."""
        speed = self.speed_now
        return max(self.total_env_steps - self.counters.env_steps, 0) / speed if speed > 0.0 else None

    @property
    def time_shares(self) -> dict[str, float]:
        """Where the time of the last iterations went; the shares add up to 1."""
        total_s = sum(self._times_s.values())
        if total_s <= 0.0:
            return {}
        names = sorted(self._times_s, key=lambda name: (_TIME_ORDER.get(name, len(_TIME_ORDER)), name))
        return {name: self._times_s[name] / total_s for name in names}

    @property
    def mean_reward(self) -> float | None:
        """Of the last episodes."""
        return sum(self._rewards) / len(self._rewards) if self._rewards else self.metrics.get("episode_return")

    @property
    def mean_length(self) -> float | None:
        """Of the last episodes, in steps."""
        return sum(self._lengths) / len(self._lengths) if self._lengths else self.metrics.get("episode_length")

    @property
    def resident_bytes(self) -> int:
        """Memory of this process."""
        return int(self._process.memory_info().rss)
