"""Perception of a game that has a profile: its fields, its letters in the cache, OCR for what is unknown."""

from collections.abc import Sequence
from pathlib import Path

from ludus.envs.city.learned import cache_folder
from ludus.envs.city.perception.fields import Field
from ludus.envs.city.perception.glyph_file import known_glyphs, save_glyphs
from ludus.envs.city.perception.glyphs import GlyphBank
from ludus.envs.city.perception.ocr import available_engines
from ludus.envs.city.perception.ocr_worker import OcrWorker
from ludus.envs.city.perception.reader import ScreenReader
from ludus.envs.city.profile import GameProfile

STABLE_READS = 2  # a game draws while it is captured


def profile_fields(profile: GameProfile) -> tuple[Field, ...]:
    """Returns the fields that a profile names."""
    return tuple(
        Field(name, spec.kind, spec.region, prefix=spec.prefix, least=spec.least, most=spec.most)
        for name, spec in profile.readings.items()
    )


def glyph_file_of(profile: GameProfile, folder: Path | None = None) -> Path:
    """Returns where the letters of a game are kept; an edited profile learns anew."""
    return (folder or cache_folder()) / f"glyphs-{profile.name}-{profile.fingerprint}.json"


class ProfileReader:
    """The reader of a game with a profile, with its letters on disk.

    Attributes:
        bank: Its letters.
        worker: Reads what the bank does not know.
        reader: Reads its pictures.
    """

    def __init__(
        self,
        profile: GameProfile,
        folder: Path | None = None,
        *,
        use_ocr: bool = True,
        names: Sequence[str] | None = None,
    ) -> None:
        """Loads what was learnt before.

        Args:
            profile: The game.
            folder: Where letters are kept; the user's cache if None.
            use_ocr: Whether OCR reads, in the background, what the letters do not tell.
            names: Fields to read; all of the profile if None.
        """
        self._file = glyph_file_of(profile, folder)
        self.bank: GlyphBank = known_glyphs(self._file)
        self.worker = OcrWorker(available_engines() if use_ocr else [], self.bank)
        fallback = self.worker if use_ocr else None
        fields = [field for field in profile_fields(profile) if names is None or field.name in names]
        self.reader = ScreenReader(fields, self.bank, fallback, stable_reads=STABLE_READS)

    def save(self) -> None:
        """Keeps the letters for the next time."""
        save_glyphs(self.bank, self._file)

    def close(self) -> None:
        """Ends the background thread and keeps what was learnt."""
        self.worker.close()
        if len(self.bank):
            self.save()
