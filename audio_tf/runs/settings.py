"""Settings of the training scripts: a dataclass, a config file, flags.

A script's settings are the fields of one dataclass. Their defaults are
overridden by a config, a Python file with `get_config()` that returns a dict,
and that by flags of the same names. Each value is checked as soon as it is
known, and an error names the flag.

Settings know which of them were given. What a model or a preset has a default
of its own for is `None` here unless it is given, and only what is given is
passed on.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import math
import numbers
import os
import pathlib
import re
import types
import typing

import keras

from audio_tf import attention, console
from audio_tf.corpora import (
    CORPORA,
    SPEECH,
    SPLITS,
    layouts,
    load_corpus,
    load_speech,
)
from audio_tf.data import DECODERS, default_cache_dir, limit_lengths, prepare
from audio_tf.layers import SpeechFeatures
from audio_tf.ops.checks import closest

# `paper_target` is what is rebuilt, never what is listened to.
FEATURES = ["paper", "s3prl"]
PRECISIONS = ["float32", "float16", "bfloat16"]
PRECISIONS += ["mixed_float16", "mixed_bfloat16"]
LOSSES = [
    name
    for name, loss in vars(keras.losses).items()
    if isinstance(loss, types.FunctionType)
    and name not in ("deserialize", "get", "serialize")
]
# More would hide the meaning in a help text.
MOST_CHOICES = 8
MODELS_OWN = "the model's own"


class Check(typing.NamedTuple):
    """What a value must be, beyond its type.

    Attributes:
        meaning: str, what follows "must be" in the error.
        holds: function of the value to a bool.
    """

    meaning: str
    holds: typing.Callable


POSITIVE = Check("positive", lambda value: value > 0)
NOT_NEGATIVE = Check("at least 0", lambda value: value >= 0)
NOT_POSITIVE = Check("at most 0", lambda value: value <= 0)
RATE = Check("in [0, 1)", lambda value: 0 <= value < 1)
SEED = Check("in [0, 2^32)", lambda value: 0 <= value < 2**32)
FOLD = Check("a fold from 1 to 5", lambda value: 1 <= value <= 5)


def setting(
    default,
    help,
    choices=None,
    check=None,
    unless_given=None,
    option=None,
    only=None,
):
    """A field of settings.

    Args:
        default: the value if none is given; `None` if it depends.
        help: str, the text of the flag.
        choices: sequence or table of all values, a function that returns one
            when it is asked, or `None`; of a list's items.
        check: `Check`, or `None`; of a list's items.
        unless_given: str, what the value is if it is not given and the
            default is `None`.
        option: str, what the reader of a corpus calls it; the setting applies
            to the layouts alone whose reader takes that.
        only: pair of another setting and the list of its values that this
            setting applies to, or `None` for all.
    """
    metadata = {
        "help": help,
        # A table stays the table, to which entries may be added.
        "choices": choices,
        "check": check,
        "unless_given": unless_given,
        "option": option,
        "only": only,
    }
    if isinstance(default, (list, dict)):
        return dataclasses.field(
            default_factory=lambda: type(default)(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


# What several scripts have, but with defaults of their own.
SHARED = {
    "model": {
        "help": "name of a size, or folder or address of a preset; where "
        "nothing is trained, a folder of a SavedModel too"
    },
    "batch_size": {"help": "chunks or utterances a step", "check": POSITIVE},
    "epochs": {"help": "passes over the training split", "check": POSITIVE},
    "learning_rate": {"help": "peak learning rate", "check": POSITIVE},
    "buckets": {
        "help": "lengths that utterances are padded to",
        "check": POSITIVE,
    },
    "out": {"help": "folder of the run"},
    "data_dir": {
        "help": "folder of the corpus, or file for csv",
        "unless_given": "the corpus' own, for synthetic alone",
    },
    "cache_dir": {
        "help": "folder of decoded audio and of features",
        "unless_given": "$AUDIO_TF_CACHE, or audio_tf in the user's cache",
    },
    "alignment": {
        "help": "file of the phones of the utterances, such as CPC's",
        "unless_given": "no phones, but for fsdd its own",
        "option": "alignment",
    },
    **{
        f"{split}_list": {
            "help": f"list of the utterances for {purpose}, such as CPC's",
            "unless_given": "the subsets' utterances",
            "option": "lists",
        }
        for split, purpose in (
            ("train", "training"),
            ("val", "validation"),
            ("test", "the test"),
        )
    },
}


def shared(name, default, **changes):
    """The field of that name, as all scripts have it.

    Args:
        name: a key of `SHARED`.
        default: the script's own default.
        **changes: further arguments of `setting`.
    """
    return setting(default, **{**SHARED[name], **changes})


def flag(name):
    """The flag of a setting."""
    return "--" + name.replace("_", "-")


@dataclasses.dataclass
class Settings:
    """What a script is asked for; checked when made.

    Attributes:
        given: names of the settings that were given and are not `None`.

    Raises:
        ValueError: if a value is not what it must be, or applies to another
            setting's value alone; the error names the flag.
    """

    def __new__(cls, **values):
        self = super().__new__(cls)
        self.given = frozenset(
            name for name, value in values.items() if value is not None
        )
        return self

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            setattr(self, field.name, checked(field, value))
        for field in dataclasses.fields(self):
            # The default has no effect, and undoes what a config says.
            changed = getattr(self, field.name) != field.default
            if field.metadata["only"] and changed:
                self.check_applies(field.name, *field.metadata["only"])
        self.check()

    def check(self):
        """Raises a `ValueError` if settings do not fit each other."""

    def check_applies(self, name, other, values):
        """Raises a `ValueError` unless another setting has one of `values`."""
        value = getattr(self, other)
        if value not in values:
            raise ValueError(
                f"{flag(name)} applies to {flag(other)} "
                f"{' or '.join(values)} alone. Received: "
                f"{name}={getattr(self, name)!r}, {other}={value!r}"
            )

    def those_given(self, names):
        """Dict by name of the settings among `names` that were given."""
        return {
            name: getattr(self, name) for name in names if name in self.given
        }

    def replace(self, **changes):
        """The settings with others in place; those count as given."""
        return type(self)(**{**self.those_given(self.given), **changes})

    def to_json(self):
        """Dict of all `settings` and the names of those that were `given`."""
        return {
            "settings": dataclasses.asdict(self),
            "given": sorted(self.given),
        }

    @classmethod
    def from_json(cls, content, **changes):
        """The settings of `to_json`, with others in place.

        What was not given stays what it was, whatever the defaults are now.

        Raises:
            ValueError: if the settings were not those of this class.
        """
        values = content["settings"]
        known = {field.name for field in dataclasses.fields(cls)}
        if set(values) != known:
            raise ValueError(
                f"The settings are not those of a {cls.__name__}. Received: "
                f"without {sorted(known - set(values))}, "
                f"with {sorted(set(values) - known)}"
            )
        names = set(content["given"]) - set(changes)
        settings = cls(**{name: values[name] for name in names}, **changes)
        for name in known - settings.given:
            setattr(settings, name, values[name])
        return settings


def checked(field, value):
    """The value of a field as its type has it.

    Raises:
        ValueError: if it is not of the type, no choice, or out of range.
    """
    kind = kind_of(field)
    if value is None and kind is not field.type:
        return None
    value = converted(flag(field.name), value, kind)
    choices, check = choices_of(field), field.metadata["check"]
    for each in value if isinstance(value, list) else [value]:
        if each is None:
            continue
        if choices is not None and each not in choices:
            raise ValueError(
                f"{flag(field.name)} must be one of {list(choices)}"
                f"{closest(each, choices)}. Received: {each!r}"
            )
        if check is not None and not check.holds(each):
            raise ValueError(
                f"{flag(field.name)} must be {check.meaning}. "
                f"Received: {each!r}"
            )
    return value


def choices_of(field):
    """All values of a field as a sequence or table, or `None` for any."""
    choices = field.metadata["choices"]
    return choices() if callable(choices) else choices


def kind_of(field):
    """The type of a field's values, but for `None`."""
    if isinstance(field.type, types.UnionType):
        return typing.get_args(field.type)[0]
    return field.type


def converted(name, value, kind):
    """The value as a type has it; a `ValueError` with the name if it is not."""
    if typing.get_origin(kind) is list:
        if isinstance(value, (list, tuple)):
            inner = typing.get_args(kind)[0]
            return [converted(name, each, inner) for each in value]
    elif kind is bool or isinstance(value, bool):
        if kind is bool and isinstance(value, bool):
            return value
    elif kind is int and isinstance(value, numbers.Integral):
        return int(value)
    elif kind is float and isinstance(value, numbers.Real):
        if math.isfinite(value):
            return float(value)
    elif kind is str and isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    elif kind is dict and isinstance(value, dict):
        return dict(value)
    raise ValueError(f"{name} must be {KINDS[kind]}. Received: {value!r}")


KINDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    dict: "a dict",
    list[int]: "a list of whole numbers",
    list[str]: "a list of texts",
}


@dataclasses.dataclass
class AudioSettings(Settings):
    """How audio is read, from whatever corpus.

    A subclass has the field `dataset`, whose choices are the keys of
    `layouts`.
    """

    layouts = {}

    data_dir: str | None = shared("data_dir", None)
    cache_dir: str | None = shared("cache_dir", None)
    decoder: str = setting("soundfile", "what decodes audio", DECODERS)
    strict: bool = setting(False, "stop at the first bad file")
    seed: int = setting(0, "seed of all that is drawn", check=SEED)

    def check(self):
        super().check()
        for field in dataclasses.fields(self):
            option = field.metadata["option"]
            if field.name in self.given and option:
                takers = layouts.takers(self.layouts, option)
                self.check_applies(field.name, "dataset", takers)

    def prepare_arguments(self):
        """Keyword arguments of `audio_tf.data.prepare`."""
        return {
            "cache_dir": self.cache_dir or default_cache_dir(),
            "decoder": self.decoder,
            "strict": self.strict,
        }

    def corpus_dir(self):
        """The folder of the corpus, or its file.

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
        return pathlib.Path(
            self.prepare_arguments()["cache_dir"],
            f"{self.dataset}-{self.seed}",
        )

    def file_root(self):
        """The folder that names of files are relative to."""
        folder = self.corpus_dir()
        return folder.parent if folder.is_file() else folder

    def taken(self, options):
        """The options among these that the reader of the layout takes."""
        takes = self.layouts[self.dataset].takes
        return {name: options[name] for name in options if name in takes}


@dataclasses.dataclass
class DataSettings(AudioSettings):
    """Where labelled audio comes from."""

    layouts = CORPORA

    dataset: str = setting("synthetic", "layout of the corpus", CORPORA)
    vocabulary: str | None = setting(
        None,
        "file of the labels in their order",
        unless_given="the labels that occur, sorted",
        option="vocabulary",
    )
    train_folds: list[int] = setting(
        [1, 2, 3], "folds for training", check=FOLD, option="folds"
    )
    val_folds: list[int] = setting(
        [4], "folds for validation", check=FOLD, option="folds"
    )
    test_folds: list[int] = setting(
        [5], "folds for the test", check=FOLD, option="folds"
    )

    def check(self):
        super().check()
        names = ("train_folds", "val_folds", "test_folds")
        used = [fold for name in names for fold in getattr(self, name)]
        if len(set(used)) < len(used):
            raise ValueError(
                "A fold must be in one of --train-folds, --val-folds and "
                f"--test-folds only. Received: {self.folds()}"
            )

    def folds(self):
        """Dict of the folds by split."""
        return {
            "train": self.train_folds,
            "val": self.val_folds,
            "test": self.test_folds,
        }

    def load(self):
        """Dict of `Corpus` by split.

        Raises:
            ValueError: if no folder is given.
        """
        options = {
            "folds": self.folds(),
            "vocabulary": self.vocabulary,
            "seed": self.seed,
        }
        return load_corpus(
            self.dataset, self.corpus_dir(), **self.taken(options)
        )


@dataclasses.dataclass
class ReportSettings(DataSettings):
    """Which split of labelled audio is scored, and where the figures go."""

    split: str = setting("test", "which split", SPLITS)
    report: str | None = setting(
        None, "JSON file for all figures", unless_given="none"
    )

    def check(self):
        super().check()
        if self.report and not pathlib.Path(self.report).parent.is_dir():
            raise ValueError(
                "--report must be a file in a folder that is there. "
                f"Received: {self.report}"
            )


@dataclasses.dataclass
class SpeechSettings(AudioSettings):
    """Where speech comes from, and what is computed from it."""

    layouts = SPEECH

    dataset: str = setting("librispeech", "layout of the corpus", SPEECH)
    train_subsets: list[str] = setting(
        ["train-clean-360"], "subsets for training", option="subsets"
    )
    val_subsets: list[str] = setting(
        [], "subsets for validation", option="subsets"
    )
    test_subsets: list[str] = setting(
        [], "subsets for the test", option="subsets"
    )
    train_list: str | None = shared("train_list", None)
    val_list: str | None = shared("val_list", None)
    test_list: str | None = shared("test_list", None)
    alignment: str | None = shared("alignment", None)
    features: str = setting("paper", "preset of features", FEATURES)
    features_options: dict = setting({}, "values that replace the preset's")
    sample_rate_hz: int = setting(
        16_000, "rate of the waveform", check=POSITIVE
    )
    min_s: float = setting(
        0.0,
        "seconds below which utterances are left out",
        check=NOT_NEGATIVE,
    )
    max_s: float = setting(
        37.5, "seconds above which utterances are left out", check=POSITIVE
    )

    def load(self):
        """Dict of `SpeechCorpus` by split.

        Raises:
            ValueError: if no folder is given, or there is no split `train`.
        """
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
        """Reads the splits as the corpus defines them.

        Returns:
            Dict of `SpeechCorpus` by split, before any limit on length.
        """
        lists = {
            "train": self.train_list,
            "val": self.val_list,
            "test": self.test_list,
        }
        lists = {split: path for split, path in lists.items() if path}
        options = {
            "subsets": {
                "train": self.train_subsets,
                "val": self.val_subsets,
                "test": self.test_subsets,
            },
            "lists": lists or None,
            "alignment": self.alignment,
            "seed": self.seed,
            "strict": self.strict,
            "out_dir": self.export_dir(),
        }
        return load_speech(
            self.dataset, self.corpus_dir(), **self.taken(options)
        )

    def export_dir(self):
        """Where utterances of a TFDS corpus are written as files."""
        return pathlib.Path(
            self.prepare_arguments()["cache_dir"], "librispeech"
        )

    def file_root(self):
        if self.taken({"out_dir": None}):
            return self.export_dir()
        return super().file_root()

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


@dataclasses.dataclass
class ModelSettings(Settings):
    """What a model that is trained is built of.

    Whatever a preset has a value for is the preset's unless it is given.
    """

    # Settings that are arguments of the model.
    model_arguments = (
        "attention",
        "attention_kwargs",
        "causal",
        "made_for_frames",
        "dropout",
    )

    attention: str | None = setting(
        None, "name of the attention", unless_given=MODELS_OWN
    )
    attention_kwargs: dict | None = setting(
        None, "further arguments of the attention", unless_given=MODELS_OWN
    )
    causal: bool | None = setting(
        None,
        "no frame sees a later one; --no-causal: attention sees all",
        unless_given=MODELS_OWN,
    )
    made_for_frames: int | None = setting(
        None,
        "longest input that tables, strides and patterns of the attentions "
        "are made for",
        check=POSITIVE,
        unless_given=MODELS_OWN,
    )
    dropout: float | None = setting(
        None, "dropout rate of the model", check=RATE, unless_given=MODELS_OWN
    )
    model_kwargs: dict = setting({}, "further arguments of the model")
    precision: str = setting("float32", "dtype policy", PRECISIONS)
    jit_compile: bool = setting(False, "compile by XLA")

    def check(self):
        super().check()
        if self.attention is not None:
            check_attention(self.attention)
        for name in self.model_arguments:
            if name in self.given and name in self.model_kwargs:
                raise ValueError(
                    f"{flag(name)} and --model-kwargs must not say the same. "
                    f"Received: {name}={getattr(self, name)!r}, "
                    f"model_kwargs={self.model_kwargs}"
                )

    def model_options(self):
        """Dict of the arguments of the model that were given."""
        return {**self.those_given(self.model_arguments), **self.model_kwargs}

    @contextlib.contextmanager
    def naming_flags(self):
        """Names the flag of an argument that a model does not take.

        Raises:
            ValueError: instead of a `TypeError` or `ValueError` of the block.
        """
        try:
            yield
        except (TypeError, ValueError) as error:
            blamed = [
                flag(name)
                for name in ("model", *self.model_arguments, "model_kwargs")
                if name in self.given and self.is_blamed(name, str(error))
            ]
            if not blamed:
                raise
            raise ValueError(f"{', '.join(blamed)}: {error}") from error

    def is_blamed(self, name, message):
        """Whether the message of an error is about this setting."""
        value = getattr(self, name)
        names = [name, *value] if isinstance(value, dict) else [name]
        # What is quoted after "Received" is what could be taken.
        subject, _, received = message.partition("Received:")
        return f"{name}={value!r}" in received or any(
            re.search(rf"['`\"]{re.escape(str(each))}['`\"]", subject)
            for each in names
        )


def check_attention(name):
    """Raises a `ValueError` with the nearest name if there is none such."""
    try:
        attention.find(name)
    except ValueError:
        raise ValueError(
            f"--attention must be one of {list(attention.ATTENTIONS)}"
            f"{closest(name, attention.ATTENTIONS)}. Received: "
            f"attention={name!r}"
        ) from None


def read_config(path, settings_class):
    """The dict that `get_config()` of a Python file returns.

    Raises:
        ValueError: if it has a key that the settings lack.
        OSError: if there is no such file.
    """
    spec = importlib.util.spec_from_file_location("audio_tf_config", path)
    if spec is None:
        raise ValueError(f"A config must be a Python file. Received: {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = module.get_config()
    known = [field.name for field in dataclasses.fields(settings_class)]
    unknown = sorted(set(config) - set(known))
    if unknown:
        raise ValueError(
            f"{path}: unknown setting {unknown[0]!r}"
            f"{closest(unknown[0], known)}. Received: {unknown}; "
            f"known are {sorted(known)}"
        )
    return config


def add_flags(parser, settings_class):
    """Adds a flag for each field; one that is not given leaves no trace."""
    for field in dataclasses.fields(settings_class):
        arguments = {
            "default": argparse.SUPPRESS,
            "help": help_of(field, settings_class).replace("%", "%%"),
        }
        kind = kind_of(field)
        if kind is bool:
            arguments["action"] = argparse.BooleanOptionalAction
        elif typing.get_origin(kind) is list:
            arguments["type"] = typing.get_args(kind)[0]
            arguments["nargs"] = "*"
        else:
            arguments["type"] = json_dict if kind is dict else kind
        if kind is dict:
            arguments["metavar"] = "JSON"
        parser.add_argument(flag(field.name), **arguments)


def help_of(field, settings_class):
    """The help of a flag: meaning, choices, where it applies, default."""
    text, choices = field.metadata["help"], choices_of(field)
    if field.name == "dataset":
        text += f": {layouts.describe(settings_class.layouts)}"
    elif choices and len(choices) <= MOST_CHOICES:
        text += f": {', '.join(map(str, choices))}"
    option, only = field.metadata["option"], field.metadata["only"]
    if option:
        takers = layouts.takers(settings_class.layouts, option)
        text += f"; for --dataset {', '.join(takers)}"
    if only:
        text += f"; for {flag(only[0])} {', '.join(only[1])}"
    default = field.default
    if default is dataclasses.MISSING:
        default = field.default_factory()
    if default is None:
        default = field.metadata["unless_given"]
    return f"{text} (default: {default})"


def json_dict(text):
    """A dict from JSON."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be JSON ({error}). Received: {text}"
        ) from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(
            f"must be a JSON object. Received: {text}"
        )
    return value


def saved_run(out):
    """What an earlier run has left in the `config.json` of its folder.

    Raises:
        ValueError: if there was none, or not of this version.
    """
    path = pathlib.Path(out, "config.json")
    if not path.is_file():
        raise ValueError(f"{path} is missing: nothing to resume in --out")
    content = json.loads(path.read_text())
    if not {"settings", "given"} <= set(content):
        raise ValueError(
            f"{path} must have `settings` and `given`. "
            f"Received: {sorted(content)}"
        )
    return content


def resumed(settings_class, out, given, free):
    """The settings of the run in `out`, with what may change as it is given.

    Raises:
        ValueError: if there is no run, or it would go on with other settings.
    """
    content = saved_run(out)
    free = {name: given[name] for name in given if name in {"out", *free}}
    try:
        settings = settings_class.from_json(content, **free)
        # The same checks and types as in the run.
        asked = settings_class.from_json(content, **given)
    except ValueError as error:
        raise ValueError(f"{out}: {error}") from None
    changed = [
        name
        for name in sorted(given)
        if getattr(asked, name) != getattr(settings, name)
    ]
    if changed:
        raise ValueError(
            f"--resume goes on with the settings of {out}. Received: "
            + ", ".join(
                f"{name}={getattr(asked, name)!r}, "
                f"then {getattr(settings, name)!r}"
                for name in changed
            )
        )
    return settings


def check_out(out):
    """Raises a `ValueError` if no folder can be made there."""
    path = pathlib.Path(os.path.abspath(out))
    while not path.exists() and path != path.parent:
        path = path.parent
    if not path.is_dir() or not os.access(path, os.W_OK):
        raise ValueError(
            f"--out must be a folder that can be written to. Received: {out}"
        )


def parse(
    settings_class,
    description,
    argv=None,
    resumable=False,
    free=(),
    prog=None,
):
    """Settings from defaults, config and flags, the later the stronger.

    Args:
        settings_class: the dataclass.
        description: text of the script's help.
        argv: the flags; those of the process if `None`.
        resumable: bool, whether `--resume` goes on with the run that has left
            its settings in `out`.
        free: names of settings that may change when a run goes on.
        prog: str, name of the program in help and errors; that of the script
            if `None`.

    Returns:
        The settings; if `resumable`, a pair with whether to resume.

    Raises:
        SystemExit: after one line that names the flag, if there is a mistake.
    """
    parser = console.Parser(
        prog=prog,
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
    debug = flags.pop("debug", False)
    try:
        given = flags
        if config_path is not None:
            given = {**read_config(config_path, settings_class), **flags}
        if resumable:
            out = given.get("out", settings_class.out)
            check_out(out)
        if resume:
            return resumed(settings_class, out, given, free), True
        if resumable and pathlib.Path(out, "config.json").exists():
            raise ValueError(
                f"{out} holds a run. Add --resume, or choose another --out"
            )
        settings = settings_class(**given)
    except (ValueError, OSError) as error:
        if debug:
            raise
        parser.error(str(error))
    return (settings, resume) if resumable else settings
