"""OpenVINO files."""

import pathlib

from audio_tf.export.base import FileFormat
from audio_tf.export.runtimes import RuntimeClassifier


class OpenVINOClassifier(RuntimeClassifier):
    """An OpenVINO file in OpenVINO, on the CPU."""

    def open(self, path, num_threads):
        import openvino

        # Where the CPU has bfloat16, OpenVINO would compute in that.
        self.compiled = openvino.Core().compile_model(
            str(path),
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": "f32",
                "INFERENCE_NUM_THREADS": num_threads,
            },
        )

    def run(self, waveform, lengths):
        results = self.compiled({"waveform": waveform, "lengths": lengths})
        return results["scores"]


class OpenVINO(FileFormat):
    """An `.xml` file with its weights beside it in a `.bin`."""

    name = "openvino"
    suffix = ".xml"
    packages = ("openvino",)
    runtime = OpenVINOClassifier
    # Measured with the lower bounds of the extra `formats`.
    unquantizable = {
        "int8": "OpenVINO 2026.4 converts Keras' int8 products and computes "
        "other scores, without an error",
        "dynamic": "it is a conversion of ONNX Runtime and LiteRT",
    }

    def refusal(self, model):
        # Its trial at two shapes does not find it: some batches are right.
        if any(block.attention.folded for block in model.backbone.blocks):
            return (
                "OpenVINO 2026.4 computes other scores for some batches of "
                "folded attention tables, without an error; convert the "
                "model before `fold`"
            )
        return None

    def convert(self, folder, path, quantize):
        import openvino

        converted = openvino.convert_model(str(folder))
        openvino.save_model(converted, str(path), compress_to_fp16=False)

    def files(self, path):
        path = pathlib.Path(path)
        return [path, path.with_suffix(".bin")]
