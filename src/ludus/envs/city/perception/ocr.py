"""OCR engines behind one protocol: rapidocr, whose models come with it, and tesserocr where it is installed."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from ludus.core.errors import MissingDependencyError, UnknownNameError
from ludus.envs.city.drivers.driver import Frame, Region
from ludus.envs.city.perception.opencv import opencv

ENGINES = ("rapidocr", "tesserocr")
_SCALES = (2.0, 3.0)  # crops are read at both: letters of screens are smaller than those that engines were taught on
_MARGIN = 4  # pixels of ground around a crop


@dataclass(frozen=True, slots=True)
class FoundText:
    """A line of text found in a picture."""

    text: str
    region: Region
    confidence: float


class Engine(Protocol):
    """Reads single lines."""

    name: str

    def opinions(self, crop: Frame) -> list[tuple[str, float]]:
        """Returns what a crop `(height, width, 3)` of one line says at several scales, each with a confidence."""


class Scanner(Protocol):
    """Finds and reads all text of a picture."""

    name: str

    def scan(self, frame: Frame) -> list[FoundText]:
        """Returns the lines of text of a whole picture; takes seconds."""


class RapidOcr:
    """rapidocr's recognition; about 0.1 s a crop."""

    name = "rapidocr"

    def __init__(self) -> None:
        """Loads the models.

        Raises:
            MissingDependencyError: rapidocr is not installed.
        """
        self._engine = _rapidocr()  # the library keeps its mode from the last call: one instance a mode

    def opinions(self, crop: Frame) -> list[tuple[str, float]]:
        """Returns what the crop says, enlarged two and three times."""
        found = []
        for scale in _SCALES:
            result = self._engine(_enlarged(crop, scale), use_det=False, use_cls=False, use_rec=True)
            if result.txts:
                found.append((str(result.txts[0]), float(result.scores[0])))
        return found


class RapidScanner:
    """rapidocr on whole pictures: seconds of work, for discovery alone."""

    name = "rapidocr"

    def __init__(self) -> None:
        """Loads the models.

        Raises:
            MissingDependencyError: rapidocr is not installed.
        """
        self._engine = _rapidocr()

    def scan(self, frame: Frame) -> list[FoundText]:
        """Returns the lines of text of a whole picture."""
        result = self._engine(_bgr(frame), use_det=True, use_cls=False, use_rec=True)
        if result.boxes is None or result.txts is None:
            return []
        height, width = frame.shape[:2]
        found = []
        for corners, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
            left, top = np.min(corners, axis=0)
            right, bottom = np.max(corners, axis=0)
            region = Region(float(left / width), float(top / height), float(right / width), float(bottom / height))
            found.append(FoundText(str(text), region, float(score)))
        return found


class TesserOcr:
    """tesserocr's line mode, where it and its English model are installed; about 14 ms a crop."""

    name = "tesserocr"

    def __init__(self) -> None:
        """Starts the engine.

        Raises:
            MissingDependencyError: tesserocr or its model is not installed.
        """
        try:
            tesserocr = import_module("tesserocr")
        except ImportError as error:
            raise MissingDependencyError(
                "tesserocr (and Debian's tesseract-ocr-eng)", "city", "reading by tesserocr"
            ) from error
        from PIL import Image

        self._image = Image
        self._api = tesserocr.PyTessBaseAPI(psm=tesserocr.PSM.SINGLE_LINE, lang="eng")

    def opinions(self, crop: Frame) -> list[tuple[str, float]]:
        """Returns what the crop says, enlarged two and three times."""
        found = []
        for scale in _SCALES:
            self._api.SetImage(self._image.fromarray(_enlarged(crop, scale)))
            text = self._api.GetUTF8Text().strip()
            if text:
                found.append((text, self._api.MeanTextConf() / 100.0))
        return found


def make_engine(name: str) -> Engine:
    """Returns an engine by its name.

    Raises:
        UnknownNameError: There is no such engine.
        MissingDependencyError: It is not installed.
    """
    if name not in ENGINES:
        raise UnknownNameError("OCR engine", name, ENGINES)
    return RapidOcr() if name == "rapidocr" else TesserOcr()


def available_engines() -> list[Engine]:
    """Returns all engines that are installed; none is needed where the letters are known."""
    engines: list[Engine] = []
    for name in ENGINES:
        try:
            engines.append(make_engine(name))
        except MissingDependencyError:
            continue
    return engines


def _rapidocr() -> Any:  # noqa: ANN401 - the library is not typed
    try:
        from rapidocr import RapidOCR
    except ImportError as error:
        raise MissingDependencyError("rapidocr", "city", "reading by rapidocr") from error
    return RapidOCR(params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1})


def _bgr(frame: Frame) -> Frame:
    return np.ascontiguousarray(frame[:, :, ::-1])


def _enlarged(crop: Frame, scale: float) -> Frame:
    """Returns a crop with some ground around it, enlarged."""
    cv2 = opencv("reading by OCR")
    edges = np.concatenate((crop[0], crop[-1], crop[:, 0], crop[:, -1]))
    ground = tuple(int(value) for value in np.median(edges, axis=0))
    framed = cv2.copyMakeBorder(_bgr(crop), *[_MARGIN] * 4, cv2.BORDER_CONSTANT, value=ground[::-1])
    enlarged: Frame = cv2.resize(framed, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    return enlarged
