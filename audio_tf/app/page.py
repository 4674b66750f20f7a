"""The page itself: what is on it, and what its controls do."""

import functools
import pathlib

import gradio as gr

from audio_tf.app import answering, drawing, samples, texts

TITLE = "audio_tf"
NOTHING = "no second model"
RECORDING = "recording.wav"
# A clip stays in memory for another model to be asked, and no longer.
KEPT_S = 600
HERE = pathlib.Path(__file__).parent
# Gradio's own argument for CSS leaves out rules for narrow containers.
HEAD = (
    f"<style>{(HERE / 'page.css').read_text()}</style>"
    f"<script>{(HERE / 'page.js').read_text()}</script>"
)
INTRODUCTION = (
    "<h1>audio_tf</h1><p>Drop a sound, record one or take a sample, and see "
    "what a model hears in it. No sound leaves this computer, and none is "
    "kept.</p>"
)
WAITING = '<p class="atf-waiting">The answer comes here.</p>'


def build(models, address, uploads):
    """Builds the page.

    Args:
        models: `answering.Models`.
        address: str, where the page is served, for commands to copy.
        uploads: `uploads.Uploads`.

    Returns:
        `gradio.Blocks`.
    """
    with gr.Blocks(title=TITLE, analytics_enabled=False) as page:
        clip = gr.State(None, time_to_live=KEPT_S)
        gr.HTML(INTRODUCTION, elem_classes="atf")
        with gr.Row():
            with gr.Column(scale=2, min_width=300):
                given = gr.Audio(
                    sources=["upload", "microphone"],
                    type="filepath",
                    label="Sound",
                    buttons=[],
                    editable=False,
                    elem_id="atf-given",
                )
                gr.HTML("<h2>Samples</h2>", elem_classes="atf")
                with gr.Row(elem_id="atf-samples"):
                    buttons = {
                        name: gr.Button(name, size="sm", min_width=80)
                        for name in samples.SAMPLES
                    }
                left = gr.Dropdown(
                    models.names,
                    value=models.names[0],
                    label="Model",
                    elem_id="atf-left",
                )
                right = gr.Dropdown(
                    [NOTHING, *models.names],
                    value=NOTHING,
                    label="Beside it",
                    elem_id="atf-right",
                )
            with gr.Column(scale=5, min_width=300):
                shown = gr.HTML(WAITING, elem_id="atf-shown")
                why = gr.Button("What does the answer rest on?", size="sm")
                because = gr.HTML("", elem_id="atf-because")

        def show(clip, left, right):
            """Returns the answers, and no reasons, which were of others."""
            return say(models, address, clip, asked(left, right)), ""

        def explain(clip, left, right):
            if clip is None:
                return WAITING
            return reasons(models, clip, asked(left, right))

        def take(name, file, left, right):
            clip = read_upload(uploads, file, name)
            return None, clip, *show(clip, left, right)

        def take_sample(name, left, right):
            clip = answering.read_clip(
                samples.file_name(name), samples.content(name)
            )
            return clip, *show(clip, left, right)

        private = {"api_visibility": "private", "show_progress": "minimal"}
        chosen = [left, right]
        for event, name in (
            (given.upload, None),
            (given.stop_recording, RECORDING),
        ):
            event(
                functools.partial(take, name),
                [given, *chosen],
                [given, clip, shown, because],
                preprocess=False,
                show_progress_on=shown,
                **private,
            )
        for name, button in buttons.items():
            button.click(
                functools.partial(take_sample, name),
                chosen,
                [clip, shown, because],
                **private,
            )
        for each in chosen:
            each.change(show, [clip, *chosen], [shown, because], **private)
        why.click(explain, [clip, *chosen], because, **private)
    page.queue(max_size=200, default_concurrency_limit=2)
    return page


def asked(left, right):
    """Returns the models that are chosen, each once."""
    return list(dict.fromkeys([left] if right == NOTHING else [left, right]))


def read_upload(uploads, file, name=None):
    """Reads a file that the browser has sent, which deletes it.

    Args:
        uploads: `uploads.Uploads`.
        file: dict as Gradio's `FileData` has it, of a file that Gradio has
            checked to be an upload; or `None`.
        name: str, what to call it, or `None` for the name that it had.

    Returns:
        `answering.Clip`, or `None`.
    """
    if file is None:
        return None
    name = name or file["orig_name"] or pathlib.Path(file["path"]).name
    try:
        content = uploads.take(file["path"])
    except FileNotFoundError:
        return answering.Clip(name, None, None, "no such file")
    return answering.read_clip(name, content)


def say(models, address, clip, names):
    """Returns what the page shows of a clip.

    Args:
        models: `answering.Models`.
        address: str, where the page is served.
        clip: `answering.Clip`, or `None` if none was given.
        names: list of str, the models that are asked.

    Returns:
        String of HTML.
    """
    if clip is None:
        return WAITING
    if clip.error is not None:
        return drawing.problem(clip.name, clip.error)
    answers = models.answers(names, clip)
    lines = [texts.as_json(answer.found) for answer in answers.values()]
    commands = [texts.command(address, clip.name, name) for name in names]
    return drawing.whole(
        clip,
        answers,
        {
            "as audio-tf classify --json": "\n".join(lines),
            "the same from a shell": "\n".join(commands),
        },
        models.purposes,
    )


def reasons(models, clip, names):
    """Returns what the answers rest on, as HTML.

    Args:
        models: `answering.Models`.
        clip: `answering.Clip`.
        names: list of str, the models that are asked.
    """
    cards = [
        drawing.explained(clip, found, name)
        for name, found in models.reasons(names, clip).items()
    ]
    return f'<div class="atf-cards">{"".join(cards)}</div>'
