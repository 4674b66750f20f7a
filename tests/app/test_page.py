"""The page in a real browser, served by the command as a user starts it.

Run by `make test-app`, which installs Gradio and Playwright. The browser is
the system's Chromium; it has a microphone that plays a file.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest
import soundfile
from app import browsing

if browsing.missing():
    pytest.skip(
        f"THE PAGE IS NOT TESTED IN A BROWSER: it needs {browsing.missing()}",
        allow_module_level=True,
    )

from playwright import sync_api

from audio_tf import cli
from audio_tf.app import samples

MODEL = "audio_transformer_synthetic_events"
OTHER = "audio_transformer_fsdd_digits"


@pytest.fixture(scope="module")
def served(tmp_path_factory, chromium):
    """The server; the browser is there before, so that it costs no time."""
    served = browsing.Served(tmp_path_factory.mktemp("served"))
    yield served
    served.process.terminate()
    served.process.wait()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    file = tmp_path_factory.mktemp("microphone") / "crickets.wav"
    file.write_bytes(samples.content("crickets"))
    sync_api.expect.set_options(timeout=1000 * browsing.WAIT_S)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browsing.CHROMIUM,
            args=[*browsing.FLAGS, f"--use-file-for-fake-audio-capture={file}"],
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, served):
    """A function that visits the page by a browser of some settings."""
    with contextlib.ExitStack() as opened:

        def visit(**settings):
            context = chromium.new_context(
                permissions=["microphone", "clipboard-read", "clipboard-write"],
                **settings,
            )
            opened.callback(context.close)
            return browsing.Visit(context, served)

        yield visit


def classified(capsys, *arguments):
    """What `audio-tf classify` prints: lines of output, text of errors."""
    cli.main(["classify", *map(str, arguments), "--model", MODEL])
    printed = capsys.readouterr()
    return printed.out.splitlines(), printed.err


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    """A WAV of 44.1 kHz and two channels, and a FLAC of 24 bits."""
    folder = tmp_path_factory.mktemp("sounds")
    rng = np.random.default_rng(0)
    audio = rng.uniform(-0.3, 0.3, (3 * 44_100, 2))
    soundfile.write(folder / "noise.wav", audio, 44_100)
    tone = 0.5 * np.sin(np.arange(40_000) * 0.7)
    soundfile.write(folder / "a tone.flac", tone, 16_000, "PCM_24")
    return folder


@pytest.mark.parametrize("name", ["noise.wav", "a tone.flac"])
def test_a_file_has_the_scores_of_classify(name, visit, sounds, served, capsys):
    visited = visit()
    began_s = time.monotonic()
    visited.drop(sounds / name)
    visited.wait_for(name)
    visited.page.locator(".atf-score").first.wait_for()
    answer_s = time.monotonic() - began_s
    with capsys.disabled():  # Printed alone: a busy machine takes longer.
        print(
            f"\n{name}: answer after {answer_s:.1f} s; first page "
            f"{served.page_s:.1f} s after the server's start; "
            f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        )
    (line,), _ = classified(capsys, sounds / name, "--json")
    found, expected = json.loads(visited.text("--json")), json.loads(line)
    assert found["file"] == name
    assert list(found["scores"]) == list(expected["scores"])
    # Processes may have other numbers of threads.
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-5)
    assert visited.scores() == [
        [(label, f"{score:.3f}") for label, score in found["scores"].items()]
    ]
    assert served.uploads() == []

    # The command to copy, by a shell where the file is.
    command = visited.text("from a shell")
    if shutil.which("curl"):
        done = subprocess.run(
            ["bash", "-c", command], cwd=sounds, capture_output=True, check=True
        )
        assert json.loads(done.stdout) == found

    origins = {
        "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url))
        for url in visited.requests
        if not url.startswith(("data:", f"blob:{served.url}"))
    }
    assert origins == {served.url} and len(visited.requests) > 20
    assert visited.errors == []


def test_a_bad_file_has_the_message_of_the_command(
    visit, tmp_path, capsys, served
):
    path = tmp_path / "broken.wav"
    path.write_bytes(b"RIFF and no more")
    _, printed = classified(capsys, path)
    message = printed.splitlines()[-1].strip().replace(str(path), path.name)
    visited = visit()
    visited.drop(path)
    alert = visited.page.get_by_role("alert")
    sync_api.expect(alert).to_have_text(message)
    assert visited.scores() == [] and served.uploads() == []
    # Nothing is in the way of the next one.
    visited.sample("bell").click()
    visited.wait_for("bell.wav")


def test_the_microphone_is_heard(visit, served):
    visited = visit()
    page = visited.page
    page.get_by_label("Record audio").click()
    page.locator("#atf-given button", has_text="Record").click()
    page.wait_for_timeout(2_500)
    page.locator("#atf-given .stop-button").click()
    visited.wait_for("recording.wav")
    assert visited.scores()[0][0][0] == "crickets"
    assert served.uploads() == []


def test_a_name_is_never_a_script(visit, sounds):
    name = "<script>alert(1)<img src=x onerror=alert(2)>${alert(3)}{{4}}.wav"
    content = (sounds / "noise.wav").read_bytes()
    visited = visit()
    visited.drop({"name": name, "mimeType": "audio/wav", "buffer": content})
    visited.wait_for(name)
    assert json.loads(visited.text("--json"))["file"] == name
    assert visited.page.locator("#atf-shown script").count() == 0
    assert visited.page.locator("#atf-shown img[src=x]").count() == 0
    assert visited.errors == []


def test_a_file_of_200_mb_is_refused(visit, tmp_path, served):
    path = tmp_path / "large.wav"
    with open(path, "wb") as file:
        file.truncate(200 * 2**20)
    visited = visit()
    visited.drop(path)
    toast = visited.page.get_by_text("exceed the maximum allowed size")
    toast.wait_for()
    visited.sample("bell").click()
    visited.wait_for("bell.wav")

    # Neither does the server take it from whoever does not ask the page.
    place = urllib.parse.urlsplit(served.url).netloc
    for route in ("/classify", "/gradio_api/upload"):
        asked = http.client.HTTPConnection(place)
        asked.putrequest("POST", route)
        asked.putheader("content-type", "multipart/form-data; boundary=x")
        asked.putheader("content-length", str(200 * 2**20))
        asked.endheaders()
        answer = asked.getresponse()
        assert answer.status == 413
        assert b"larger than the page takes (200.0 MiB" in answer.read()
        asked.close()

    def pieces():
        yield b'--x\r\ncontent-disposition: form-data; name="file"; '
        yield b'filename="a.wav"\r\n\r\n'
        for _ in range(200):
            yield bytes(2**20)

    asked = http.client.HTTPConnection(place)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        asked.request(
            "POST",
            "/classify",
            pieces(),
            {"content-type": "multipart/form-data; boundary=x"},
            encode_chunked=True,
        )
        assert asked.getresponse().status == 413
    asked.close()
    assert served.uploads() == []


def test_twenty_uploads_at_once_are_answered(visit, sounds, served, capsys):
    """Half of them are the same sound, which Gradio stores once."""
    # A browser has six connections to a server, so these are twenty browsers.
    visits = [visit() for _ in range(20)]
    for number, each in enumerate(visits):
        file = sounds / "noise.wav"
        if number % 2:
            audio, rate_hz = soundfile.read(file)
            file = sounds / f"noise_{number}.wav"
            soundfile.write(file, audio[number:], rate_hz)
        each.file = file
    for each in visits:
        each.drop(each.file)
    for each in visits:
        each.wait_for(each.file.name)
        assert len(each.scores()[0]) == 5 and each.errors == []
    assert len({json.dumps(each.scores()) for each in visits[::2]}) == 1
    assert served.uploads() == []


def test_two_models_answer_beside_each_other(visit):
    visited = visit(viewport={"width": 1280, "height": 900})
    visited.sample("knocks, then a siren").click()
    visited.wait_for("knocks_then_a_siren.wav")
    visited.page.locator("#atf-right input").click()
    visited.page.get_by_role("option", name=OTHER).click()
    visited.wait_for(OTHER)
    cards = [
        card.bounding_box() for card in visited.page.locator(".atf-card").all()
    ]
    assert len(cards) == 2 and cards[0]["y"] == cards[1]["y"]
    assert cards[0]["x"] + cards[0]["width"] <= cards[1]["x"]
    assert [len(scores) for scores in visited.scores()] == [5, 5]
    visited.page.get_by_text("JSON and curl").click()
    visited.page.locator(".atf-copy").first.click()
    copied = visited.page.evaluate("navigator.clipboard.readText()")
    assert [
        list(json.loads(line)["scores"]) for line in copied.split("\n")
    ] == [[label for label, _ in scores] for scores in visited.scores()]


def test_it_says_what_the_answer_rests_on(visit):
    visited = visit()
    visited.sample("bell").click()
    visited.wait_for("bell.wav")
    page = visited.page
    page.get_by_role("button", name="What does the answer rest on?").click()
    why = page.locator(".atf-why")
    why.wait_for()
    assert "what bell rests on" in why.locator("h2").inner_text()
    assert why.locator("img").bounding_box()["width"] > 300
    # It was of the sound before.
    visited.sample("crickets").click()
    visited.wait_for("crickets.wav")
    sync_api.expect(why).to_have_count(0)


def test_the_keyboard_is_enough(visit):
    visited = visit()
    page = visited.page
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.ariaLabel ||"
                " document.activeElement.innerText"
            ).strip()
        )
        if reached[-1] == "crickets":
            break
    assert reached[-1] == "crickets" and "bell" in reached
    assert any("upload" in name.lower() for name in reached), reached
    assert any("record" in name.lower() for name in reached), reached
    page.keyboard.press("Enter")
    visited.wait_for("crickets.wav")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(scheme, visit):
    visited = visit(color_scheme=scheme)
    visited.sample("bell").click()
    visited.wait_for("bell.wav")
    ground = browsing.luminance(visited.page, ".atf-card", "backgroundColor")
    assert (ground < 0.1) == (scheme == "dark")
    for selector in (".atf-label", ".atf-score", ".atf-card h2", ".atf-name"):
        text = browsing.luminance(visited.page, selector, "color")
        low, high = sorted([ground, text])
        assert (high + 0.05) / (low + 0.05) > 4.5, selector


def test_a_phone_shows_it_all(visit):
    visited = visit(viewport={"width": 400, "height": 800})
    visited.sample("four scenes").click()
    visited.wait_for("four_scenes.wav")
    page = visited.page
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    for selector in (".atf-track", ".atf-plot.atf-mel", "#atf-shown audio"):
        box = page.locator(selector).first.bounding_box()
        assert box["width"] > 150 and box["x"] + box["width"] <= 400, selector


def test_playing_is_shown_in_the_pictures(visit):
    visited = visit()
    visited.sample("four scenes").click()
    visited.wait_for("four_scenes.wav")
    plot = visited.page.locator(".atf-plot.atf-mel").bounding_box()
    visited.page.mouse.click(
        plot["x"] + plot["width"] * 0.75, plot["y"] + plot["height"] / 2
    )
    at = visited.page.wait_for_function(
        "document.documentElement.style.getPropertyValue('--atf-at')"
    )
    assert float(at.json_value().rstrip("%")) == pytest.approx(75, abs=1)


def ask(url, headers={}, data=None):
    """Status, headers and text of an answer."""
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def test_other_pages_and_other_names_are_refused(served):
    status, headers, _ = ask(served.url)
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy and "http" not in policy
    place = urllib.parse.urlsplit(served.url).netloc
    assert ask(served.url, {"Host": "elsewhere.example"})[0] == 403
    for origin in ("http://elsewhere.example", f"https://{place}", "null"):
        assert ask(f"{served.url}/classify", {"Origin": origin}, b"")[0] == 403


def form(name, content):
    """Headers and body of a form with one file."""
    head = f'content-disposition: form-data; name="file"; filename="{name}"'
    body = b"--x\r\n%b\r\n\r\n%b\r\n--x--\r\n" % (head.encode(), content)
    return {"content-type": "multipart/form-data; boundary=x"}, body


def test_the_route_for_commands_names_what_is_wrong(served):
    headers, body = form("bell.wav", samples.content("bell"))
    url = f"{served.url}/classify"
    status, _, text = ask(url, headers, body)
    assert status == 200 and text.endswith("}\n")
    assert next(iter(json.loads(text)["scores"])) == "bell"
    for query, reason in (
        ("?topp=1", "did you mean 'top'"),
        ("?top=0", "`top`"),
        ("?top=x", "Received: top=x"),
        ("?top=1&top=2", "'top' once"),
        ("?model=../other", "must be one of"),
    ):
        status, _, text = ask(url + query, headers, body)
        assert status == 400 and reason in json.loads(text)["error"], query
    headers, body = form("empty.wav", b"")
    status, _, text = ask(url, headers, body)
    assert status == 422
    assert json.loads(text) == {"file": "empty.wav", "error": "empty file"}
    # A byte above the limit: the whole form is not.
    status, _, text = ask(url, *form("long.wav", bytes(25 * 2**20 + 1)))
    assert status == 413 and "at most 25" in json.loads(text)["error"]
    plain = {"content-type": "application/x-www-form-urlencoded"}
    field = b'--x\r\ncontent-disposition: form-data; name="top"\r\n\r\n1\r\n'
    for sent in (
        (headers, b"--x--\r\n"),
        (headers, body.replace(b'name="file"', b'name="fil"')),
        (headers, body.replace(b"--x--", b"") + body),
        (headers, field + body),
        (plain, b"a=1&b=2"),
        ({"content-type": "multipart/form-data"}, body),
    ):
        status, _, text = ask(url, *sent)
        assert status == 400
        assert json.loads(text)["error"].startswith("`file` must be"), sent
    assert ask(f"{served.url}/samples/passwd")[0] == 404


def test_a_port_in_use_is_one_line(served, capfd):
    port = urllib.parse.urlsplit(served.url).port
    assert cli.main(["app", "--port", port]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("audio-tf app: --port is not free")


def test_nothing_is_left_behind(served):
    """The last test: it ends the process."""
    (folder,) = served.folder.glob("audio_tf_app_*")
    (folder / "upload.wav").write_bytes(b"sound")
    stored = f"{served.url}/gradio_api/file={folder / 'upload.wav'}"
    status, _, text = ask(stored)
    assert (status, text) == (404, "the page gives no file back\n")
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(browsing.WAIT_S) == 0
    assert [path.name for path in served.folder.iterdir()] == ["log"]
    assert "Traceback" not in served.text()
