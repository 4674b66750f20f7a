"""The figures of the probes of an encoder, for its card and for the index."""

from audio_tf import intervals, released
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import model_card
from audio_tf.runs.leakage import PRETRAINING
from audio_tf.runs.release_figures import Figures, read_report
from audio_tf.runs.settings import flag

# Settings of `audio-tf probe` that figures beside each other have in common:
# which lengths are left out, and how a probe is made and trained.
OF_PROBES = (
    *("min_s", "max_s"),
    *("hidden_dim", "hidden_dropout"),
    *("epochs", "batch_size", "learning_rate"),
)
DETAILS = (
    "A probe is a small classifier of frozen frames. Accuracy of each, the "
    "same probe's of plain features, and that of who always names the most "
    "frequent class:\n\n"
)
TITLES = ["probe", "this encoder", "plain features", "most frequent class"]


def of_encoder(settings, encoder):
    """Reads the figures of the probes of an encoder.

    Args:
        settings: `ReleaseSettings`.
        encoder: `models.AudioBackbone`, the one that is released.

    Returns:
        `Figures`, the first task's counts.

    Raises:
        ValueError: if no probes are given, they are those of another encoder,
            or those of the baseline are of an encoder, too, have other tasks
            or other utterances, or were trained otherwise.
    """
    if settings.probes is None:
        raise ValueError(
            "--probes is needed for an encoder, which has no labels. "
            "Received: none"
        )
    ours, plain = (
        read_report(name, getattr(settings, name), "tasks")
        for name in ("probes", "baseline")
    )
    check_probes(settings, encoder, ours, plain)
    table, rows = [], []
    for task, report in ours["tasks"].items():
        share, other = (
            each["tasks"][task]["test_accuracy"] for each in (ours, plain)
        )
        interval = intervals.wilson(share, report["utterances"]["test"])
        table.append((f"accuracy of {task}", share, interval))
        accuracies = (share, other, report["chance"])
        rows.append([task, *(f"{each:.4f}" for each in accuracies)])
    first = next(iter(ours["tasks"]))
    name, share, interval = table[0]
    clips = {
        task: report["utterances"]["test"]
        for task, report in ours["tasks"].items()
    }
    return Figures(
        released.Metric(name, share, list(interval), clips[first]),
        table,
        [("plain features", plain["tasks"][first]["test_accuracy"])],
        DETAILS + model_card.table(TITLES, rows),
        None,
        f"Figures of {counted(clips)} with Wilson's 95 % intervals."
        + known_before(ours),
    )


def counted(clips):
    """Returns a text of how many clips tasks are of, each that differs named.

    Args:
        clips: dict by task of the number of its clips. Those of phones are
            fewer where not all are aligned.
    """
    first, *_ = clips.values()
    others = [f"{task} of {n}" for task, n in clips.items() if n != first]
    return f"{first} clips" + (f" ({', '.join(others)})" if others else "")


def check_probes(settings, encoder, ours, plain):
    """Checks that probes are of an encoder, and may stand beside a baseline's.

    Args:
        settings: `ReleaseSettings`.
        encoder: `models.AudioBackbone`.
        ours: dict, the report of `settings.probes`.
        plain: dict, that of `settings.baseline`.

    Raises:
        ValueError: as `of_encoder` raises it.
    """
    weights, probed = weights_sha256(encoder.weights), probed_weights(ours)
    if probed != weights:
        raise ValueError(
            f"--probes must be of the encoder in {settings.run}, whose "
            f"weights have the checksum {weights}. Received: "
            f"{settings.probes}, of {probed or 'plain features'}"
        )
    if probed_weights(plain) is not None:
        raise ValueError(
            "--baseline must be of plain features: audio-tf probe without "
            f"--model, or with --layer features. Received: {settings.baseline},"
            f" of weights with the checksum {probed_weights(plain)}"
        )
    if ours["corpus"] != plain["corpus"] or set(ours["tasks"]) - set(
        plain["tasks"]
    ):
        raise ValueError(
            "--baseline must have probes of the same tasks and utterances. "
            f"Received: tasks {list(plain['tasks'])}, not "
            f"{list(ours['tasks'])}, or another corpus"
        )
    for name in OF_PROBES:
        one, other = (each["settings"].get(name) for each in (ours, plain))
        if one != other:
            raise ValueError(
                "--baseline must have probes of the same utterances, trained "
                f"alike. Received: {flag(name)} {other}, not {one}"
            )


def known_before(report):
    """Returns a text of what a pre-training has heard, empty if of nothing.

    Args:
        report: dict, the `probes.json` of its encoder.
    """
    clips = sum(
        leak["clips"]
        for leak in report.get("leaks", ())
        if leak["splits"] == [PRETRAINING, "test"]
    )
    if not clips:
        return ""
    return f" The encoder was pre-trained on {clips} of them, without labels."


def probed_weights(report):
    """Returns the checksum of the weights whose outputs a report is of.

    Args:
        report: dict, the `probes.json` of a run.

    Returns:
        Str, or `None` if plain features were probed.
    """
    model = report.get("model")
    plain = model is None or report["settings"]["layer"] == "features"
    return None if plain else model["weights_sha256"]
