"""A build against the release that it was made of."""

import pathlib

import numpy as np
import tensorflow_datasets as tfds
from tqdm.auto import tqdm

from audio_tf.audio import packed
from audio_tf.builders import records
from audio_tf.builders import release as releases
from audio_tf.terminal import first_names


def verify(builder):
    """Reads what was built through TFDS, and compares it with the source.

    Splits, clips, every sample, every other feature and the lists of the
    release must be equal to what the source has.

    Args:
        builder: `AudioBuilder` with a source, whose build is there.

    Returns:
        Dict by split of how many clips are equal.

    Raises:
        ReleaseError: if one is not; it names the clip.
    """
    build = packed.open_build(pathlib.Path(builder.data_dir))
    plain = tfds.builder_from_directory(builder.data_dir)
    check_format(builder, build.facts)
    features = check_features(builder, plain.info.features)
    left_out, counts = set(build.facts["left_out"]), {}
    listed = {
        split: {clip.name: clip for clip in clips if clip.name not in left_out}
        for split, clips in builder.release.splits.items()
    }
    listed = {split: clips for split, clips in listed.items() if clips}
    built = {
        split: info.num_examples
        for split, info in plain.info.splits.items()
        if info.num_examples
    }
    for split in sorted(listed.keys() | built.keys()):
        if split not in listed or split not in built:
            where = builder.source if split not in listed else builder.data_dir
            raise releases.ReleaseError(
                f"{builder.data_dir}: its splits must be those of "
                f"{builder.source}. Received: {split}, of which {where} has "
                "no clip"
            )
    for split, wanted in listed.items():
        counts[split] = len(wanted)
        examples = plain.as_dataset(split=split).as_numpy_iterator()
        for example in tqdm(
            examples,
            desc=f"verifying {split}",
            total=built[split],
            unit="clip",
            disable=None if builder.progress else True,
        ):
            name = example["file"].decode()
            if name not in wanted:
                raise releases.ReleaseError(
                    f"{builder.data_dir}: the clips of {split} must be those "
                    f"of {builder.source}. Received: {name}, which is not "
                    "listed there"
                )
            check_example(builder, wanted.pop(name), example, features)
        if wanted:
            raise releases.ReleaseError(
                f"{builder.data_dir}: {len(wanted)} clips of {split} are not "
                f"in it. Received: {first_names(wanted)}"
            )
    check_lists(builder)
    return counts


def check_listed(builder):
    """Compares the names of the clips alone, and decodes nothing.

    Args:
        builder: as `verify` takes it.

    Raises:
        ReleaseError: if a clip is in one of build and source only.
    """
    build = packed.open_build(pathlib.Path(builder.data_dir))
    built = {*build.rows, *build.facts["left_out"]}
    listed = {clip.name for clip in builder.release.clips()}
    for names, where in (
        (built - listed, "the build"),
        (listed - built, "the source"),
    ):
        if names:
            raise releases.ReleaseError(
                f"{builder.data_dir}: the clips must be those that "
                f"{builder.source} lists; remove that folder to build it "
                f"anew. Received: {len(names)} clips of {where} alone, "
                f"{first_names(sorted(names))}"
            )


def check_format(builder, facts):
    """Checks that the samples that were built are of the source's kind."""
    built = records.AudioFormat(facts["sample_rate_hz"], facts["dtype"])
    if built != builder.audio_format:
        raise releases.ReleaseError(
            f"{builder.data_dir}: the audio must be that of {builder.source}, "
            f"{builder.audio_format}. Received: {built}"
        )


def check_features(builder, built):
    """Returns the features beside audio and name, a dict of TFDS' own.

    Args:
        builder: as `verify` takes it.
        built: TFDS' `FeaturesDict` of what was built.

    Raises:
        ReleaseError: if they are not named as those of the source.
    """
    names = sorted(set(built) - {"audio", "file"})
    if names != sorted(builder.release.features):
        raise releases.ReleaseError(
            f"{builder.data_dir}: the features must be those of "
            f"{builder.source}, {sorted(builder.release.features)}. "
            f"Received: {names}"
        )
    return {name: built[name] for name in names}


def check_example(builder, clip, example, features):
    """Compares an example of TFDS with the clip that it was made of.

    Args:
        builder: as `verify` takes it.
        clip: `Clip` of the source.
        example: dict of arrays.
        features: dict of TFDS' features by name, see `check_features`.

    Raises:
        ReleaseError: if they differ.
    """
    samples = records.read_samples(clip.file, builder.audio_format)
    if not np.array_equal(samples, example["audio"]):
        raise releases.ReleaseError(
            f"{builder.data_dir}: the samples of {clip.name} must be what "
            f"{builder.source} has. Received: {len(example['audio'])} "
            f"samples that differ from its {len(samples)}"
        )
    for name, feature in features.items():
        wanted = as_named(feature, clip.features[name])
        found = as_named(feature, example[name])
        if found != wanted:
            raise releases.ReleaseError(
                f"{builder.data_dir}: the {name} of {clip.name} must be what "
                f"{builder.source} has, {wanted!r}. Received: {found!r}"
            )


def check_lists(builder):
    """Compares the lists beside the records, which our readers take.

    Args:
        builder: as `verify` takes it.

    Raises:
        ReleaseError: if one is not byte for byte that of the source.
    """
    folder = pathlib.Path(builder.data_dir) / packed.RELEASE
    for name in builder.release.lists:
        path = folder / name
        there = path.read_bytes() if path.is_file() else None
        if there != packed.read_bytes(builder.source / name):
            raise releases.ReleaseError(
                f"{path}: must be what {builder.source} has. Received: "
                f"{'no such file' if there is None else 'another content'}"
            )


def as_named(feature, value):
    """Returns a value with names in place of TFDS' numbers of labels.

    Labels have the numbers of the names that were there when they were
    written; their names are what a build and a source have in common.

    Args:
        feature: TFDS' feature.
        value: what a `Clip` has of it, or what TFDS reads.

    Returns:
        Str, int or float, or a list of them.
    """
    if isinstance(feature, tfds.features.Sequence):
        return [as_named(feature.feature, each) for each in value]
    if isinstance(feature, tfds.features.ClassLabel):
        return value if isinstance(value, str) else feature.int2str(int(value))
    if isinstance(value, bytes):
        return value.decode()
    return np.asarray(value).tolist()
