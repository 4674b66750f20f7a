"""Fill the cache ahead of a training, by all cores or many machines.

    audio-tf prepare train --config training/configs/esc10_teacher.py \\
        --data-dir ESC-50-master --cache-dir cache
    audio-tf train --config training/configs/esc10_teacher.py \\
        --data-dir ESC-50-master --cache-dir cache --out runs/esc10_teacher

`prepare` takes the command that is to follow, with its flags: what that would
decode, and the features that it would compute, are written to shards in the
folder --cache-dir, which may be copied to another machine. Run again, also
after a kill, it does what is missing. It needs Apache Beam: pip install
'audio_tf[beam]'. docs/prepare.md tells more.
"""

import dataclasses
import functools
import json
import logging
import os
import shutil
import typing

from tqdm.auto import tqdm

from audio_tf import console, data, pipelines
from audio_tf.audio.decode import AudioError
from audio_tf.data import feature_cache, folders, preparing, shards
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.prepare_settings import COMMANDS
from audio_tf.terminal import describe_failures

# What Beam and its workers say goes there; it is removed if all went well.
LOG = "prepare.log"


class AudioTask(typing.NamedTuple):
    """A shard of samples that a worker writes.

    Attributes:
        shard: fields of a `preparing.Shard`.
        arguments: further arguments of `preparing.write_audio`.
    """

    shard: tuple
    arguments: tuple

    def run(self):
        """Writes the shard."""
        preparing.write_audio(preparing.Shard(*self.shard), *self.arguments)


class FeatureTask(typing.NamedTuple):
    """A shard of features that a worker writes.

    Attributes:
        shard: fields of a `preparing.Shard`.
        command: str, a key of `COMMANDS`.
        settings: str, JSON of its settings.
        layer: int, which of their `feature_layers`.
    """

    shard: tuple
    command: str
    settings: str
    layer: int

    def run(self):
        """Writes the shard."""
        layers, rate_hz = layers_of(self.command, self.settings)
        shard = preparing.Shard(*self.shard)
        preparing.write_features(shard, layers[self.layer], rate_hz)


def write_audio_shard(task):
    """Does an `AudioTask`; a function of a module, which Beam can send."""
    AudioTask(*task).run()


def write_feature_shard(task):
    """Does a `FeatureTask`; a function of a module, which Beam can send."""
    FeatureTask(*task).run()


@functools.lru_cache(maxsize=1)
def layers_of(command, content):
    """Makes what computes features, once a worker.

    Args:
        command: str, a key of `COMMANDS`.
        content: str, JSON of its settings.

    Returns:
        Pair of the list of layers, and the rate in Hz.
    """
    settings = COMMANDS[command].from_json(json.loads(content))
    return settings.feature_layers(), settings.rate_hz()


def progress(planned, name, terminal):
    """Makes a bar of the clips in shards that are written, by whoever.

    Args:
        planned: list of `preparing.Shard`.
        name: str, what is done.
        terminal: the file that the bar is written to.

    Returns:
        `pipelines.Watch`.
    """
    left = [each for each in planned if each.note() is None]

    def look(bar):
        for each in [each for each in left if each.note() is not None]:
            left.remove(each)
            bar.n += each.clips

    total = sum(each.clips for each in left)
    bar = tqdm(total=total, desc=name, unit="clip", disable=None, file=terminal)
    return pipelines.Watch(bar, look)


def fitting(planned, cache_dir, limit):
    """Returns the first shards of a plan, those for which there is room.

    Args:
        planned: list of `preparing.Shard`.
        cache_dir: folder of the cache.
        limit: int, bytes that the cache may have, or `None` for those of the
            disk.
    """
    room = shutil.disk_usage(cache_dir).free
    if limit is not None:
        there = sum(each.size_bytes for each in folders.folders(cache_dir))
        room = min(room, limit - there)
    kept = []
    for each in planned:
        room -= each.size if each.note() is None else 0
        if room < 0:
            break
        kept.append(each)
    return kept


def fill(name, function, tasks, planned, options):
    """Has workers write the shards that are missing, and closes whole sets.

    Args:
        name: str, what is done.
        function: function of a task.
        tasks: list of tasks, one for each shard.
        planned: list of lists of `preparing.Shard`, a set each, whose shards
            may have no task, where there is no room.
        options: list of str, Beam's flags.

    Raises:
        RuntimeError: if a worker has failed; it says how many shards are kept.
    """
    each_shard = [each for planned_set in planned for each in planned_set]
    if tasks:
        log = each_shard[0].folder.parent / LOG
        try:
            with (
                pipelines.logged(log) as terminal,
                progress(each_shard, name, terminal),
            ):
                pipelines.run(function, tasks, options)
        except Exception as error:
            kept = sum(each.note() is not None for each in each_shard)
            raise RuntimeError(
                f"{console.one_line(error)}; {kept} of {len(each_shard)} "
                "shards are whole and are kept, the next run goes on from "
                f"there; {log} has more"
            ) from error
        log.unlink(missing_ok=True)
    for planned_set in planned:
        if planned_set and all(each.note() for each in planned_set):
            preparing.finish(planned_set)


def fields_of(shard):
    """Returns the fields of a `preparing.Shard`, a tuple."""
    return tuple(getattr(shard, each.name) for each in SHARD_FIELDS)


SHARD_FIELDS = dataclasses.fields(preparing.Shard)


def run(command, settings):
    """Fills the cache with what a command reads.

    Args:
        command: str, a key of `COMMANDS`.
        settings: its `PrepareSettings`.
    """
    # Beam warns of what it could not import, too.
    logging.getLogger().setLevel(logging.ERROR)
    pipelines.need()
    options = settings.beam_options()
    limit, shard_bytes = map(settings.bytes_of, ("limit", "shard_size"))
    arguments = settings.prepare_arguments()
    folder, decoder = os.path.abspath(arguments["cache_dir"]), settings.decoder
    corpora, rate_hz = settings.corpora(), settings.rate_hz()
    layers = settings.feature_layers()
    found = {str(file): None for corpus in corpora for file in corpus.files}

    def beside(samples):
        return sum(
            4 * layer.dim * data.Frames.of(layer).lengths(samples)
            for layer in layers
        )

    store = data.AudioCache(folder, rate_hz, decoder)
    items, failures = preparing.audio_items(store, list(found), beside)
    sets = store.directory / shards.PREPARED
    planned = preparing.plan(sets, items, shard_bytes)
    kept = fitting(planned, folder, limit)
    fill(
        "decoding",
        write_audio_shard,
        [
            tuple(AudioTask(fields_of(each), (folder, rate_hz, decoder)))
            for each in kept
            if each.note() is None
        ],
        [planned],
        options,
    )
    failures |= shards.failures_in(sets, {name for name, _, _ in items})
    if failures and settings.strict:
        raise AudioError(*next(iter(failures.items())))
    by_name, _ = shards.read_index(sets)
    samples = {
        store.directory / name[:2] / name: by_name[name]
        for name, _, _ in items
        if name in by_name
    }
    print(f"{len(samples)} of {len(found)} clips of {rate_hz} Hz in shards")
    fill_features(command, settings, samples, layers, folder, options)
    if failures:
        print(describe_failures(failures))
    no_room = sum(each.clips for each in planned if each.note() is None)
    changed = len(found) - len(samples) - len(failures) - no_room
    for count, reason in (
        (no_room, "have no room"),
        (changed, "have changed or gone since they were listed"),
    ):
        if count:
            print(
                f"{count} clips {reason}, and are left to the training: "
                f"{folder}"
            )


def fill_features(command, settings, samples, layers, folder, options):
    """Fills shards with the features of clips whose samples are in shards.

    Args:
        command: str, a key of `COMMANDS`.
        settings: its `PrepareSettings`.
        samples: dict of `shards.Found` by the path of the entry.
        layers: list of what computes features.
        folder: str, folder of the cache.
        options: list of str, Beam's flags.
    """
    limit, shard_bytes = map(settings.bytes_of, ("limit", "shard_size"))
    content, every = json.dumps(settings.to_json()), []
    stores, wanted = [], []
    # With the folder of the samples, which tells the rate and the decoder.
    samples_folder = data.AudioCache(
        folder, settings.rate_hz(), settings.decoder
    ).directory.name
    for layer in layers:
        store = feature_cache.cache_of(layer, settings.rate_hz(), folder)
        folders.describe(store.directory, feature_cache.summary(layer))
        items = preparing.feature_items(samples, store, layer, settings.keeps)
        sets = store.directory / samples_folder / shards.PREPARED
        every.append(preparing.plan(sets, items, shard_bytes))
        stores.append(sets)
        wanted.append({name for name, _, _ in items})
    # There is room for what all layers have together.
    kept = fitting(sum(every, []), folder, limit)
    tasks = [
        tuple(FeatureTask(fields_of(each), command, content, number))
        for number, planned in enumerate(every)
        for each in planned
        if each in kept and each.note() is None
    ]
    fill("features", write_feature_shard, tasks, every, options)
    for layer, sets, names in zip(layers, stores, wanted, strict=True):
        there = names & {*shards.read_index(sets)[0]}
        print(
            f"{len(there)} of {len(names)} clips in shards as "
            f"{feature_cache.summary(layer)}"
        )


def main(argv=None, prog="audio-tf prepare"):
    """Runs the command line.

    Args:
        argv: list of str, the command that is to follow, and its flags.
        prog: str, the program's name in usage and errors.
    """
    commands = {
        name: settings_class.__doc__.splitlines()[0]
        for name, settings_class in COMMANDS.items()
    }
    command, flags = console.choose(argv, commands, "command", prog, __doc__)
    run_by_flags(
        functools.partial(run, command),
        COMMANDS[command],
        __doc__,
        flags,
        f"{prog} {command}",
    )
