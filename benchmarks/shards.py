"""Clips in shards: ArrayRecord, TFRecord, and a file for each clip.

    pip install array_record
    python benchmarks/shards.py

The same noise is written as entries of the cache, a file for each clip, as
TFRecord files, and as ArrayRecord files without compression, with a record for
each group and in the groups that it has by default. What is read is checked
against what was written. Then, in turn, in one process and thread:

- `chunks`: a second at a random place of a random clip, as training on chunks
  reads; an ArrayRecord gives whole records alone;
- `clips`: whole clips in random order, as training on utterances reads;
- `pass`: all clips in the order of the files; by `tf.data.TFRecordDataset`
  too.

Figures are thousands of reads a second, medians of --repeats with the least
and the largest; files lie in the system's file cache.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np

RATE_HZ = 16_000
HEAD, TAIL = 12, 4  # Bytes of a TFRecord around its content.


def write(folder, clips, clips_each):
    """Writes all forms; returns the first byte of each clip's record."""
    import tensorflow as tf
    from array_record.python import array_record_module as array_record

    from audio_tf.data import cache

    starts = []
    for number, samples in enumerate(clips):
        cache.write_entry(folder / f"{number}.f32", samples)
    for shard in range(0, len(clips), clips_each):
        part = clips[shard : shard + clips_each]
        place = 0
        with tf.io.TFRecordWriter(f"{folder}/{shard}.tfrecord") as file:
            for samples in part:
                file.write(samples.tobytes())
                starts.append(place + HEAD)
                place += HEAD + samples.nbytes + TAIL
        for name, options in (
            ("single", "uncompressed,group_size:1"),
            ("default", ""),
        ):
            file = array_record.ArrayRecordWriter(
                f"{folder}/{shard}.{name}", options
            )
            for samples in part:
                file.write(samples.tobytes())
            file.close()
    return starts


class Files:
    """A file for each clip."""

    def __init__(self, folder, lengths):
        from audio_tf.data import cache

        self.cache = cache
        self.paths = [folder / f"{row}.f32" for row in range(len(lengths))]

    def read(self, row, start, count):
        return self.cache.read_entry(self.paths[row], start, count)


class Records:
    """TFRecord files, read from the byte at which samples begin."""

    def __init__(self, folder, lengths, starts, clips_each):
        from audio_tf.data import cache

        self.cache, self.starts = cache, starts
        self.shards = [
            folder / f"{row - row % clips_each}.tfrecord"
            for row in range(len(lengths))
        ]

    def read(self, row, start, count):
        out = np.empty(count, "<f4")
        self.cache.read_bytes_into(
            self.shards[row], self.starts[row] + 4 * start, out
        )
        return out


class Arrays:
    """ArrayRecord files."""

    def __init__(self, folder, lengths, name, clips_each):
        from array_record.python import array_record_data_source

        paths = [
            f"{folder}/{shard}.{name}"
            for shard in range(0, len(lengths), clips_each)
        ]
        self.source = array_record_data_source.ArrayRecordDataSource(paths)

    def read(self, row, start, count):
        record = self.source[row]
        return np.frombuffer(record, "<f4", count, 4 * start)


def dataset_pass(folder, count, clips_each):
    import tensorflow as tf

    paths = [
        f"{folder}/{shard}.tfrecord" for shard in range(0, count, clips_each)
    ]
    for _ in tf.data.TFRecordDataset(paths).map(
        lambda each: tf.io.decode_raw(each, tf.float32)
    ):
        pass


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--clips", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clips-each", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    most = int(options.seconds * RATE_HZ)
    lengths = rng.integers(max(most // 2, RATE_HZ), most + 1, options.clips)
    clips = [rng.uniform(-1, 1, n).astype("<f4") for n in lengths]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        starts = write(folder, clips, options.clips_each)
        each = options.clips_each
        forms = {
            "files": Files(folder, lengths),
            "tfrecord": Records(folder, lengths, starts, each),
            "arrayrecord, 1 a group": Arrays(folder, lengths, "single", each),
            "arrayrecord, default": Arrays(folder, lengths, "default", each),
        }
        for form in forms.values():
            for row in range(0, options.clips, 97):
                found = form.read(row, 13, RATE_HZ - 13)
                np.testing.assert_array_equal(found, clips[row][13:RATE_HZ])
        order = rng.permutation(options.clips)
        begins = [rng.integers(0, n - RATE_HZ + 1) for n in lengths]
        reads = {
            "chunks": [(row, begins[row], RATE_HZ) for row in order],
            "clips": [(row, 0, lengths[row]) for row in order],
            "pass": [(row, 0, n) for row, n in enumerate(lengths)],
        }
        found = {}
        for _ in range(options.repeats):
            for name, rows in reads.items():
                for kind, form in forms.items():
                    begin = time.perf_counter()
                    for row in rows:
                        form.read(*row)
                    seconds = time.perf_counter() - begin
                    found.setdefault((name, kind), []).append(seconds)
            begin = time.perf_counter()
            dataset_pass(folder, options.clips, each)
            seconds = time.perf_counter() - begin
            found.setdefault(("pass", "tf.data, tfrecord"), []).append(seconds)
    for (name, kind), seconds in found.items():
        rates = sorted(options.clips / each / 1_000 for each in seconds)
        print(
            f"{name:7s} {kind:24s} {statistics.median(rates):8.2f} "
            f"({rates[0]:.2f} to {rates[-1]:.2f}) thousand a second"
        )


if __name__ == "__main__":
    main()
