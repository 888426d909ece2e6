"""The shared tables between Python and the compiled functions: addresses, whole numbers, numbers, layers."""

from enum import IntEnum


class Address(IntEnum):
    """Places in the table of memory addresses."""

    WHOLE = 0  # the table of whole numbers (`Whole`), int32
    NUMBERS = 1  # the table of numbers (`Number`), float32
    LAYERS = 2  # the table of linear layers (`Layer` columns), int32
    COUNTS = 3  # choices of a categorical head, int32
    WORKSPACE = 4
    PARAMETERS = 5
    PARTS = 6  # gradients of a minibatch's parts, (parts, parameters); of a job's own part where it has one
    FIRST_AVERAGE = 7  # of Adam
    SECOND_AVERAGE = 8
    ADAM_STEP = 9
    FRAMES = 10  # (frames, features)
    ORDER = 11  # frame of each place in the epoch, int64
    ACTIONS = 12  # (frames, actions) float32
    LOG_PROBS = 13
    VALUES = 14
    ADVANTAGES = 15
    RETURNS = 16
    SUMS = 17  # metrics
    FIRST_RATIO_ERROR = 18
    STOPPED = 19
    NOISE = 20  # of the forward pass, (rows, actions); 0 asks for values alone
    OUT_ACTIONS = 21  # likewise, (rows, actions) float32
    OUT_LOG_PROBS = 22  # likewise, (rows,)
    OUT_VALUES = 23  # likewise, (rows,)
    PARTIAL = 24  # metrics of the parts, (parts, 6)
    GRADIENT = 25


class Whole(IntEnum):
    """Places in the table of whole numbers."""

    LAYERS = 0  # linear layers of both networks
    ACTOR_LAYERS = 1  # the first of them, the actor's
    ROWS = 2  # frames that the job works on
    MINIBATCHES = 3  # in an epoch
    FEATURES = 4
    HEAD = 5  # `Head`
    CHOICES = 6  # independent choices, buttons or dimensions
    OUTPUTS = 7  # outputs of the actor's last layer
    LOG_STD = 8  # place of the log standard deviations in the parameters
    PARAMETERS = 9
    ACTIVATION = 10  # 0 tanh, 1 relu
    NORMALISE = 11
    SCRATCH = 12  # place in the workspace of a padded weight gradient
    BATCH_ROWS = 13  # frames in a minibatch
    FIRST_ROW = 14  # of the job's part within a minibatch
    PARTS = 15
    BATCH = 16  # which minibatch


class Number(IntEnum):
    """Places in the table of numbers."""

    LEARNING_RATE = 0
    CLIP = 1
    ENTROPY = 2
    VALUE = 3
    VALUE_CLIP = 4  # negative: none
    BETA_1 = 5
    BETA_2 = 6
    EPSILON = 7
    WEIGHT_DECAY = 8
    MAX_NORM = 9
    KL_LIMIT = 10  # negative: none


class Layer(IntEnum):
    """Columns of the table of linear layers; places are in floats."""

    INPUTS = 0
    OUTPUTS = 1
    WEIGHT = 2  # in the parameters
    BIAS = 3
    TRANSPOSED = 4  # in the workspace: weights (inputs, outputs), padded
    PADDED = 5  # in the workspace: weights (outputs, inputs), padded
    SOURCE = 6  # in the workspace: what the layer reads
    RESULT = 7  # in the workspace: what it gives, after its activation
    RESULT_GRADIENT = 8  # in the workspace: the loss's slope before the activation
    SOURCE_GRADIENT = 9  # likewise of the layer below; -1 for the first


class Head(IntEnum):
    """Kinds of action heads."""

    CATEGORICAL = 0
    BUTTONS = 1
    GAUSSIAN = 2


LANES = 8  # all sizes are padded to this many


def padded(size: int) -> int:
    """Returns the size rounded up to whole lanes."""
    return -(-size // LANES) * LANES
