"""LiteRT files, as TensorFlow Lite is called now."""

from audio_tf.export.base import FileFormat
from audio_tf.export.runtimes import RuntimeClassifier


class LiteRTClassifier(RuntimeClassifier):
    """A `.tflite` file in LiteRT, on the CPU."""

    def open(self, path, num_threads):
        from ai_edge_litert.interpreter import Interpreter

        # The interpreter owns what the runner runs.
        self.interpreter = Interpreter(str(path), num_threads=num_threads)
        self.runner = self.interpreter.get_signature_runner("serving_default")

    def run(self, waveform, lengths):
        return self.runner(waveform=waveform, lengths=lengths)["scores"]


class LiteRT(FileFormat):
    """A `.tflite` file, converted by TensorFlow."""

    name = "litert"
    suffix = ".tflite"
    packages = ("ai_edge_litert",)
    runtime = LiteRTClassifier
    # Measured with the lower bounds of the extra `formats`.
    unquantizable = {
        "int8": "its matrix product takes no plain int8 tensors; "
        "take `dynamic`",
    }

    def convert(self, folder, path, quantize):
        import tensorflow as tf

        # Not from a concrete function: its variables would be left
        # uninitialised, and every score would be NaN.
        converter = tf.lite.TFLiteConverter.from_saved_model(
            str(folder), signature_keys=["serving_default"]
        )
        if quantize == "dynamic":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        path.write_bytes(converter.convert())
