"""The base of every builder: TFDS' contract, checks, resume, an index."""

import contextlib
import csv
import dataclasses
import functools
import io
import json
import math
import os
import pathlib
import shutil
import types

import numpy as np
import tensorflow_datasets as tfds
from tensorflow_datasets.core import dataset_builder
from tqdm.auto import tqdm

from audio_tf import files
from audio_tf.audio import packed
from audio_tf.audio.decode import AudioError
from audio_tf.builders import records, shards, verifying
from audio_tf.builders import release as releases
from audio_tf.terminal import NAMES_SHOWN

# Enough to tell how large the samples of a corpus are.
CLIPS_LOOKED_AT = 20


class AudioBuilder(dataset_builder.FileReaderBuilder, skip_registration=True):
    """A TFDS builder of a corpus that was downloaded before.

    ```python
    builder = Esc(source="ESC-50-master", config="esc50")
    builder.download_and_prepare()
    tfds.load("esc/esc50", split="fold1+fold2+fold3")
    ```

    An example has `audio`, samples of one channel at the corpus' own rate
    (`info.features["audio"].sample_rate`): int16 as they are in files of 16
    bits, else float32; `file`, the clip's path in the release; and what the
    subclass adds. Beside TFDS' files are `release/`, the lists of the
    release, and `clips.csv`, where each clip is: readers of audio_tf take the
    folder as they take the release itself, see `audio.packed`.

    It writes one file of records after the other, see `shards`, into a folder
    of its own, and moves all of them when they are complete. A build that was
    killed goes on there.

    Args:
        source: path of the release's folder. It may be left out to read what
            was built.
        partial: bool, whether there may be fewer clips than published;
            checksums of archives are not compared then.
        skip_bad: bool, whether clips that are missing or cannot be read are
            left out, else the first is an error.
        shard_bytes: int, bytes of a file of records, about.
        workers: int, threads that decode; `None` for one a core, and with
            `beam_options`.
        progress: bool, whether to show progress bars.
        beam_options: list of str, flags of Apache Beam that is to write the
            files; `None` to write them here.
        **kwargs: TFDS' own: `data_dir`, `config`, `version`.

    Attributes:
        SUMMARY: str, the corpus in a sentence.
        HOMEPAGE: str, where it comes from.
        LICENCE: str.
        CITATION: str, BibTeX.
        LAYOUTS: dict by configuration of the layouts of `corpora` that read
            its lists; the key is `None` without configurations.
        COUNTS: dict by configuration of the published count of clips by
            split.
        CHECKSUMS: dict of the published MD5 by name of a downloaded file.
    """

    # TFDS would look for it in a package, which takes a further package.
    code_path = None

    SUMMARY = HOMEPAGE = LICENCE = CITATION = ""
    LAYOUTS = {}
    COUNTS = {}
    CHECKSUMS = {}

    def __init__(
        self,
        *,
        source=None,
        partial=False,
        skip_bad=False,
        shard_bytes=shards.SHARD_BYTES,
        workers=None,
        progress=True,
        beam_options=None,
        **kwargs,
    ):
        self.source = source and pathlib.Path(source)
        self.partial = partial
        self.skip_bad = skip_bad
        self.shard_bytes = shard_bytes
        if workers is not None and beam_options is not None:
            raise ValueError(
                "`workers` are threads of this process, which decodes nothing "
                "where Apache Beam writes the files; `beam_options` say how "
                f"many it has. Received: workers={workers}, "
                f"beam_options={beam_options}"
            )
        self.workers = workers or os.cpu_count()
        self.progress = progress
        self.beam_options = beam_options
        super().__init__(**kwargs)

    def read_release(self):
        """Reads the lists of `source`, and decodes nothing.

        Returns:
            `Release`.

        Raises:
            FileNotFoundError: if a list is missing.
            ValueError: if lists contradict each other.
        """
        raise NotImplementedError  # abstract

    @functools.cached_property
    def release(self):
        """The `Release`, read when it is asked for."""
        if self.source is None:
            raise ValueError(
                f"{self.name} must be downloaded first, from {self.HOMEPAGE}; "
                "then `source` is its folder. Received: source=None"
            )
        if not self.source.is_dir():
            raise FileNotFoundError(f"{self.source}: no such folder")
        found = self.read_release()
        self.listed = {
            name: packed.status(self.source / name) for name in found.lists
        }
        return found

    @functools.cached_property
    def audio_format(self):
        """The `AudioFormat` of the first clip that is there."""
        for clip in self.release.clips():
            with contextlib.suppress(AudioError):
                return records.detect_format(clip)
        raise releases.ReleaseError(
            f"{self.source}: none of {len(self.release.clips())} clips is there"
        )

    @property
    def config_name(self):
        """The name of the configuration, or `None` if there are none."""
        return self.builder_config and self.builder_config.name

    def _info(self):
        features = None
        if self.source is not None:
            features = tfds.features.FeaturesDict(
                {
                    "audio": tfds.features.Audio(
                        dtype=np.dtype(self.audio_format.dtype).type,
                        sample_rate=self.audio_format.sample_rate_hz,
                        encoding=tfds.features.Encoding.BYTES,
                    ),
                    "file": tfds.features.Text(),
                    **self.release.features,
                }
            )
        return tfds.core.DatasetInfo(
            builder=self,
            description=self.SUMMARY,
            features=features,
            homepage=self.HOMEPAGE,
            citation=self.CITATION,
            license=self.LICENCE,
        )

    def counts(self):
        """Returns the published count of clips by split, a dict."""
        return self.COUNTS[self.config_name]

    @property
    def pieces(self):
        """The folder of the files that are complete, until all are."""
        folder = pathlib.Path(self.data_dir)
        return folder.with_name(f".{folder.name}.pieces")

    def download_and_prepare(self, **kwargs):
        """Builds the corpus, unless it is built; see TFDS.

        Nothing is downloaded, so that no place of downloads is looked at.

        Raises:
            BlockingIOError: if another process is building it.
            ValueError: if the release is not as published, or has changed
                while it was built, if `file_format` is not tfrecord, or
                `download_config` asks for what is not done here.
            AudioError: if a clip is bad, unless `skip_bad`.
        """
        config = kwargs.pop("download_config", None)
        config = config or tfds.download.DownloadConfig()
        shards.check_download_config(config)
        folder, pieces = pathlib.Path(self.data_dir), self.pieces
        if folder.exists():
            shutil.rmtree(pieces, ignore_errors=True)
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_name(f".{folder.name}.lock")
        with files.only_one(lock, "building this corpus"):
            for rest in folder.parent.glob(f"incomplete.*_{folder.name}"):
                shutil.rmtree(rest)
            # It is moved below, so it is asked for while the name is its own.
            self.kept = pieces
            super().download_and_prepare(
                download_config=dataclasses.replace(
                    config, try_download_gcs=False
                ),
                **kwargs,
            )
            # Another process may have ended the build, and cleared up, just
            # before the lock was ours.
            shutil.rmtree(pieces, ignore_errors=True)

    def _make_download_manager(self, download_dir, download_config):
        # TFDS would make a folder for what is never downloaded.
        return types.SimpleNamespace(downloaded_size=0)

    def _log_download_bytes(self):
        """Says nothing of a download."""

    _log_download_done = _log_download_bytes

    def _download_and_prepare(self, dl_manager, download_config=None):
        kind = self.info.file_format
        if kind != tfds.core.FileFormat.TFRECORD:
            raise ValueError(
                "`file_format` must be tfrecord: `clips.csv` says where in "
                f"such files each clip is. Received: file_format={kind.value!r}"
            )
        release = self.release
        complete = releases.check_counts(release, self.counts(), self.partial)
        # The archives of a part are others, under the same names.
        published = {} if self.partial else self.CHECKSUMS
        sums = releases.check_sums(self.source, published, self.progress)
        found, missing = releases.check_files(release, self.skip_bad)
        splits = {
            split: [clip for clip in clips if clip.name in found]
            for split, clips in release.splits.items()
        }
        splits = {split: clips for split, clips in splits.items() if clips}
        planned = self.write(splits, found)
        releases.check_unchanged(self.source, {**self.listed, **found})
        notes = [shards.read_note(shard, self.kept) for shard in planned]
        for note in notes:
            missing.update(note["failures"])
        self.write_index(planned, notes, found, complete, missing, sums)
        self.info.set_splits(self.split_infos(splits, planned, notes))

    def write(self, splits, found):
        """Writes the files of records that are not there; returns all."""
        features = self.info.features
        encode = functools.partial(
            records.encode, audio_format=self.audio_format, features=features
        )
        growth = self.growth(splits, found)
        templates = {
            split: self._get_filename_template(split_name=split)
            for split in splits
        }
        planned = shards.plan(
            splits,
            found,
            growth,
            lambda split, index, count: (
                templates[split]
                .sharded_filepath(shard_index=index, num_shards=count)
                .name
            ),
            self.shard_bytes,
        )
        spec = shards.describe_features(features)
        mark = shards.fingerprint(planned, found, self.audio_format, spec)
        shards.keep_or_clear(self.kept, mark)
        if self.beam_options is not None:
            features.save_config(self.kept)
            tasks = [
                shards.ShardTask(
                    shard,
                    os.fspath(self.kept),
                    self.audio_format,
                    self.skip_bad,
                )
                for shard in planned
                if shards.read_note(shard, self.kept, self.skip_bad) is None
            ]
            shards.write_by_beam(tasks, self.beam_options)
            return planned
        with tqdm(
            desc=f"building {self.name}",
            total=sum(map(len, splits.values())),
            unit="clip",
            disable=None if self.progress else True,
        ) as bar:
            shards.write_missing(
                planned, self.kept, encode, self.workers, self.skip_bad, bar
            )
        return planned

    def growth(self, splits, found):
        """Returns how many bytes of samples a byte of a clip's file makes."""
        clips = [clip for clips in splits.values() for clip in clips]
        made = read = 1
        for clip in clips[:: math.ceil(len(clips) / CLIPS_LOOKED_AT)]:
            with contextlib.suppress(AudioError):
                samples = records.read_samples(clip.file, self.audio_format)
                made += samples.nbytes
                read += found[clip.name][0]
        return made / read

    def split_infos(self, splits, planned, notes):
        """Returns TFDS' description of the splits."""
        infos = []
        for split in splits:
            mine = [
                note
                for shard, note in zip(planned, notes, strict=True)
                if shard.split == split
            ]
            infos.append(
                tfds.core.SplitInfo(
                    name=split,
                    shard_lengths=[len(note["rows"]) for note in mine],
                    num_bytes=sum(note["bytes"] for note in mine),
                    filename_template=self._get_filename_template(split),
                )
            )
        return tfds.core.splits.SplitDict(infos)

    def write_index(self, planned, notes, found, complete, left_out, sums):
        """Moves the files of records and writes what lies beside them."""
        folder = pathlib.Path(self.data_dir)
        text = io.StringIO(newline="")
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(packed.COLUMNS)
        for shard, note in zip(planned, notes, strict=True):
            for name, place, size, checksum in note["rows"]:
                source_bytes = found[name][0]
                rows.writerow(
                    [name, shard.name, place, size, checksum, source_bytes]
                )
            link(self.kept / shard.name, folder / shard.name)
        (folder / packed.CLIPS).write_text(text.getvalue(), "utf-8")
        for name in self.release.lists:
            path = folder / packed.RELEASE / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(packed.read_bytes(self.source / name))
        (folder / packed.RELEASE).mkdir(exist_ok=True)
        default = self.get_default_builder_config()
        facts = {
            "dataset": self.name,
            "config": self.config_name,
            "version": str(self.version),
            "default": not default or default.name == self.config_name,
            "layouts": list(self.LAYOUTS[self.config_name]),
            "sample_rate_hz": self.audio_format.sample_rate_hz,
            "dtype": self.audio_format.dtype,
            "clips": sum(len(note["rows"]) for note in notes),
            "complete": complete and not left_out,
            # Without what is left out it may be the whole release.
            "part": not complete,
            "left_out": left_out,
            "report": {
                what: {"count": len(names), "first": names[:NAMES_SHOWN]}
                for what, names in self.release.report.items()
            },
            "checksums": sums,
        }
        (folder / packed.BUILD).write_text(json.dumps(facts, indent=2), "utf-8")

    def verify(self):
        """Compares what was built with the source, see `verifying.verify`."""
        return verifying.verify(self)


def link(source, target):
    """Gives a file a second name, or copies it where files have one only."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
