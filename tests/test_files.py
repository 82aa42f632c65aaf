"""Files are complete or not there."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from censcore.exceptions import StorageError
from censcore.files import is_standard_output, partial_file, write_atomically


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


def chain(folder):
    """Two links in a row, the second relative and through a folder, to a file that is not there yet."""
    (folder / "data").mkdir()
    (folder / "first").symlink_to("second")
    (folder / "second").symlink_to("data/../data/file")
    return folder / "first", folder / "data" / "file"


def test_links_stay_and_what_they_lead_to_is_replaced(tmp_path):
    link, target = chain(tmp_path)
    for content in ("dangling", "replaced"):
        before = target.stat().st_ino if target.exists() else None
        write_atomically(link, content)
        assert target.read_text(encoding="utf-8") == content
        assert target.stat().st_ino != before, "in one step, not in place"
    assert link.is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["data", "file", "first", "second"]


def test_after_an_error_what_a_link_leads_to_is_as_before(tmp_path):
    link, target = chain(tmp_path)
    write_atomically(link, "old")
    with pytest.raises(TypeError), partial_file(link) as file:
        file.writelines([b"new", None])
    assert (link.is_symlink(), target.read_text(encoding="utf-8")) == (True, "old")
    assert [path.name for path in target.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["loop", "folder", "link-to-folder", "", "loop/below", "file/below"])
def test_what_cannot_be_a_file_is_told(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("pool")
    (tmp_path / "pool").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link-to-folder").symlink_to("folder")
    (tmp_path / "file").write_text("", encoding="utf-8")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(StorageError, match="cannot be written"):
        write_atomically(name, "x")
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are those of Unix")
def test_a_folder_that_is_missing_in_the_root_is_not_made():
    """Most likely its name is mistyped; below a folder that is there, others are made."""
    missing = Path(Path.cwd().anchor, "hmoe-of-nobody")
    with pytest.raises(StorageError, match=r"there is no folder .*hmoe-of-nobody; make it if it is meant"):
        write_atomically(missing / "reports" / "page.html", "text")
    assert not missing.exists()


def test_a_pipe_is_written_to(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    read = []
    for path in (pipe, link):
        reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
        reader.start()
        write_atomically(path, "content")
        reader.join()
    assert read == [b"content", b"content"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_to(tmp_path):
    """A device of its own; nothing of the system is risked."""
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_text("may it be opened?", encoding="utf-8")
    except (AttributeError, OSError) as error:
        pytest.skip(f"this user can make no devices: {error}")
    write_atomically(device, "content")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="sockets with a name are those of Unix")
def test_a_socket_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("here")
        with pytest.raises(StorageError, match="here cannot be written: it is a socket"):
            write_atomically("here", "x")
        assert stat.S_ISSOCK(os.stat("here").st_mode)


def test_standard_output_is_written_to(tmp_path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    print("before")
    write_atomically("-", "± 1\n")
    write_atomically(Path("-"), b"\xff\n")
    print("after")
    assert capsysbinary.readouterr().out == b"before\n\xc2\xb1 1\n\xff\nafter\n"
    assert list(tmp_path.iterdir()) == []


def test_standard_output_that_takes_text_alone():
    """As that of a notebook."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        write_atomically("-", "± 1\n")
        with pytest.raises(StorageError, match="standard output cannot be written: it takes text"):
            write_atomically("-", b"\xff")
    assert said.getvalue() == "± 1\n"


def test_no_standard_output(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(StorageError, match="standard output cannot be written: it is closed"):
        write_atomically("-", "x")


def child(code, **streams):
    script = f"from censcore.files import write_atomically\n{code}"
    return subprocess.run([sys.executable, "-c", script], check=True, text=True, **streams)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="open files have no paths here")
def test_files_that_are_open_are_written_to_where_they_are(tmp_path):
    """Not replaced under the shell that opened them, and not from their beginning."""
    log = tmp_path / "log"
    log.write_text("kept\n", encoding="utf-8")
    with log.open("a", encoding="utf-8") as out:
        code = "print('one'); write_atomically('/dev/stdout', 'two\\n'); print('three')"
        child(code, stdout=out)
        child(f"write_atomically('/dev/fd/{out.fileno()}', 'four\\n')", pass_fds=[out.fileno()])
        child("write_atomically('/dev/stderr', 'five\\n')", stderr=out)
    assert log.read_text(encoding="utf-8").split() == ["kept", "one", "two", "three", "four", "five"]
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_what_means_standard_output(tmp_path):
    (tmp_path / "-").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to("/dev/stdout")
    names = ["-", "/dev/stdout", "/dev/fd/1", tmp_path / "link", "/dev/stderr", tmp_path / "-", "-/file"]
    expected = [True, *[os.path.exists("/dev/stdout")] * 3, False, False, False]
    assert [is_standard_output(name) for name in names] == expected
