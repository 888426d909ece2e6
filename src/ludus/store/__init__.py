"""Store: checkpoints as folders of tensors, JSON and a manifest; atomic to write, verified and harmless to read."""

from ludus.store.checkpoint import (
    Checkpoint,
    Manifest,
    load_checkpoint,
    read_manifest,
    read_single_file,
    save_checkpoint,
    verify_checkpoint,
    write_single_file,
)
from ludus.store.checkpoints import NAMED, CheckpointStore, StoredCheckpoint, report_few, step_name
from ludus.store.documents import DEFAULT_LIMITS, Limits

__all__ = [
    "Checkpoint",
    "CheckpointStore",
    "DEFAULT_LIMITS",
    "Limits",
    "Manifest",
    "NAMED",
    "StoredCheckpoint",
    "load_checkpoint",
    "read_manifest",
    "read_single_file",
    "report_few",
    "save_checkpoint",
    "step_name",
    "verify_checkpoint",
    "write_single_file",
]
