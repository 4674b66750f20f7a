"""The clips of a shard to a table of scores, by `audio-tf classify`'s path."""

import itertools
import pathlib
import typing

import numpy as np

from audio_tf.ahead import map_ahead
from audio_tf.archives import lists, members, places, tables
from audio_tf.audio.decode import AudioError
from audio_tf.audio.scoring import compute_loaded
from audio_tf.audio.windows import read_windows

# One is decoded while another is scored; other cores have other shards.
THREADS = 2


class Piece(typing.NamedTuple):
    """A clip, or a window of one, that is scored.

    Attributes:
        name: str, the name of the clip.
        start_s: float.
        end_s: float, the seconds that it spans.
    """

    name: str
    start_s: float = 0.0
    end_s: float = 0.0


def score_shard(classifier, clips, settings):
    """Scores the clips of a shard.

    Memory does not grow with their number nor with their length, but for the
    scores, and for files that are mended, see `audio.windows`.

    Args:
        classifier: `audio.scoring.ClipClassifier`.
        clips: list of `lists.Clip`.
        settings: `tables.Settings`.

    Returns:
        `pyarrow.Table` as `tables.make` makes it. A clip that cannot be used
        has no row, and is among those that failed.
    """
    classes = classifier.num_classes

    def score(inputs):
        if not settings.embeddings:
            return classifier.score_batch(inputs)
        return np.concatenate(classifier.score_and_embed_batch(inputs), axis=1)

    rows, failed = {}, {}
    loaded = load_pieces(clips, classifier.sample_rate_hz, settings.window_s)
    for each in compute_loaded(classifier, score, loaded, False, "scores"):
        piece = each.source
        if each.reason is not None:
            # The first reason is the nearest.
            failed.setdefault(piece.name, each.reason)
            continue
        embedding = each.value[classes:] if settings.embeddings else None
        rows.setdefault(piece.name, []).append(
            tables.Scored(*piece, each.value[:classes], embedding)
        )
    # A recording may turn out to be cut off when most of it is scored.
    kept = [found for name, found in rows.items() if name not in failed]
    return tables.make(
        list(itertools.chain(*kept)), list(failed.items()), settings
    )


def load_pieces(clips, sample_rate_hz, window_s):
    """Decodes clips by threads, a few ahead of what is asked for.

    Args:
        clips: list of `lists.Clip`.
        sample_rate_hz: int, the rate wanted.
        window_s: float or `None`, see `audio.windows.read_windows`.

    Yields:
        Triples of `Piece`, float32 samples `(samples,)`, and why there are
        none, or `None`.
    """

    def begin(given):
        pieces = pieces_of(*given, sample_rate_hz, window_s)
        # What is behind the first window is decoded when it is asked for.
        return itertools.chain([next(pieces)], pieces)

    for pieces in map_ahead(begin, fetch(clips), THREADS):
        yield from pieces


def fetch(clips):
    """Reads the clips that are in archives, each archive in its order.

    Args:
        clips: list of `lists.Clip`.

    Yields:
        Triples of the clip, `places.Fetched` or `None` for a file, and why it
        could not be read, or `None`.
    """
    for archive, group in itertools.groupby(clips, archive_of):
        if archive is None:
            yield from ((clip, None, None) for clip in group)
        else:
            yield from fetch_members(archive, list(group))


def archive_of(clip):
    """Returns the path of the archive that a clip is in, or `None`."""
    return None if clip.member is None else clip.place_on_disk


def fetch_members(archive, clips):
    """Reads members of an archive; see `fetch`."""
    try:
        reader = members.take(archive)
    except members.DAMAGED as error:
        reason = f"its archive is not readable ({places.first_line(error)})"
        yield from ((clip, None, reason) for clip in clips)
        return
    if changed(reader, clips[0]):
        reader.close()
        reason = (
            "its archive has changed since its members were listed; run the "
            "command again, with it among the sources"
        )
        yield from ((clip, None, reason) for clip in clips)
        return
    done = damaged = False
    try:
        for clip in clips:
            try:
                found = reader.fetch(clip.member, clip.place, clip.size)
                yield clip, found, None
            except ValueError as error:
                damaged = True
                yield clip, None, str(error)
        done = True
    finally:
        if done and not damaged:
            members.leave(reader)
        else:
            reader.close()


def changed(reader, clip):
    """Returns whether an archive is not the one that a clip was listed of.

    Where clips are of one length, a member of a tar would be another one.

    Args:
        reader: `members.Reader`.
        clip: `lists.Clip`.
    """
    _, version = reader.version
    # Of files behind `gs://` and the like nothing is known.
    return None not in (version, clip.version) and version != clip.version


def pieces_of(clip, fetched, reason, sample_rate_hz, window_s):
    """Decodes one clip; see `load_pieces`.

    Args:
        clip: `lists.Clip`.
        fetched: `places.Fetched` if it was read already, or `None`.
        reason: str, why it could not be read, or `None`.
        sample_rate_hz: int.
        window_s: float or `None`.

    Yields:
        Triples, one at least.
    """
    nothing = np.zeros(0, "float32")
    try:
        if reason is not None:
            raise AudioError(clip.path, reason)
        path, content = clip.place_on_disk, None
        if fetched is None and places.is_remote(path):
            fetched = fetch_remote(path)
        if fetched is not None:
            content = fetched.content
            path = fetched.path or pathlib.PurePath(path).name
        for window in read_windows(path, sample_rate_hz, window_s, content):
            piece = Piece(clip.name, window.start_s, window.end_s)
            yield piece, window.audio, None
    except AudioError as error:
        yield Piece(clip.name), nothing, error.reason
    finally:
        if fetched is not None:
            fetched.close()


def fetch_remote(path):
    """Reads a file that is not on this machine.

    Raises:
        AudioError: if it cannot be read.
    """
    try:
        with places.opened(path) as file:
            return places.Fetched(file)
    except (OSError, EOFError, ValueError) as error:
        raise AudioError(path, places.first_line(error)) from error


def score_task(classifier, out, shard, settings):
    """Scores a shard of a plan.

    Args:
        classifier: `audio.scoring.ClipClassifier`.
        out: str, the folder of the results.
        shard: str, its name.
        settings: `tables.Settings`.

    Returns:
        `pyarrow.Table`.
    """
    clips = lists.read_clips(out, shard)
    return score_shard(classifier, clips, settings)
