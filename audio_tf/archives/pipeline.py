"""The Beam pipeline: shards of a plan through `RunInference` into files.

An element of `RunInference` is a shard. What a worker computes of it is whole
and can be written at once: no result waits for a shuffle, at which all
machines would have to meet, and a kill costs no more than the shards that are
being scored. Within a shard the classifier has batches of its own.
"""

import dataclasses
import os
import typing

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics
from apache_beam.ml.inference.base import ModelHandler, RunInference
from apache_beam.options.pipeline_options import PipelineOptions

from audio_tf import configs, pipelines, quiet
from audio_tf.archives import lists, planning, settling, shards, tables, turns
from audio_tf.archives.lists import Part
from audio_tf.archives.tables import Settings

NAMESPACE = "audio_tf"
COUNTERS = ("shards", "rows", "clips_failed", "archives")


def count(name, number=1):
    """Adds to a counter of this run, which the runner shows."""
    Metrics.counter(NAMESPACE, name).inc(number)


@dataclasses.dataclass(frozen=True)
class Ready:
    """A classifier, and the settings as it has completed them.

    Attributes:
        classifier: `audio.scoring.ClipClassifier`.
        settings: `tables.Settings`.
    """

    classifier: typing.Any
    settings: Settings


class ShardHandler(ModelHandler):
    """The handler by which `RunInference` loads a classifier and asks it.

    Args:
        out: str, the folder of the results.
        settings: `tables.Settings`.
        options: list of str, Beam's own flags.
        parent: int, the process that runs the pipeline on this machine, or
            `None` if another runner does.
    """

    def __init__(self, out, settings, options, parent):
        super().__init__()
        self.out = out
        self.settings = settings
        self.options = options
        self.parent = parent

    def load_model(self):
        """Returns the `Ready` model.

        Raises:
            ValueError: if it does not fit the settings or the folder; see
                `settling.settle`. `run` raises the same.
        """
        use(self.options)
        if self.parent is not None:
            pipelines.leave_at_once(self.parent)
        given = Settings(*self.settings)
        with settling.telling(self.out):
            classifier = load_classifier(given.model)
            settings = settling.settle(self.out, given, classifier)
        return Ready(classifier, settings)

    def run_inference(self, batch, model, inference_args=None):
        """Scores shards.

        Args:
            batch: names of shards, one of them.
            model: `Ready`.
            inference_args: nothing.

        Yields:
            Pairs of the name of a shard and its `pyarrow.Table`.
        """
        for shard in batch:
            table = shards.score_task(
                model.classifier, self.out, shard, model.settings
            )
            yield shard, table

    def get_num_bytes(self, batch):
        """Returns the bytes of what is asked for, without the audio."""
        return sum(map(len, batch))

    def get_metrics_namespace(self):
        """Returns where the figures of `RunInference` are counted."""
        return NAMESPACE

    def batch_elements_kwargs(self):
        """Returns that each shard is a batch of its own."""
        return {"min_batch_size": 1, "max_batch_size": 1}


def use(options):
    """Tells Beam's filesystems of its flags, which not all runners do.

    Args:
        options: list of str, Beam's own flags.
    """
    FileSystems.set_options(PipelineOptions(options))


def load_classifier(name):
    """Loads a classifier without a word of TensorFlow.

    A worker is a process of its own, or on a machine of its own: it finds the
    classes of a user as a command does.
    """
    with quiet.tensorflow():
        configs.execute_again()
        import audio_tf.models  # noqa: F401
        from audio_tf.export import classifiers
    return classifiers.load_classifier(name)


def write_shard(scored, out):
    """Writes what a shard has come to.

    Args:
        scored: pair of its name and its `pyarrow.Table`.
        out: str, the folder of the results.
    """
    shard, table = scored
    tables.write(planning.shard_path(out, shard), table)
    count("shards")
    count("rows", table.num_rows)
    count("clips_failed", len(tables.failed_of(table.schema)))


def list_part(part, out, options):
    """Lists an archive, and returns the names of its shards.

    Args:
        part: fields of a `lists.Part`.
        out: str, the folder of the results.
        options: list of str, Beam's own flags.
    """
    use(options)
    count("archives")
    found = lists.list_archive(out, Part(*part))
    return [shard.name for shard in lists.largest_first(found.shards)]


def dealt(pipeline, todo, out, options):
    """Lists archives wherever there is a worker, and deals shards out.

    Args:
        pipeline: `beam.Pipeline`.
        todo: `planning.Todo`.
        out: str, the folder of the results.
        options: list of str, Beam's own flags.

    Returns:
        `beam.PCollection` of the names of shards.
    """
    names = [shard.name for shard in todo.shards]
    known = pipeline | "shards" >> beam.Create(names)
    listed = (
        pipeline
        | "archives" >> beam.Create([tuple(part) for part in todo.unlisted])
        | "spread archives" >> beam.Reshuffle()
        | "list" >> beam.FlatMap(list_part, out=out, options=options)
    )
    return (known, listed) | beam.Flatten() | "spread" >> beam.Reshuffle()


def in_turn(pipeline, todo, out, claims, workers):
    """Has the workers of this machine take shards in turn.

    Args:
        pipeline: `beam.Pipeline`.
        todo: `planning.Todo`.
        out: str, the folder of the results.
        claims: str, an empty folder of this machine.
        workers: int, how many there are.

    Returns:
        `beam.PCollection` of the names of shards.
    """
    left = turns.Turns(out, claims, todo)
    return (
        pipeline
        | "workers" >> beam.Create(range(workers))
        | "spread" >> beam.Reshuffle()
        | "take" >> beam.FlatMap(lambda _: left.take(count))
    )


def run(todo, out, settings, options, workers=None):
    """Runs the pipeline to its end.

    Args:
        todo: `planning.Todo`.
        out: str, the folder of the results.
        settings: `tables.Settings` as they are given.
        options: list of str, Beam's own flags.
        workers: int, the processes of Beam's runner of this machine, or
            `None` if another runner is asked for.

    Returns:
        Dict of the counters of `COUNTERS`, those that the runner tells.
    """
    parent = None if workers is None else os.getpid()
    handler = ShardHandler(out, settings, options, parent)
    pipeline = beam.Pipeline(options=PipelineOptions(options))
    with turns.claims_in(out) as claims:
        if workers is None:
            names = dealt(pipeline, todo, out, options)
        else:
            names = in_turn(pipeline, todo, out, claims, workers)
        _ = (
            names
            | "score" >> RunInference(handler)
            | "write" >> beam.Map(write_shard, out=out)
        )
        result = pipelines.finish(pipeline)
    return counters(result)


def counters(result):
    """Returns the counters of a finished run by name."""
    try:
        found = result.metrics().query()["counters"]
    except NotImplementedError:
        return {}
    return {
        each.key.metric.name: each.committed
        for each in found
        if each.key.metric.namespace == NAMESPACE
        and each.key.metric.name in COUNTERS
    }
