"""SavedModels, for TensorFlow Serving."""

import pathlib

from audio_tf.export.base import Format


class SavedModel(Format):
    """A folder of versions, as `writing.export` writes it."""

    name = "savedmodel"
    options = ("version", "stream", "explain", "max_clip_s")
    unquantizable = {
        "dynamic": "it is a conversion of ONNX Runtime and LiteRT",
    }

    def place(self, folder, quantize=None):
        # Not a version of the same model: a server would take the newest.
        return pathlib.Path(folder, quantize or "")

    def write(self, model, path, quantize=None, provenance=None, **options):
        from audio_tf.export import writing

        del quantize  # The model's layers are in int8 already.
        return writing.export(model, path, provenance=provenance, **options)

    def open(self, path, num_threads=None):
        from audio_tf.export.loading import ExportedClassifier

        if num_threads is not None:
            raise ValueError(
                "A SavedModel takes no `num_threads`: TensorFlow's are set for "
                "the whole process, by tf.config.threading. "
                f"Received: num_threads={num_threads}"
            )
        return ExportedClassifier(path)

    def files(self, path):
        from audio_tf.export.loading import saved_model_folder

        found = saved_model_folder(path).rglob("*")
        return [file for file in found if file.is_file()]

    def check_write(self, model, path, **options):
        from audio_tf.export import writing

        writing.check_write(model, path, **options)

    def check_options(self, **options):
        from audio_tf.export import writing

        writing.check_arguments(**options)
