"""The pages that people read, and what stands in them."""

import ast
import pathlib
import re
import shlex
from typing import NamedTuple

from repository import ROOT

DOCS = ROOT / "docs"
# Programs whose commands the pages show.
PROGRAMS = ("audio-tf", "docker", "make", "pip", "python")


class Block(NamedTuple):
    """A block of code.

    Attributes:
        text: str, its lines without their common indentation.
        language: str, what stands behind the fence; `"shell"` of a block that
            is indented.
        needs: str, what a comment before it says that it needs, or `""`.
    """

    text: str
    language: str
    needs: str


def pages():
    """Returns the paths of all pages that are written here, README first."""
    names = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    return [*(ROOT / name for name in names), *sorted(DOCS.rglob("*.md"))]


def name_of(page):
    """Returns a page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """Returns the blocks of code of a page, in order."""
    found, needs = [], ""
    lines = iter(page.read_text().splitlines())
    indented, before = [], ""
    for line in [*lines, "", "end"]:
        if indented and not line.startswith("    ") and line.strip():
            text = "\n".join(each[4:] for each in indented).strip("\n")
            found.append(Block(text, "shell", ""))
            indented = []
        if found and found[-1].language.startswith("open "):
            if line.strip() == "```":
                last = found.pop()
                language = last.language.removeprefix("open ")
                found.append(last._replace(language=language))
            else:
                last = found.pop()
                found.append(last._replace(text=f"{last.text}{line}\n"))
        elif line.startswith("```"):
            found.append(Block("", f"open {line[3:]}", needs))
        elif line.startswith("    ") and (indented or not before.strip()):
            indented.append(line)
        elif indented:
            indented.append(line)
        asked = re.fullmatch(r"<!-- needs (.+) -->", line)
        needs = asked[1] if asked else ""
        before = line
    return found


def prose(page):
    """Returns a page's text without its comments and blocks."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.S)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"\n\n(?:    .*\n?)+", "\n\n", text)


def commands(block):
    """Returns the words of each command in a block for the shell."""
    lines = re.sub(r"\s*\\\n\s*", " ", block.text).splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


def commands_told(file):
    """Returns the words of each `audio-tf` command in a file's docstring.

    A script of `training/` is the command of its name, and that of `datasets/`
    is `build`. Variables of a shell stand for 0.
    """
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    text = re.sub(r"\s*\\\n\s*", " ", text)
    text = text.replace("python datasets/build.py", "audio-tf build")
    text = re.sub(r"python training/(\w+)\.py", r"audio-tf \1", text)
    lines = re.findall(r"^ {4,}(audio-tf .+)$", text, re.MULTILINE)
    return [shlex.split(re.sub(r"\$\w+", "0", line)) for line in lines]


def anchors(page):
    """Returns the anchors that headings of a page have on the site."""
    found = set()
    for line in prose(page).splitlines():
        heading = re.match(r"#+ (.*)", line)
        if heading:
            text = re.sub(r"[^\w\s-]", "", heading[1].lower()).strip()
            found.add(re.sub(r"[-\s]+", "-", text))
    return found


def links(page):
    """Returns pairs of target and anchor of the links to files here."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    here = [each for each in found if "://" not in each]
    return [each.partition("#")[::2] for each in here]


def source_of(page, target):
    """Returns the file that a link leads to, in the repository."""
    path = pathlib.Path(page.parent, target).resolve() if target else page
    if path.parent == DOCS / "examples" and path.suffix == ".md":
        return path.with_suffix(".py")  # The site has it as a page.
    return path
