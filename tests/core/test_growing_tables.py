"""Files that grow: only new lines are read, half-written ones wait, and a file that was cut back is read anew."""

import json
import math
import os
from pathlib import Path

from ludus.core.files import read_end
from ludus.core.tables import GrowingTable, TailedFile, read_table


def test_only_new_lines_are_read_and_a_half_written_one_waits(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = TailedFile(path)
    assert tail.read() == (False, [])  # not there yet
    path.write_text("one\ntwo\nthr")
    assert tail.read() == (False, ["one", "two"])
    assert tail.read() == (False, [])
    with path.open("a") as file:
        file.write("ee\nfour\n")
    assert tail.read() == (False, ["three", "four"])


def test_a_file_that_was_cut_back_and_grew_past_its_old_size_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthree\n")
    tail = TailedFile(path)
    tail.read()
    path.write_text("one\ntwo\nother\nlonger than before\n")
    assert tail.read() == (True, ["one", "two", "other", "longer than before"])
    path.write_text("one\n")
    assert tail.read() == (True, ["one"])
    path.unlink()
    assert tail.read() == (True, [])
    path.write_text("new\n")
    assert tail.read() == (False, ["new"])


def test_links_fifos_and_folders_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "link").symlink_to("secret")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for name in ("link", "fifo", "folder"):
        assert TailedFile(tmp_path / name).read() == (False, [])
        assert read_end(tmp_path / name, 100) == []
    assert read_end(tmp_path / "secret", 100) == ["secret"]


def test_the_end_of_a_file_begins_with_a_whole_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("first\nsecond\nthird\nhalf")
    assert read_end(tmp_path / "log", 100) == ["first", "second", "third"]
    assert read_end(tmp_path / "log", 15) == ["third"]  # "ond\nthird\nhalf" is what the last 14 bytes and one more hold


def test_a_growing_table_equals_the_one_that_is_read_at_once(tmp_path: Path) -> None:
    rows, lines = tmp_path / "rows.csv", tmp_path / "lines.jsonl"
    growing = GrowingTable(rows), GrowingTable(lines)
    rows.write_text('#{"t_start": 0}\nenv_steps,opponent\n')
    lines.touch()
    for i in range(1, 6):
        with rows.open("a") as file:
            file.write(f'{100 * i},"a, {"b" * i}"\n' + "too,many,cells\n" * (i == 2))
        with lines.open("a") as file:
            file.write(
                json.dumps({"env_steps": i} | ({"late": 2 * i} if i > 3 else {})) + "\n" + "broken\n[1]\n" * (i == 2)
            )
        assert [table.refresh() for table in growing] == [True, True]
        assert len(growing[0].numbers("env_steps")) == i  # numbers are asked for between the rows
        assert growing[0].texts("opponent")[-1] == f"a, {'b' * i}"
    assert [table.refresh() for table in growing] == [False, False]
    for table, whole in zip(growing, map(read_table, (rows, lines)), strict=True):
        assert table.names == whole.names
        for name in (*whole.names, "unknown"):
            assert str(table.numbers(name)) == str(whole.numbers(name))  # NaN included
            assert table.texts(name).tolist() == whole.texts(name).tolist()
    assert math.isnan(growing[1].numbers("late")[2])
    assert growing[1].last("late") == 10.0


def test_a_growing_table_forgets_rows_that_were_cut(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    table = GrowingTable(path)
    table.refresh()
    assert table.numbers("x").tolist() == [1.0, 3.0]
    path.write_text("x,z\n1,2\n5,6\n7,8\n")
    assert table.refresh()
    assert table.names == ("x", "z")
    assert table.numbers("x").tolist() == [1.0, 5.0, 7.0]
