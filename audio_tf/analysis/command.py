"""What `audio-tf inspect` does with its arguments."""

import json
import math
import pathlib
import sys

import keras
import numpy as np
from tqdm.auto import tqdm

from audio_tf.analysis import figures, maps
from audio_tf.analysis.kinds import (
    FIGURES,
    KINDS,
    MIN_FRAMES,
    sort_head,
    sort_map,
)
from audio_tf.analysis.projection import project
from audio_tf.models import AudioBackbone, list_sizes
from audio_tf.models.presets import find
from audio_tf.ops.weights import weights_sha256

# The paper's maps are 500 x 500.
MAX_FRAMES = 500
# Without --seconds, the longest of so many files for each clip are taken.
FILES_PER_CLIP = 4
# Of the drawn layer's maps, which are kept of all clips.
MAX_GB = 2


def run(arguments):
    """Writes figures and `maps.json`, and prints each head's kind.

    Returns:
        The exit status: 1 if files were left out.
    """
    from audio_tf.corpora import list_files

    # Before the work, in case that there is no matplotlib.
    figures.new_figure(1, 1)
    keras.utils.set_random_seed(arguments.seed)
    backbone, trained = load(arguments.model)
    blocks = maps.transformer_blocks(backbone)
    layer = len(blocks) if arguments.layer is None else arguments.layer
    if layer > len(blocks):
        raise ValueError(
            f"The model has {len(blocks)} layers. Received: --layer {layer}"
        )
    waveforms, files, failures = read_clips(
        [pathlib.Path(file) for file in list_files(arguments.files)],
        backbone.sample_rate_hz,
        arguments.clips,
        arguments.seconds,
        longest_clip(backbone),
        arguments.seed,
    )
    check_size(backbone, waveforms, layer, arguments)
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
    plural = "" if len(files) == 1 else "s"
    clips = f"{len(files)} clip{plural} of {seconds:.2f} s"
    attention = blocks[layer - 1].attention_name
    # Beyond patterns, nobody knows what this very model began with.
    drawn_anew = blocks[layer - 1].attention.patterns is None
    title = f"{title_of(arguments.model, trained)}: {attention}"
    rows = found.rows()
    projected, reason = None, None
    try:
        projected = project(found.maps(), seed=arguments.seed)
    except ValueError as error:
        reason = f"No projection.png: {error}"
    drawn = draw(
        found,
        rows,
        initial_maps[layer - 1][0],
        projected,
        title,
        clips,
        (
            "initial (drawn anew)" if drawn_anew else "initial",
            "learned" if trained else "untrained",
        ),
    )
    folder = pathlib.Path(arguments.path)
    folder.mkdir(parents=True, exist_ok=True)
    # One of an earlier run would belong to other maps.
    (folder / "projection.png").unlink(missing_ok=True)
    for name, figure in drawn.items():
        figures.save(figure, folder / name)
    content = {
        "model": str(arguments.model),
        "weights_sha256": weights_sha256(backbone.weights),
        "trained": trained,
        "attention": attention,
        "files": [str(file) for file in files],
        "seconds": seconds,
        "seed": arguments.seed,
        "layer": layer,
        "heads": rows,
        "projection": projected and describe_projection(projected),
    }
    (folder / "maps.json").write_text(json.dumps(content, indent=1))

    report(rows, arguments.json)
    if not arguments.json:
        print(f"{clips}, in {folder}: {', '.join([*drawn, 'maps.json'])}")
    if reason is not None:
        print(reason, file=sys.stderr)
    if min(row["frames"] for row in rows) < MIN_FRAMES:
        print(
            f"Maps of fewer than {MIN_FRAMES} frames are not sorted; "
            "--seconds takes longer clips.",
            file=sys.stderr,
        )
    if failures:
        from audio_tf import data

        print(data.describe(failures), file=sys.stderr)
    return 1 if failures else 0


class Findings:
    """What is kept of the maps, clip by clip: all of one layer's alone.

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
        """A dict of each layer and head, as `sort_head` gives it."""
        return [
            {"layer": layer, "head": head, **sort_head(found)}
            for (layer, head), found in self.kinds.items()
        ]

    def of_layer(self, rows):
        return [row for row in rows if row["layer"] == self.layer]

    def heads(self):
        """The head of each of `maps`, from 0."""
        return np.tile(np.arange(len(self.kept[0])), len(self.kept))

    def maps(self):
        """The layer's maps of all clips, a list of `(frames, frames)`."""
        return [one for clip in self.kept for one in clip]

    def mean(self):
        """The mean over clips, `(heads, frames, frames)`."""
        return sum(self.kept) / len(self.kept)

    def examples(self):
        """The best map of each kind, with its layer and head."""
        return {
            kind: (weights, f"layer {layer}, head {head}")
            for kind, (_, weights, (layer, head)) in self.best.items()
            if kind in KINDS
        }


def load(checkpoint):
    """A backbone of waveforms from any checkpoint.

    Args:
        checkpoint: the name of a size, the folder or address of a preset, or
            a `.keras` file.

    Returns:
        Pair of the `AudioBackbone`, and whether it has trained weights.

    Raises:
        ValueError: if there is no such checkpoint, or it takes features.
    """
    checkpoint = str(checkpoint)
    if checkpoint.endswith(".keras"):
        model = keras.saving.load_model(checkpoint, compile=False)
        # The file may be of any model; a task of ours has a backbone.
        model = getattr(model, "backbone", model)
        family = type(model)
    else:
        # Not built yet: it may be of another kind.
        family, model = find(checkpoint).check_backbone_class(), None
    if not issubclass(family, AudioBackbone):
        raise ValueError(
            "The checkpoint must be of an AudioBackbone or an "
            f"AudioClassifier. Received: {family.__name__} in {checkpoint}"
        )
    if family.takes != "waveform":
        raise ValueError(
            "The model takes features, and does not say how they are made of "
            "audio. Pass a SpeechEncoder, such as the preset folder that "
            "pre-training writes beside its checkpoints. "
            f"Received: {checkpoint}"
        )
    if model is None:
        model = AudioBackbone.from_preset(checkpoint)
    return model, checkpoint not in list_sizes()


def title_of(checkpoint, trained):
    path = pathlib.Path(checkpoint)
    # Every run calls its folder `preset`.
    parts = path.resolve().parts[-2:] if path.exists() else [path.name]
    return "/".join(parts) + ("" if trained else ", untrained")


def longest_clip(backbone):
    """Samples of the longest clip that is taken without asking."""
    # The sample that would begin another frame is left out.
    longest = MAX_FRAMES * backbone.frame_size - 1
    if backbone.max_samples is None:
        return longest
    return min(longest, backbone.max_samples)


def read_clips(files, sample_rate_hz, count, seconds, longest, seed):
    """Clips of one length, so that their maps compare.

    Files are read in an order drawn by `seed` until there are enough, and cut
    at their ends. Without `seconds`, the longest of up to `4 * count` files
    are cut to the shortest of themselves.

    Args:
        files: paths.
        sample_rate_hz: int, the model's rate.
        count: int, clips wanted.
        seconds: float, length of the clips, or `None`.
        longest: int, samples of the longest clip without `seconds`.
        seed: int.

    Returns:
        Float32 `(clips, samples)`, their files, and a dict of the reason by
        path of each file that cannot be used.

    Raises:
        ValueError: if no file is usable or long enough.
    """
    from audio_tf import data
    from audio_tf.audio import AudioError, load_audio

    size = 1 if seconds is None else round(seconds * sample_rate_hz)
    end = longest if seconds is None else size
    wanted = count * FILES_PER_CLIP if seconds is None else count
    read, failures, shorter = [], {}, 0
    for row in np.random.default_rng(seed).permutation(len(files)):
        if len(read) == wanted:
            break
        try:
            audio = load_audio(files[row], sample_rate_hz)
        except AudioError as error:
            failures[error.path] = error.reason
            continue
        if len(audio) < max(size, 1):
            shorter += 1
            continue
        # A view would keep the whole recording.
        read.append((audio[:end].copy(), row))
    if not read:
        raise ValueError(
            f"None of {len(files)} files is usable and long enough. "
            f"Received: --seconds {seconds}, {shorter} shorter files, "
            f"{data.describe(failures)}"
        )
    # Stable: of files of one length, the first drawn are taken.
    read = sorted(read, key=lambda clip: -len(clip[0]))[:count]
    size = len(read[-1][0])
    read.sort(key=lambda clip: clip[1])
    waveforms = np.stack([audio[:size] for audio, _ in read])
    return waveforms, [files[row] for _, row in read], failures


def check_size(backbone, waveforms, layer, arguments):
    """Refuses clips whose maps are too large, before any is computed.

    Raises:
        ValueError: if the clips are longer than the attention takes, or the
            maps of `layer` would take more than `MAX_GB`.
    """
    clips, samples = waveforms.shape
    received = f"--seconds {arguments.seconds}, --clips {arguments.clips}"
    try:
        shape = maps.map_shapes(backbone, samples)[layer - 1]
    except ValueError as error:
        raise ValueError(
            f"Take shorter clips, by --seconds. {error}, by {received}"
        ) from error
    size = 4e-9 * clips * math.prod(shape)
    if size > MAX_GB:
        raise ValueError(
            f"The maps of layer {layer} would take {size:.1f} GB, above "
            f"{MAX_GB} GB. Take shorter clips, by --seconds, or fewer, by "
            f"--clips. Received: {received}, which are {clips} clips of "
            f"{' x '.join(map(str, shape))} weights"
        )


def draw(found, rows, initial, projected, title, clips, names_of_rows):
    """All figures by the names of their files.

    Args:
        found: `Findings`.
        rows: its rows.
        initial: floating array `(heads, frames, frames)`, the layer's maps of
            an untrained model, of the first clip. Only hand-crafted patterns
            are those that the checkpoint began with; all else is drawn anew.
        projected: `Projection` of the layer's maps, or `None`.
        title: str, of the model.
        clips: str, how many and how long.
        names_of_rows: of the initial and of the checkpoint's maps.
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
    return {
        "distinct": projected.distinct,
        "components": projected.components,
        "wanted": projected.wanted,
        "explained": float(projected.explained.sum()),
        "perplexity": projected.perplexity,
        "points": projected.points.tolist(),
    }


def report(rows, as_json):
    """Prints a line for each head."""
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    print(
        f"{'layer':>5s} {'head':>4s} {'kind':12s} {'of clips':>8s} "
        f"{'offset':>6s} " + " ".join(f"{name:>8s}" for name in FIGURES)
    )
    for row in rows:
        offset = f"{row['offset']:+d}" if row["kind"] == "diagonal" else "-"
        print(
            f"{row['layer']:5d} {row['head']:4d} {row['kind']:12s} "
            f"{row['agreement']:8.0%} {offset:>6s} "
            + " ".join(f"{row[name]:8.2f}" for name in FIGURES)
            + (" near uniform" if row["uniform"] else "")
        )
