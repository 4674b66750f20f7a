"""Inspection of a checkpoint's attention maps: figures, kinds, one JSON."""

import pathlib
import typing

import keras
import numpy as np
from tqdm.auto import tqdm

from audio_tf.analysis import checkpoints, clips, figures, maps
from audio_tf.analysis.kinds import KINDS, sort_head, sort_map
from audio_tf.analysis.projection import project
from audio_tf.files import write_json
from audio_tf.ops.weights import weights_sha256


class Inspection(typing.NamedTuple):
    """The result of an inspection.

    Attributes:
        rows: list of a dict for each head of each layer, as `sort_head` makes
            it, with `layer` and `head` from 1.
        clips: str, how many clips there were, and how long.
        written: list of str, names of the files in the folder.
        reason: str, why there is no projection.png, or `None`.
        failures: dict of the reason by path of each file that was left out.
    """

    rows: list
    clips: str
    written: list
    reason: str | None
    failures: dict


def inspect(
    checkpoint, files, folder, layer=None, count=16, seconds=None, seed=0
):
    """Writes figures and `maps.json` of a checkpoint's attention maps.

    Args:
        checkpoint: as `checkpoints.load` takes it.
        files: paths of audio files.
        folder: path that the figures go to; made if missing.
        layer: int, from 1, whose maps are drawn and projected; the last if
            `None`.
        count: int, how many clips are drawn from the files.
        seconds: float, length of the clips; shorter files are passed over.
            The longest that the clips have, up to 500 frames, if `None`.
        seed: int, seed of clips, initial weights and t-SNE.

    Returns:
        `Inspection`.

    Raises:
        ImportError: if there is no matplotlib.
        ValueError: if there is no such checkpoint or layer, no file is usable,
            or the maps would be too large.
    """
    # Before the work, in case that there is no matplotlib.
    figures.new_figure(1, 1)
    keras.utils.set_random_seed(seed)
    backbone, trained = checkpoints.load(checkpoint)
    blocks = maps.transformer_blocks(backbone)
    layer = len(blocks) if layer is None else layer
    if not 1 <= layer <= len(blocks):
        raise ValueError(
            f"`layer` must be one of the model's {len(blocks)}. "
            f"Received: layer={layer}"
        )
    waveforms, used, failures = clips.read_clips(
        [pathlib.Path(file) for file in files],
        backbone.sample_rate_hz,
        count,
        seconds,
        clips.longest_clip(backbone),
        seed,
    )
    clips.check_size(backbone, waveforms, layer)
    found = Findings(blocks, layer)
    for clip in tqdm(
        maps.iterate_maps(backbone, waveforms),
        desc="attention maps",
        total=len(waveforms),
        unit="clip",
        disable=None,
    ):
        found.add([weights[0] for weights in clip])
    initial = type(backbone).from_config(backbone.get_config())
    (initial_maps,) = maps.iterate_maps(initial, waveforms[:1])

    seconds = waveforms.shape[1] / backbone.sample_rate_hz
    plural = "" if len(used) == 1 else "s"
    described = f"{len(used)} clip{plural} of {seconds:.2f} s"
    attention = blocks[layer - 1].attention_name
    # Beyond patterns, nobody knows what this very model began with.
    drawn_anew = blocks[layer - 1].attention.patterns is None
    rows = found.rows()
    projected, reason = None, None
    try:
        projected = project(found.maps(), seed=seed)
    except ValueError as error:
        reason = str(error)
    drawn = draw(
        found,
        rows,
        initial_maps[layer - 1][0],
        projected,
        f"{checkpoints.title_of(checkpoint, trained)}: {attention}",
        described,
        (
            "initial (drawn anew)" if drawn_anew else "initial",
            "learned" if trained else "untrained",
        ),
    )
    folder = figures.save_anew(drawn, folder, ["projection.png"])
    content = {
        "model": str(checkpoint),
        "weights_sha256": weights_sha256(backbone.weights),
        "trained": trained,
        "attention": attention,
        "files": [str(file) for file in used],
        "seconds": seconds,
        "seed": seed,
        "layer": layer,
        "heads": rows,
        "projection": projected and describe_projection(projected),
    }
    write_json(folder / "maps.json", content)
    return Inspection(rows, described, [*drawn, "maps.json"], reason, failures)


class Findings:
    """Collects maps clip by clip; only one layer's are kept themselves.

    Args:
        blocks: the model's blocks.
        layer: int, from 1, the layer whose maps are kept.
    """

    def __init__(self, blocks, layer):
        self.causal = [block.causal for block in blocks]
        self.layer = layer
        self.kept = []
        self.kinds = {}
        self.best = {}

    def add(self, clip):
        """Takes the maps of a clip: by layer, `(heads, frames, frames)`."""
        self.kept.append(clip[self.layer - 1])
        for index, weights in enumerate(clip):
            for head, one in enumerate(weights):
                found = sort_map(one, self.causal[index])
                place = (index + 1, head + 1)
                self.kinds.setdefault(place, []).append(found)
                best = self.best.get(found.kind)
                # Of equal ones the first, whatever the rounding.
                if best is None or found.strength > best[0].strength + 1e-4:
                    self.best[found.kind] = (found, np.array(one), place)

    def rows(self):
        """Lists a dict for each head of each layer, as `sort_head` makes it."""
        return [
            {"layer": layer, "head": head, **sort_head(found)}
            for (layer, head), found in self.kinds.items()
        ]

    def of_layer(self, rows):
        """Selects the rows of the layer whose maps are kept."""
        return [row for row in rows if row["layer"] == self.layer]

    def heads(self):
        """Returns the head of each of `maps`, an int array from 0."""
        return np.tile(np.arange(len(self.kept[0])), len(self.kept))

    def maps(self):
        """Lists the layer's maps of all clips, each `(frames, frames)`."""
        return [one for clip in self.kept for one in clip]

    def mean(self):
        """Averages the layer's maps over clips: `(heads, frames, frames)`."""
        return sum(self.kept) / len(self.kept)

    def examples(self):
        """Returns a dict by kind of its best map, and where that comes from."""
        return {
            kind: (weights, f"layer {layer}, head {head}")
            for kind, (_, weights, (layer, head)) in self.best.items()
            if kind in KINDS
        }


def draw(found, rows, initial, projected, title, clips, names_of_rows):
    """Draws all figures.

    Args:
        found: `Findings`.
        rows: list of dicts, `found.rows()`.
        initial: floating array `(heads, frames, frames)`, the layer's maps of
            an untrained model, of the first clip. Only hand-crafted patterns
            are those that the checkpoint began with; all else is drawn anew.
        projected: `Projection` of the layer's maps, or `None`.
        title: str, of the model.
        clips: str, how many and how long.
        names_of_rows: pair of str, what the initial and the checkpoint's maps
            are called.

    Returns:
        Dict of matplotlib figures by the names of their files.
    """
    rows = found.of_layer(rows)
    names = [
        row["kind"] + (", near uniform" if row["uniform"] else "")
        for row in rows
    ]
    titles = [
        f"head {row['head']}: {name}\ndiagonal {row['diagonal']:.2f}, "
        f"trend {row['trend']:+.2f}, tilt {row['tilt']:+.2f}"
        for row, name in zip(rows, names, strict=True)
    ]
    layer = f"{title}, layer {found.layer}"
    drawn = {
        "patterns.png": figures.draw_patterns(
            initial,
            found.kept[0],
            f"{layer}, one clip",
            names=names_of_rows,
        ),
        "kinds.png": figures.draw_kinds(
            found.examples(), f"{title}, best examples in {clips}"
        ),
        "heads.png": figures.draw_heads(
            found.mean(), titles, f"{layer}, mean over {clips}"
        ),
    }
    if projected is not None:
        drawn["projection.png"] = figures.draw_projection(
            projected, found.heads(), f"{layer}, {clips}", names
        )
    return drawn


def describe_projection(projected):
    """Makes a dict that JSON can hold of a `Projection`."""
    return {
        "distinct": projected.distinct,
        "components": projected.components,
        "wanted": projected.wanted,
        "explained": float(projected.explained.sum()),
        "perplexity": projected.perplexity,
        "points": projected.points.tolist(),
    }
