"""The words that profiles are written with: names, numbers and places, as the keys of all their sections take them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Line = Annotated[str, Field(min_length=1, max_length=500)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0)]
Place = tuple[Number, Number]
Box = tuple[Number, Number, Number, Number]
Seconds = Annotated[float, Field(strict=True, ge=0.0, le=600.0)]
Pixels = Annotated[int, Field(strict=True, ge=64, le=8192)]
Count = Annotated[int, Field(strict=True, ge=1, le=1000)]


class Section(BaseModel):
    """A part of a profile: it never changes, and takes no keys but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
