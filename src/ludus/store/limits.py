"""What a file of a checkpoint may ask of the machine that reads it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that are checked before memory is spent; a saved checkpoint keeps to the same ones.

    Attributes:
        manifest_bytes: Size of the manifest; 1 MiB lists some 8,000 files.
        document_bytes: Size of one JSON document.
        document_values: Values in one JSON document; a million small ones take about 100 MB once they are read.
        document_depth: Lists and mappings within each other.
        header_bytes: Size of the table of tensors in one file; 4 MiB is some 40,000 tensors.
        tensor_axes: Axes of one tensor.
        tensor_elements: Product of a tensor's axes that are not 0.
        total_bytes: Size of all files that are read together; a run's own store has no such bound.
    """

    manifest_bytes: int = 1 << 20
    document_bytes: int = 8 << 20
    document_values: int = 1_000_000
    document_depth: int = 64
    header_bytes: int = 4 << 20
    tensor_axes: int = 16
    tensor_elements: int = 1 << 48
    total_bytes: int = 8 << 30


DEFAULT_LIMITS = Limits()
