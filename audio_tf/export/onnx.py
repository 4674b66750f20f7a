"""ONNX files, in ONNX Runtime."""

from audio_tf.export import logarithms
from audio_tf.export.base import FileFormat
from audio_tf.export.runtimes import RuntimeClassifier

OPSET = 18


class ONNXClassifier(RuntimeClassifier):
    """An ONNX file in ONNX Runtime, on the CPU."""

    def open(self, path, num_threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )

    def run(self, waveform, lengths):
        return self.session.run(
            ["scores"], {"waveform": waveform, "lengths": lengths}
        )[0]


class ONNX(FileFormat):
    """An `.onnx` file, converted by tf2onnx."""

    name = "onnx"
    suffix = ".onnx"
    packages = ("tf2onnx", "onnx", "onnxruntime")
    runtime = ONNXClassifier

    def convert(self, folder, path, quantize):
        import onnx
        import tensorflow as tf
        import tf2onnx

        from audio_tf.export import signatures

        # Held here: the signature alone does not keep its variables alive.
        loaded = tf.saved_model.load(str(folder))
        serve = loaded.signatures["serving_default"]
        signature = [signatures.WAVEFORM, signatures.LENGTHS]
        function = tf.function(
            lambda waveform, lengths: serve(waveform=waveform, lengths=lengths),
            input_signature=signature,
        )
        model, _ = tf2onnx.convert.from_function(
            function, input_signature=signature, opset=OPSET
        )
        # tf2onnx puts the constants of a trace in their places, and asks for
        # each of them as an input all the same.
        names = [spec.name for spec in signature]
        inputs = [each for each in model.graph.input if each.name in names]
        del model.graph.input[:]
        model.graph.input.extend(inputs)
        onnx.save(model, str(path))
        if quantize == "dynamic":
            from onnxruntime import quantization

            whole = path.with_suffix(".float32.onnx")
            path.rename(whole)
            # Seven bits: sums of eight overflow in 16 bits, and saturate
            # silently, on x86 processors without VNNI.
            quantization.quantize_dynamic(
                whole,
                path,
                per_channel=True,
                reduce_range=True,
                nodes_to_exclude=kept_whole(model.graph),
            )
            whole.unlink()


def kept_whole(graph):
    """Names the nodes that are not quantized, a sorted list of str.

    These are what a logarithm depends on, and products with a kernel for each
    head, which ONNX Runtime quantizes channel by channel and then refuses.

    Args:
        graph: ONNX' `GraphProto`.
    """
    axes = {each.name: len(each.dims) for each in graph.initializer}
    by_head = {
        node.name
        for node in graph.node
        if node.op_type == "MatMul" and axes.get(node.input[1], 0) > 2
    }
    heard = logarithms.before(
        [
            logarithms.Node(
                node.name, node.op_type == "Log", node.input, node.output
            )
            for node in graph.node
        ]
    )
    return sorted(by_head.union(heard))
