"""`benchmarks/load.py` where there is no server, or no such file."""

import importlib.util
import pathlib
import socket

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "load.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("load_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def closed_port():
    """A port on which nobody listens, and which nobody else is given."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def refusal(script, capsys, *flags):
    """The one line that the script must end with."""
    with pytest.raises(SystemExit) as ended:
        script.main([str(each) for each in flags])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_bad_url_is_one_line(script, capsys, monkeypatch, closed_port):
    """It names the argument, what was expected, and what was received."""
    lookup = socket.getaddrinfo

    def unknown(host, *args, **kwargs):
        if host == "nohost.invalid":
            raise socket.gaierror(-2, "Name or service not known")
        return lookup(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for url, words in (
        ("localhost:8501", "Received: localhost:8501"),
        ("ftp://localhost:21", "begins with one of http, https, grpc"),
        ("http://nohost.invalid:8501", "Name or service not known"),
        (f"http://127.0.0.1:{closed_port}", "Connection refused"),
    ):
        line = refusal(script, capsys, url, "--seconds", "1")
        assert line.startswith(
            "load.py: URL must be that of a server that answers: "
        )
        assert words in line and url in line


def test_other_bad_flags_are_one_line(script, capsys, tmp_path):
    for flags, words in (
        ([], "give a URL to measure, or --rows"),
        (["--rows", tmp_path / "none"], "No such file"),
        (["http://a", "--clip", tmp_path / "none.wav"], "none.wav"),
        (["http://a", "--seconds", "0"], "--seconds: must be positive"),
        (["http://a", "--secnds", "1"], "did you mean '--seconds'"),
    ):
        assert words in refusal(script, capsys, *flags)
