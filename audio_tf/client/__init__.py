"""A client of TensorFlow Serving, and of servers that speak as it does.

with Client("http://localhost:8501") as client:
    for result in client.query(["dog.wav", "rain.flac"]):
        print(result.file, result.scores, result.error)
"""

from audio_tf.client.address import ServerError
from audio_tf.client.labels import read_labels
from audio_tf.client.query import Client, Result

__all__ = ["Client", "Result", "ServerError", "read_labels"]
