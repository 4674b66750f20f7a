"""Settings of the training scripts: a dataclass, a config file, flags.

A script's settings are the fields of one dataclass. Their defaults are
overridden by a config, a Python file with `get_config()` that returns a dict,
and that by flags of the same names. An unknown key is an error.
"""

import argparse
import dataclasses
import importlib.util
import json
import pathlib
import types
import typing

from audio_tf.data import (
    CORPORA,
    DECODERS,
    SPEECH,
    default_cache_dir,
    layouts,
    limit_lengths,
    load_corpus,
    load_speech,
    prepare,
)
from audio_tf.layers import SpeechFeatures

# `paper_target` is what is rebuilt, never what is listened to.
FEATURES = ["paper", "s3prl"]


def setting(default, help, choices=None, option=None):
    """A field with the text and the choices of its flag.

    Args:
        default: its default.
        help: str.
        choices: what it may be, or `None` for anything. The meanings of a
            table of layouts follow the help.
        option: name of the argument of a corpus' reader that it is part of,
            or `None` if it is meant for all layouts.
    """
    metadata = {"help": help, "choices": choices, "option": option}
    if isinstance(default, (list, dict)):
        return dataclasses.field(
            default_factory=lambda: type(default)(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass
class AudioSettings:
    """How audio is read, from whatever corpus.

    Attributes:
        layouts: the table that `dataset` is a key of.
    """

    layouts: typing.ClassVar[dict]

    cache_dir: str | None = setting(None, "folder of the decoded audio")
    decoder: str = setting("soundfile", "what decodes audio", list(DECODERS))
    strict: bool = setting(False, "stop at the first bad file")
    seed: int = setting(0, "seed of all that is drawn")

    def prepare_arguments(self):
        """Keyword arguments of `audio_tf.data.prepare`."""
        return {
            "cache_dir": self.cache_dir or default_cache_dir(),
            "decoder": self.decoder,
            "strict": self.strict,
        }

    def reader_options(self, **values):
        """Those of the values, by option, that the layout's reader takes.

        Raises:
            ValueError: if a setting is not what it is by default, and is of
                no use for the layout.
        """
        takes = layouts.find(self.layouts, self.dataset).takes
        for field in dataclasses.fields(self):
            option, value = field.metadata["option"], getattr(self, field.name)
            if option in (None, *takes) or value == default_of(field):
                continue
            raise ValueError(
                f"{flag_of(field)} does not apply to --dataset {self.dataset}, "
                f"but to {', '.join(layouts.takers(self.layouts, option))}. "
                f"Received: {flag_of(field)} {value}"
            )
        return {name: values[name] for name in values if name in takes}


@dataclasses.dataclass
class DataSettings(AudioSettings):
    """Where labelled audio comes from."""

    layouts = CORPORA

    dataset: str = setting("synthetic", "layout of the corpus", CORPORA)
    data_dir: str | None = setting(
        None, "folder or file of the corpus; synthetic makes its own"
    )
    vocabulary: str | None = setting(
        None, "labels in order", option="vocabulary"
    )
    train_folds: list[int] = setting(
        [1, 2, 3], "folds for training", option="folds"
    )
    val_folds: list[int] = setting([4], "folds for validation", option="folds")
    test_folds: list[int] = setting([5], "folds for the test", option="folds")

    def load(self):
        """Dict of `Corpus` by split.

        Raises:
            ValueError: if no folder is given.
        """
        data_dir = self.data_dir
        if data_dir is None:
            if not layouts.find(self.layouts, self.dataset).makes_its_own:
                raise missing_data_dir(self.dataset)
            data_dir = pathlib.Path(
                default_cache_dir(), f"{self.dataset}-{self.seed}"
            )
        folds = {
            "train": self.train_folds,
            "val": self.val_folds,
            "test": self.test_folds,
        }
        options = self.reader_options(
            folds=folds, vocabulary=self.vocabulary, seed=self.seed
        )
        return load_corpus(self.dataset, data_dir, **options)


@dataclasses.dataclass
class SpeechSettings(AudioSettings):
    """Where speech comes from, and what is computed from it."""

    layouts = SPEECH

    dataset: str = setting("librispeech", "layout of the corpus", SPEECH)
    data_dir: str | None = setting(None, "folder of the corpus")
    train_subsets: list[str] = setting(
        ["train-clean-360"], "subsets for training", option="subsets"
    )
    val_subsets: list[str] = setting(
        [], "subsets for validation", option="subsets"
    )
    test_subsets: list[str] = setting(
        [], "subsets for the test", option="subsets"
    )
    train_list: str | None = setting(
        None,
        "list of the utterances for training, such as CPC's",
        option="lists",
    )
    val_list: str | None = setting(
        None, "list of those for validation", option="lists"
    )
    test_list: str | None = setting(
        None, "list of those for the test", option="lists"
    )
    alignment: str | None = setting(
        None, "phones of the utterances, such as CPC's", option="alignment"
    )
    features: str = setting("paper", "preset of features", FEATURES)
    features_options: dict = setting({}, "values that replace the preset's")
    sample_rate_hz: int = setting(16_000, "rate of the waveform")
    min_s: float = setting(0.0, "seconds below which utterances are left out")
    max_s: float = setting(37.5, "seconds above which they are left out")

    def load(self):
        """Dict of `SpeechCorpus` by split.

        Raises:
            ValueError: if no folder is given, or a setting does not fit the
                layout.
        """
        if self.data_dir is None:
            raise missing_data_dir(self.dataset)
        corpora = self.read()
        if "train" not in corpora:
            raise ValueError(
                "There is no split `train`; see --train-list and "
                f"--train-subsets. Received: splits {list(corpora)}"
            )
        report = corpora["train"].describe()
        if report:
            print(report)
        return corpora

    def read(self):
        """Reads the splits as the corpus defines them."""
        lists = {
            "train": self.train_list,
            "val": self.val_list,
            "test": self.test_list,
        }
        lists = {split: path for split, path in lists.items() if path}
        options = self.reader_options(
            subsets={
                "train": self.train_subsets,
                "val": self.val_subsets,
                "test": self.test_subsets,
            },
            lists=lists or None,
            alignment=self.alignment,
            seed=self.seed,
            strict=self.strict,
            out_dir=pathlib.Path(
                self.prepare_arguments()["cache_dir"], "librispeech"
            ),
        )
        return load_speech(self.dataset, self.data_dir, **options)

    def prepare(self, corpus, name):
        """`Clips` of a split, decoded and of the lengths wanted."""
        clips = prepare(
            corpus, self.sample_rate_hz, name=name, **self.prepare_arguments()
        )
        return limit_lengths(clips, self.min_s, self.max_s)

    def feature_layer(self):
        """The `SpeechFeatures`."""
        return SpeechFeatures(
            self.features,
            self.sample_rate_hz,
            self.features_options,
            # Half precision would round inputs and targets alike.
            dtype="float32",
            name="features",
        )


def default_of(field):
    """The default of a dataclass' field."""
    if field.default is dataclasses.MISSING:
        return field.default_factory()
    return field.default


def flag_of(field):
    """The flag of a setting."""
    return "--" + field.name.replace("_", "-")


def help_of(field, table):
    """The text of a setting's flag, with the layouts that it is for."""
    text = field.metadata["help"]
    if field.metadata["choices"] is table:
        text += f": {layouts.describe(table)}"
    if field.metadata["option"] is not None:
        names = layouts.takers(table, field.metadata["option"])
        text += f", for {', '.join(names)}"
    return f"{text} (default: {default_of(field)})"


def missing_data_dir(dataset):
    return ValueError(
        f"--data-dir is needed. Received: --dataset {dataset} alone"
    )


def read_config(path, settings_class):
    """The dict that `get_config()` of a Python file returns.

    Raises:
        ValueError: if it has a key that the settings lack.
    """
    spec = importlib.util.spec_from_file_location("audio_tf_config", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = module.get_config()
    known = {field.name for field in dataclasses.fields(settings_class)}
    unknown = sorted(set(config) - known)
    if unknown:
        raise ValueError(
            f"{path}: unknown settings. Received: {unknown}; "
            f"known are {sorted(known)}"
        )
    return config


def add_flags(parser, settings_class):
    """Adds a flag for each field; one that is not given leaves no trace."""
    for field in dataclasses.fields(settings_class):
        arguments = {
            "default": argparse.SUPPRESS,
            "help": help_of(field, settings_class.layouts),
        }
        kind = field.type
        if isinstance(kind, types.UnionType):
            kind = typing.get_args(kind)[0]
        if kind is bool:
            arguments["action"] = argparse.BooleanOptionalAction
        elif typing.get_origin(kind) is list:
            arguments["type"] = typing.get_args(kind)[0]
            arguments["nargs"] = "*"
        elif kind is dict:
            arguments["type"] = json.loads
            arguments["metavar"] = "JSON"
        else:
            arguments["type"] = kind
            arguments["choices"] = field.metadata["choices"]
        parser.add_argument(flag_of(field), **arguments)


def saved_run(out):
    """The settings that an earlier run left in the folder `out`.

    Raises:
        ValueError: if there was none.
    """
    path = pathlib.Path(out, "config.json")
    if not path.is_file():
        raise ValueError(f"{path} is missing: nothing to resume in --out")
    return json.loads(path.read_text())


def settings_of_run(out, given, resume, free):
    """What an earlier run in `out` was asked for, `{}` for a new run.

    Raises:
        ValueError: if there is a run and it is not resumed, or the other way
            round, or it would go on with other settings.
    """
    if not resume:
        if pathlib.Path(out, "config.json").exists():
            raise ValueError(
                f"{out} holds a run. Add --resume, or choose another --out"
            )
        return {}
    before = saved_run(out)
    # What was saved went through JSON.
    given = json.loads(json.dumps(given))
    changed = {
        name: value
        for name, value in given.items()
        if name not in {"out", *free} and value != before.get(name)
    }
    if changed:
        raise ValueError(
            f"--resume goes on with the settings of {out}. Received: "
            + ", ".join(
                f"{name}={value!r}, then {before.get(name)!r}"
                for name, value in changed.items()
            )
        )
    return before


def parse(settings_class, description, argv=None, resumable=False, free=()):
    """Settings from defaults, config and flags, the later the stronger.

    Args:
        settings_class: the dataclass.
        description: text of the script's help.
        argv: the flags; those of the process if `None`.
        resumable: bool, whether `--resume` goes on with the run that has left
            its settings in `out`.
        free: names of settings that may change when a run goes on.

    Returns:
        The settings; if `resumable`, a pair with whether to resume.
    """
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", help="Python file with get_config()")
    if resumable:
        parser.add_argument(
            "--resume",
            action="store_true",
            help="go on with the run in --out, with its settings",
        )
    add_flags(parser, settings_class)
    flags = vars(parser.parse_args(argv))
    config_path = flags.pop("config")
    resume = flags.pop("resume", False)
    try:
        given = flags
        if config_path is not None:
            given = {**read_config(config_path, settings_class), **flags}
        if resumable:
            out = given.get("out", settings_class.out)
            given = {
                **settings_of_run(out, given, resume, free),
                **given,
            }
        settings = settings_class(**given)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    return (settings, resume) if resumable else settings
