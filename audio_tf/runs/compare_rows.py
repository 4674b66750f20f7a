"""The rows of `audio-tf compare`: attentions at a causality, and their runs."""

import dataclasses
import pathlib

from audio_tf.runs import rows
from audio_tf.runs.compare_settings import BASELINE, CAUSALITIES, model_takes
from audio_tf.terminal import printable


@dataclasses.dataclass(frozen=True)
class Row:
    """One attention at one causality.

    Attributes:
        attention: str, its name.
        causal: str, a key of `CAUSALITIES`.
        folder: `pathlib.Path` of its runs.
        split: str, whose figures count.
    """

    attention: str
    causal: str
    folder: pathlib.Path
    split: str

    def of_full(self):
        """Returns the row of `full` attention at the same causality."""
        folder = self.folder.with_name(BASELINE)
        return dataclasses.replace(self, attention=BASELINE, folder=folder)

    def run_folder(self, seed):
        """Returns the folder of the run with a seed."""
        return self.folder / f"seed_{seed}"

    def finished(self, seed):
        """Returns whether the training with a seed has scored the split."""
        return rows.scored(self.run_folder(seed), self.split)


def table_rows(settings):
    """Lists the rows of the table, and says which there cannot be.

    Args:
        settings: `CompareSettings`.

    Returns:
        List of `Row`, the baseline's first at each causality.
    """
    from audio_tf import attention

    found, out = [], pathlib.Path(settings.out)
    for causal in settings.causality:
        for name in settings.names():
            parts = map(attention.find, attention.parts_of(name))
            can = all(part.supports_causal for part in parts)
            if CAUSALITIES[causal] and not can:
                print(f"{name} cannot be causal: no row of --causality yes")
                continue
            folder = out / f"causal_{causal}" / name
            found.append(Row(name, causal, folder, settings.score_split))
    return found


def kept_rows(settings, table):
    """Lists the rows of the folder that an earlier command has asked for.

    They are of the same settings, as `begin` has found.

    Args:
        settings: `CompareSettings`.
        table: list of `Row`, those that are asked for now.

    Returns:
        List of `Row`, none of the table's.
    """
    found = {}
    for run in rows.runs_in(pathlib.Path(settings.out)):
        causal = run.parts[-3].removeprefix("causal_")
        row = Row(run.parts[-2], causal, run.parent, settings.score_split)
        found[row] = None
    return [row for row in found if row not in table]


def of_row(row, settings):
    """Returns a dict of the settings of the training that a row has its own.

    Args:
        row: `Row`.
        settings: `CompareSettings`.
    """
    own = {"attention": row.attention}
    training = settings.training()
    if CAUSALITIES[row.causal]:
        # `--causal` would refuse a front end that looks ahead.
        own["model_kwargs"] = {**training.model_kwargs, "causal": None}
    elif "causal" in model_takes(training):
        own["causal"] = False
    if row.attention in settings.kwargs_by_attention:
        own["attention_kwargs"] = settings.kwargs_by_attention[row.attention]
    return own


def buildable(table, settings):
    """Selects the rows whose models can be built, and says which cannot be.

    That would be found when the row begins, hours later. It is as the training
    will do it, with the weights of a preset, which may not fit the attention.
    Models of which a training was begun are known to be.

    Args:
        table: list of `Row`.
        settings: `CompareSettings`.

    Returns:
        List of `Row`.

    Raises:
        ValueError: if it is that of the baseline, or one whose arguments
            `kwargs_by_attention` says.
    """
    from audio_tf.runs import train_model

    training, found = settings.training(), []
    for row in table:
        own = of_row(row, settings)
        try:
            if not rows.runs_in(row.folder):
                each = training.replace(**own)
                # The labels are those of the corpus, whichever these are.
                head = {**train_model.head(each, True), "labels": ["a", "b"]}
                train_model.load(each, head)
        except (TypeError, ValueError) as error:
            if "attention_kwargs" in own:
                raise ValueError(
                    f"--kwargs-by-attention: {row.attention}: {error}"
                ) from error
            if row.attention == BASELINE:
                raise ValueError(f"{settings.train_config}: {error}") from error
            reason = printable(error)
            print(
                f"{row.attention} has no row, as it cannot be built: {reason}"
            )
            continue
        found.append(row)
    return found
