"""Numbers and names as people read them in a console: short, in ASCII, without anything a terminal would obey."""

_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60
_GIB = 1 << 30


def plain(text: str) -> str:
    """Returns one printable ASCII line; names may come from strangers' files, and escape codes stay codes."""
    joined = " ".join(text.split())
    ascii_text = joined.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in ascii_text)


def duration(seconds: float) -> str:
    """Returns `4.2 s`, `3 min 05 s`, `2 h 07 min` or `1 d 04 h`."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S:02d} s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S:02d} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // _HOUR_S:02d} h"


def percent(share: float) -> str:
    """Returns a share of 1 as `56 %`; only exactly all is `100 %`, only exactly nothing `0 %`."""
    whole = round(100.0 * share)
    if share < 1.0 and whole == 100:
        return f"{min(100.0 * share, 99.9):.1f} %"
    if share > 0.0 and whole == 0:
        return f"{max(100.0 * share, 0.1):.1f} %"
    return f"{whole} %"


def number(value: float) -> str:
    """Returns four significant digits."""
    return f"{value:.4g}"


def memory(used_bytes: float, total_bytes: float | None = None) -> str:
    """Returns `1.3 GiB`, or `1.3 of 140 GiB`."""
    of_total = "" if total_bytes is None else f" of {total_bytes / _GIB:.0f}"
    return f"{used_bytes / _GIB:.1f}{of_total} GiB"
