"""Clips of a training that the models which it builds on have heard.

They are looked for twice: by lists before anything is decoded, which may take
hours, and by marks of the samples once these are there.
"""

from audio_tf.runs import heard
from audio_tf.runs.leakage import MODEL, TEACHERS


class ModelLeaks:
    """Finds clips of a training that its model or its teachers have heard.

    Args:
        settings: `TrainSettings`.
        out: `pathlib.Path`, the folder of the run; it may not be there yet.

    Attributes:
        before: `heard.Heard` of the model that the training begins with.
    """

    def __init__(self, settings, out):
        self.leakage = settings.leakage()
        self.before = heard.began_with(settings, out)
        self.models = [
            *((TEACHERS, each, heard.read(each)) for each in settings.teachers),
            (MODEL, settings.model, self.before),
        ]

    def by_list(self, corpora, record):
        """Finds clips that the lists of the models have.

        Args:
            corpora: dict of `Corpus` by split.
            record: dict that `corpus_records.make` has returned of them.

        Returns:
            List of `Leak` that are allowed.

        Raises:
            ValueError: if one is not.
        """
        return [
            leak
            for model in self.models
            for leak in self.leakage.of_list(*model, corpora, record)
        ]

    def by_marks(self, clips, by_list):
        """Finds clips that sound as what the models have heard.

        Args:
            clips: dict of `Clips` by split.
            by_list: list of `Leak` that `by_list` has returned.

        Returns:
            List of `Leak` that are allowed, with those of lists where no mark
            tells of any: marks find clips under every name.

        Raises:
            ValueError: if one is not.
        """
        # Several models may have begun with one encoder.
        found = dict.fromkeys(
            leak
            for model in self.models
            for leak in self.leakage.of_model(*model, clips)
        )
        told = {leak.splits for leak in found}
        return [*found, *(each for each in by_list if each.splits not in told)]
