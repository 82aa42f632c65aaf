"""Files are complete or not there."""

from __future__ import annotations

import os
import threading

import pytest

from censcore.files import write_atomically


def test_a_file_is_written_in_one_piece(tmp_path, monkeypatch):
    target = tmp_path / "deep" / "result.json"
    write_atomically(target, "old")
    (tmp_path / "plain").write_text("", encoding="utf-8")
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, "new")
    assert target.read_text(encoding="utf-8") == "old"
    assert [p.name for p in target.parent.iterdir()] == ["result.json"]


def test_bytes_are_written_as_they_are(tmp_path):
    assert write_atomically(tmp_path / "model", b"\r\n\x00").read_bytes() == b"\r\n\x00"


def test_readers_see_whole_files_while_several_write(tmp_path):
    target, texts = tmp_path / "shared", [str(i) * 200_000 for i in range(4)]
    write_atomically(target, texts[0])
    writers = [
        threading.Thread(target=lambda text=text: [write_atomically(target, text) for _ in range(10)])
        for text in texts
    ]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(target.read_text(encoding="utf-8"))
    assert seen <= set(texts)
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]
