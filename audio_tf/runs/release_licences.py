"""Whether what a model was trained on forbids commercial use."""

import re

from audio_tf.export.classifiers import built_on

# Corpora that are not for commercial use, by their layouts. Where the lists of
# one have the licence of each clip, and the training has noted them, these are
# looked at instead.
NOT_COMMERCIAL = {
    "esc50": "CC BY-NC 3.0",
    "fsd50k": "CC BY-NC in part, and FSD50K.metadata, by which such clips are "
    "told, was not beside it",
    "iemocap": "for research, by agreement with USC alone",
    "ravdess": "CC BY-NC-SA 4.0",
}
# Also as addresses, SPDX and file names write it: an underscore is a letter to
# `\b`.
FORBIDS = re.compile(
    r"(?<![a-z])nc(?![a-z])|non[-_\s]?commercial|research (purposes )?only",
    re.IGNORECASE,
)


def check_licence(licence):
    """Checks that the licence of a corpus allows commercial use.

    Raises:
        ValueError: if it does not.
    """
    if FORBIDS.search(licence):
        raise ValueError(
            "No weights are released from a corpus that forbids commercial "
            f"use. Received: --licence {licence!r}"
        )


def check_origin(origin):
    """Checks that nothing the model was trained on forbids commercial use.

    Args:
        origin: dict that training has left as `provenance.json`. What the
            training built on is looked at, too.

    Raises:
        ValueError: if a corpus does.
    """
    own = {"command": origin["command"], **origin["settings"]}
    own["licences"] = origin.get("licences")
    for training in (own, *built_on(origin)):
        dataset, licences = training["dataset"], training.get("licences")
        for licence in filter(FORBIDS.search, licences or ()):
            raise ValueError(
                "No weights are released from clips that forbid commercial "
                f"use: {licences[licence]} of {dataset} are {licence!r}. "
                "Received: a run with the command "
                f"{training['command']!r}"
            )
        # A clip of which nothing is said may be what the corpus has in part.
        told = licences and "" not in licences
        if dataset in NOT_COMMERCIAL and not told:
            raise ValueError(
                "No weights are released from a corpus that forbids "
                f"commercial use: {dataset} is {NOT_COMMERCIAL[dataset]}. "
                "Received: a run with the command "
                f"{training['command']!r}"
            )
