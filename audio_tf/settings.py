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

from audio_tf.data import DECODERS, load_corpus
from audio_tf.data.cache import default_cache_dir


def setting(default, help, choices=None):
    """A field with the text and the choices of its flag."""
    metadata = {"help": help, "choices": choices}
    if isinstance(default, (list, dict)):
        return dataclasses.field(
            default_factory=lambda: type(default)(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass
class DataSettings:
    """Where labelled audio comes from."""

    dataset: str = setting(
        "synthetic",
        "layout of the corpus",
        ["synthetic", "fsd50k", "esc10", "esc50", "folders", "csv"],
    )
    data_dir: str | None = setting(
        None, "folder of the corpus, or file for csv; synthetic makes its own"
    )
    vocabulary: str | None = setting(None, "labels in order, for csv")
    train_folds: list[int] = setting([1, 2, 3], "folds for training, for ESC")
    val_folds: list[int] = setting([4], "folds for validation, for ESC")
    test_folds: list[int] = setting([5], "folds for the test, for ESC")
    cache_dir: str | None = setting(None, "folder of the decoded audio")
    decoder: str = setting("soundfile", "what decodes audio", list(DECODERS))
    strict: bool = setting(False, "stop at the first bad file")
    seed: int = setting(0, "seed of all that is drawn")

    def load(self):
        """Dict of `Corpus` by split.

        Raises:
            ValueError: if no folder is given.
        """
        data_dir = self.data_dir
        if data_dir is None:
            if self.dataset != "synthetic":
                raise ValueError(
                    "--data-dir is needed. "
                    f"Received: --dataset {self.dataset} alone"
                )
            data_dir = pathlib.Path(
                default_cache_dir(), f"synthetic-{self.seed}"
            )
        folds = {
            "train": self.train_folds,
            "val": self.val_folds,
            "test": self.test_folds,
        }
        return load_corpus(
            self.dataset, data_dir, folds, self.vocabulary, self.seed
        )

    def prepare_arguments(self):
        """Keyword arguments of `audio_tf.data.prepare`."""
        return {
            "cache_dir": self.cache_dir or default_cache_dir(),
            "decoder": self.decoder,
            "strict": self.strict,
        }


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
        flag = "--" + field.name.replace("_", "-")
        default = getattr(settings_class(), field.name)
        arguments = {
            "default": argparse.SUPPRESS,
            "help": f"{field.metadata['help']} (default: {default})",
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
        parser.add_argument(flag, **arguments)


def parse(settings_class, description, argv=None, saved=None):
    """Settings from defaults, config and flags, the later the stronger.

    Args:
        settings_class: the dataclass.
        description: text of the script's help.
        argv: the flags; those of the process if `None`.
        saved: function from the parsed settings to a dict of an earlier run
            that `--resume` goes on with, or `None` if there is no resuming.

    Returns:
        The settings; with `saved`, a pair with whether to resume.
    """
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", help="Python file with get_config()")
    if saved is not None:
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
        config = {}
        if config_path is not None:
            config = read_config(config_path, settings_class)
        if resume:
            config = saved(settings_class(**{**config, **flags}))
        settings = settings_class(**{**config, **flags})
    except (ValueError, OSError) as error:
        parser.error(str(error))
    return settings if saved is None else (settings, resume)
