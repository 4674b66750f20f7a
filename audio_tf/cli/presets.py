"""List the released presets, and the sizes that models are built in, by name.

A released preset is listed with its figure and the licence of its corpus, a
size with what it takes. Backbones without sizes follow.
"""

from audio_tf import quiet


def add(parser):
    """Adds the flags of the command."""
    parser.add_argument(
        "--parameters",
        action="store_true",
        help="also build each size, count its parameters and say whether no "
        "output depends on later sound (takes seconds)",
    )


def run(arguments):
    """Prints the table and returns the exit status."""
    with quiet.tensorflow():
        from audio_tf import models
    for name, preset in models.list_released().items():
        print(
            f"{name:40s} {preset.description} {preset.corpus}, "
            f"{preset.split}: {preset.metric}; {preset.parameters:,} "
            f"parameters, licence of the corpus {preset.licence}"
        )
    sizes = models.list_sizes()
    for name, family in sizes.items():
        counted = ""
        if arguments.parameters:
            backbone = family.from_preset(name)
            counted = (
                f", {backbone.count_params():,} parameters, "
                f"{'causal' if backbone.causal else 'not causal'}"
            )
        print(f"{name:40s} untrained, takes {family.takes}{counted}")
    for name, family in models.BACKBONES.items():
        if family not in sizes.values():
            print(
                f"{name:40s} {family.__name__} has no sizes, "
                f"takes {family.takes}"
            )
    return 0
