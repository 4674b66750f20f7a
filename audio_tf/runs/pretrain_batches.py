"""Batches of speech for `audio-tf pretrain`."""

import functools

from audio_tf import data
from audio_tf.data.shares import WHOLE
from audio_tf.runs import hosts
from audio_tf.terminal import describe_failures


class Batches:
    """Features in batches, with targets where those are others.

    Args:
        clips: `Clips` of a split.
        settings: `PretrainSettings`.
        max_frames: int, frames of the longest utterance that the model takes,
            or `None` for any.
        share: `Share` of this host.

    Raises:
        ValueError: if an utterance is longer, or devices cannot share a batch
            evenly.
    """

    def __init__(self, clips, settings, max_frames=None, share=WHOLE):
        self.settings = settings
        self.layers = [settings.feature_layer()]
        if settings.target != "input":
            self.layers.append(settings.target_layer())
        longest = int(self.layers[0].frame_lengths(clips.lengths.max()))
        if max_frames is not None and longest > max_frames:
            raise ValueError(
                f"The longest utterance has {longest} frames; see --max-s and "
                "--made-for-frames. Received: a model that takes "
                f"{max_frames}"
            )
        sources = [clips]
        if settings.feature_cache:
            cache_dir = settings.prepare_arguments()["cache_dir"]
            sources = [
                hosts.prepared(
                    functools.partial(
                        data.cache_features,
                        features=layer,
                        cache_dir=cache_dir,
                    ),
                    clips,
                    share,
                )
                for layer in self.layers
            ]
        self.clips = clips
        self.utterances = [
            data.Utterances(source, buckets=settings.buckets)
            for source in sources
        ]
        self.size = settings.batch_size // settings.accumulate
        # Devices share a batch evenly.
        self.full_batches = settings.distribution != "none"
        self.share = share
        share.check(self.size)

    def __len__(self):
        """Returns the number of batches of one pass."""
        return self.utterances[0].num_batches(self.size, self.full_batches)

    def dataset(self, **options):
        """Returns batches for `fit`.

        Args:
            **options: arguments of `Utterances.dataset`.

        Returns:
            `tf.data.Dataset` of dicts of `features` `(batch, frames, dim)` and
            `lengths` `(batch,)`, or of pairs of such a dict and targets
            `(batch, frames, target_dim)`.
        """
        import tensorflow as tf

        parts = [
            each.dataset(self.size, full_batches=self.full_batches, **options)
            for each in self.utterances
        ]
        if not self.settings.feature_cache:
            # Spectra of a batch are gigabytes: few at a time.
            return parts[0].map(self.compute, num_parallel_calls=2).prefetch(2)
        if len(parts) == 1:
            return parts[0]
        return tf.data.Dataset.zip(*parts).map(
            lambda inputs, target: (inputs, target["features"])
        )

    def some(self, count):
        """Reads a few utterances, whose length is about the median.

        Args:
            count: int, how many at most.

        Returns:
            Pair of a dict of features and lengths, and of the targets, `None`
            where the input is reconstructed.
        """
        batch = next(iter(self.dataset(first_batch=len(self) // 2)))
        features, targets = batch, None
        if len(self.layers) > 1:
            features, targets = batch[0], batch[1][:count]
        shown = {name: value[:count] for name, value in features.items()}
        return shown, targets

    def training(self, first):
        """Returns endless batches in the order that the seed gives.

        Args:
            first: int, the batch to begin with, counted over all passes.
        """
        return self.dataset(
            shuffle=True,
            seed=self.settings.seed,
            first_epoch=first // len(self),
            first_batch=first % len(self),
            share=self.share,
        )

    def validation(self):
        """Returns the batches of one pass, in the order of the corpus."""
        return self.dataset(share=self.share)

    def compute(self, inputs):
        """Computes features and targets of a batch of waveforms.

        Args:
            inputs: dict of `waveform` `(batch, samples)` and `lengths`.

        Returns:
            One element of `dataset`.
        """
        lengths = inputs["lengths"]
        parts = [layer(inputs["waveform"], lengths) for layer in self.layers]
        lengths = self.layers[0].frame_lengths(lengths)
        inputs = {"features": parts[0], "lengths": lengths}
        return inputs if len(parts) == 1 else (inputs, parts[1])


def load_batches(settings, corpora, max_frames, share=WHOLE):
    """Decodes the splits and puts them into batches.

    Args:
        settings: `PretrainSettings`.
        corpora: dict of `SpeechCorpus` by split.
        max_frames: as `Batches` takes it.
        share: `Share` of this host.

    Returns:
        Pair of a dict of `Batches` by split, `train` and perhaps `val`, and
        a dict of the reason by path of each file left out.
    """
    batches, failures = {}, {}
    for split, corpus in corpora.items():
        decode = functools.partial(settings.prepare, name=split)
        clips = hosts.prepared(decode, corpus, share)
        failures |= clips.failures
        each = Batches(clips, settings, max_frames, share)
        print(
            f"{split}: {len(clips)} utterances, {len(each)} batches, "
            f"{clips.lengths.sum() / clips.sample_rate_hz / 3600:.2f} h"
        )
        if len(each):
            batches[split] = each
    if failures:
        print(describe_failures(failures))
    if "train" not in batches:
        raise ValueError(
            f"No batch of {each.size} is full, as devices need. "
            f"Received: {settings.buckets} buckets"
        )
    return batches, failures
