"""The command `audio-tf app` as a process, and visits by a browser."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import keras

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# As a user starts it, of the environment that the tests run in.
COMMAND = pathlib.Path(sys.executable).with_name("audio-tf")
WAIT_S = 500.0  # A busy machine, and no more than pytest waits.
FLAGS = [
    "--no-sandbox",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
]


class Served:
    """The command as a process, with a folder of its own for what it writes.

    Args:
        folder: path.

    Attributes:
        began_s: time.monotonic() at the start of the process.
        page_s: seconds from there to the first page that a browser showed
            whole, or `None` before.
    """

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "log"
        self.began_s, self.page_s = time.monotonic(), None
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [COMMAND, "app", "--port", "0"],
                env={**os.environ, "TMPDIR": str(folder)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until(lambda: "http" in self.text() or not self.lives())
            self.url = re.search(r"http://127\.0\.0\.1:\d+", self.text())[0]
        except BaseException:
            self.process.kill()
            raise

    def lives(self):
        return self.process.poll() is None

    def text(self):
        return self.log.read_text()

    def uploads(self):
        """Files of sounds that the process has on disk."""
        found = self.folder.glob("audio_tf_app_*/**/*")
        return [path for path in found if path.is_file()]


def wait_until(holds):
    until = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def missing():
    """What the tests lack, for a message, or `None`."""
    if keras.backend.backend() != "tensorflow":
        return "TensorFlow as the backend"
    for name in ("gradio", "playwright"):
        if importlib.util.find_spec(name) is None:
            return f"{name}, which `make test-app` installs"
    return None if CHROMIUM else "a browser: apt-get install chromium"


class Visit:
    """A visit of the page, and all that the browser asked and said."""

    def __init__(self, context, served):
        self.requests, self.errors = [], []
        context.set_default_timeout(1000 * WAIT_S)
        self.page = context.new_page()
        context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append("dialog"))
        self.page.goto(served.url)
        self.sample("bell").wait_for()
        served.page_s = served.page_s or time.monotonic() - served.began_s

    def sample(self, name):
        return self.page.get_by_role("button", name=name, exact=True)

    def shown(self):
        return self.page.locator("#atf-shown")

    def drop(self, file):
        """Gives the page a file: a path, or a dict as Playwright takes it."""
        self.page.locator("#atf-given input[type=file]").set_input_files(file)

    def wait_for(self, text):
        from playwright import sync_api

        sync_api.expect(self.shown()).to_contain_text(text)

    def scores(self):
        """The labels and scores of each model as the page shows them."""
        return [
            list(
                zip(
                    card.locator(".atf-label").all_inner_texts(),
                    card.locator(".atf-score").all_inner_texts(),
                    strict=True,
                )
            )
            for card in self.page.locator(".atf-card").all()
        ]

    def text(self, title):
        """A text that the page gives to copy."""
        figure = self.page.locator(".atf-text", has_text=title)
        return figure.locator("pre").text_content()


def luminance(page, selector, what):
    """The relative luminance of a colour, as WCAG 2.2 has it."""
    text = page.locator(selector).first.evaluate(
        f"element => getComputedStyle(element).{what}"
    )
    red, green, blue = (
        (value / 255 / 12.92)
        if value <= 10
        else ((value / 255 + 0.055) / 1.055) ** 2.4
        for value in map(float, re.findall(r"[\d.]+", text)[:3])
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
