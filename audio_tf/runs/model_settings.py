"""A group of settings: what a model that is trained is built of."""

import contextlib
import dataclasses
import re

from audio_tf.ops.checks import closest
from audio_tf.runs.settings import POSITIVE, RATE, Settings, flag, setting

PRECISIONS = ("float32", "float16", "bfloat16")
PRECISIONS += ("mixed_float16", "mixed_bfloat16")
MODELS_OWN = "the model's own"


@dataclasses.dataclass
class ModelSettings(Settings):
    """The arguments of a model that is trained.

    A model from a preset keeps the preset's value of each argument that is
    not given here.

    Attributes:
        model_arguments: tuple of the names of the settings that are arguments
            of the model.
        made_into_arguments: tuple of the names of settings of which arguments
            of the model or of its parts are made.
    """

    made_into_arguments = ()
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
    jit_compile: bool = setting(
        False, "compile by XLA; JAX does unless --no-jit-compile is given"
    )

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

    def compiles(self):
        """Returns whether the steps of training are compiled by XLA."""
        if "jit_compile" in self.given:
            return self.jit_compile
        from audio_tf import compiling

        return self.jit_compile or compiling.jit_compile()

    def model_options(self):
        """Returns a dict of the arguments of the model that were given."""
        return {**self.those_given(self.model_arguments), **self.model_kwargs}

    @contextlib.contextmanager
    def naming_flags(self):
        """Makes a context whose errors begin with the flag they are about.

        Raises:
            ValueError: for a `TypeError` or `ValueError` of the block.
        """
        names = (
            "model",
            *self.model_arguments,
            *self.made_into_arguments,
            "model_kwargs",
        )
        try:
            yield
        except (TypeError, ValueError) as error:
            blamed = [
                flag(name)
                for name in names
                if name in self.given and self.is_blamed(name, str(error))
            ]
            if not blamed:
                raise
            raise ValueError(f"{', '.join(blamed)}: {error}") from error

    def is_blamed(self, name, message):
        """Returns whether the message of an error is about a setting.

        Args:
            name: str, the setting.
            message: str, what the error says.
        """
        value = getattr(self, name)
        names = [name, *value] if isinstance(value, dict) else [name]
        # What is quoted after "Received" is what could be taken.
        subject, _, received = message.partition("Received:")
        return f"{name}={value!r}" in received or any(
            re.search(rf"['`\"]{re.escape(str(each))}['`\"]", subject)
            for each in names
        )


def attention_names():
    """Returns a list of all names that `--attention` takes."""
    from audio_tf import attention

    return [*attention.ATTENTIONS, *attention.MIXTURES]


def check_attention(name, setting="attention"):
    """Raises a `ValueError` if no attention has that name.

    Args:
        name: str.
        setting: str, the setting that an error names the flag of.
    """
    from audio_tf import attention

    try:
        attention.parts_of(name)
    except ValueError:
        known = attention_names()
        raise ValueError(
            f"{flag(setting)} must be one of {known}{closest(name, known)}. "
            f"Received: {setting}={name!r}"
        ) from None
