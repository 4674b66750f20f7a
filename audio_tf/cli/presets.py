"""List the sizes that models are built in, by name.

Each is listed with its parameters, whether it takes waveforms or features, and
whether no output depends on later sound. Backbones without sizes follow.
"""

from audio_tf import console


def add(parser):
    """Adds nothing: the command has no flags."""


def run(arguments):
    """Prints the table and returns the exit status."""
    with console.quiet_tensorflow():
        from audio_tf import models
    sizes = models.list_sizes()
    for name, family in sizes.items():
        backbone = family.from_preset(name)
        print(
            f"{name:40s} {backbone.count_params():>12,} parameters, untrained, "
            f"takes {backbone.takes}, "
            f"{'causal' if backbone.causal else 'not causal'}"
        )
    for name, family in models.BACKBONES.items():
        if family not in sizes.values():
            print(
                f"{name:40s} {family.__name__} has no sizes, "
                f"takes {family.takes}"
            )
    return 0
