"""LiteRT files, as TensorFlow Lite is called now."""

import re

from audio_tf.export import logarithms
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
    """A `.tflite` file, converted by TensorFlow, quantized by AI Edge."""

    name = "litert"
    suffix = ".tflite"
    packages = ("ai_edge_litert", "ai_edge_quantizer")
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
        path.write_bytes(converter.convert())
        if quantize == "dynamic":
            self.quantize(path)

    def quantize(self, path):
        """Rounds the weights of a file to 8 bits, in its place."""
        # TensorFlow's own converter leaves no operation out.
        from ai_edge_litert import schema_py_generated as schema
        from ai_edge_quantizer import qtyping, quantizer, recipe
        from ai_edge_quantizer.utils import tfl_flatbuffer_utils as flatbuffers

        model = flatbuffers.read_model(str(path))
        codes = [each.builtinCode for each in model.operatorCodes]
        kept = []
        for graph in model.subgraphs:
            nodes = [
                logarithms.Node(
                    flatbuffers.get_op_scope(each, graph.tensors),
                    codes[each.opcodeIndex] == schema.BuiltinOperator.LOG,
                    list(each.inputs),
                    list(each.outputs),
                )
                for each in graph.operators
            ]
            kept += logarithms.before(nodes)
        whole = quantizer.Quantizer(str(path), recipe.dynamic_wi8_afp32())
        for name in kept:
            whole.update_quantization_recipe(
                regex=f"^{re.escape(name)}$",
                operation_name=qtyping.TFLOperationName.ALL_SUPPORTED,
                algorithm_key="no_quantize",
            )
        # Its report would stand among the paths that a command prints, and
        # name a file that is moved when it is done.
        done = whole.quantize(
            enable_progress_bar=False, enable_progress_report=False
        )
        path.write_bytes(done.quantized_model)
