"""Settings of where a corpus lies, and of the splits that it is used in."""

import abc
import dataclasses
import os
import pathlib
import warnings

from audio_tf import files
from audio_tf.audio import packed
from audio_tf.audio.decoders import DECODERS
from audio_tf.corpora import layouts
from audio_tf.runs.settings import SEED, Settings, flag, setting, shared


@dataclasses.dataclass
class AudioSettings(Settings):
    """Settings of how audio is read from the files of a corpus.

    A subclass has the field `dataset`, whose choices are the keys of its
    `layouts`.
    """

    data_dir: str | None = shared("data_dir", None)
    cache_dir: str | None = shared("cache_dir", None)
    decoder: str = setting("soundfile", "what decodes audio", DECODERS)
    strict: bool = setting(False, "stop at the first bad file")
    seed: int = setting(0, "seed of all that is drawn", check=SEED)
    corpus_seed: int = setting(
        0,
        "seed of a corpus that is made here, and of the splits of one that "
        "comes without, which no other seed draws",
        check=SEED,
        option="seed",
        later=True,
    )

    def check(self):
        super().check()
        for field in dataclasses.fields(self):
            option = field.metadata["option"]
            if field.name in self.given and option:
                takers = layouts.takers(self.layouts, option)
                self.check_applies(field.name, "dataset", takers)

    def prepare_arguments(self):
        """Returns a dict of keyword arguments of `audio_tf.data.prepare`.

        Raises:
            ValueError: if there is no cache, and none can be made.
        """
        from audio_tf import data

        cache_dir = self.cache_dir or data.default_cache_dir()
        # One that is there may be read alone.
        if not os.path.isdir(cache_dir):
            files.check_folder(flag("cache_dir"), cache_dir)
        return {
            "cache_dir": cache_dir,
            "decoder": self.decoder,
            "strict": self.strict,
        }

    def corpus_dir(self):
        """Returns the path of the corpus, a folder or a file.

        Raises:
            ValueError: if none is given and the layout does not make its own.
        """
        if self.data_dir is not None:
            return pathlib.Path(self.data_dir)
        if not self.layouts[self.dataset].makes_its_own:
            raise ValueError(
                f"--data-dir is needed. Received: --dataset {self.dataset} "
                "alone"
            )
        from audio_tf.data import loading

        return loading.made_dir(
            self.dataset,
            self.corpus_seed,
            self.prepare_arguments()["cache_dir"],
        )

    def file_root(self):
        """Returns the folder that names of files are relative to."""
        folder = layouts.resolve(self.layouts, self.dataset, self.corpus_dir())
        return folder.parent if folder.is_file() else folder

    def seed_of_draw(self):
        """Returns a dict of a reader's argument `seed`, if one was given.

        A corpus that has splits refuses it.
        """
        given = "corpus_seed" in self.given
        return {"seed": self.corpus_seed} if given else {}

    def build_facts(self):
        """Describes the build of `audio-tf build` that the corpus is read of.

        Returns:
            Dict for JSON, `None` where the corpus is as released: the build's
            `dataset`, `config` and `version`; `complete`, whether it has every
            clip of the release; `part`, whether what it was built of was a
            part of that; and `left_out`, how many clips were bad or missing.
        """
        build = packed.build_of(self.file_root())
        if build is None:
            return None
        said = build.facts
        return {
            **{name: said[name] for name in ("dataset", "config", "version")},
            "complete": said["complete"],
            "part": build.is_part,
            "left_out": len(said["left_out"]),
        }

    def warn_of_part(self):
        """Warns if the corpus is read of a build that is not complete."""
        build = self.build_facts()
        if build is None or build["complete"]:
            return
        reasons = ["it is a part of the release"] if build["part"] else []
        if build["left_out"]:
            reasons.append(f"{build['left_out']} clips were left out")
        warnings.warn(
            f"{self.file_root().parent}: the build is not complete: "
            f"{' and '.join(reasons)}. Figures are of what is there, and "
            "results say so as `build`",
            RuntimeWarning,
            stacklevel=3,
        )

    def taken(self, options):
        """Returns those of some options that the layout's reader takes.

        Args:
            options: dict of values by name of the option.
        """
        takes = self.layouts[self.dataset].takes
        return {name: options[name] for name in options if name in takes}


@dataclasses.dataclass
class SplitSettings(AudioSettings, abc.ABC):
    """Settings of splits, which are the official ones or are said to differ."""

    other_splits: bool = setting(
        False,
        "allow other splits than the official ones, and sound or speakers on "
        "both sides of them; the result says so",
    )

    def check(self):
        super().check()
        departure = self.departure()
        if departure and not self.other_splits:
            asked = [
                f"{flag(field.name)} {getattr(self, field.name)}"
                for field in dataclasses.fields(self)
                if field.metadata["option"] and field.name in self.given
            ]
            raise ValueError(
                f"The official splits of {self.dataset} are: "
                f"{layouts.find(self.layouts, self.dataset).protocol.meaning}. "
                "--other-splits allows others, and stands in the result. "
                f"Received: {departure} ({', '.join(asked) or 'by default'})"
            )

    @abc.abstractmethod
    def options(self):
        """Returns a dict of the arguments of the layout's reader."""

    def departure(self):
        """Returns how the splits differ from the official ones.

        Returns:
            Text, empty if they do not, or if there are no official ones.
        """
        protocol = layouts.find(self.layouts, self.dataset).protocol
        return protocol.departure(self.options()) if protocol else ""

    def split_facts(self):
        """Returns a dict for JSON of what the splits are.

        Returns:
            Dict of `official`, a bool, or `None` where the corpus has no
            official splits, of `protocol`, which those are, of `departure`,
            how the splits differ from them, and of `other_splits`, whether
            that and leaks were allowed.
        """
        protocol = layouts.find(self.layouts, self.dataset).protocol
        departure = self.departure()
        return {
            "official": None if protocol is None else not departure,
            "protocol": protocol and protocol.meaning,
            "departure": departure,
            "other_splits": self.other_splits,
        }

    def leakage(self):
        """Returns the `Leakage` of the splits: what they may have in common."""
        from audio_tf.runs.leakage import Leakage

        official = self.split_facts()["official"] is True
        return Leakage(official, self.other_splits)
