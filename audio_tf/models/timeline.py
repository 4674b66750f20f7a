"""Labels over time, and embeddings: what a model's frames say of clips."""

import keras
import numpy as np
from keras import ops

from audio_tf import compiling
from audio_tf.audio import sources
from audio_tf.audio.chunking import Cutting
from audio_tf.audio.scoring import (
    BATCH_SIZE,
    ClipClassifier,
    compute,
    refuse_longer,
)
from audio_tf.ops.answers import answer, refusal
from audio_tf.ops.checks import check_sizes


class FrameClassifier(ClipClassifier):
    """The base of a Keras model that scores frames of clips, too.

    A subclass has `backbone`, `frame_model`, `pooler` and `score_frames`,
    as `AudioClassifier` has.
    """

    embeds = True

    def score_batch(self, inputs):
        filled = compiling.few_shapes(inputs, self.max_samples)
        scores = keras.Model.predict_on_batch(self, filled)
        return scores[: num_rows(inputs)]

    def embed_batch(self, inputs):
        """Pools the frames of a batch of waveforms.

        Args:
            inputs: as `score_batch` takes them.

        Returns:
            Floating tensor `(batch, dim)`, of the dtype of the pooler.
        """
        filled = compiling.few_shapes(inputs, self.max_samples)
        frames = self.frame_model.predict_on_batch(filled)
        pooled = self.pooler(
            frames["sequence_output"], mask=frames["frame_mask"]
        )
        return pooled[: num_rows(inputs)]

    def score_and_embed_batch(self, inputs):
        pooled = self.embed_batch(inputs)
        scores = ops.convert_to_numpy(self.score_vectors(pooled))
        return scores, ops.convert_to_numpy(ops.cast(pooled, "float32"))

    def embed(self, clips, strict=False):
        """Embeds clips: the frames of the backbone as one vector.

        Args:
            clips: as `classify` takes them.
            strict: bool. If True, the first bad clip is an error.

        Returns:
            Dict of `file`, a str, and of `embedding`, float32 `(dim,)`, the
            mean over the chunks of what the head makes its scores of; or, for
            a bad clip, of `file` and `error`. A list, a folder and a pattern
            give a list of such dicts.

        Raises:
            AudioError, TypeError, ValueError: as `classify`.
        """
        found, single = sources.find_sources(clips)

        def embed_batch(inputs):
            pooled = self.embed_batch(inputs)
            return ops.convert_to_numpy(ops.cast(pooled, "float32"))

        answers = []
        for each in compute(self, embed_batch, found, strict, "numbers"):
            if each.reason is not None:
                answers.append(refusal(each.source.name, each.reason))
                continue
            embedding = each.value.astype("float32")
            answers.append(
                {"file": str(each.source.name), "embedding": embedding}
            )
        return answers[0] if single else answers

    def timeline(self, clips, top=5, strict=False):
        """Scores each frame of clips for itself: labels over time.

        Clips are cut into the chunks that `classify` scores. Where one
        overlaps the one before, frames are the earlier one's. Chunks that
        `silence_db` leaves out have no frames.

        Args:
            clips: as `classify` takes them.
            top: int, how many labels each frame gets, or `None` for all.
            strict: bool. If True, the first bad clip is an error.

        Returns:
            Dict of `file`, a str, and of `timeline`, a list by frame of dicts
            of `start_s` and `end_s`, the seconds that it spans, and of
            `scores`, a dict of floats by label, the highest first; or, for a
            bad clip, of `file` and `error`. A list, a folder and a pattern
            give a list of such dicts.

        Raises:
            AudioError, TypeError, ValueError: as `classify`.
        """
        if top is not None:
            check_sizes(top=top)
        found, single = sources.find_sources(clips)
        answers, rate_hz = [], self.sample_rate_hz
        loaded = sources.load_ahead(found, rate_hz)
        for source, audio, reason in refuse_longer(self, loaded):
            if reason is None:
                spans, scores = self.frames_of(audio)
                if not np.isfinite(scores).all():
                    reason = "its scores are not finite"
            if reason is not None:
                if strict:
                    raise sources.AudioError(source.name, reason)
                answers.append(refusal(source.name, reason))
                continue
            frames = [
                {
                    "start_s": start / rate_hz,
                    "end_s": end / rate_hz,
                    "scores": answer("", row, self.label_names, top)["scores"],
                }
                for (start, end), row in zip(spans, scores, strict=True)
            ]
            answers.append({"file": str(source.name), "timeline": frames})
        return answers[0] if single else answers

    def frames_of(self, audio):
        """Scores the frames of one clip.

        Args:
            audio: float32 array `(samples,)` at the model's rate.

        Returns:
            Pair of a list of pairs of the first sample of each frame and of
            the one behind its last, and float32 scores `(frames, classes)`.
        """
        chunks, starts = Cutting.of(self).cut(audio)
        step, spans, scores, done = self.backbone.output_frame_size, [], [], 0
        for first in range(0, len(chunks), BATCH_SIZE):
            rows = chunks[first : first + BATCH_SIZE]
            inputs = rows
            if self.chunk_s is None:
                lengths = np.full(len(rows), rows.shape[1], "int32")
                inputs = {"waveform": rows, "lengths": lengths}
            filled = compiling.few_shapes(inputs, self.max_samples)
            frames = self.frame_model.predict_on_batch(filled)
            scores_of = self.score_frames(frames["sequence_output"])
            found = ops.convert_to_numpy(scores_of)[: len(rows)]
            for start, each in zip(starts[first:], found):
                stop = min(start + rows.shape[1], len(audio))
                for number, row in enumerate(each):
                    begin = max(int(start) + number * step, done)
                    end = min(int(start) + (number + 1) * step, int(stop))
                    if begin < end:
                        spans.append((begin, end))
                        scores.append(row)
                done = max(done, int(stop))
        return spans, np.stack(scores)


def num_rows(inputs):
    """Returns the rows of a batch, as `score_batch` takes it."""
    return len(inputs["waveform"] if isinstance(inputs, dict) else inputs)
