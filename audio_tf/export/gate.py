"""Finds what TensorFlow Serving would refuse or do badly, in the files.

    python -m audio_tf.export.gate FOLDER

prints the problems of a SavedModel, one a line, and exits with 1 if there are
any. Nothing is run: a graph with a missing operation loads, and fails when its
signature is asked for.
"""

import collections
import dataclasses
import hashlib
import re
import sys

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from audio_tf.export.loading import saved_model_folder

# The wrappers that TensorFlow was built with. The registry of operations
# grows with every library that is imported, as KerasHub imports
# tensorflow_text, and has those of tests, TPUs and XLA.
CORE = frozenset(op for op in dir(tf.raw_ops) if not op.startswith("_"))

PYTHON = re.compile("(Eager)?PyFunc(Stateless)?")
XLA = re.compile("_?Xla.*")
RANDOM = re.compile(
    ".*(Random|Rng|SeedGenerator|NonDeterministic|Multinomial|Shuffle"
    "|TruncatedNormal|StatefulStandardNormal|StatefulUniform|CandidateSampler"
    "|SampleDistorted|KMC2|KmeansPlusPlus|Skipgram).*"
)
FILES = re.compile(
    "ReadFile|WriteFile|MatchingFiles|FileSystem.*|.*Reader(V2)?|Reader.*"
    "|.*(FilesDataset|RecordDataset|TextLineDataset|SaveDataset|LoadDataset"
    "|ToTFRecord|SnapshotDataset|SnapshotChunk|SummaryWriter|SummaryDbWriter"
    "|SummaryFileWriter).*|RecordInput|Write.*Summary"
)
# A SavedModel's own functions use these to load it, so only signatures may not.
CHECKPOINTS = re.compile("(Save|Restore)(V2|Slices?)?|MergeV2Checkpoints")
# One bad clip would fail the requests that a server batched with it.
FAILS_BATCH = re.compile("Assert|CheckNumerics(V2)?|DecodeWav")

# Signatures with a head each may share a table by chance.
COPIED_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class Node:
    """A node, the function that it is in, and the signatures that use it."""

    definition: object
    function: str
    signatures: tuple

    @property
    def op(self):
        """The name of the node's operation."""
        return self.definition.op

    def __str__(self):
        users = ", ".join(self.signatures) or "no signature"
        return f"node {self.definition.name} of {self.function} ({users})"


def problems(folder):
    """Lists what is wrong with a SavedModel.

    Refused are Python calls, operations that are not of core TensorFlow, XLA,
    random numbers, access to files, `Assert`s and the like in
    `serving_audio_bytes`, weights that are stored twice or that no signature
    uses, inputs and outputs of fixed batch, waveforms of fixed length, and
    string inputs not named `..._bytes`.

    Args:
        folder: the folder of a SavedModel, or the one with its versions.

    Returns:
        List of str, empty for a good model.

    Raises:
        FileNotFoundError: if there is no SavedModel.
    """
    found = saved_model_folder(folder)
    if found is None:
        raise FileNotFoundError(f"{folder}: no SavedModel there")
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((found / "saved_model.pb").read_bytes())
    except DecodeError as error:
        return [f"saved_model.pb is not a SavedModel: {error}"]
    graphs = [g for g in saved.meta_graphs if "serve" in g.meta_info_def.tags]
    if len(graphs) != 1 or len(saved.meta_graphs) != 1:
        return ["not one graph that is tagged `serve`"]
    nodes = list(all_nodes(graphs[0]))
    signatures = served(graphs[0])
    texts = [] if signatures else ["no signature"]
    for name, signature in sorted(signatures.items()):
        texts += signature_problems(name, signature)
    texts += operation_problems(graphs[0].graph_def.library, nodes)
    texts += weight_problems(found, nodes)
    return texts


def check(folder):
    """Raises a `ValueError` that names all `problems` of a SavedModel.

    Raises:
        FileNotFoundError: if there is no SavedModel.
        ValueError: if there is a problem.
    """
    texts = problems(folder)
    if texts:
        raise ValueError(
            "TensorFlow Serving would refuse the model or run it badly:\n"
            + "\n".join(texts)
        )


def served(graph):
    """Returns the signatures that a client can name, as a dict."""
    return {
        name: signature
        for name, signature in graph.signature_def.items()
        if name != "__saved_model_init_op"
    }


def called(node, library):
    """Returns the names of the functions that a node calls."""
    names = [node.op]
    for value in node.attr.values():
        names.append(value.func.name)
        names.extend(function.name for function in value.list.func)
    return [name for name in names if name in library]


def used(signature, graph_nodes, library):
    """Returns the names of the nodes and of the functions behind an output."""
    names, left = set(), [info.name for info in signature.outputs.values()]
    while left:
        name = left.pop().lstrip("^").split(":")[0]
        if name in graph_nodes and name not in names:
            names.add(name)
            left.extend(graph_nodes[name].input)
    functions, nodes = set(), [graph_nodes[name] for name in names]
    while nodes:
        for name in called(nodes.pop(), library):
            if name not in functions:
                functions.add(name)
                # A function runs all that has an effect, not only its outputs.
                nodes.extend(library[name].node_def)
    return names, functions


def all_nodes(graph):
    """Yields each `Node` of a graph and of all its functions."""
    library = {f.signature.name: f for f in graph.graph_def.library.function}
    graph_nodes = {node.name: node for node in graph.graph_def.node}
    users = {
        name: used(signature, graph_nodes, library)
        for name, signature in sorted(served(graph).items())
    }
    for node in graph.graph_def.node:
        names = tuple(
            n for n, (nodes, _) in users.items() if node.name in nodes
        )
        yield Node(node, "the graph", names)
    for function in library.values():
        name = function.signature.name
        names = tuple(n for n, (_, names) in users.items() if name in names)
        for node in function.node_def:
            yield Node(node, name, names)


def signature_problems(name, signature):
    """Yields what a server could not batch, or a client not send."""
    for kind, infos in (
        ("input", signature.inputs),
        ("output", signature.outputs),
    ):
        for key, info in sorted(infos.items()):
            where = f"signature {name}, {kind} {key}"
            shape = tf.TensorShape(info.tensor_shape)
            if shape.rank is None:
                yield f"{where}: unknown number of dimensions"
            elif shape.rank == 0:
                if kind == "output":
                    yield f"{where}: a scalar for the whole batch"
            elif shape[0] is not None:
                yield f"{where}: fixed batch, {shape}"
            if kind == "output" or shape.rank is None:
                continue
            if key == "waveform" and None not in shape.as_list()[1:]:
                yield f"{where}: fixed length, {shape}"
            if info.dtype == tf.string and not key.endswith("_bytes"):
                yield f"{where}: string whose name does not end in _bytes"


def must_compile(attributes):
    """Returns whether a node or function is marked by `jit_compile=True`."""
    return "_XlaMustCompile" in attributes and attributes["_XlaMustCompile"].b


def refusal(node, library):
    """Returns why a server should not have this node, or `None`."""
    op, attributes = node.op, node.definition.attr
    if PYTHON.fullmatch(op):
        return "calls Python"
    if XLA.fullmatch(op) or must_compile(attributes):
        return "is compiled by XLA, which a server may lack"
    if op not in CORE and op not in library:
        return "is not of core TensorFlow"
    if RANDOM.fullmatch(op) or "seed" in attributes:
        return "draws random numbers"
    if FILES.fullmatch(op) or (node.signatures and CHECKPOINTS.fullmatch(op)):
        return "reads or writes files"
    if "serving_audio_bytes" in node.signatures and FAILS_BATCH.fullmatch(op):
        return "fails the whole batch for one bad clip"
    return None


def operation_problems(library, nodes):
    """Yields a text for each refused operation, with the nodes where it is."""
    names = {function.signature.name for function in library.function}
    places = collections.defaultdict(list)
    for node in nodes:
        if reason := refusal(node, names):
            places[f"{node.op} {reason}"].append(str(node))
    for text, found in sorted(places.items()):
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield f"{text}: {found[0]}{more}"
    for function in library.function:
        if must_compile(function.attr):
            yield f"function {function.signature.name} is compiled by XLA"


def size(node):
    """Returns the bytes of a variable, from its `VarHandleOp`."""
    shape = tf.TensorShape(node.definition.attr["shape"].shape)
    dtype = tf.dtypes.as_dtype(node.definition.attr["dtype"].type)
    return (shape.num_elements() or 0) * dtype.size


def weight_problems(folder, nodes):
    """Yields texts on weights that are stored twice, or not used."""
    variables = [node for node in nodes if node.op == "VarHandleOp"]
    unused = [node for node in variables if not node.signatures]
    if unused:
        names = ", ".join(node.definition.name for node in unused[:3])
        yield f"{len(unused)} variables that no signature uses: {names}"
    if not (folder / "variables" / "variables.index").is_file():
        if variables:
            yield "variables.index is missing"
        return
    reader = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    dtypes = reader.get_variable_to_dtype_map()
    # Strings are the checkpoint's own: the object graph.
    shapes = {
        key: shape
        for key, shape in reader.get_variable_to_shape_map().items()
        if dtypes[key] != tf.string
    }
    stored = {k: np.prod(s) * dtypes[k].size for k, s in shapes.items()}
    expected = [size(node) for node in variables if node.signatures]
    stored_bytes = int(sum(stored.values()))
    if len(stored) > len(expected) or stored_bytes > sum(expected):
        yield (
            f"{len(stored)} tensors of {stored_bytes} bytes are stored, but "
            f"only {len(expected)} of {sum(expected)} bytes are used"
        )
    if sum(expected) == largest_use(variables):
        return
    copies = copied(reader, shapes, dtypes)
    copied_bytes = int(sum(stored[key] for key in copies))
    if copied_bytes > COPIED_SHARE * stored_bytes:
        first, second = next(iter(sorted(copies.items())))
        yield (
            f"signatures use copies of weights, {copied_bytes} of "
            f"{stored_bytes} bytes: {first} equals {second}"
        )


def largest_use(variables):
    """Returns the bytes of the variables of the signature that uses most.

    Where it uses all, equal ones are of layers that are alike, as the tables
    of crafted Synthesizers; otherwise, signatures may have a copy each.
    """
    uses = collections.Counter()
    for node in variables:
        uses.update(dict.fromkeys(node.signatures, size(node)))
    return max(uses.values(), default=0)


def copied(reader, shapes, dtypes):
    """Returns the stored tensors that repeat another: a dict of both names.

    Constant tensors do not count: fresh biases and scales are all alike.
    """
    alike = collections.defaultdict(list)
    for key, shape in sorted(shapes.items()):
        alike[dtypes[key], tuple(shape)].append(key)
    copies = {}
    for keys in alike.values():
        firsts = {}
        for key in keys if len(keys) > 1 else ():
            values = reader.get_tensor(key)
            if values.size == 0 or (values == values.flat[0]).all():
                continue
            digest = hashlib.sha1(values.tobytes(), usedforsecurity=False)
            first = firsts.setdefault(digest.digest(), key)
            if first != key:
                copies[key] = first
    return copies


def main(arguments):
    """Returns the exit status: 0, 1 if there are problems, 2 on bad usage."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        texts = problems(arguments[0])
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(texts) if texts else "no problems")
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
