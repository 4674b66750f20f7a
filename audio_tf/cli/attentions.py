"""List the attentions and what they cost.

Attentions by name, their complexity in length L, width D, C candidates or c
frames of context; whether they can be causal; and for one clip in one layer,
without the feed-forward: multiply-adds in billions (training: with the
backward pass), MB of attention weights, and both relative to full attention.
"""

import json

from audio_tf import console
from audio_tf.cli import flags


def add(parser):
    """Adds the flags of the command."""
    for name, size, meaning in (
        ("--length", 1000, "frames"),
        ("--dim", 768, "features of a frame"),
        ("--num-heads", 12, "heads"),
    ):
        parser.add_argument(
            name,
            type=flags.positive_int,
            default=size,
            metavar="N",
            help=f"{meaning} (default: {size})",
        )
    parser.add_argument(
        "--training", action="store_true", help="count the backward pass too"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object per attention",
    )


def run(arguments):
    """Prints the table and returns the exit status."""
    if arguments.dim % arguments.num_heads:
        raise ValueError(
            "--num-heads must divide --dim. Received: "
            f"--num-heads {arguments.num_heads} --dim {arguments.dim}"
        )
    with console.quiet_tensorflow():
        from audio_tf.attention import ATTENTIONS
    found = cost_of_each(
        arguments.length, arguments.dim, arguments.num_heads, arguments.training
    )
    if arguments.json:
        for name, cost in found.items():
            row = {
                "name": name,
                "complexity": ATTENTIONS[name].complexity,
                "causal": ATTENTIONS[name].supports_causal,
                **cost._asdict(),
            }
            print(json.dumps(row))
        return 0
    print(
        f"{'name':32s} {'complexity':14s} {'causal':6s} "
        f"{'GMAC':>9s} {'/full':>6s} {'MB':>9s} {'/full':>6s}"
    )
    full = found["full"]
    for name, cost in found.items():
        compute = cost.multiply_adds / full.multiply_adds
        memory = cost.weight_bytes / full.weight_bytes
        print(
            f"{name:32s} {ATTENTIONS[name].complexity:14s} "
            f"{'yes' if ATTENTIONS[name].supports_causal else 'no':6s} "
            f"{cost.multiply_adds / 1e9:9.3f} {compute:6.2f} "
            f"{cost.weight_bytes / 1e6:9.2f} {memory:6.2f}"
        )
    return 0


def cost_of_each(length, dim, num_heads, training):
    """Counts what each attention costs in one layer, for one clip.

    Args:
        length: int, frames of the clip.
        dim: int, features of a frame.
        num_heads: int, heads that share them.
        training: bool, whether the backward pass counts too.

    Returns:
        Dict of `Cost` by the name of the attention.
    """
    from audio_tf import attention

    found = {}
    for name, mechanism in attention.ATTENTIONS.items():
        own = {"folded": not training} if mechanism.foldable else {}
        layer = attention.create(
            name,
            num_heads=num_heads,
            key_dim=dim // num_heads,
            causal=False,
            max_length=length,
            **own,
        )
        found[name] = layer.cost(length, dim, training)
    return found
