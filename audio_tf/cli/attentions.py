"""List the attentions and what they cost.

Attentions by name, their complexity in length L, width D, C candidates or c
frames of context; whether they can be causal; and for one clip in one layer,
without the feed-forward: multiply-adds in billions (training: with the
backward pass), MB of attention weights, and both relative to full attention;
then the Theoretical Time of Table 1 of arXiv 2006.05174, in millions of
numbers formed on the way to the weights, "-" where the table has no such row.
Attentions that blocks have in turn stand at their mean cost.

--results adds what attentions have reached, and --plot draws it against the
time that they take, against multiplications and against the paper's theory:
these two of the trained model where the results count both, as leaderboard.csv
does, else of one layer of --length, --dim and --num-heads, as the title says.
"""

import json

from audio_tf import configs, quiet
from audio_tf.cli import flags
from audio_tf.ops.checks import closest


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
    parser.add_argument(
        "--results",
        metavar="FILE",
        help="leaderboard.csv of audio-tf compare, or table2.json of audio-tf "
        "reproduce ssl: only its attentions are listed, the best first",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="picture of the results, such as tradeoff.png",
    )


def run(arguments):
    """Prints the table and returns the exit status."""
    if arguments.dim % arguments.num_heads:
        raise ValueError(
            "--num-heads must divide --dim. Received: "
            f"--num-heads {arguments.num_heads} --dim {arguments.dim}"
        )
    flags.need(
        "--plot", arguments.plot, "--results", arguments.results is not None
    )
    reached, baselines = None, []
    if arguments.results is not None:
        from audio_tf.analysis.attention_results import read_results

        reached, baselines = read_results(arguments.results)
    with quiet.tensorflow():
        from audio_tf.attention import ATTENTIONS
    sizes = (arguments.length, arguments.dim, arguments.num_heads)
    found = cost_of_each(*sizes, arguments.training)
    rows = [
        {
            "name": name,
            "complexity": ATTENTIONS[name].complexity,
            "causal": ATTENTIONS[name].supports_causal,
            **cost,
        }
        for name, cost in found.items()
    ]
    rows += mixtures(rows)
    if reached is not None:
        rows = with_results(rows, reached)
    if arguments.plot is not None:
        plot(arguments.plot, rows, baselines, arguments.results, sizes)
    if arguments.json:
        for row in rows:
            print(json.dumps(row))
    else:
        print_table(rows, found["full"])
    return 0


def mixtures(rows):
    """Lists the attentions that blocks have in turn, at their mean cost.

    Args:
        rows: list of dicts, one for each of the others.

    Returns:
        List of dicts of the same keys.
    """
    from audio_tf.attention import MIXTURES

    found, known = [], {row["name"]: row for row in rows}
    for name, parts in MIXTURES.items():
        parts = [known[part] for part in parts]
        found.append(
            {
                "name": name,
                "complexity": "in turn",
                "causal": all(part["causal"] for part in parts),
                **{
                    cost: sum(part[cost] for part in parts) / len(parts)
                    for cost in ("multiply_adds", "weight_bytes")
                },
                "paper_cost": None,
            }
        )
    return found


def with_results(rows, reached):
    """Joins costs with what attentions reached, the best first.

    Args:
        rows: list of dicts, one an attention.
        reached: list of dicts, as `read_results` gives them.

    Returns:
        List of dicts, one a row of the results.

    Raises:
        ValueError: if results are of an unknown attention.
    """
    known = {row["name"]: row for row in rows}
    for row in reached:
        if row["attention"] not in known:
            raise ValueError(
                "Results must be of known attentions"
                f"{closest(row['attention'], known) or configs.HINT}. "
                f"Received: {row['attention']!r}"
            )
    return [
        {**known[row["attention"]], "reached": row}
        for row in sorted(reached, key=lambda row: -row["mean"])
    ]


# What is counted of an attention, and not measured.
COUNTS = ("multiply_adds", "paper_cost")


def plot(path, rows, baselines, source, sizes):
    """Draws what attentions reach against what they cost.

    All counts are of one size. If the results have both of `COUNTS`, they are
    of the model that was trained; else of one layer of `sizes`.

    Args:
        path: the file that is written.
        rows: list of dicts, as `with_results` gives them.
        baselines: list of dicts of rows that are no attentions.
        source: path of the results.
        sizes: triple of ints: frames, features and heads of the rows' counts.
    """
    from audio_tf.analysis import figures, row_charts

    own = all(
        any(row["reached"].get(name) is not None for row in rows)
        for name in COUNTS
    )
    if own:
        points = [row["reached"] for row in rows]
        counted = "the attentions of the trained model, one input"
    else:
        points = [
            {**row["reached"], **{name: row[name] for name in COUNTS}}
            for row in rows
        ]
        length, dim, num_heads = sizes
        counted = f"one layer, {length} frames of {dim}, {num_heads} heads"
    title = f"{source}\nmultiplications and theory: {counted}"
    figures.save(row_charts.draw_tradeoff(points, baselines, title), path)


def print_table(rows, full):
    """Prints the table.

    Args:
        rows: list of dicts, one an attention.
        full: dict of the costs of full attention.
    """
    print(
        f"{'name':32s} {'complexity':14s} {'causal':6s} "
        f"{'GMAC':>9s} {'/full':>6s} {'MB':>9s} {'/full':>6s} {'paper':>9s}"
        + (f" {'reached':>8s}" if "reached" in rows[0] else "")
    )
    for row in rows:
        compute = row["multiply_adds"] / full["multiply_adds"]
        memory = row["weight_bytes"] / full["weight_bytes"]
        paper, causal = row["paper_cost"], row["causal"]
        if "reached" in row:
            # Whether this very model was, not whether it could be.
            causal = row["reached"]["causal"] == "yes"
        print(
            f"{row['name']:32s} {row['complexity']:14s} "
            f"{'yes' if causal else 'no':6s} "
            f"{row['multiply_adds'] / 1e9:9.3f} {compute:6.2f} "
            f"{row['weight_bytes'] / 1e6:9.2f} {memory:6.2f} "
            + (f"{'-':>9s}" if paper is None else f"{paper / 1e6:9.3f}")
            + (f" {row['reached']['mean']:8.4f}" if "reached" in row else "")
        )


def cost_of_each(length, dim, num_heads, training):
    """Counts what each attention costs in one layer, for one clip.

    Args:
        length: int, frames of the clip.
        dim: int, features of a frame.
        num_heads: int, heads that share them.
        training: bool, whether the backward pass counts too.

    Returns:
        Dict by the name of the attention of a dict of `multiply_adds` and
        `weight_bytes`, as `Cost` has them, and of the `paper_cost`.
    """
    from audio_tf import attention
    from audio_tf.attention.costs import paper_cost

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
        found[name] = {
            **layer.cost(length, dim, training)._asdict(),
            "paper_cost": paper_cost(
                name,
                length,
                dim,
                num_heads,
                training=training,
                **layer.paper_sizes,
            ),
        }
    return found
