"""The policy: an encoder of observations, a memory of what was seen, and the heads of actor and critic.

The rule of ownership: a recurrent state that was given to `step` belongs to it (a cache is written in place); continue
with the one that it returns, and `clone_recurrent_state` what has to be kept.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from ludus.core.errors import ConfigError
from ludus.envs.base import ActionGrid, EnvSpec
from ludus.envs.spaces import ActionFactors
from ludus.nn.distributions import bounded
from ludus.nn.heads import NOISE_SIZE, ExplorationMixture, MaskedCategoricalHead, make_head
from ludus.nn.mlp import Film, Mlp, make_linear
from ludus.nn.normalizer import Normalizer
from ludus.nn.recurrent import RecurrentState as RecurrentState
from ludus.nn.recurrent import reset_recurrent_state as reset_recurrent_state
from ludus.policies.auxiliary import AuxiliaryLoss, auxiliary_losses
from ludus.policies.base import PolicyModule
from ludus.policies.canonical import CanonicalView
from ludus.policies.config import ExplorationConfig, NetArch, PolicyConfig
from ludus.policies.cost import Allowance
from ludus.policies.inspection import check_finite as check_finite
from ludus.policies.inspection import kind_shares as kind_shares
from ludus.policies.memory import NETWORK as NETWORK
from ludus.policies.memory import STRATEGY, Memory
from ludus.policies.memory import clone_recurrent_state as clone_recurrent_state
from ludus.policies.memory import memory_ranges as memory_ranges
from ludus.policies.memory import part_of as part_of
from ludus.policies.memory import with_prefix as with_prefix
from ludus.policies.modules import ObservationEncoder, seen_space
from ludus.policies.network import UserNetwork, make_network
from ludus.policies.outputs import Entries as Entries
from ludus.policies.outputs import Evaluation as Evaluation
from ludus.policies.outputs import Step as Step
from ludus.policies.outputs import Trunk as Trunk


class Policy(PolicyModule):
    """Actor-critic policy: maps rows of observations (one per learner seat of every game) to actions and values.

    The features of the current observation always reach the heads: directly, or as the input of the recurrent
    memory beside the strategy latent, which alone comes from the opponent's history.

    Attributes:
        observations: Encoders of the observation's entries.
        network: The user's own network (`policy.module`) in their place, or None.
        memory: Strategy encoder and LSTMs, see `Memory`.
        actor, critic: Hidden layers; then come `head` and `value_head`.
        actor_film, critic_film: Scales and shifts of their hidden units from the strategy latent, or None.
        canonical: What turns mirrored views, or None.
        mixture: The behaviour that explores, or None.
        auxiliary: Heads of the auxiliary losses by name, see `auxiliary_losses`.
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
            self.network = make_network(spec, config, seen, self.device)
            self.observations.output_size = self.network.output_size
        features = self.observations.output_size
        self.memory = Memory(spec, config, self.observations.sizes, features, bfloat16=self.uses_bfloat16)
        gives_actions = self.network is not None and self.network.gives_actions
        layers = NetArch(pi=(), vf=()) if gives_actions else config.net_arch
        self.actor, self.critic = (
            Mlp(
                self.memory.output_size, hidden, config.activation, orthogonal=config.orthogonal, dropout=config.dropout
            )
            for hidden in (layers.pi, layers.vf)
        )
        if config.recurrent is not None and config.recurrent.skip and config.recurrent.memory_feature_scale < 1.0:
            for network in (self.actor, self.critic):
                self.memory.begin_alone(network, orthogonal=config.orthogonal)
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
        if self.network is not None and gives_actions:
            # Its own logits and values; the head keeps the distribution and its standard deviations.
            self.network.check_logits(spec, self.head.linear.out_features)
            self.head.register_module("linear", nn.Identity())
            self.register_module("value_head", nn.Identity())
        self.returns = Normalizer(1, config.normalize.clip, self.device) if config.normalize.returns else None
        self._bounds = bounded(spec.action_space)
        # The last to be drawn, so that all other parameters begin the same with them and without.
        self.auxiliary = nn.ModuleDict()
        for name, loss in auxiliary_losses(config.strategy).items():
            assert config.strategy is not None  # noqa: S101 - without it there is no loss; for the type checker
            self.auxiliary[name] = loss.make(config.strategy, spec, features)
        self.actor_film, self.critic_film = (self._make_film(network) for network in (self.actor, self.critic))
        self.to(self.device)
        if self._bounds is not None:
            self._bounds = (self._bounds[0].to(self.device), self._bounds[1].to(self.device))
        self.explore(config.exploration, 0.0)
        self.train()

    @property
    def _places(self) -> ActionGrid | None:
        """The grid whose cells are seen one by one; a user's own network sees pictures as a whole."""
        return self.spec.actions.places if self.config.spatial is not None and self.config.module is None else None

    def _choices(self) -> ActionFactors | None:
        """Return what actions are made of, if the head has to know more of it than the action space says."""
        spec, config = self.spec, self.config
        needed = spec.actions.mask is not None or spec.actions.uses or config.exploration is not None
        return spec.choices if needed or self._places is not None else None

    def _make_film(self, network: Mlp) -> Film | None:
        strategy = self.config.strategy
        if strategy is None or not self.config.latent_modulates or not network.hidden:
            return None
        return Film(strategy.latent, network.hidden)

    @property
    def auxiliary_losses(self) -> dict[str, AuxiliaryLoss]:
        """The heads of the auxiliary losses, by name."""
        return {name: loss for name, loss in self.auxiliary.items() if isinstance(loss, AuxiliaryLoss)}

    def use_compiler(self) -> None:
        """Let `torch.compile` take the strategy encoder.

        The rest gains nothing: matrix products and the hand-written recurrence stay as they are.
        """
        self.is_compiled = True
        self.memory.use_compiler()

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
        is_plain = self.network is None and self.memory.strategy is None and self.canonical is None
        return self.uses_bfloat16 and is_alone and is_plain and len(self.spec.observation_space[entry].shape or ()) == 1

    @property
    def has_memory(self) -> bool:
        """Whether anything is remembered from step to step."""
        return not self.memory.is_empty or (self.network is not None and self.network.is_recurrent)

    @property
    def allows_cuda_graphs(self) -> bool:
        """Whether its work can be recorded: a user's network may do other things in every call, unless it says not."""
        return self.network is None or self.network.allows_cuda_graphs

    def initial(self, rows: int) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing; empty without memory."""
        memory = self.memory.initial(rows, self.device)
        return memory | ({} if self.network is None else with_prefix(NETWORK, self.network.initial(rows, self.device)))

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
        return Evaluation(log_probs, entropies, values, self._auxiliary(trunk, observations))

    def _auxiliary(self, trunk: Trunk, observations: Entries) -> dict[str, Tensor]:
        """Return what the heads of the auxiliary losses predict, turned back where the view was turned."""
        if trunk.latent is None or trunk.seen is None:
            return {}
        losses = self.auxiliary_losses
        predictions = {name: loss(trunk.latent, trunk.seen) for name, loss in losses.items()}
        if self.canonical is None or not losses:
            return predictions
        view, mirrored = self.canonical, self.canonical.is_mirrored(observations)
        return {name: loss.turn_back(predictions[name], view, mirrored) for name, loss in losses.items()}

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

    def opponent_frames(self, observations: Entries) -> Tensor:
        """Return what the strategy encoder reads of observations `(..., *shape)`: `(..., inputs)`."""
        return self.memory.opponent(self.observations.flatten(dict(observations)))

    def events(self, observations: Entries, episode_starts: Tensor) -> Tensor:
        """Return in which frames of segments an event begins, `(steps, rows)` bool; none is in progress before them."""
        frames, encoder = self.opponent_frames(observations), self.memory.strategy
        if encoder is None or not encoder.keeps_events:
            raise ConfigError("this policy's strategy encoder knows no events; set policy.strategy.events")
        return encoder.events(frames, episode_starts, torch.zeros_like(episode_starts[0]))

    def strategy_latent(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return the strategy latent `(steps, rows, size)` over segments, for analysis; see `StrategyConfig`."""
        frames = self.opponent_frames(observations)
        assert self.memory.strategy is not None  # noqa: S101 - for the type checker
        return self.memory.strategy.unroll(frames, part_of(memory, STRATEGY), episode_starts)

    def attention(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> dict[str, Tensor]:
        """Return the strategy encoder's attention weights over segments; see the encoder for the shapes."""
        frames = self.opponent_frames(observations)
        assert self.memory.strategy is not None  # noqa: S101 - for the type checker
        return self.memory.strategy.attention(frames, part_of(memory, STRATEGY), episode_starts)

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
        changes: Tensor = film(self.memory.without_gradient(trunk.latent))
        return changes

    def _trunk_step(
        self, observations: Entries, memory: RecurrentState, episode_starts: Tensor
    ) -> tuple[Trunk, RecurrentState]:
        """Return the features of one frame, and the next memory."""
        flat, places = self.observations.flatten(dict(observations)), None
        following: RecurrentState = {}
        if self.network is None:
            features, places = self.observations.see(flat)
        else:
            entries = self.observations.entries(observations, flat)
            output, part = self.network.step(entries, part_of(memory, NETWORK), episode_starts)
            following = with_prefix(NETWORK, part)
            if self.network.gives_actions:
                return Trunk(*output), following
            features = output.actor
        remembered, parts = self.memory.step(flat, features, memory, episode_starts)
        return Trunk(*remembered[:2], places, features, remembered.latent), following | parts

    def _trunk_unroll(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Trunk:
        """Return the features of whole segments."""
        flat, places = self.observations.flatten(dict(observations)), None
        if self.network is None:
            features, places = self.observations.see(flat)
        else:
            entries = self.observations.entries(observations, flat)
            output = self.network.unroll(entries, part_of(memory, NETWORK), episode_starts)
            if self.network.gives_actions:
                return Trunk(*output)
            features = output.actor
        remembered = self.memory.unroll(flat, features, memory, episode_starts)
        return Trunk(*remembered[:2], places, features, remembered.latent)
