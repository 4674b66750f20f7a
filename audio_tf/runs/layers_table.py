"""Table 6 of "Gaussian Adaptive Attention is All You Need", or 7.

    audio-tf reproduce layers --model runs/ssl/preset --data-dir EmoDB \\
        --importance runs/emotion_table/gaam_v1/seed_*/importance.npz \\
        --out runs/layers_table

arXiv 2401.11143: decoders of the layers of highest and of lowest Importance
Factor, which `audio-tf emotion` has learned and --importance names.
--emotion-config has what else `audio-tf emotion` is told.

--out gets table.md, table.json and a folder for each row. Rows that are
finished are kept, with all of their seeds: the same command goes on where it
stopped.
"""

import dataclasses
import pathlib

from audio_tf.runs import rows
from audio_tf.runs.emotion_rows import SELECTIONS, TableSettings, write_table
from audio_tf.runs.settings import POSITIVE, setting, shared


@dataclasses.dataclass
class LayersTableSettings(TableSettings):
    """The Importance Factor, and how many layers of each end are decoded."""

    importance: list[str] = setting(
        [], "importance.npz of runs of audio-tf emotion, whose mean counts"
    )
    count: int = setting(1, "layers of each end", check=POSITIVE)
    out: str = shared("out", "runs/layers_table")

    own = ("layers", "seed", "out")

    def check(self):
        super().check()
        if not self.importance:
            raise ValueError("--importance is needed. Received: none")


def select(settings):
    """Selects layers by the mean of Importance Factors.

    Args:
        settings: `LayersTableSettings`.

    Returns:
        Dict of `high` and `low`, lists of the numbers of layers.

    Raises:
        ValueError: if a file is none of `audio-tf emotion`, files are of
            different layers, sizes or encoders, or of another encoder than
            the table's, or there are too few layers.
    """
    import numpy as np

    from audio_tf import analysis, released
    from audio_tf.runs.fold_decoders import read_importance

    maps, first = [], None
    model = settings.training().model
    mark, whose = model and released.weights_mark(model), model
    for path in settings.importance:
        found, layers, encoder = read_importance(path)
        maps.append(found)
        same = {"layers": layers, "dim": found.shape[1]}
        first = first or same
        if same != first:
            raise ValueError(
                f"{path} is of other layers than {settings.importance[0]}. "
                f"Received: {same} in place of {first}"
            )
        if not mark:
            mark, whose = encoder, path
        if encoder and encoder != mark:
            raise ValueError(
                f"{path} is of another encoder than {whose}: their layers "
                f"differ. Received: the mark {encoder} in place of {mark}"
            )
    found = analysis.select_layers(np.mean(maps, axis=0), settings.count)
    return {
        name: [layers[place] for place in places]
        for name, places in found.items()
    }


def reproduce_layers(settings):
    """Runs both rows of Table 6 or 7, and ends with 1 if one has failed.

    Args:
        settings: `LayersTableSettings`.
    """
    selected = select(settings)
    settings.begin(selected=selected)
    failures, text = rows.Failures(), ""
    for name, layers in selected.items():
        print(f"{name} Importance Factor: layers {layers}")
        for seed in settings.seeds:
            out = pathlib.Path(settings.out, name, f"seed_{seed}")
            with failures.kept():
                settings.train(out, seed, layers=layers)
            text = write_table(settings, SELECTIONS)
    print(f"\nmeasured; beside it the paper's {settings.paper}")
    print(text)
    failures.end()
