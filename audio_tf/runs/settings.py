"""Settings of a script: the fields of one dataclass, each of them checked.

Settings know which of them were given. A value that a model or a preset has a
default of its own for is `None` here unless it is given, and only what is
given is passed on.

Nothing here imports Keras or TensorFlow.
"""

import dataclasses
import math
import numbers
import os
import types
import typing

from audio_tf.ops.checks import MAX_COUNT, closest


class Check(typing.NamedTuple):
    """A condition on a value, beyond its type.

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
FRACTION = Check("in (0, 1)", lambda value: 0 < value < 1)
SHARE = Check("in [0, 1]", lambda value: 0 <= value <= 1)
SEED = Check("in [0, 2^32)", lambda value: 0 <= value < 2**32)
NAME = Check("a name that is not empty", str.strip)
FOLD = Check("a fold from 1 to 5", lambda value: 1 <= value <= 5)

# What stands for a value that a config of another program may say.
THE_CONFIGS = "the config's"


def setting(
    default,
    help,
    choices=None,
    check=None,
    unless_given=None,
    option=None,
    only=None,
    of_start=False,
    later=False,
    formerly=None,
):
    """Makes a field of settings.

    Args:
        default: the value if none is given; `None` if it depends.
        help: str, the help text of the flag.
        choices: sequence or table of all values, or a function that returns
            it, which is called when a value is checked or help is shown;
            `None` if any value will do. Each item of a list is checked.
        check: `Check`, or `None`. Each item of a list is checked.
        unless_given: str, a text on the value that a default of `None` stands
            for.
        option: str, name of an argument of the readers of corpora; the
            setting applies to the layouts alone whose reader takes it.
        only: pair of another setting and the list of its values that this
            setting applies to, or `None` if it always applies.
        of_start: bool, whether the setting is of one start of the program and
            not of the run, which does not keep it.
        later: bool, whether there are runs without it, which have its default.
        formerly: str, the name that it has in older runs, or `None`.
    """
    metadata = {
        "help": help,
        # A table stays the table, to which entries may be added.
        "choices": choices,
        "check": check,
        "unless_given": unless_given,
        "option": option,
        "only": only,
        "of_start": of_start,
        "later": later,
        "formerly": formerly,
    }
    if isinstance(default, (list, dict)):
        return dataclasses.field(
            default_factory=lambda: type(default)(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


# Settings of several scripts, each of which has a default of its own.
SHARED = {
    "model": {
        "help": "name of a size or of a released preset, or folder or "
        "address of a preset; audio-tf evaluate takes what was exported, too, "
        "and no size",
        "check": NAME,
    },
    "batch_size": {
        "help": "chunks, utterances, texts or images in a batch",
        "check": POSITIVE,
    },
    "epochs": {"help": "passes over the training split", "check": POSITIVE},
    "learning_rate": {"help": "peak learning rate", "check": POSITIVE},
    "plateau_factor": {
        "help": "what the rate is multiplied by on a plateau",
        "check": FRACTION,
    },
    "plateau_patience": {
        "help": "epochs without a better one that are a plateau",
        "check": POSITIVE,
    },
    "clip_norm": {
        "help": "norm that gradients are clipped to",
        "check": POSITIVE,
    },
    "buckets": {
        "help": "lengths that utterances are padded to",
        "check": POSITIVE,
    },
    "out": {"help": "folder of the run"},
    "data_dir": {
        "help": "folder of the corpus, or file for csv",
        "check": NAME,
        "unless_given": "the corpus' own, for synthetic alone",
    },
    "cache_dir": {
        "help": "folder of decoded audio and of features",
        "check": NAME,
        "unless_given": "$AUDIO_TF_CACHE, or audio_tf in the user's cache",
    },
    "alignment": {
        "help": "file of the phones of the utterances, such as CPC's",
        "check": NAME,
        "unless_given": "no phones; for fsdd those of its own file",
        "option": "alignment",
    },
    **{
        f"{split}_list": {
            "help": f"list of the utterances for {purpose}, such as CPC's",
            "check": NAME,
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
    """Makes a field that several scripts have.

    Args:
        name: str, a key of `SHARED`.
        default: the script's own default.
        **changes: further arguments of `setting`.
    """
    return setting(default, **{**SHARED[name], **changes})


def flag(name):
    """Returns the flag of a setting."""
    return "--" + name.replace("_", "-")


@dataclasses.dataclass
class Settings:
    """The settings of a script. All values are checked when it is made.

    Attributes:
        given: frozenset of the names of the settings that were given and are
            not `None`.
        layouts: dict of `Layout` by name, which `dataset` is one of where a
            script has that setting.
        gone: tuple of the names of settings that runs of before have, and
            that meant nothing.

    Raises:
        ValueError: if a value is not what it must be, or applies to another
            setting's value alone; the error names the flag.
    """

    layouts = types.MappingProxyType({})
    gone = ()

    @property
    def writes(self):
        """Whether this process writes the run, as one alone may."""
        return True

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
        """Returns a dict of the settings among `names` that were given."""
        return {
            name: getattr(self, name) for name in names if name in self.given
        }

    def replace(self, **changes):
        """Returns the settings with some of them changed.

        Args:
            **changes: new values by name, which count as given.
        """
        return type(self)(**{**self.those_given(self.given), **changes})

    def to_json(self):
        """Returns a dict for JSON, which `from_json` reads.

        Returns:
            Dict of all `settings` by name, and of the sorted names of the
            ones that were `given`; settings of one start are left out.
        """
        of_start = self.names_of_start()
        return {
            "settings": {
                name: value
                for name, value in dataclasses.asdict(self).items()
                if name not in of_start
            },
            "given": sorted(self.given - of_start),
        }

    @classmethod
    def names_of_start(cls):
        """Returns a set of the settings that a run does not keep."""
        return {
            field.name
            for field in dataclasses.fields(cls)
            if field.metadata["of_start"]
        }

    @classmethod
    def from_json(cls, content, **changes):
        """Makes the settings that `to_json` has written.

        A setting that was not given keeps its value, whatever the default is
        now.

        Args:
            content: dict that `to_json` has returned.
            **changes: new values by name, which count as given.

        Raises:
            ValueError: if the names are not the fields of this class.
        """
        later = {
            field.name: field.default
            for field in dataclasses.fields(cls)
            if field.metadata["later"]
        }
        now = {
            field.metadata["formerly"]: field.name
            for field in dataclasses.fields(cls)
        }
        values = {
            **later,
            **{
                now.get(k, k): v
                for k, v in content["settings"].items()
                if k not in cls.gone
            },
        }
        known = {field.name for field in dataclasses.fields(cls)}
        known -= cls.names_of_start()
        if set(values) != known:
            raise ValueError(
                f"The settings are not those of a {cls.__name__}. Received: "
                f"without {sorted(known - set(values))}, "
                f"with {sorted(set(values) - known)}"
            )
        given = {now.get(name, name) for name in content["given"]}
        names = given - set(changes) - set(cls.gone)
        settings = cls(**{name: values[name] for name in names}, **changes)
        for name in known - settings.given:
            setattr(settings, name, values[name])
        return settings


def checked(field, value):
    """Converts the value of a setting to its type.

    Args:
        field: `dataclasses.Field` that `setting` has made.
        value: the value, of any type.

    Returns:
        The value in the field's type, or `None` where the field allows it.

    Raises:
        ValueError: if it is of another type, not among the choices, out of
            range, or a list of texts or whole numbers with one of them twice.
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
        if kind in (int, list[int]) and abs(each) > MAX_COUNT:
            raise ValueError(
                f"{flag(field.name)} must be at most {MAX_COUNT} = 2^32 - 1. "
                f"Received: {each}"
            )
    if kind in (list[int], list[str]):
        # A seed that came twice would count twice in a mean.
        again = next((each for each in value if value.count(each) > 1), None)
        if again is not None:
            raise ValueError(
                f"{flag(field.name)} must have each value once. "
                f"Received: {again!r} {value.count(again)} times in {value}"
            )
    return value


def choices_of(field):
    """Returns the sequence or table of a field's choices, `None` for any."""
    choices = field.metadata["choices"]
    return choices() if callable(choices) else choices


def kind_of(field):
    """Returns the type of a field's values, leaving `None` aside."""
    if isinstance(field.type, types.UnionType):
        return typing.get_args(field.type)[0]
    return field.type


def converted(name, value, kind):
    """Converts a value to a type if nothing is lost by it.

    Args:
        name: str, the flag that an error names.
        value: the value, of any type.
        kind: a key of `KINDS`.

    Raises:
        ValueError: if the value is not of that kind.
    """
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
    list[float]: "a list of finite numbers",
    list[str]: "a list of texts",
}
