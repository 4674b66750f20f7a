"""Pages of the site that are made of files elsewhere in the repository.

MkDocs calls the functions `on_...` (`hooks` in mkdocs.yml). The site has the
paths of the repository, with the pages of `docs/` at its top, so that a link
is right both there and here.
"""

import ast
import functools
import pathlib
import posixpath
import re
import subprocess
import sys
import tempfile

import jupytext
import pictures
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = "docs/"
# Files beside `docs/` that are pages or pictures of the site.
OTHERS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/*.md",
    "benchmarks/*.png",
    "audio_tf/saved_models/*/README.md",
)
# Where the site has what `pictures.py` draws.
PICTURES = "pictures"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
LINK = re.compile(r"(\]\()([^)\s:#]+)(#[^)\s]*)?\)")
# `<!-- figures: HEADING -->` stands for a section of the figures.
FIGURES = re.compile(r"<!-- figures: (.+?) -->")
# `<!-- code: FILE NAME -->` stands for a class or function of a file.
CODE = re.compile(r"<!-- code: (\S+) (\S+) -->")
# `<!-- picture: NAME CAPTION -->` stands for one of `pictures.PICTURES`.
PICTURE = re.compile(r"<!-- picture: (\S+) (.+?) -->", re.S)
# Code within a line, and a word in it that has a hyphen and fits any screen.
INLINE = re.compile(r"(<pre\b.*?</pre>)|<code>([^<]+)</code>", re.S)
HYPHENED = re.compile(r"(?<!\S)(?=\S*-)\S{1,28}(?!\S)")
# What a browser would load from another host as soon as it opens a page.
LOADED = re.compile(
    r"<(?:script|img|iframe|source|link\b[^>]*rel=\"?(?:stylesheet|preconnect|"
    r"icon))[^>]*(?:src|href)=\"?(?:https?:)?//[^>]*>"
)


def on_files(files, config):
    """Adds the files beside `docs/`, and a page for each example."""
    for pattern in OTHERS:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    for path in sorted((ROOT / DOCS / "examples").glob("*.py")):
        page = File.generated(
            config, f"examples/{path.stem}.md", content=example(path)
        )
        files.append(page)
    for name, content in drawn().items():
        picture = f"{PICTURES}/{name}.png"
        files.append(File.generated(config, picture, content=content))
    return files


@functools.cache
def drawn():
    """Returns the content of each picture by name, drawn once a process.

    Another process draws them: TensorFlow has no place in that of MkDocs.

    Raises:
        PluginError: if that fails; it has what was printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, ROOT / DOCS / "pictures.py", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise PluginError(f"pictures.py failed: {done.stdout[-3000:]}")
        files = pathlib.Path(folder).glob("*.png")
        return {path.stem: path.read_bytes() for path in sorted(files)}


def picture(name, caption):
    """Returns a picture as Markdown, with its caption and its command.

    Raises:
        PluginError: if there is no such picture.
    """
    if name not in pictures.PICTURES:
        raise PluginError(f"pictures.py has no picture {name!r}")
    caption, file = " ".join(caption.split()), f"{PICTURES}/{name}.png"
    command = pictures.PICTURES[name].command
    return (
        f"[![{caption}]({file})]({file})\n\n"
        f"*{caption}* `{command}`\n{{ .caption }}"
    )


def example(path):
    """Returns a notebook in the form of a script as Markdown."""
    parts = [f"*This page is `docs/examples/{path.name}`, which "]
    parts[0] += "`jupytext --to notebook` turns into a notebook.*"
    for cell in jupytext.read(path).cells:
        code = cell.cell_type == "code"
        parts.append(f"```python\n{cell.source}\n```" if code else cell.source)
    title = parts.pop(1)
    return "\n\n".join([title, *parts]) + "\n"


def section(heading):
    """Returns what stands in the figures under a heading of second order.

    Raises:
        PluginError: if there is no such heading.
    """
    text = RESULTS.read_text()
    found = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S
    )
    if found is None:
        raise PluginError(f"{RESULTS.name} has no section {heading!r}")
    return found[1].strip("\n")


def code(file, name):
    """Returns a class or function of a file, with the lines that follow it.

    Raises:
        PluginError: if the file has no such name.
    """
    text = (ROOT / file).read_text()
    kinds = (ast.ClassDef, ast.FunctionDef)
    body = ast.parse(text).body
    defined = [node for node in body if isinstance(node, kinds)]
    for node, following in zip(defined, [*defined[1:], None]):
        if node.name == name:
            begin, end = first_line(node), following and first_line(following)
            lines = text.splitlines()[begin:end]
            return "```python\n" + "\n".join(lines).strip() + "\n```"
    raise PluginError(f"{file} has no class or function {name!r}")


def first_line(node):
    """Returns the index of a definition's first line, decorators included."""
    return min(each.lineno for each in [node, *node.decorator_list]) - 1


def on_page_markdown(markdown, page, **_):
    """Puts figures where a page asks for them, and turns links to the site."""
    here = page.file.src_uri
    in_docs = (ROOT / DOCS / here).exists() or here.startswith("examples/")
    folder = posixpath.dirname((DOCS if in_docs else "") + here)

    def turned(found):
        target = posixpath.normpath(posixpath.join(folder, found[2]))
        target = target.removeprefix(DOCS)
        link = posixpath.relpath(target, posixpath.dirname(here) or ".")
        return f"{found[1]}{link}{found[3] or ''})"

    markdown = CODE.sub(lambda found: code(found[1], found[2]), markdown)
    markdown = PICTURE.sub(lambda found: picture(*found.groups()), markdown)
    markdown = FIGURES.sub(lambda found: section(found[1]), markdown)
    return LINK.sub(turned, markdown)


def on_page_content(html, **_):
    """Keeps flags whole, which browsers would break behind each hyphen."""

    def kept(found):
        if found[1]:
            return found[1]
        text = HYPHENED.sub(r'<span class="whole">\g<0></span>', found[2])
        return f"<code>{text}</code>"

    return INLINE.sub(kept, html)


def on_post_page(output, page, **_):
    """Refuses a page that would load something from another host.

    Raises:
        PluginError: if there is such a page.
    """
    loaded = LOADED.search(output)
    if loaded:
        raise PluginError(f"{page.file.src_uri} loads {loaded[0]}")
    return output
