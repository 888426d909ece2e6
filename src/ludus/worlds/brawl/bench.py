"""What `ludus bench` measures of Brawl: game steps beside CartPole, and learning with three kinds of policy."""

from ludus.envs.world_parts import LearnCase, SimBench, Speedrun, cartpole

_MLP = {"net_arch": {"pi": [128, 128], "vf": [128, 128]}, "activation": "tanh"}
_LSTM = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "recurrent": {"size": 256}}
_FULL = {"net_arch": {"pi": [96, 96], "vf": [96, 96]}, "strategy": {}, "recurrent": {"size": 512}}
_BF16 = {"bfloat16": True}

# Batch shapes that suit the device; networks are the same everywhere, and so are the epochs of cases of one name.
BENCH = SimBench(
    cartpole,
    learn={
        "cpu": {
            "mlp": LearnCase(1024, _MLP, {"n_steps": 64, "batch_size": 8192, "n_epochs": 4}),
            "lstm": LearnCase(64, _LSTM, {"n_steps": 64, "batch_size": 1024, "n_epochs": 4, "sequence_length": 16}),
            "strategy": LearnCase(8, _FULL, {"n_steps": 32, "batch_size": 256, "n_epochs": 10, "sequence_length": 32}),
        },
        "cuda": {
            "mlp": LearnCase(32768, _MLP | _BF16, {"n_steps": 64, "batch_size": 524288, "n_epochs": 4}),
            "mlp_one_epoch": LearnCase(65536, _MLP | _BF16, {"n_steps": 64, "batch_size": 524288, "n_epochs": 1}),
            "lstm": LearnCase(
                65536, _LSTM | _BF16, {"n_steps": 16, "batch_size": 262144, "n_epochs": 4, "sequence_length": 16}
            ),
            "lstm_one_epoch": LearnCase(
                32768, _LSTM | _BF16, {"n_steps": 16, "batch_size": 131072, "n_epochs": 1, "sequence_length": 16}
            ),
            "strategy": LearnCase(
                8192,
                _FULL | _BF16,
                {"n_steps": 64, "batch_size": 65536, "n_epochs": 10, "sequence_length": 64, "compile": True},
            ),
        },
    },
)

SPEEDRUN = Speedrun("mean_win_rate", 0.95, "95 % over all bots", "quick", gpu_preset="competition")
