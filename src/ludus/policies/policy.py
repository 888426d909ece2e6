"""The policy: observation encoder, optional strategy encoder and recurrent network, actor and critic heads.

Its recurrent state is one dict of tensors for LSTM and GRU states, key/value caches and history windows. The rule of
ownership: a state that was given to `step` belongs to it (a cache is written in place); continue with the one that it
returns, and `clone_recurrent_state` what has to be kept.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, Self, TypeAlias

import torch
from gymnasium import spaces
from torch import Tensor, nn

from ludus.core.errors import ConfigError, NetworkError, StateError, UnsupportedError, brief, did_you_mean, listed
from ludus.core.state import MAX_COUNT, Range, check_tensors, clone_tensors
from ludus.envs.base import ActionGrid, EnvSpec
from ludus.envs.spaces import ActionFactors
from ludus.nn.distributions import bounded
from ludus.nn.heads import NOISE_SIZE, ExplorationMixture, MaskedCategoricalHead, make_head
from ludus.nn.mlp import HIDDEN_GAIN, Film, Mlp, make_linear
from ludus.nn.normalizer import Normalizer
from ludus.nn.recurrent import Gru, Lstm, make_recurrent, step_all, unroll_all
from ludus.nn.recurrent import RecurrentState as RecurrentState
from ludus.nn.recurrent import reset_recurrent_state as reset_recurrent_state
from ludus.nn.strategy import StrategyConfig, StreamingEncoder, WindowEncoder
from ludus.policies.canonical import CanonicalView
from ludus.policies.config import ExplorationConfig, NetArch, PolicyConfig
from ludus.policies.cost import Allowance
from ludus.policies.description import PolicyDescription
from ludus.policies.modules import ObservationEncoder, compiled, seen_space
from ludus.policies.network import NetworkOutput, UserNetwork
from ludus.policies.strategy_heads import (
    LatentSample,
    ask,
    kl_to_standard_normal,
    make_action_prediction,
    make_contrast,
    make_opponent_classifier,
    make_prediction,
)

Entries: TypeAlias = Mapping[str, Tensor]  # observations by entry, with the rows first

MEMORY_PARTS = ("strategy", "recurrent", "critic_recurrent")  # what remembers, by the names of `Policy`'s parts
NETWORK = "network"  # the user's own, which may remember too


def clone_recurrent_state(memory: Mapping[str, Tensor]) -> RecurrentState:
    """Return a copy that later steps do not touch."""
    return {name: tensor.clone() for name, tensor in memory.items()}


def memory_ranges(memory: Mapping[str, Tensor]) -> dict[str, Range]:
    """Return the valid range of every whole number in a memory: positions in rings, and frames seen.

    Those of a user's own network can be anything.
    """
    return {
        name: (0, MAX_COUNT)
        for name, tensor in memory.items()
        if tensor.dtype == torch.int64 and NETWORK not in name.split(".")
    }


def with_prefix(prefix: str, memory: Mapping[str, Tensor]) -> RecurrentState:
    """Return the memory with `prefix.` before each name."""
    return {f"{prefix}.{name}": tensor for name, tensor in memory.items()}


def part_of(memory: Mapping[str, Tensor], prefix: str) -> RecurrentState:
    """Return the entries under `prefix.` without it."""
    start = len(prefix) + 1
    return {name[start:]: tensor for name, tensor in memory.items() if name.startswith(f"{prefix}.")}


class Step(NamedTuple):
    """What `Policy.step` gives: actions, log probabilities `(rows,)`, values `(rows,)` and the next memory."""

    actions: Tensor
    log_probs: Tensor
    values: Tensor
    memory: RecurrentState


class Evaluation(NamedTuple):
    """What `Policy.unroll` gives, `(steps, rows)` each."""

    # Of the actions, under the behaviour that rollouts are collected with: with exploration, the mixture.
    log_probs: Tensor
    entropies: Tensor  # of the policy alone, without exploration
    values: Tensor  # of the observations
    # `(steps, rows, inputs)`, what the strategy encoder will read some frames later, made of its latent; None where
    # nothing is predicted.
    predictions: Tensor | None = None
    # `(steps, rows, bots)`, logits of which of the world's bots the opponent is, made of the same latent; None without
    # opponent classification.
    opponent_logits: Tensor | None = None
    # What the opponent does in this step, see `ActionPrediction`; None where that is not predicted.
    opponent_actions: Tensor | None = None
    # `(steps, rows, latent)`, the latent that these were made of; None without a strategy encoder.
    latents: Tensor | None = None
    # `(steps, rows)`, KL divergence of a variational latent to a standard normal distribution; None for others.
    latent_kl: Tensor | None = None


class Trunk(NamedTuple):
    """Features of actor and critic before their own layers; the same tensor where they share their memory."""

    actor: Tensor  # `(..., features)`
    critic: Tensor  # likewise
    # `(..., cells, features)`, what is seen of each place where actions have places, else None.
    places: Tensor | None = None
    seen: Tensor | None = None  # `(..., features)`, of the observation alone; None with a network that gives actions
    latent: Tensor | None = None  # `(..., size)`, what the strategy encoder gave; None without one


class Policy(nn.Module):
    """Actor-critic policy: maps rows of observations (one per learner seat of every game) to actions and values.

    The features of the current observation always reach the heads: directly, or as the input of the recurrent
    memory beside the strategy latent, which alone comes from the opponent's history.

    Layers that are random, those of `policy.dropout` and the whole of a user's own network, are in training mode only
    within `updating`: rollouts and evaluations play without dropout, whatever the mode of the policy.

    Attributes:
        network: The user's own network (`policy.module`), or None.
        canonical: What turns mirrored views, or None.
        mixture: The behaviour that explores, or None.
        prediction: What predicts the opponent from the strategy latent, or None.
        recognition: Opponent classifier: logits of the bots from the strategy latent; None without.
        action_prediction: What predicts the opponent's action from latent and observation, or None.
        contrast: Projection of latents for the contrastive loss, or None.
        actor_film, critic_film: Scales and shifts of hidden units from the strategy latent, or None.
        is_compiled: Whether `use_compiler` was called.
        allowance: What it costs and may cost; None for a policy that does not come from a file.
    """

    allowance: Allowance | None

    def __init__(self, spec: EnvSpec, config: PolicyConfig, device: torch.device | str = "cpu") -> None:
        super().__init__()
        self.spec, self.config, self.device = spec, config, torch.device(device)
        self.is_compiled, self.allowance = False, None
        seen = seen_space(spec, config)
        self.canonical = CanonicalView(spec, self.device) if config.canonical else None
        self.observations = ObservationEncoder(seen, config, self.device, self._places, self.canonical)
        self.network: UserNetwork | None = None
        if config.module is not None:
            self.network = self._make_network(config.module, seen)
        self.strategy = self._make_strategy(config.strategy)
        if self.strategy is not None:
            self._strategy_step, self._strategy_unroll = self.strategy.step, self.strategy.unroll
        size = self.observations.output_size + (config.strategy.output_size if config.strategy else 0)
        self.recurrent = make_recurrent(size, config.recurrent) if config.recurrent else None
        separate = config.recurrent is not None and config.recurrent.critic == "separate"
        self.critic_recurrent = make_recurrent(size, config.recurrent) if separate and config.recurrent else None
        if config.recurrent is not None:
            size = config.recurrent.size + (size if config.recurrent.skip else 0)
        layers = config.net_arch
        if self.network is not None and self.network.gives_actions:
            layers = NetArch(pi=(), vf=())
        self.actor, self.critic = (
            Mlp(size, hidden, config.activation, orthogonal=config.orthogonal, dropout=config.dropout)
            for hidden in (layers.pi, layers.vf)
        )
        if config.recurrent is not None and config.recurrent.skip and config.recurrent.memory_feature_scale < 1.0:
            self._begin_without_memory()
        self.head = make_head(
            spec.action_space,
            self.actor.output_size,
            log_std=config.log_std,
            state_dependent=config.state_dependent_exploration,
            squash=config.squash,
            choices=self._choices(),
            place_size=self.observations.place_size,
            place_hidden=config.spatial.hidden if config.spatial is not None else 0,
        )
        self.mixture = ExplorationMixture(spec.choices) if config.exploration is not None else None
        self.value_head = make_linear(self.critic.output_size, 1, 1.0 if config.orthogonal else None)
        if self.network is not None and self.network.gives_actions:
            self._pass_actions_on(self.network)
        self.returns = Normalizer(1, config.normalize.clip, self.device) if config.normalize.returns else None
        self._bounds = bounded(spec.action_space)
        # The last to be drawn, so that all other parameters begin the same with them and without.
        self.prediction = make_prediction(config.strategy, self.strategy.inputs if self.strategy else 0)
        self.recognition = make_opponent_classifier(config.strategy, spec)
        self.action_prediction = make_action_prediction(config.strategy, spec, self.observations.output_size)
        self.contrast = make_contrast(config.strategy)
        self.actor_film, self.critic_film = (self._make_film(network) for network in (self.actor, self.critic))
        self.latent_sample = LatentSample() if config.strategy and config.strategy.variational else None
        self.to(self.device)
        if self._bounds is not None:
            self._bounds = (self._bounds[0].to(self.device), self._bounds[1].to(self.device))
        self.explore(config.exploration, 0.0)
        self.train()

    @property
    def _places(self) -> ActionGrid | None:
        """The grid whose cells are seen one by one; a user's own network sees pictures as a whole."""
        return self.spec.actions.places if self.config.spatial is not None and self.config.module is None else None

    def _make_network(self, name: str, seen: spaces.Dict) -> UserNetwork:
        # Only what an agent file holds, so that a loaded agent builds the same network.
        known = PolicyDescription.of(self.spec, self.config).spec()
        try:
            tried_on = torch.device("cpu") if self.device.type == "meta" else self.device
            network = UserNetwork(name, self.config.module_kwargs, known, seen, tried_on)
        except NetworkError:
            if self.device.type != "meta" or not torch.cuda.is_available():
                raise
            # A policy without memory only counts parameters; the network may be one that runs on a GPU alone.
            network = UserNetwork(name, self.config.module_kwargs, known, seen, torch.device("cuda"))
        beside = [part for part in ("strategy", "recurrent") if getattr(self.config, part) is not None]
        beside += ["state_dependent_exploration"] if self.config.state_dependent_exploration else []
        if network.gives_actions and beside:
            raise ConfigError(
                f"{network} returns (logits, values), so policy.{beside[0]} has no features to work on; leave that "
                "out, or return features"
            )
        self.observations.output_size = network.output_size
        return network

    def _pass_actions_on(self, network: UserNetwork) -> None:
        """Take the network's own logits and values; the head keeps the distribution and its standard deviations."""
        expected = self.head.linear.out_features
        if network.output_size != expected:
            raise NetworkError(
                f"{network} returns {network.output_size} logits, but the actions of {self.spec.id}, "
                f"{self.spec.action_space}, have {expected} parameters; return as many"
            )
        self.head.register_module("linear", nn.Identity())
        self.register_module("value_head", nn.Identity())

    def train(self, mode: bool = True) -> Self:
        """Set the mode of all parts but the random ones, see `updating`."""
        super().train(mode)
        self._set_random_layers(active=False)
        return self

    @property
    def is_random(self) -> bool:
        """Whether updates draw random numbers: for dropout, a variational latent or in a user's own network."""
        return self.config.dropout > 0.0 or self.latent_sample is not None or self.network is not None

    @contextmanager
    def updating(self, generator: torch.Generator) -> Iterator[None]:
        """Return the context of an update: what is random is active, and draws from numbers that `generator` seeds.

        Layers draw from torch's global generators, which get their state back afterwards.
        """
        if not self.is_random:
            yield
            return
        seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
        on_cuda = self.device.type == "cuda"
        with torch.random.fork_rng(devices=[self.device] if on_cuda else []):
            torch.default_generator.manual_seed(seed)
            if on_cuda:
                with torch.cuda.device(self.device):
                    torch.cuda.manual_seed(seed)
            self._set_random_layers(active=True)
            try:
                yield
            finally:
                self._set_random_layers(active=False)

    def _set_random_layers(self, *, active: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Dropout | LatentSample):
                module.train(active)
        if self.network is not None:
            self.network.train(active)

    def _choices(self) -> ActionFactors | None:
        """Return what actions are made of, if the head has to know more of it than the action space says."""
        spec = self.spec
        if (
            spec.actions.mask is None
            and not spec.actions.uses
            and self.config.exploration is None
            and self._places is None
        ):
            return None
        return spec.choices

    def _begin_without_memory(self) -> None:
        """Let actor and critic start as those of a policy without memory, and grow to use it as far as it helps.

        What comes out of the memory and of the strategy encoder changes with every update. With random weights on these
        many features beside few of the observation, most of what actor and critic see at first is noise.
        """
        assert self.recurrent is not None  # noqa: S101 - for the type checker
        first, size = self.recurrent.output_size, self.observations.output_size
        for network in (self.actor, self.critic):
            layer = next(iter(network.layers), None)
            if isinstance(layer, nn.Linear):
                gain = HIDDEN_GAIN if self.config.orthogonal else None
                alone = make_linear(size, layer.out_features, gain)
                with torch.no_grad():
                    layer.weight.zero_()
                    layer.weight[:, first : first + size] = alone.weight
                    layer.bias.copy_(alone.bias)

    def _make_strategy(self, config: StrategyConfig | None) -> StreamingEncoder | WindowEncoder | None:
        if config is None:
            return None
        if config.entry not in self.observations.sizes:
            raise ConfigError(
                f"the strategy encoder reads entry {config.entry!r}, which {self.spec.id} has not as a vector; "
                f"valid: {listed(self.observations.sizes)}"
            )
        self._blocks = [(0, self.observations.sizes[config.entry])]
        if config.block is not None:
            blocks = self.spec.blocks.get(config.entry, {})
            names = (config.block,) if isinstance(config.block, str) else config.block
            for name in names:
                if name not in blocks:
                    raise ConfigError(
                        f"the strategy encoder reads block {name!r} of {config.entry!r}, which {self.spec.id} has "
                        f"not; valid: {listed(blocks)}, or null for the whole entry"
                    )
            self._blocks = [blocks[name] for name in names]
        inputs, dropout = sum(stop - start for start, stop in self._blocks), self.config.dropout
        encoder: StreamingEncoder | WindowEncoder
        if config.kind == "streaming":
            encoder = StreamingEncoder(inputs, config, dropout, self._event_inputs(config))
        else:
            encoder = WindowEncoder(inputs, config, dropout)
        if self.uses_bfloat16:
            encoder.cache_dtype = torch.bfloat16
        return encoder

    def _event_inputs(self, config: StrategyConfig) -> tuple[int, ...]:
        """Return where the strategy encoder finds the fields of events among its inputs."""
        names = self.spec.fields.get(config.entry, ())
        read = [names[column] for start, stop in self._blocks for column in range(start, stop)] if names else []
        for name in config.events:
            if name not in read:
                raise ConfigError(
                    f"policy.strategy.events: {self.spec.id} has no field {name!r}{did_you_mean(name, read)} in what "
                    f"the strategy encoder reads (entry {config.entry!r}, block {config.block!r}); valid: "
                    f"{listed(read) if read else 'none, its fields have no names'}"
                )
        return tuple(read.index(name) for name in config.events)

    def _make_film(self, network: Mlp) -> Film | None:
        strategy = self.config.strategy
        if strategy is None or strategy.condition != "film":
            return None
        if not self.actor.hidden and not self.critic.hidden:
            raise ConfigError(
                "policy.strategy.condition is film, but actor and critic have no hidden layers that it could scale; "
                "give policy.net_arch some, or use concat"
            )
        return Film(strategy.output_size, network.hidden) if network.hidden else None

    def use_compiler(self) -> None:
        """Let `torch.compile` take the strategy encoder, whose many small operations it joins into few kernels.

        The rest gains nothing: matrix products and the hand-written recurrence stay as they are.
        """
        self.is_compiled = True
        if self.strategy is not None:
            self._strategy_step = compiled(self.strategy.step)
            self._strategy_unroll = compiled(self.strategy.unroll)

    @property
    def uses_bfloat16(self) -> bool:
        """Whether its products are done in bfloat16: where the config asks for it, on a CUDA device."""
        return self.config.bfloat16 and self.device.type == "cuda"

    def reads_bfloat16(self, entry: str) -> bool:
        """Whether an entry may come in bfloat16, ending with zeros up to its `aligned` width.

        So it is where nothing reads it but the first layers, which round it to that anyway.
        """
        seen = self.observations
        is_alone = tuple(seen.sizes) == (entry,) and not seen.normalisers and len(self.spec.observation_space) == 1
        is_plain = self.network is None and self.strategy is None and self.canonical is None
        return self.uses_bfloat16 and is_alone and is_plain and len(self.spec.observation_space[entry].shape or ()) == 1

    @property
    def has_memory(self) -> bool:
        """Whether anything is remembered from step to step."""
        parts = self.strategy is not None or self.recurrent is not None
        return parts or (self.network is not None and self.network.is_recurrent)

    @property
    def allows_cuda_graphs(self) -> bool:
        """Whether its work can be recorded: a user's network may do other things in every call, unless it says not."""
        return self.network is None or self.network.allows_cuda_graphs

    def initial(self, rows: int) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing; empty without memory."""
        memory: RecurrentState = {}
        parts = (self.strategy, self.recurrent, self.critic_recurrent)
        for name, part in zip(MEMORY_PARTS, parts, strict=True):
            if part is not None:
                memory |= with_prefix(name, part.initial(rows, self.device))
        if self.network is not None:
            memory |= with_prefix(NETWORK, self.network.initial(rows, self.device))
        return memory

    @torch.no_grad()
    def step(
        self, observations: Entries, memory: RecurrentState, episode_starts: Tensor, noise: Tensor | None = None
    ) -> Step:
        """Act on one frame.

        Args:
            observations: `(rows, ...)` per entry.
            memory: What it remembers, from `initial` or the last step; it belongs to this call from now on.
            episode_starts: `(rows,)` bool, rows whose frame is the first of an episode.
            noise: `(rows, ...)` from `draw_noise`; None takes the most likely action. With the noise of exploration
                the action and its probability are those of the mixture, else those of the policy alone.
        """
        with self._precision():
            trunk, memory = self._trunk_step(observations, memory, episode_starts)
        latent = self._act(trunk)
        parameters, values = self._restricted(latent, trunk, observations), self._value(trunk)
        actions = self.head.mode(parameters) if noise is None else self.head.sample(parameters, noise, latent)
        mixture = self.mixture if noise is not None and noise.shape[1:] != self.head.noise_shape else None
        if mixture is not None and noise is not None:
            actions = mixture.replace(self._choice_logits(parameters), noise, actions)
        log_probs, _ = self.head.log_prob_and_entropy(parameters, actions)
        if mixture is not None:
            log_probs = mixture.log_probs(self._choice_logits(parameters), actions, log_probs)
        return Step(actions, log_probs, values, memory)

    @torch.no_grad()
    def value(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return values `(rows,)` of a frame without moving on: `memory` is as good as before for the next `step`."""
        with self._precision():
            trunk, _ = self._trunk_step(observations, memory, episode_starts)
        return self._value(trunk)

    def unroll(
        self, observations: Entries, memory: RecurrentState, episode_starts: Tensor, actions: Tensor
    ) -> Evaluation:
        """Evaluate actions over whole segments.

        Args:
            observations: `(steps, rows, ...)` per entry.
            memory: The memory before the first frame of each segment.
            episode_starts: `(steps, rows)` bool, frames that are the first of an episode.
            actions: `(steps, rows, *head.action_shape)`.
        """
        with self._precision():
            trunk = self._trunk_unroll(observations, memory, episode_starts)
        parameters = self._restricted(self._act(trunk), trunk, observations)
        values = self._value(trunk)
        log_probs, entropies = self.head.log_prob_and_entropy(parameters, actions)
        if self.mixture is not None:
            log_probs = self.mixture.log_probs(self._choice_logits(parameters), actions, log_probs)
        return self._with_auxiliary(Evaluation(log_probs, entropies, values), trunk, observations)

    def _with_auxiliary(self, evaluation: Evaluation, trunk: Trunk, observations: Entries) -> Evaluation:
        """Add what the heads of the auxiliary losses make of the latent."""
        if trunk.latent is None or trunk.seen is None:
            return evaluation
        latent = trunk.latent if self.latent_sample is None else self.latent_sample(trunk.latent)
        return evaluation._replace(
            predictions=ask(self.prediction, latent),
            opponent_logits=ask(self.recognition, latent),
            opponent_actions=self._predicted_actions(latent, trunk.seen, observations),
            latents=latent,
            latent_kl=None if self.latent_sample is None else kl_to_standard_normal(trunk.latent),
        )

    def _predicted_actions(self, latent: Tensor, seen: Tensor, observations: Entries) -> Tensor | None:
        """Return the prediction of the opponent's action, turned back where the view was turned."""
        if self.action_prediction is None:
            return None
        predicted: Tensor = self.action_prediction(latent, seen)
        if self.canonical is None:
            return predicted
        mirrored = self.canonical.is_mirrored(observations).unsqueeze(-1)
        return self.canonical.turn_keys(predicted.transpose(-1, -2), mirrored).transpose(-1, -2)

    def action_parameters(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return the action distribution's parameters `(steps, rows, parameters)` over segments, for analysis."""
        trunk = self._trunk_unroll(observations, memory, episode_starts)
        return self._restricted(self._act(trunk), trunk, observations)

    def restrict(self, parameters: Tensor, observations: Entries) -> Tensor:
        """Return the head's parameters of the actions, turned back and restricted to what the observations allow."""
        if self.canonical is not None:
            parameters = self.canonical.turn_keys(parameters, self.canonical.is_mirrored(observations))
        if self.spec.actions.mask is None:
            return parameters
        return self.head.restrict(parameters, observations[self.spec.actions.mask])

    def explore(self, config: ExplorationConfig | None, progress: float) -> None:
        """Take how often it explores at a training progress of 0 to 1; ConfigError if made without exploration."""
        if self.mixture is not None:
            rates = (0.0, 0.0)
            if config is not None:
                rates = (config.frequency.value(progress), config.random_frequency.value(progress))
            self.mixture.set(*rates)
        elif config is not None:
            raise ConfigError("the policy was made without exploration; set policy.exploration, frequency 0 for none")

    @property
    def strategy_columns(self) -> tuple[int, ...]:
        """The numbers of its observation entry that the strategy encoder reads, in order; none without one."""
        ranges = [] if self.strategy is None else self._blocks
        return tuple(column for start, stop in ranges for column in range(start, stop))

    def opponent_frames(self, observations: Entries) -> Tensor:
        """Return what the strategy encoder reads of observations `(..., *shape)`: `(..., inputs)`."""
        if self.strategy is None:
            raise ConfigError("this policy has no strategy encoder; set policy.strategy")
        return self._opponent(self.observations.flatten(dict(observations)))

    def events(self, observations: Entries, episode_starts: Tensor) -> Tensor:
        """Return in which frames of segments an event begins, `(steps, rows)` bool; none is in progress before them."""
        frames = self.opponent_frames(observations)
        if not isinstance(self.strategy, StreamingEncoder) or not self.strategy.keeps_events:
            raise ConfigError("this policy's strategy encoder knows no events; set policy.strategy.events")
        return self.strategy.events(frames, episode_starts, torch.zeros_like(episode_starts[0]))

    def strategy_latent(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return the strategy latent `(steps, rows, size)` over segments, for analysis; see `StrategyConfig`."""
        frames = self.opponent_frames(observations)
        assert self.strategy is not None  # noqa: S101 - for the type checker
        return self.strategy.unroll(frames, part_of(memory, "strategy"), episode_starts)

    def attention(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> dict[str, Tensor]:
        """Return the strategy encoder's attention weights over segments; see the encoders for the shapes."""
        frames = self.opponent_frames(observations)
        assert self.strategy is not None  # noqa: S101 - for the type checker
        return self.strategy.attention(frames, part_of(memory, "strategy"), episode_starts)

    def draw_noise(self, steps: int, rows: int, generator: torch.Generator, *, explore: bool = False) -> Tensor:
        """Draw a rollout's noise, `(steps, rows, *head.noise_shape)`; to `explore`, the last axis is longer."""
        shape = (steps, rows, *self.head.noise_shape)
        if explore and self.mixture is not None:
            shape = (*shape[:-1], shape[-1] + NOISE_SIZE)
        draw = torch.rand if self.head.noise_kind == "uniform" else torch.randn
        return draw(shape, generator=generator, device=self.device)

    def clip_actions(self, actions: Tensor) -> Tensor:
        """Return what goes to the world: continuous actions cut to the action space's bounds."""
        return actions if self._bounds is None else actions.clamp(*self._bounds)

    def observe(self, observations: Entries) -> None:
        """Add a rollout's observations `(..., *shape)` to the running statistics, if there are any."""
        self.observations.observe(dict(observations))

    def state(self) -> dict[str, Tensor]:
        """Return all parameters and statistics, by name, as copies."""
        tensors: dict[str, Tensor] = {f"parameter.{name}": tensor for name, tensor in self.named_parameters()}
        for name, normaliser in self._normalisers().items():
            tensors |= {f"normaliser.{name}.{key}": value for key, value in normaliser.moments.items()}
        return clone_tensors(tensors | {f"buffer.{name}": tensor for name, tensor in self.network_buffers().items()})

    def network_buffers(self) -> dict[str, Tensor]:
        """Return what a user's own network keeps besides its parameters, such as running statistics, by name."""
        if self.network is None:
            return {}
        parameters = dict(self.network.named_parameters(remove_duplicate=False))
        kept = self.network.state_dict()
        return {f"{NETWORK}.{name}": tensor for name, tensor in kept.items() if name not in parameters}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`, from any device; raise StateError if it does not fit."""
        check_tensors(state, self.state(), "the policy")
        for name, parameter in self.named_parameters():
            parameter.copy_(state[f"parameter.{name}"])
        for name, normaliser in self._normalisers().items():
            normaliser.load_state(part_of(state, f"normaliser.{name}"))
        for name, tensor in self.network_buffers().items():
            tensor.copy_(state[f"buffer.{name}"])

    def _normalisers(self) -> dict[str, Normalizer]:
        return {name: module for name, module in self.named_modules() if isinstance(module, Normalizer)}

    def _opponent(self, flat: Mapping[str, Tensor]) -> Tensor:
        assert self.config.strategy is not None  # noqa: S101 - for the type checker
        parts = [flat[self.config.strategy.entry][..., start:stop] for start, stop in self._blocks]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def _precision(self) -> AbstractContextManager[object]:
        """Return the context of everything but the last layers: bfloat16 where the config asks for it."""
        if not self.uses_bfloat16:
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _restricted(self, latent: Tensor, trunk: Trunk, observations: Entries) -> Tensor:
        """Return the action distribution's parameters, restricted to what is allowed, in float32."""
        parameters = self.head(latent) if trunk.places is None else self.head(latent, trunk.places.float())
        return self.restrict(parameters.float(), observations)

    def _choice_logits(self, parameters: Tensor) -> Tensor:
        assert isinstance(self.head, MaskedCategoricalHead)  # noqa: S101 - whatever explores has one; for the type checker
        return self.head.choice_logits(parameters)

    def _act(self, trunk: Trunk) -> Tensor:
        """Return the actor's last hidden layer; the heads are small and stay in float32: ratios depend on them."""
        with self._precision():
            latent: Tensor = self.actor(trunk.actor, self._film(self.actor_film, trunk))
        return latent.float()

    def _value(self, trunk: Trunk) -> Tensor:
        with self._precision():
            hidden: Tensor = self.critic(trunk.critic, self._film(self.critic_film, trunk))
        values: Tensor = self.value_head(hidden.float())
        return values.squeeze(-1).float()

    def _film(self, film: Film | None, trunk: Trunk) -> Tensor | None:
        if film is None or trunk.latent is None:
            return None
        changes: Tensor = film(self._without_gradient(trunk.latent))
        return changes

    def _without_gradient(self, latent: Tensor) -> Tensor:
        """Return the latent as memory, actor and critic see it: detached where the config asks for that."""
        return latent.detach() if self.config.strategy is not None and self.config.strategy.stop_gradient else latent

    def _trunk_step(
        self, observations: Entries, memory: RecurrentState, episode_starts: Tensor
    ) -> tuple[Trunk, RecurrentState]:
        flat = self.observations.flatten(dict(observations))
        following: RecurrentState = {}
        places: Tensor | None = None
        if self.network is not None:
            entries = self.observations.entries(observations, flat)
            output, part = self.network.step(entries, part_of(memory, NETWORK), episode_starts)
            following |= with_prefix(NETWORK, part)
            if self.network.gives_actions:
                return Trunk(*output), following
            features = output.actor
        else:
            features, places = self.observations.see(flat)
        seen, latent = features, None
        if self.strategy is not None:
            latent, part = self._strategy_step(self._opponent(flat), part_of(memory, "strategy"), episode_starts)
            features = torch.cat((features, latent), dim=-1)
            following |= with_prefix("strategy", part)
        if self.recurrent is None:
            return self._plain_trunk(features, places, seen, latent), following
        cells = self._recurrent_cells()
        steps = step_all(list(cells.values()), features, [part_of(memory, name) for name in cells], episode_starts)
        for name, (_, part) in zip(cells, steps, strict=True):
            following |= with_prefix(name, part)
        return self._beside(features, Trunk(steps[0][0], steps[-1][0], places, seen, latent)), following

    def _trunk_unroll(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Trunk:
        """Return the features of whole segments."""
        flat = self.observations.flatten(dict(observations))
        places: Tensor | None = None
        if self.network is not None:
            entries = self.observations.entries(observations, flat)
            output: NetworkOutput = self.network.unroll(entries, part_of(memory, NETWORK), episode_starts)
            if self.network.gives_actions:
                return Trunk(*output)
            features = output.actor
        else:
            features, places = self.observations.see(flat)
        seen, latent = features, None
        if self.strategy is not None:
            latent = self._strategy_unroll(self._opponent(flat), part_of(memory, "strategy"), episode_starts)
            features = torch.cat((features, self._without_gradient(latent)), dim=-1)
        if self.recurrent is None:
            return self._plain_trunk(features, places, seen, latent)
        cells = self._recurrent_cells()
        outputs = unroll_all(list(cells.values()), features, [part_of(memory, name) for name in cells], episode_starts)
        return self._beside(features, Trunk(outputs[0], outputs[-1], places, seen, latent))

    def _plain_trunk(self, features: Tensor, places: Tensor | None, seen: Tensor, latent: Tensor | None) -> Trunk:
        """Return what actor and critic see without a recurrent memory; in bfloat16 once, instead of once by each."""
        shared = features.to(torch.bfloat16) if self.uses_bfloat16 else features
        return Trunk(shared, shared, places, seen, latent)

    def _beside(self, features: Tensor, remembered: Trunk) -> Trunk:
        """Return what is remembered, with what went into the memory beside it where the config asks for that."""
        if self.config.recurrent is None or not self.config.recurrent.skip:
            return remembered
        scale, size = self.config.recurrent.memory_feature_scale, self.observations.output_size
        if scale != 1.0:
            remembered = remembered._replace(actor=remembered.actor * scale, critic=remembered.critic * scale)
            if self.config.strategy is None or self.config.strategy.condition != "film":
                features = torch.cat((features[..., :size], features[..., size:] * scale), dim=-1)
        actor, critic = (torch.cat((part, features), dim=-1) for part in remembered[:2])
        return remembered._replace(actor=actor, critic=critic)

    def _recurrent_cells(self) -> dict[str, Lstm | Gru]:
        """Return the recurrent memories of actor and critic, or the one that they share, by name."""
        cells = {"recurrent": self.recurrent, "critic_recurrent": self.critic_recurrent}
        return {name: cell for name, cell in cells.items() if cell is not None}


def check_finite(state: Mapping[str, Tensor]) -> None:
    """Raise StateError if parameters or statistics are NaN or Inf: they would play on, and lose."""
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise StateError(f"{brief(name)} contains NaN or Inf; train the agent again or use an earlier checkpoint")


@torch.no_grad()
def kind_shares(
    policy: Policy, observations: Entries, memory: RecurrentState, episode_starts: Tensor, *, explores: bool = True
) -> Tensor:
    """Return the probability of every kind of action, `(steps, rows, kinds)`, over segments as in `Policy.unroll`.

    It is that of the mixture with which experience is collected or, unless `explores`, the policy's own. Raise
    UnsupportedError if its actions have no kinds.
    """
    head = policy.head
    if not isinstance(head, MaskedCategoricalHead):
        raise UnsupportedError(
            f"actions of {policy.spec.id} have no kinds that the policy knows of; valid: Discrete and MultiDiscrete "
            "actions with a mask, with factors that do not always count, or with policy.exploration"
        )
    logits = head.choice_logits(policy.action_parameters(observations, memory, episode_starts))
    if explores and policy.mixture is not None:
        return policy.mixture.kind_shares(logits)
    return torch.softmax(logits[..., : head.choices.counts[0]], -1)
