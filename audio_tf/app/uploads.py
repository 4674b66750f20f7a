"""Files that a browser has sent: read once, deleted, bounded.

Gradio stores an upload under a checksum of its content, so that the same
sound sent twice is one file, of which each request has to be answered.
"""

import contextlib
import pathlib
import threading
import time

# Of a file that nobody asks about: its browser went away, or another request
# for the same sound is still to come.
KEPT_S = 120
# Of sounds that were deleted, in memory.
MAX_REMEMBERED = 4 * 2**25
MAX_WAITING = 2**30  # Of the files that are not yet answered.


class Uploads:
    """The folder that uploads are in.

    Args:
        folder: path of the folder, which holds nothing else.
        clock: function to the seconds, as `time.monotonic`.
    """

    def __init__(self, folder, clock=time.monotonic):
        self.folder = pathlib.Path(folder)
        self.clock = clock
        self.lock = threading.Lock()
        # Contents of deleted files, and when, by path; the oldest first.
        self.remembered = {}

    def take(self, path):
        """Reads a file and deletes it.

        Args:
            path: path of the file, which Gradio has checked to be within the
                folder.

        Returns:
            Bytes.

        Raises:
            FileNotFoundError: if there is no such file, nor was one lately.
        """
        path = pathlib.Path(path)
        with self.lock:
            try:
                content = path.read_bytes()
                path.unlink()
            except FileNotFoundError:
                if str(path) not in self.remembered:
                    raise
                content, _ = self.remembered.pop(str(path))
            self.remembered[str(path)] = content, self.clock()
            self.forget()
        return content

    def forget(self):
        """Lets go of contents that are old or too many."""
        total = sum(len(content) for content, _ in self.remembered.values())
        for path, (content, since) in list(self.remembered.items()):
            if total > MAX_REMEMBERED or self.clock() - since > KEPT_S:
                total -= len(content)
                del self.remembered[path]

    def sweep(self, now=None):
        """Deletes files that nobody has asked about, and empty folders.

        Args:
            now: float, seconds since the epoch, or `None` for the clock's.
        """
        with self.lock:
            self.forget()
        before = (time.time() if now is None else now) - KEPT_S
        for path in sorted(self.folder.rglob("*"), reverse=True):
            # Requests come and go meanwhile, and folders may not be empty.
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime < before:
                    path.rmdir() if path.is_dir() else path.unlink()

    def are_too_many(self):
        """Returns whether more bytes wait for answers than may."""
        total = 0
        for path in self.folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                total += path.stat().st_size
        return total > MAX_WAITING
