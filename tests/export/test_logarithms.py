"""What a logarithm depends on, in a graph that is drawn by hand."""

from audio_tf.export import logarithms


def test_all_that_a_logarithm_depends_on_is_named():
    Node = logarithms.Node
    nodes = [
        Node("spectrum", False, ["sound", "basis"], ["power"]),
        Node("bands", False, ["power", "filters"], ["energy"]),
        Node("logarithm", True, ["energy"], ["level"]),
        Node("embedding", False, ["level", "weights"], ["frames"]),
        Node("loudness", False, ["power"], ["total"]),
    ]
    assert logarithms.before(nodes) == ["bands", "spectrum"]
    assert logarithms.before(nodes[:2]) == []
    # A graph that runs in a circle ends, too.
    nodes[0].inputs.append("frames")
    assert logarithms.before(nodes) == [
        "bands",
        "embedding",
        "logarithm",
        "spectrum",
    ]
